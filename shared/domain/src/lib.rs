//! The pure core of shardcron: ids, time, states, decisions and guarantees.
//!
//! Nothing here does IO, reads a clock, draws a random number, knows AWS or is `async`. Whoever calls hands in what
//! was read and when, and gets back what to write.

pub mod backfill;
pub mod boundary;
pub mod calendar;
pub mod certificate;
pub mod checkpoint;
pub mod decimal;
pub mod digest;
pub mod group;
pub mod ids;
pub mod instance;
pub mod invariants;
pub mod job;
pub mod lease;
pub mod limits;
pub mod location;
pub mod outbox;
pub mod overlap;
pub mod pause;
pub mod plan;
pub mod record;
pub mod result;
pub mod shard;
pub mod slot;
pub mod split;
pub mod template;
pub mod tick;
pub mod time;
pub mod verify;
