//! A deployed stack, as its operators meet it: by the `aws` and `shardcron` commands, and, on a stand-in that runs the
//! functions on this machine, by their processes.
//!
//! Nothing of the engine is linked here, so that what is asserted is what everybody can see. `localstack/test` brings a
//! stack up and runs the tests; the environment that they need is the one that `localstack/env` prints.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are how a test harness reports")]
#![expect(clippy::disallowed_methods, reason = "the stack is real, and so are its time and its environment")]
#![allow(clippy::missing_panics_doc, reason = "everything here may panic: it is for tests only")]

pub mod job;
pub mod processes;
pub mod stack;
pub mod wait;
