//! Simulation: a scenario is drawn by its seed, run in a world of virtual time and drawn faults, and judged.
//!
//! What may happen stands in [`scenario`], [`chaos`] and [`commands`]; what must hold in [`verdict`], beside what the
//! [`Checker`](crate::check::Checker) holds after each write. [`seeds`] runs many.

pub mod chaos;
pub mod commands;
pub mod input;
pub mod run;
pub mod scenario;
pub mod seeds;
pub mod verdict;
