//! The Store port of shardcron: typed items, conditional writes, and outcomes that say who was first.
//!
//! # Protocol
//!
//! A write is decided by pure code from what was read, and applied on condition that the item is still the one that
//! was read ([`Guard`]). Its outcome is one of a closed set: applied, lost to the item that is there now, or missing.
//! That is definite. Whether a write took effect can also be unknown (the answer was lost), or the store can ask for
//! another try (a conflict of transactions, throttling): those are [`StoreError`]s, and the same request may be sent
//! again unchanged, since every guarded write names a version that it itself ends, and carries a write id by which
//! its sender knows it again.
//!
//! Reads of items are strongly consistent. The two indexes (due jobs, open instances and backfills) are not, and are
//! only hints.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use shardcron_domain::backfill::{Backfill, BackfillId};
use shardcron_domain::boundary::Position;
use shardcron_domain::group::{DoneShard, Group};
use shardcron_domain::ids::{GroupNo, InstanceId, JobName, RunId, ShardKey, SpecVersion, Token, Version, WriteId};
use shardcron_domain::instance::Instance;
use shardcron_domain::outbox::OutboxRow;
use shardcron_domain::plan::{Job, SkippedRange, SpecRecord};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::{Fault, Shard};
use shardcron_domain::slot::{Slot, SlotKey};
use shardcron_domain::time::{Millis, ScheduledTime};

mod bounds;
pub mod dynamo;
pub mod holds;
pub mod hooked;
mod item;
pub mod memory;
pub mod table;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

/// What went wrong with an attempt of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog {
    /// The shard.
    pub shard: ShardKey,
    /// The token of the attempt.
    pub token: Token,
    /// Who worked on it.
    pub owner: String,
    /// When it ended.
    pub ended_at: Millis,
    /// How it ended, in short.
    pub fault: Fault,
    /// The whole error, at most [`shardcron_domain::limits::ERROR_TEXT_MAX`] bytes.
    pub text: String,
}

/// A row of a shard's results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// The shard.
    pub shard: ShardKey,
    /// The row.
    pub row: ResultRow,
}

/// A record that a shard rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReject {
    /// The shard.
    pub shard: ShardKey,
    /// The record and why.
    pub row: RejectRow,
}

/// An effect in a shard's outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEffect {
    /// The shard.
    pub shard: ShardKey,
    /// The effect, and what is known of it.
    pub row: OutboxRow,
}

/// An item of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A job.
    Job(Job),
    /// A version of a job's spec; never changes.
    Spec(SpecRecord),
    /// An instance.
    Instance(Box<Instance>),
    /// A run of skips.
    Skip(SkippedRange),
    /// A slot.
    Slot(Slot),
    /// A backfill.
    Backfill(Box<Backfill>),
    /// A group of shards.
    Group(Group),
    /// A shard.
    Shard(Box<Shard>),
    /// A failed attempt.
    Attempt(AttemptLog),
    /// A row of results.
    Result(StoredResult),
    /// A rejected record.
    Reject(StoredReject),
    /// An effect in an outbox.
    Effect(StoredEffect),
}

/// The identity of an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKey {
    /// A job.
    Job(JobName),
    /// A version of a job's spec.
    Spec(JobName, SpecVersion),
    /// An instance.
    Instance(InstanceId),
    /// A run of skips, by its first time.
    Skip(JobName, ScheduledTime),
    /// A slot.
    Slot(SlotKey),
    /// A backfill.
    Backfill(JobName, BackfillId),
    /// A group.
    Group(RunId, GroupNo),
    /// A shard.
    Shard(ShardKey),
    /// A failed attempt.
    Attempt(ShardKey, Token),
    /// A row of results.
    Result(ShardKey, String),
    /// A rejected record, by where it begins, written so that the order of the text is that of the input.
    Reject(ShardKey, String),
    /// An effect in an outbox, by its number in the shard.
    Effect(ShardKey, u32),
}

impl Item {
    /// Its identity.
    #[must_use]
    pub fn key(&self) -> ItemKey {
        match self {
            Self::Job(job) => ItemKey::Job(job.name.clone()),
            Self::Spec(spec) => ItemKey::Spec(spec.job.clone(), spec.version),
            Self::Instance(instance) => ItemKey::Instance(instance.id.clone()),
            Self::Skip(skip) => ItemKey::Skip(skip.job.clone(), skip.from),
            Self::Slot(slot) => ItemKey::Slot(slot.key.clone()),
            Self::Backfill(backfill) => ItemKey::Backfill(backfill.job.clone(), backfill.id.clone()),
            Self::Group(group) => ItemKey::Group(group.run.clone(), group.no),
            Self::Shard(shard) => ItemKey::Shard(shard.key.clone()),
            Self::Attempt(attempt) => ItemKey::Attempt(attempt.shard.clone(), attempt.token),
            Self::Result(result) => ItemKey::Result(result.shard.clone(), result.row.key.clone()),
            Self::Reject(reject) => ItemKey::Reject(reject.shard.clone(), reject_order(&reject.row.position)),
            Self::Effect(effect) => ItemKey::Effect(effect.shard.clone(), effect.row.no),
        }
    }

    /// The id of the write that made it what it is; `None` for items that are written once.
    #[must_use]
    pub fn write_id(&self) -> Option<&WriteId> {
        match self {
            Self::Job(job) => Some(&job.write_id),
            Self::Instance(instance) => Some(&instance.write_id),
            Self::Slot(slot) => Some(&slot.write_id),
            Self::Backfill(backfill) => Some(&backfill.write_id),
            Self::Group(group) => Some(&group.write_id),
            Self::Shard(shard) => Some(&shard.write_id),
            _ => None,
        }
    }
}

fn reject_order(position: &Position) -> String {
    match position {
        Position::Object(at) => format!("{:010}.{:020}", at.object, at.offset),
        // Shifted, so that negative keys stand before positive ones.
        Position::Key(key) => format!("{:020}", i128::from(*key) - i128::from(i64::MIN)),
        Position::Item(item) => format!("{item:010}"),
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "job {job}"),
            Self::Spec(job, version) => write!(f, "spec {version} of job {job}"),
            Self::Instance(id) => write!(f, "instance {id}"),
            Self::Skip(job, at) => write!(f, "skip of job {job} at {at}"),
            Self::Slot(slot) => write!(f, "slot {slot}"),
            Self::Backfill(job, id) => write!(f, "backfill {id} of job {job}"),
            Self::Group(run, no) => write!(f, "group {no} of {run}"),
            Self::Shard(shard) => write!(f, "{shard}"),
            Self::Attempt(shard, token) => write!(f, "attempt {token} of {shard}"),
            Self::Result(shard, key) => write!(f, "result {key} of {shard}"),
            Self::Reject(shard, at) => write!(f, "reject {at} of {shard}"),
            Self::Effect(shard, no) => write!(f, "effect {no} of {shard}"),
        }
    }
}

/// What must hold of the item in the store for a write to apply. The whole set: the adapter has one expression each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// There is no such item.
    Absent,
    /// The item is at this version.
    Version(Version),
    /// The item is a shard at this token and version, and its lease ends after `at` (a shard's owner).
    Owner {
        /// The owner's token.
        token: Token,
        /// The version that the owner read or wrote last.
        version: Version,
        /// The owner's reading of the storage clock.
        at: Millis,
    },
    /// Nothing: a row of a shard's own results or outbox, in a transaction that the shard's own guard decides.
    Rides,
}

/// A write of one item, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// The item as it shall be.
    pub item: Item,
    /// On what condition.
    pub guard: Guard,
}

/// A definite outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// It is as asked.
    Applied,
    /// The condition doesn't hold: this is there. Its [`Item::write_id`] may be the sender's own, after an answer that was
    /// lost on the way (a client tries again by itself): then the write was applied.
    Lost(Box<Item>),
    /// The condition doesn't hold: nothing is there.
    Missing,
}

/// A definite outcome of a transaction: all of it, or nothing of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Transacted {
    /// All items are as asked.
    Applied,
    /// None was written. For each item, in order, whether its own condition held.
    Refused(Vec<ItemOutcome>),
}

/// How one item of a refused transaction stood.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemOutcome {
    /// Nothing is known against it: its condition held, or another transaction kept it from being looked at.
    Held,
    /// Its condition didn't hold: this is there.
    Lost(Box<Item>),
    /// Its condition didn't hold: nothing is there.
    Missing,
}

/// An addition to a set, which commutes with every other: repeated or reordered, it comes to the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetAdd {
    /// This shard is done: to its group's set, if the group exists.
    ShardDone(RunId, GroupNo, DoneShard),
    /// This group is full: to the instance's set, if the instance exists and is at this generation.
    GroupFull(RunId, GroupNo),
}

/// What went wrong with a request, by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There was no answer: the write may have taken effect, or may yet. Read, and send the same request again.
    #[error("no answer to {what}: {source}")]
    Unknown {
        /// What was tried.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another transaction was at one of the items: not written. Send the same request again after a pause.
    #[error("{what} met another transaction")]
    Conflict {
        /// What was tried.
        what: String,
    },
    /// The store asks for patience: not done. Send the same request again after a pause.
    #[error("{what} was throttled")]
    Throttled {
        /// What was tried.
        what: String,
    },
    /// A read that got no answer. Read again.
    #[error("{what}: {source}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store refuses for good: no such table, no permission, an item too large.
    #[error("{what}: {source}")]
    Refused {
        /// What was tried.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An item can't be read as what it should be: something else writes to the table, or a newer version does.
    #[error("{key} can't be read: {why}")]
    Corrupt {
        /// Which item.
        key: String,
        /// Why.
        why: String,
    },
}

/// A part of a longer answer. It can be empty and yet not the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, in order.
    pub items: Vec<T>,
    /// Where the next part begins; `None` after the last.
    pub next: Option<String>,
}

/// The port.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads an item, consistently.
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, StoreError>;

    /// Writes an item on its condition.
    async fn put(&self, put: Put) -> Result<Written, StoreError>;

    /// Writes up to [`shardcron_domain::limits::TRANSACTION_ITEMS_MAX`] items, all or none. `token` names the request
    /// and no other in the account: sent again with the same token, it applies once.
    async fn transact(&self, puts: Vec<Put>, token: &WriteId) -> Result<Transacted, StoreError>;

    /// Adds to a set. [`Written::Applied`] carries no item; the caller reads when it needs to know what the set has.
    async fn add(&self, add: SetAdd) -> Result<Written, StoreError>;

    /// Jobs whose next time isn't after `until`, earliest first; from the due index, so stale.
    async fn due_jobs(&self, until: ScheduledTime, limit: usize) -> Result<Vec<(ScheduledTime, JobName)>, StoreError>;

    /// Unfinished instances to look at by `until`, earliest first; from the open index, so stale.
    async fn open_instances(&self, until: Millis, limit: usize) -> Result<Vec<(Millis, InstanceId)>, StoreError>;

    /// Unfinished backfills to look at by `until`, earliest first; from the open index, so stale.
    async fn open_backfills(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, JobName, BackfillId)>, StoreError>;

    /// All jobs, in no order, a page at a time. A scan that reads the whole table: for people, not for the planner.
    async fn jobs(&self, after: Option<String>) -> Result<Page<Job>, StoreError>;

    /// The instances of a job at times in `[from, to)`, in order, a page at a time.
    async fn instances(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<Instance>, StoreError>;

    /// The runs of skips of a job that begin in `[from, to)`, in order, a page at a time.
    async fn skips(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<SkippedRange>, StoreError>;

    /// The run of skips of a job that `at` stands in, if there is one: from its first time through its last. Whether
    /// the job's schedule has that time, or whether an instance came to it since, isn't looked at.
    ///
    /// Runs of a job don't overlap: each planning step begins after the last one's end, and ends a run at every time
    /// that isn't skipped. So the last run that begins by `at` decides, and one row is read.
    async fn skip_at(&self, job: &JobName, at: ScheduledTime) -> Result<Option<SkippedRange>, StoreError>;

    /// The backfills of a job, by id, all pages.
    async fn backfills(&self, job: &JobName) -> Result<Vec<Backfill>, StoreError>;

    /// The shards of a group, by id, all pages.
    async fn shards(&self, run: &RunId, group: GroupNo) -> Result<Vec<Shard>, StoreError>;

    /// A shard's result rows, by key, a page at a time.
    async fn results(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<ResultRow>, StoreError>;

    /// A shard's rejected records, in the order of the input, a page at a time.
    async fn rejects(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<RejectRow>, StoreError>;

    /// The rows of a shard's outbox from number `from` on, in order, a page at a time.
    async fn effects(&self, shard: &ShardKey, from: u32, after: Option<String>) -> Result<Page<OutboxRow>, StoreError>;
}
