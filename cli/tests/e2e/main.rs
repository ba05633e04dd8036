//! The `shardcron` command as its users and their scripts meet it: the real binary, in directories of its own, killed,
//! paused and fed with what is wrong.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]
#![allow(clippy::print_stdout, reason = "what was drawn is shown when a test fails")]

mod disk;
mod generate;
mod harness;
mod messy;
mod receiver;
mod wait;

mod a_minute;
mod bad_files;
mod bad_rows;
mod commands;
mod crash;
mod effects;
mod flights;
mod full_disk;
mod looking;
mod oracle;
mod pause;
mod together;
mod up;
mod verify;
