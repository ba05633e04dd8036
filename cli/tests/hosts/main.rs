//! Several `shardcron host` processes, for real: on one table and its queues, served to all of them over HTTP, while
//! they are killed, stopped, given a wrong clock, or left without room.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]
#![allow(clippy::print_stdout, reason = "what was drawn, or skipped, is shown")]

#[allow(dead_code, reason = "shared with the tests of the embedded installation")]
#[path = "../e2e/disk.rs"]
mod disk;
#[allow(dead_code, reason = "shared with the tests of the embedded installation")]
#[path = "../e2e/generate.rs"]
mod generate;
#[allow(dead_code, reason = "shared with the tests of the embedded installation")]
#[path = "../e2e/harness.rs"]
mod harness;
mod installation;
#[allow(dead_code, reason = "shared with the tests of the embedded installation")]
#[path = "../e2e/wait.rs"]
mod wait;

mod clocks;
mod kills;
mod room;
mod stops;
