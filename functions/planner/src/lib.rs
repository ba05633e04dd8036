//! The planner function: a timer's event plans what is due and sweeps what is unfinished; an operator's command does
//! what it says.

pub mod handler;
pub mod payload;
