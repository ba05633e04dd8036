//! The engine of shardcron in a world of its own: one store, one place for objects, one queue, virtual time, and any
//! number of processes that can crash, freeze, lose answers and have wrong clocks.
//!
//! # How it works
//!
//! A test runs on tokio's paused clock in one thread: whenever nothing can go on, time jumps to the next moment at which
//! something can. Nothing waits for real, and the same seed always gives the same run.
//!
//! A [`World`](world::World) holds what outlives processes. A [`Process`](process::Process) is an engine with a
//! [`Gate`](gate::Gate) of its own before store and objects; each request passes the gate before it takes effect and
//! before its answer is given, and a [`Script`](gate::Script) says there what becomes of it. After each write the
//! [`Checker`](check::Checker) compares the whole store with what it was before, by the predicates of
//! [`shardcron_domain::invariants`]; what it finds fails the test, wherever it happened.
#![expect(clippy::expect_used, clippy::panic, reason = "panics are how a test harness reports")]
#![allow(clippy::missing_panics_doc, reason = "everything here may panic: it is for tests only")]

pub mod bus;
mod changes;
pub mod check;
mod each;
pub mod fixture;
pub mod gate;
pub mod keyed;
pub mod life;
pub mod objects;
pub mod planning;
pub mod ports;
pub mod process;
pub mod queue;
pub mod simulation;
pub mod store;
pub mod target;
pub mod watch;
pub mod work;
pub mod world;
