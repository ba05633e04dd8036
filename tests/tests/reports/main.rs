//! Faults that other schedulers were seen to have, shown not to be here: with the whole engine, in virtual time. Each
//! test names the report; `docs/field-reports.md` lists them all.
#![expect(clippy::unwrap_used, reason = "tests panic where something is wrong")]

mod backfill;
mod planning;
mod recovery;
#[path = "../planner/support.rs"]
#[allow(dead_code, reason = "the planner's tests use more of it")]
mod support;
