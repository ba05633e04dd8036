//! Where an instance stands, what made it, and how it ends.

use serde::{Deserialize, Serialize};

use super::Step;
use crate::backfill::BackfillId;
use crate::ids::InstanceId;
use crate::shard::Fault;
use crate::time::ScheduledTime;

/// The data that an instance is about: from `start`, up to but without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// The first instant that belongs to it.
    pub start: ScheduledTime,
    /// The first that no longer does.
    pub end: ScheduledTime,
}

/// What made the instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The planner, at its scheduled time.
    Schedule,
    /// A person or a program, by name.
    Trigger,
    /// A backfill.
    Backfill {
        /// Its id.
        id: BackfillId,
    },
}

/// Why a scheduled time has no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl SkipReason {
    /// Its name, as accounts and commands show it.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// How an instance that is stopped ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Outcome {
    /// What a person reads.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Failed(reason) => reason.describe(),
            Self::Cancelled { by } => format!("cancelled by {by}"),
            Self::Replaced { by } => format!("replaced by {by}"),
        }
    }
}

/// Why an instance failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// The marker that `input.ready` names wasn't there in time.
    NotReady {
        /// The marker.
        object: String,
    },
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
                format!(
                    "{rejected} records were rejected, and the job allows {max} (rejects.max); `shardcron rejects \
                    INSTANCE` shows each of them"
                )
            }
            Self::DeadlineExceeded => "the job's activeDeadlineSeconds are over".to_owned(),
            Self::NotReady { object } => format!("{object} (input.ready) wasn't there in time"),
        }
    }
}

/// What an instance waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitingFor {
    /// The slot.
    Slot,
    /// The marker that its job's `input.ready` names.
    Ready,
}

/// Where an instance stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstanceStatus {
    /// Written down, and not to be started yet.
    Waiting(WaitingFor),
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
            Self::Waiting(_) => "Waiting",
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

    /// How it ended, if it has ended otherwise than well, or is about to.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Stopping(outcome) => Some(outcome.clone()),
            Self::Failed(reason) => Some(Outcome::Failed(reason.clone())),
            Self::Cancelled { by } => Some(Outcome::Cancelled { by: by.clone() }),
            Self::Replaced { by } => Some(Outcome::Replaced { by: by.clone() }),
            _ => None,
        }
    }

    pub(super) fn step(&self) -> Option<Step> {
        match self {
            Self::Planned | Self::Sharding => Some(Step::FanOut),
            Self::Running | Self::Finalizing => Some(Step::Finalize),
            Self::Publishing => Some(Step::Publish),
            _ => None,
        }
    }
}
