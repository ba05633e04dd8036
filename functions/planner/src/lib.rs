//! The planner function: a timer's event plans what is due and sweeps what is unfinished.

pub mod handler;
