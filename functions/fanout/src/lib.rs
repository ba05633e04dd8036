//! The fan-out function: the steps of an instance, from its boundary to its published output.

pub mod handler;
