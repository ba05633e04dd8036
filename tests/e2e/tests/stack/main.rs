//! A deployed stack from the schedule to the published result, and under what goes wrong in a cloud.
//!
//! Each test has a job of its own, so that all can run on one stack at the same time, but for two kinds: those in
//! `killed` stop processes of the functions, and those in `messages` wait until the queues are empty. `localstack/test`
//! runs these first and alone. Without a stack each says that it isn't run.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod cancel;
mod killed;
mod long;
mod many;
mod messages;
mod poison;
mod schedule;
