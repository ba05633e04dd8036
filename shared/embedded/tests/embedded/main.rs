//! What shardcron relies on of the stand-ins, through the SDK; and what a request to them costs.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod latency;
mod processes;
mod support;
mod table;
