//! Works as the engine uses them, through the crate's public items alone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails, fails its test")]

mod aggregate;
mod common;
mod flights;
mod properties;
mod registry;
mod send;
