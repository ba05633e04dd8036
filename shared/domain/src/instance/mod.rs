//! The instance: one logical execution of a job, its states, and every change that its item can undergo.
//!
//! ```text
//! Planned ─> Sharding ─> Running ─> Finalizing ─> Publishing ─> Succeeded
//!    └──────────┴───────────┴───────────┴─> Stopping{outcome} ─> Failed{reason} | Cancelled{by} | Replaced{by}
//! ```
//!
//! Sharding, Finalizing and Publishing are steps: they are leased, as shards are, and a crash within one is taken
//! over. Publishing is the point of no return: from there the instance only goes forward.

mod ends;
mod status;
mod steps;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::boundary::{Position, Range};
use crate::ids::{Attempt, Generation, GroupNo, InstanceId, RunId, SpecVersion, Token, Version, WriteId};
use crate::lease::Lease;
use crate::limits::GROUP_SHARDS_MAX;
use crate::shard::{Counts, Fault};
use crate::slot::SlotKey;
use crate::split::PastRun;
use crate::time::{Duration, Millis};

pub use self::status::{FailReason, InstanceStatus, Origin, Outcome, SkipReason, WaitingFor, Window};

/// A leased step of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Fix the boundary, write the shards.
    FanOut,
    /// Merge the results and write the parts.
    Finalize,
    /// Put the certificate.
    Publish,
}

/// The frozen input, as the instance remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Boundary {
    /// The manifest's key in the installation's own place.
    pub manifest: String,
    /// SHA-256 of the manifest, in hex.
    pub digest: String,
    /// How many shards it was cut into.
    pub shards: u32,
    /// The whole of it, which the ranges of the shards tile.
    pub whole: Range,
    /// How many objects are in it; none when it isn't one of objects.
    pub objects: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl Boundary {
    /// How much it is: bytes of objects, or else keys or items.
    #[must_use]
    pub fn extent(&self) -> u64 {
        match (self.whole.from(), self.whole.to()) {
            (Position::Key(from), Position::Key(to)) => to.abs_diff(from),
            (Position::Item(from), Position::Item(to)) => u64::from(to.saturating_sub(from)),
            _ => self.bytes,
        }
    }

    /// How many groups its shards make.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.shards.div_ceil(GROUP_SHARDS_MAX as u32)
    }
}

/// An instance as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// Its identity.
    pub id: InstanceId,
    /// Which run from scratch this is.
    pub generation: Generation,
    /// Which attempt of that.
    pub attempt: Attempt,
    /// The fencing token of its steps.
    pub token: Token,
    /// +1 at each write.
    pub version: Version,
    /// Of the last write.
    pub write_id: WriteId,
    /// Where it stands.
    pub status: InstanceStatus,
    /// The version of the job's spec that it runs under.
    pub spec: SpecVersion,
    /// What made it.
    pub origin: Origin,
    /// What data it is about.
    pub window: Window,
    /// When it was written down.
    pub planned_at: Millis,
    /// When its present attempt was asked for, where that isn't its first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Millis>,
    /// When fan-out first claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    /// When `activeDeadlineSeconds` end; fixed at the first claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
    /// Of the step being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// No claim before this: the pause after a failed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    /// Consecutive failures of the step.
    pub failures: u32,
    /// Claims of a step while a former owner hadn't released it.
    pub takeovers: u32,
    /// The frozen input, from the end of fan-out on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    /// The groups of which all shards are done.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups_done: BTreeSet<GroupNo>,
    /// Of all shards, from the end of finalize on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// How long all shards were worked on, together; from the end of finalize on.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub worked: Duration,
    /// When the sweep should look at it again; absent once it has ended, and its end was announced where there is
    /// somebody to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look: Option<Millis>,
    /// How often messages for it were sent again without anything having moved.
    #[serde(default)]
    pub resends: u32,
    /// When messages about its waiting shards may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_at: Option<Millis>,
    /// How many shards were done at the last look.
    #[serde(default)]
    pub seen_done: u32,
    /// The last failure of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<Fault>,
    /// The slot that it holds or waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotKey>,
    /// Why the scheduled time was skipped at first, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipReason>,
}

/// What a claim of a step comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepClaim {
    /// Write this, and the step is the claimer's.
    Claimed(Step, Box<Instance>),
    /// Write this: it is being stopped, and no step starts.
    Stopped(Box<Instance>),
    /// Somebody else's until then.
    Held {
        /// When the lease ends.
        until: Millis,
    },
    /// It pauses after a failure until then.
    NotBefore(Millis),
    /// There is no step to do now: its shards are at work, or it is stopping, or has ended.
    Nothing,
}

/// Why a change of an instance is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// The state doesn't allow the event.
    #[error("{instance} is {status}, and can't {event}")]
    Illegal {
        /// Which instance.
        instance: InstanceId,
        /// Its state's name.
        status: &'static str,
        /// What was tried, as what an instance does or is done to: `be stopped`.
        event: &'static str,
    },
    /// It has ended, and a new run would take away what remembers that this is still to be announced.
    #[error("{instance} has ended, and its end isn't announced yet")]
    Unannounced {
        /// Which instance.
        instance: InstanceId,
    },
    /// The step's lease may be over.
    #[error("our lease on {instance} ended at {until}")]
    LeaseOver {
        /// Which instance.
        instance: InstanceId,
        /// When it ended.
        until: Millis,
    },
}

impl Instance {
    /// A new instance, planned.
    #[must_use]
    pub fn planned(
        id: InstanceId,
        spec: SpecVersion,
        origin: Origin,
        window: Window,
        now: Millis,
        write_id: WriteId,
    ) -> Self {
        Self {
            id,
            generation: Generation::FIRST,
            attempt: Attempt::FIRST,
            token: Token::FIRST,
            version: Version::FIRST,
            write_id,
            status: InstanceStatus::Planned,
            spec,
            origin,
            window,
            planned_at: now,
            begun_at: None,
            started_at: None,
            ended_at: None,
            deadline: None,
            lease: None,
            not_before: None,
            failures: 0,
            takeovers: 0,
            boundary: None,
            groups_done: BTreeSet::new(),
            counts: None,
            worked: Duration::ZERO,
            next_look: Some(now),
            resends: 0,
            resend_at: None,
            seen_done: 0,
            last_fault: None,
            slot: None,
            skipped: None,
        }
    }

    /// The generation that it is at.
    #[must_use]
    pub fn run(&self) -> RunId {
        RunId { instance: self.id.clone(), generation: self.generation }
    }

    /// Since when it is unfinished: since it was written down, or asked for again.
    #[must_use]
    pub fn open_since(&self) -> Millis {
        self.begun_at.unwrap_or(self.planned_at)
    }

    /// Whether the done sets say that all shards are done.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.boundary.as_ref().is_some_and(|boundary| self.groups_done.len() as u32 >= boundary.groups())
    }

    /// What it says about the pace of its job, once it has succeeded.
    #[must_use]
    pub fn past_run(&self) -> Option<PastRun> {
        let boundary = self.boundary.as_ref().filter(|_| self.status == InstanceStatus::Succeeded)?;
        Some(PastRun { extent: boundary.extent(), worked: self.worked })
    }

    fn changed(&self, write_id: &WriteId) -> Self {
        Self { version: self.version.next(), write_id: write_id.clone(), ..self.clone() }
    }

    fn illegal(&self, event: &'static str) -> InstanceError {
        InstanceError::Illegal { instance: self.id.clone(), status: self.status.name(), event }
    }
}
