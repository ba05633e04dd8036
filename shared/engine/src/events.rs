//! Wide events: one for each step, with all that is known about it. Their names stand here and nowhere else.

use serde::Serialize;
use serde_json::{Map, Value};
use shardcron_domain::ids::{InstanceId, ShardKey};

/// A process that hosts the functions is up: its timer and its workers run.
pub const STARTED: &str = "started";
/// A job's scheduled times were planned.
pub const PLANNED: &str = "planned";
/// Scheduled times were recorded as skipped.
pub const SKIPPED: &str = "skipped";
/// A boundary was fixed and its shards written.
pub const FANNED_OUT: &str = "fanned_out";
/// A shard was claimed.
pub const CLAIMED: &str = "claimed";
/// A batch was committed.
pub const COMMITTED: &str = "committed";
/// What waited in a shard's outbox is settled.
pub const DRAINED: &str = "outbox_drained";
/// An effect was sent, and nobody knows what became of it; it is sent again.
pub const EFFECT_UNKNOWN: &str = "effect_unknown";
/// A target has refused an effect for good.
pub const EFFECT_REFUSED: &str = "effect_refused";
/// A shard is done.
pub const SHARD_DONE: &str = "shard_done";
/// A slow shard was cut, and what was cut off is another's.
pub const SPLIT: &str = "split";
/// A shard was given back unfinished, because the executor's time was over.
pub const RELEASED: &str = "released";
/// An attempt failed.
pub const ATTEMPT_FAILED: &str = "attempt_failed";
/// A write was refused by the store: somebody else owns the shard now.
pub const FENCED: &str = "fenced_write";
/// An executor's lease ran out before it wrote, and nobody has taken the shard yet: it stops.
pub const LEASE_OVER: &str = "lease_over";
/// A step of an instance failed.
pub const STEP_FAILED: &str = "step_failed";
/// An instance is being stopped.
pub const STOPPING: &str = "stopping";
/// An instance has ended.
pub const ENDED: &str = "ended";
/// The sweep sent messages again.
pub const RESENT: &str = "resent";
/// The sweep has looked at unfinished instances.
pub const SWEPT: &str = "swept";
/// An instance was to be made, or a message was about one, that had been made or had ended already.
pub const DUPLICATE: &str = "duplicate";
/// What an invocation of a function has consumed.
pub const CONSUMED: &str = "consumed";
/// A slot's holder is gone without having passed it on: its item was taken away by hand.
pub const HOLDER_GONE: &str = "holder_gone";
/// Scheduled times of the recent past that nothing answers for; 0 is a figure too.
pub const MISSED: &str = "missed";
/// Something went wrong that the sweep will mend; the text says what.
pub const TROUBLE: &str = "trouble";

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Its name, one of the constants of this module.
    pub event: &'static str,
    /// The instance that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The shard that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// All else.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Event {
    /// An event about nothing in particular.
    #[must_use]
    pub fn new(event: &'static str) -> Self {
        Self { event, instance: None, shard: None, fields: Map::new() }
    }

    /// An event about an instance.
    #[must_use]
    pub fn of_instance(event: &'static str, instance: &InstanceId) -> Self {
        Self { instance: Some(instance.to_string()), ..Self::new(event) }
    }

    /// An event about a shard.
    #[must_use]
    pub fn of_shard(event: &'static str, shard: &ShardKey) -> Self {
        Self { shard: Some(shard.shard.to_string()), ..Self::of_instance(event, &shard.run.instance) }
    }

    /// The event with one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}
