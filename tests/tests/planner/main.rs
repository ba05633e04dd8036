//! The planner in the whole engine: policies, deadlines, catch-up, backfills and audits, in virtual time and under faults.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests panic where something is wrong")]

mod audit;
mod backfill;
mod cancel;
mod catch_up;
mod cost;
mod deadlines;
mod edits;
mod faults;
mod pauses;
mod policies;
mod skew;
mod support;
mod ticks;
