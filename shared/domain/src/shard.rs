//! The shard: its states, who owns it, and every change that its item can undergo.
//!
//! A change is a function from what was read to what is to be written; the store applies it on condition that the
//! item is still the one that was read (its token and version). What a state doesn't allow is refused by a typed
//! error, so that no caller can write an illegal one.

mod fault;
mod owner;

use serde::{Deserialize, Serialize};

pub use self::fault::{Fault, FaultKind};
pub use self::owner::{OwnerError, Stamp};
use crate::boundary::Range;
use crate::checkpoint::Checkpoint;
use crate::ids::{Attempt, ShardKey, Token, Version, WriteId};
use crate::lease::{Claimer, Lease};
use crate::outbox::Outbox;
use crate::time::{Duration, Millis};

/// What was read, and what became of it. Records, never bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Records of the input that are done: each is in the results or in the rejects.
    #[serde(rename = "in")]
    pub input: u64,
    /// Those in the results.
    #[serde(rename = "out")]
    pub output: u64,
    /// Those in the rejects.
    #[serde(rename = "rej")]
    pub rejected: u64,
}

impl Counts {
    /// The sum of two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            rejected: self.rejected + other.rejected,
        }
    }
}

/// Why a shard was closed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FenceReason {
    /// Its instance is being stopped.
    Stopping,
    /// Its instance has ended, or gone on to another generation or attempt.
    Superseded,
}

/// Where a shard stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShardStatus {
    /// Nobody owns it.
    Pending,
    /// Somebody does, or did until the lease was over.
    Leased(Lease),
    /// All of its records are in the results or rejects. An end.
    Done,
    /// It failed more often than allowed, or only other input can mend it. An end, until a retry.
    Failed(Fault),
    /// It was closed from outside. An end, until a retry.
    Fenced(FenceReason),
}

impl ShardStatus {
    /// Whether it can still be claimed at some time.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::Leased(_))
    }
}

/// Where a shard's result rows stand when they are too many for its transactions: in one object, which each commit
/// writes anew under a name of its own and the shard's item points to. What an owner that was refused has written there
/// is pointed to by nobody.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    /// The object's name among the shard's.
    pub name: String,
    /// The first half of its SHA-256, in hex.
    pub digest: String,
}

/// A shard as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// Its identity.
    pub key: ShardKey,
    /// Its part of the boundary.
    pub range: Range,
    /// The attempt of the instance that it was last opened for.
    pub attempt: Attempt,
    /// The fencing token.
    pub token: Token,
    /// +1 at each write.
    pub version: Version,
    /// Of the last write.
    pub write_id: WriteId,
    /// Where it stands.
    pub status: ShardStatus,
    /// No claim before this: the pause after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    /// What of it is done.
    pub checkpoint: Checkpoint,
    /// Of the done records.
    pub counts: Counts,
    /// Where its result rows stand, unless they are items of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// Its effects outside of the results.
    #[serde(default, skip_serializing_if = "Outbox::is_empty")]
    pub outbox: Outbox,
    /// Consecutive failures without progress.
    pub failures: u32,
    /// Claims of it while a former owner hadn't released it.
    pub takeovers: u32,
    /// Whether the present owner has committed anything.
    pub progressed: bool,
    /// How many shards were cut from it: its children are numbered from 1 to this. Final once it is done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u32,
    /// Milliseconds that its owners have worked on it, up to the last write of one.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub worked: Duration,
    /// When the instance's `activeDeadlineSeconds` end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
    /// The last failure, until progress is made; one that ended the shard stands in its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<Fault>,
}

/// What a claim comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Write this, and the shard is the claimer's.
    Claimed(Box<Shard>),
    /// The takeover is a failure too many: write this, and start nothing.
    Exhausted(Box<Shard>),
    /// Somebody else's until then.
    Held {
        /// When the lease ends.
        until: Millis,
        /// The holder's token.
        token: Token,
    },
    /// It pauses after a failure until then.
    NotBefore(Millis),
    /// It has ended.
    Closed,
    /// The instance's deadline has passed: no attempt starts (G8).
    PastDeadline,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Shard {
    /// A shard that nobody has claimed yet.
    #[must_use]
    pub fn new(key: ShardKey, range: Range, attempt: Attempt, deadline: Option<Millis>, write_id: WriteId) -> Self {
        Self {
            key,
            range,
            attempt,
            token: Token::FIRST,
            version: Version::FIRST,
            write_id,
            status: ShardStatus::Pending,
            not_before: None,
            checkpoint: Checkpoint::start(range),
            counts: Counts::default(),
            snapshot: None,
            outbox: Outbox::default(),
            failures: 0,
            takeovers: 0,
            progressed: false,
            children: 0,
            worked: Duration::ZERO,
            deadline,
            last_fault: None,
        }
    }

    fn changed(&self, write_id: &WriteId) -> Self {
        Self { version: self.version.next(), write_id: write_id.clone(), ..self.clone() }
    }

    /// Decides a claim.
    #[must_use]
    pub fn claim(&self, claimer: &Claimer) -> Claim {
        let now = claimer.now;
        let taken_over = match &self.status {
            ShardStatus::Pending => false,
            ShardStatus::Leased(lease) if lease.is_over(now) => true,
            ShardStatus::Leased(lease) => return Claim::Held { until: lease.until, token: self.token },
            _ => return Claim::Closed,
        };
        if self.deadline.is_some_and(|deadline| !now.is_surely_before(deadline)) {
            return Claim::PastDeadline;
        }
        if let Some(at) = self.not_before
            && now.earliest() < at
        {
            return Claim::NotBefore(at);
        }
        let mut next = self.changed(&claimer.write_id);
        next.token = self.token.next();
        next.not_before = None;
        next.progressed = false;
        if taken_over {
            next.takeovers += 1;
            if !self.progressed {
                next.failures += 1;
                let text = "the process that worked on it stopped without a word";
                next.last_fault.get_or_insert_with(|| Fault::new(FaultKind::Crash, text));
            }
            if next.failures > claimer.backoff_limit {
                let fault = next.last_fault.take();
                next.status = ShardStatus::Failed(fault.unwrap_or_else(|| Fault::new(FaultKind::Crash, "crashed")));
                return Claim::Exhausted(Box::new(next));
            }
        }
        next.status = ShardStatus::Leased(claimer.lease());
        Claim::Claimed(Box::new(next))
    }

    /// Whether it is open, and was opened for this attempt of its instance or an earlier one.
    #[must_use]
    pub fn is_open_for(&self, attempt: Attempt) -> bool {
        self.status.is_open() && self.attempt <= attempt
    }

    /// Closed from outside, if it is open and was opened for this attempt or an earlier one; its owner's next write
    /// fails on the token.
    #[must_use]
    pub fn fence(&self, why: FenceReason, attempt: Attempt, write_id: &WriteId) -> Option<Self> {
        if !self.is_open_for(attempt) {
            return None;
        }
        let mut next = self.changed(write_id);
        next.token = self.token.next();
        next.status = ShardStatus::Fenced(why);
        next.not_before = None;
        Some(next)
    }

    /// Opened anew for a later attempt of its instance, on the results that it has. `None` when there is nothing to
    /// do: it is done, or was opened for that attempt already.
    #[must_use]
    pub fn reopen(&self, attempt: Attempt, deadline: Option<Millis>, write_id: &WriteId) -> Option<Self> {
        if self.status == ShardStatus::Done || self.attempt >= attempt {
            return None;
        }
        let mut next = self.changed(write_id);
        next.token = self.token.next();
        next.attempt = attempt;
        next.status = ShardStatus::Pending;
        next.not_before = None;
        next.failures = 0;
        next.progressed = false;
        next.deadline = deadline;
        next.last_fault = None;
        Some(next)
    }
}
