//! What is deployed, held against the code: the template's table, functions, policies, alarms and dashboard.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests panic where something is wrong")]

mod functions;
mod metrics;
mod policies;
mod table;
mod template;
