//! The use-cases of shardcron: load what is stored, let the domain decide, apply the decision.
//!
//! Nothing here reads a clock, draws a random number or spawns a task: those are ports, so that a simulation can own
//! time and order. Each use-case can be repeated, and can be cut off after any of its writes: whoever comes next,
//! by a message or by the sweep, goes on from what is stored.

use std::ops::Deref;
use std::sync::Arc;

use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::limits;
use shardcron_domain::location::Location;
use shardcron_domain::time::{Duration, Millis, Reading};
use shardcron_effects::EffectTargets;
use shardcron_objects::Objects;
use shardcron_queue::{Queue, QueueName};
use shardcron_store::Store;
use shardcron_work::Works;

pub mod announce;
pub mod apply;
pub mod audit;
pub mod backfill;
mod batch;
pub mod command;
mod done;
pub mod error;
pub mod events;
mod fan_out;
mod finalize;
mod held;
mod history;
pub mod messages;
pub mod outbox;
mod pieces;
mod place;
pub mod plan;
pub mod ports;
mod reading;
mod run_shard;
mod slots;
mod snapshot;
mod split;
mod step;
mod stop;
mod sweep;
mod tick;
pub mod trigger;
pub mod verify;
pub mod view;
mod write;

pub use error::EngineError;
pub use sweep::Sweep;
pub use tick::Ticked;

/// What an installation sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The lease that executors take; within [`limits::LEASE_MIN`] and [`limits::LEASE_MAX`].
    pub lease: Duration,
    /// How long after sending messages the sweep sends them again; see [`limits::RESEND_AFTER`].
    pub resend_after: Duration,
    /// How often an input that isn't ready is looked at again; see [`limits::READY_POLL`].
    pub ready_poll: Duration,
    /// The installation's own place for manifests.
    pub state: Location,
}

/// What the engine works with.
pub struct Ports {
    /// The table.
    pub store: Arc<dyn Store>,
    /// The objects.
    pub objects: Arc<dyn Objects>,
    /// The queues.
    pub queue: Arc<dyn Queue>,
    /// The targets of effects outside of results.
    pub effects: Arc<dyn EffectTargets>,
    /// The storage clock, and sleep.
    pub clock: Arc<dyn ports::Clock>,
    /// Chance.
    pub random: Arc<dyn ports::Random>,
    /// Who is told.
    pub events: Arc<dyn ports::Events>,
    /// Who announces the ends of instances; nobody where nobody asked for it.
    pub announcer: Option<Arc<dyn announce::Announcer>>,
    /// The works that jobs can name.
    pub works: Works,
    /// The zone rules.
    pub rules: ZoneRules,
    /// What the installation sets.
    pub settings: Settings,
}

/// The use-cases, over these ports. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Ports>);

impl Deref for Engine {
    type Target = Ports;
    fn deref(&self) -> &Ports {
        &self.0
    }
}

impl Engine {
    /// The use-cases over these ports.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        Self(Arc::new(ports))
    }
}

/// The message that asked for the work, so that its visibility can follow the lease.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Where it came from.
    pub queue: QueueName,
    /// What names it there.
    pub receipt: String,
}

/// How much time an executor has, and whether it has been asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// When its invocation ends, on the storage clock; `None` where nothing ends it.
    pub ends: Option<Millis>,
    /// Set when the process is to stop soon.
    pub stop: Option<Arc<std::sync::atomic::AtomicBool>>,
}

impl Budget {
    /// Whether it is time to commit and give back.
    #[must_use]
    pub fn is_over(&self, now: Reading) -> bool {
        let asked = self.stop.as_ref().is_some_and(|stop| stop.load(std::sync::atomic::Ordering::Relaxed));
        asked || self.ends.is_some_and(|ends| now.latest().plus(limits::SHUTDOWN_MARGIN) >= ends)
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// There is nothing more to do about it: delete it.
    Done,
    /// Look again then.
    Later(Millis),
}
