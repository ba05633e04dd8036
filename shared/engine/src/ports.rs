//! What the engine needs of the world beside store, objects and queue: a clock, sleep, chance, and somebody to tell.

use async_trait::async_trait;
use shardcron_domain::ids::{Owner, WriteId};
use shardcron_domain::shard::Stamp;
use shardcron_domain::time::{Duration, Reading};

use crate::events::Event;

/// The storage clock, and sleep. A simulation owns both.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The present reading.
    fn now(&self) -> Reading;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}

/// Chance: for ids and jitter, never for decisions that must be repeatable.
pub trait Random: Send + Sync {
    /// Uniform over all of `u64`.
    fn next(&self) -> u64;
}

/// Who is told what happened.
pub trait Events: Send + Sync {
    /// Takes one wide event.
    fn emit(&self, event: Event);
}

/// An id of 128 random bits, in hex: 32 characters, as a DynamoDB client token allows (at most 36).
fn fresh_id(random: &dyn Random) -> String {
    format!("{:016x}{:016x}", random.next(), random.next())
}

/// A fresh write id.
#[must_use]
pub fn fresh_write_id(random: &dyn Random) -> WriteId {
    WriteId(fresh_id(random))
}

/// A fresh owner id.
#[must_use]
pub fn fresh_owner(random: &dyn Random) -> Owner {
    Owner(format!("{:016x}", random.next()))
}

/// A fresh write id and the present reading.
#[must_use]
pub fn stamp(clock: &dyn Clock, random: &dyn Random) -> Stamp {
    Stamp { write_id: fresh_write_id(random), now: clock.now() }
}
