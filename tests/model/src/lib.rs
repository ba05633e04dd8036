//! The protocols of shardcron as models: every order of steps, up to a bound, with faults and without.
//!
//! A model's transitions are the domain's own decisions: what an executor, a planner or a sweep writes is what
//! `shardcron_domain` says. A model supplies what is around them: a store that holds items and checks conditions, answers
//! that are lost, messages that are lost or repeated, processes that stop between any two calls, clocks that are wrong. One
//! step is one call to the store, in the order in which the engine makes them.
//!
//! After each step the guarantees are checked by the predicates of `shardcron_domain::invariants`. Of each [`Fault`] that
//! can be built into a model, the tests say which guarantee it breaks, so that a check that finds nothing is known to be
//! able to find something.

pub mod clock;
pub mod explore;
pub mod fault;
pub mod guarantee;
pub mod instance;
pub mod shard;
pub mod slot;

pub use fault::Fault;
pub use guarantee::{Broken, Guarantee};
