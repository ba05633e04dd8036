//! The instance: one logical execution of a job, its states, and every change that its item can undergo.
//!
//! ```text
//! Planned ─> Sharding ─> Running ─> Finalizing ─> Publishing ─> Succeeded
//!    └──────────┴───────────┴───────────┴─> Stopping{outcome} ─> Failed{reason} | Cancelled{by} | Replaced{by}
//! ```
//!
//! Sharding, Finalizing and Publishing are steps: they are leased, as shards are, and a crash within one is taken
//! over. Publishing is the point of no return: from there the instance only goes forward.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::{Attempt, Generation, GroupNo, InstanceId, RunId, SpecVersion, Token, Version, WriteId};
use crate::lease::{Claimer, Lease, backoff};
use crate::limits::{GROUP_SHARDS_MAX, RESEND_DOUBLINGS_MAX};
use crate::shard::{Counts, Fault, FaultKind, Stamp};
use crate::time::{Duration, Millis, Reading, ScheduledTime};

/// The data that an instance is about: from `start`, up to but without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The first instant that belongs to it.
    pub start: ScheduledTime,
    /// The first that no longer does.
    pub end: ScheduledTime,
}

/// What made the instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The planner, at its scheduled time.
    Schedule,
    /// A person or a program, by name.
    Trigger,
}

/// Why a scheduled time has no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SkipReason {
    /// Passed while nobody planned, and the job's `catchUp` leaves it out.
    CatchUp,
    /// Too late by the job's `startingDeadlineSeconds`.
    StartingDeadlineExceeded,
    /// The job was suspended.
    Suspended,
    /// The job's `concurrencyPolicy` left it out: another instance was running.
    Overlap,
    /// The queue of waiting instances was full.
    QueueFull,
}

/// How an instance that is stopped ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It failed.
    Failed(FailReason),
    /// Somebody cancelled it.
    Cancelled {
        /// Who.
        by: String,
    },
    /// A later instance of the job took its place.
    Replaced {
        /// Which.
        by: InstanceId,
    },
}

/// Why an instance failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailReason {
    /// The listing was empty, and the job doesn't say `ifEmpty: succeed`.
    EmptyInput {
        /// Where it looked.
        place: String,
    },
    /// A step (fan-out or finalize) failed.
    Step(Fault),
    /// A shard failed.
    Shard {
        /// Which.
        shard: String,
        /// Its fault.
        fault: Fault,
    },
    /// More records were rejected than the job allows.
    TooManyRejects {
        /// How many were.
        rejected: u64,
        /// How many may be.
        max: u64,
    },
    /// The job's `activeDeadlineSeconds` are over.
    DeadlineExceeded,
}

impl FailReason {
    /// What a person reads.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::EmptyInput { place } => {
                format!("the input is empty: nothing under {place} (`\"ifEmpty\": \"succeed\"` would allow it)")
            }
            Self::Step(fault) => fault.summary().to_owned(),
            Self::Shard { shard, fault } => format!("shard {shard}: {}", fault.summary()),
            Self::TooManyRejects { rejected, max } => {
                format!("{rejected} records were rejected, and the job allows {max} (rejects.max)")
            }
            Self::DeadlineExceeded => "the job's activeDeadlineSeconds are over".to_owned(),
        }
    }
}

/// Where an instance stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstanceStatus {
    /// Written down; nobody has started it.
    Planned,
    /// Its boundary is being fixed and cut into shards.
    Sharding,
    /// Its shards are worked on.
    Running,
    /// Its results are being merged.
    Finalizing,
    /// Its output is being published.
    Publishing,
    /// Its open shards are being fenced; then it ends as `Outcome` says.
    Stopping(Outcome),
    /// Its output is published. An end.
    Succeeded,
    /// It failed. An end, until a retry or rerun.
    Failed(FailReason),
    /// It was cancelled. An end, until a retry or rerun.
    Cancelled {
        /// By whom.
        by: String,
    },
    /// A later instance took its place. An end, until a rerun.
    Replaced {
        /// Which.
        by: InstanceId,
    },
}

impl InstanceStatus {
    /// Whether it is an end.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed(_) | Self::Cancelled { .. } | Self::Replaced { .. })
    }

    /// The state's name, as commands show it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Planned => "Planned",
            Self::Sharding => "Sharding",
            Self::Running => "Running",
            Self::Finalizing => "Finalizing",
            Self::Publishing => "Publishing",
            Self::Stopping(_) => "Stopping",
            Self::Succeeded => "Succeeded",
            Self::Failed(_) => "Failed",
            Self::Cancelled { .. } => "Cancelled",
            Self::Replaced { .. } => "Replaced",
        }
    }

    fn step(&self) -> Option<Step> {
        match self {
            Self::Planned | Self::Sharding => Some(Step::FanOut),
            Self::Running | Self::Finalizing => Some(Step::Finalize),
            Self::Publishing => Some(Step::Publish),
            _ => None,
        }
    }
}

/// A leased step of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Fix the boundary, write the shards.
    FanOut,
    /// Merge the results and write the parts.
    Finalize,
    /// Put the certificate.
    Publish,
}

/// The frozen input, as the instance remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boundary {
    /// The manifest's key in the installation's own place.
    pub manifest: String,
    /// SHA-256 of the manifest, in hex.
    pub digest: String,
    /// How many shards it was cut into.
    pub shards: u32,
    /// How many objects are in it.
    pub objects: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl Boundary {
    /// How many groups its shards make.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.shards.div_ceil(GROUP_SHARDS_MAX as u32)
    }
}

/// An instance as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// When the sweep should look at it again; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look: Option<Millis>,
    /// How often messages for it were sent again without anything having moved.
    #[serde(default)]
    pub resends: u32,
    /// How many shards were done at the last look.
    #[serde(default)]
    pub seen_done: u32,
    /// The last failure of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<Fault>,
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
    #[error("{instance} is {status}, which {event} doesn't go with")]
    Illegal {
        /// Which instance.
        instance: InstanceId,
        /// Its state's name.
        status: &'static str,
        /// What was tried.
        event: &'static str,
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
            next_look: Some(now),
            resends: 0,
            seen_done: 0,
            last_fault: None,
        }
    }

    /// The generation that it is at.
    #[must_use]
    pub fn run(&self) -> RunId {
        RunId { instance: self.id.clone(), generation: self.generation }
    }

    /// Whether the done sets say that all shards are done.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.boundary.as_ref().is_some_and(|boundary| self.groups_done.len() as u32 >= boundary.groups())
    }

    fn changed(&self, write_id: &WriteId) -> Self {
        Self { version: self.version.next(), write_id: write_id.clone(), ..self.clone() }
    }

    fn illegal(&self, event: &'static str) -> InstanceError {
        InstanceError::Illegal { instance: self.id.clone(), status: self.status.name(), event }
    }

    /// Decides a claim of the step that is due. `active_deadline` is the job's `activeDeadlineSeconds`.
    #[must_use]
    pub fn claim(&self, claimer: &Claimer, active_deadline: Option<Duration>) -> StepClaim {
        let now = claimer.now;
        let Some(step) = self.status.step() else { return StepClaim::Nothing };
        if self.status == InstanceStatus::Running && !self.is_full() {
            return StepClaim::Nothing;
        }
        let taken_over = match &self.lease {
            None => false,
            Some(lease) if lease.is_over(now) => true,
            Some(lease) => return StepClaim::Held { until: lease.until },
        };
        if let Some(at) = self.not_before
            && now.earliest() < at
        {
            return StepClaim::NotBefore(at);
        }
        if step != Step::Publish && self.is_past_deadline(now) {
            return StepClaim::Stopped(Box::new(self.stopping(
                Outcome::Failed(FailReason::DeadlineExceeded),
                now,
                &claimer.write_id,
            )));
        }
        let mut next = self.changed(&claimer.write_id);
        next.token = self.token.next();
        next.not_before = None;
        if taken_over {
            next.takeovers += 1;
            next.failures += 1;
            let text = "the process that worked on it stopped without a word";
            let fault = next.last_fault.get_or_insert_with(|| Fault::new(FaultKind::Crash, text)).clone();
            if next.failures > claimer.backoff_limit && step != Step::Publish {
                let outcome = Outcome::Failed(FailReason::Step(fault));
                return StepClaim::Stopped(Box::new(self.stopping(outcome, now, &claimer.write_id)));
            }
        }
        if next.started_at.is_none() {
            next.started_at = Some(now.at);
            next.deadline = active_deadline.map(|seconds| now.at.plus(seconds));
        }
        next.status = match step {
            Step::FanOut => InstanceStatus::Sharding,
            Step::Finalize => InstanceStatus::Finalizing,
            Step::Publish => InstanceStatus::Publishing,
        };
        let lease = claimer.lease();
        next.next_look = Some(lease.until);
        next.lease = Some(lease);
        StepClaim::Claimed(step, Box::new(next))
    }

    /// Whether `activeDeadlineSeconds` are over, as far as the reading can tell.
    #[must_use]
    pub fn is_past_deadline(&self, now: Reading) -> bool {
        self.deadline.is_some_and(|deadline| !now.is_surely_before(deadline))
    }

    fn owned(&self, now: Reading, event: &'static str) -> Result<&Lease, InstanceError> {
        match &self.lease {
            Some(lease) if lease.is_valid(now) => Ok(lease),
            Some(lease) => Err(InstanceError::LeaseOver { instance: self.id.clone(), until: lease.until }),
            None => Err(self.illegal(event)),
        }
    }

    /// The step's lease, renewed.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn heartbeat(&self, stamp: &Stamp) -> Result<Self, InstanceError> {
        let lease = self.owned(stamp.now, "a heartbeat")?;
        let until = stamp.now.at.plus(lease.length);
        let mut next = self.changed(&stamp.write_id);
        next.lease = Some(Lease { until, ..lease.clone() });
        next.next_look = Some(until);
        Ok(next)
    }

    /// Fan-out is over: the shards are written. From Sharding to Running.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn sharded(&self, stamp: &Stamp, boundary: Boundary) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Sharding {
            return Err(self.illegal("the end of fan-out"));
        }
        self.owned(stamp.now, "the end of fan-out")?;
        let mut next = self.step_over(stamp);
        next.status = InstanceStatus::Running;
        next.boundary = Some(boundary);
        next.next_look = Some(stamp.now.at);
        Ok(next)
    }

    /// The lease given up, the failures forgotten.
    fn step_over(&self, stamp: &Stamp) -> Self {
        let mut next = self.changed(&stamp.write_id);
        next.lease = None;
        next.not_before = None;
        next.failures = 0;
        next.last_fault = None;
        next.resends = 0;
        next
    }

    /// Not all shards are done after all: from Finalizing back to Running, without the groups that aren't.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn not_full(&self, stamp: &Stamp, groups_done: BTreeSet<GroupNo>) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Finalizing {
            return Err(self.illegal("going back to its shards"));
        }
        self.owned(stamp.now, "going back to its shards")?;
        let mut next = self.step_over(stamp);
        next.status = InstanceStatus::Running;
        next.groups_done = groups_done;
        next.next_look = Some(stamp.now.at);
        Ok(next)
    }

    /// The parts are written: from Finalizing to Publishing, the point of no return, under the same lease.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn publishing(&self, stamp: &Stamp, counts: Counts) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Finalizing {
            return Err(self.illegal("publishing"));
        }
        let mut next = self.heartbeat(stamp)?;
        next.status = InstanceStatus::Publishing;
        next.counts = Some(counts);
        next.failures = 0;
        Ok(next)
    }

    /// The certificate is there: from Publishing to Succeeded.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn succeeded(&self, stamp: &Stamp) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Publishing {
            return Err(self.illegal("success"));
        }
        self.owned(stamp.now, "success")?;
        let mut next = self.step_over(stamp);
        next.status = InstanceStatus::Succeeded;
        next.ended_at = Some(stamp.now.at);
        next.next_look = None;
        Ok(next)
    }

    /// The step's owner records a failure: a pause, or, when it is one too many or another try can't mend it,
    /// Stopping. In Publishing always a pause: from there it only goes forward.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn step_failed(
        &self,
        stamp: &Stamp,
        fault: Fault,
        backoff_limit: u32,
        random: u64,
    ) -> Result<Self, InstanceError> {
        self.owned(stamp.now, "a failure of its step")?;
        let failures = self.failures + 1;
        let hopeless = fault.kind == FaultKind::Input || failures > backoff_limit;
        if hopeless && self.status != InstanceStatus::Publishing {
            let outcome = Outcome::Failed(FailReason::Step(fault));
            return Ok(self.stopping(outcome, stamp.now, &stamp.write_id));
        }
        let mut next = self.changed(&stamp.write_id);
        let at = stamp.now.at.plus(backoff(failures, random));
        next.lease = None;
        next.failures = failures;
        next.last_fault = Some(fault);
        next.not_before = Some(at);
        next.next_look = Some(at);
        Ok(next)
    }

    fn stopping(&self, outcome: Outcome, now: Reading, write_id: &WriteId) -> Self {
        let mut next = self.changed(write_id);
        next.token = self.token.next();
        next.status = InstanceStatus::Stopping(outcome);
        next.lease = None;
        next.not_before = None;
        next.next_look = Some(now.at);
        next
    }

    /// It is to be stopped, and to end as `outcome` says. Its token goes up, so that no step of it can write.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`] from Publishing on: it is too late.
    pub fn stop(&self, outcome: Outcome, stamp: &Stamp) -> Result<Self, InstanceError> {
        match self.status {
            InstanceStatus::Planned
            | InstanceStatus::Sharding
            | InstanceStatus::Running
            | InstanceStatus::Finalizing => Ok(self.stopping(outcome, stamp.now, &stamp.write_id)),
            _ => Err(self.illegal("being stopped")),
        }
    }

    /// No shard is open any more: from Stopping to its end.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`].
    pub fn ended(&self, stamp: &Stamp) -> Result<Self, InstanceError> {
        let InstanceStatus::Stopping(outcome) = &self.status else { return Err(self.illegal("ending")) };
        let mut next = self.changed(&stamp.write_id);
        next.status = match outcome.clone() {
            Outcome::Failed(reason) => InstanceStatus::Failed(reason),
            Outcome::Cancelled { by } => InstanceStatus::Cancelled { by },
            Outcome::Replaced { by } => InstanceStatus::Replaced { by },
        };
        next.ended_at = Some(stamp.now.at);
        next.next_look = None;
        Ok(next)
    }

    /// The sweep has looked, found nothing to end, and sent messages: when to look again. The pause doubles each time
    /// that nothing has moved since, so that a long queue isn't flooded. `done` is how many shards are done now.
    #[must_use]
    pub fn looked(&self, stamp: &Stamp, resend_after: Duration, done: u32) -> Self {
        let mut next = self.changed(&stamp.write_id);
        next.resends = if done > self.seen_done { 0 } else { (self.resends + 1).min(RESEND_DOUBLINGS_MAX) };
        next.seen_done = done;
        next.next_look = Some(stamp.now.at.plus(resend_after.times(1 << next.resends)));
        next
    }
}
