//! Small steps on the port's types that its implementations share.

use shardcron_domain::backfill::Backfill;
use shardcron_domain::instance::Instance;
use shardcron_domain::outbox::OutboxRow;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;
use shardcron_domain::slot::Slot;

use crate::{Item, ItemKey, Page, SetAdd};

impl Item {
    pub(crate) fn into_job(self) -> Option<Job> {
        if let Self::Job(job) = self { Some(job) } else { None }
    }

    pub(crate) fn into_instance(self) -> Option<Instance> {
        if let Self::Instance(instance) = self { Some(*instance) } else { None }
    }

    pub(crate) fn into_skip(self) -> Option<SkippedRange> {
        if let Self::Skip(skip) = self { Some(skip) } else { None }
    }

    pub(crate) fn into_backfill(self) -> Option<Backfill> {
        if let Self::Backfill(backfill) = self { Some(*backfill) } else { None }
    }

    pub(crate) fn into_shard(self) -> Option<Shard> {
        if let Self::Shard(shard) = self { Some(*shard) } else { None }
    }

    pub(crate) fn into_result(self) -> Option<ResultRow> {
        if let Self::Result(result) = self { Some(result.row) } else { None }
    }

    pub(crate) fn into_reject(self) -> Option<RejectRow> {
        if let Self::Reject(reject) = self { Some(reject.row) } else { None }
    }

    pub(crate) fn into_effect(self) -> Option<OutboxRow> {
        if let Self::Effect(effect) = self { Some(effect.row) } else { None }
    }
}

impl From<Job> for Item {
    fn from(job: Job) -> Self {
        Self::Job(job)
    }
}

impl From<Instance> for Item {
    fn from(instance: Instance) -> Self {
        Self::Instance(Box::new(instance))
    }
}

impl From<Slot> for Item {
    fn from(slot: Slot) -> Self {
        Self::Slot(slot)
    }
}

impl From<Backfill> for Item {
    fn from(backfill: Backfill) -> Self {
        Self::Backfill(Box::new(backfill))
    }
}

impl From<Shard> for Item {
    fn from(shard: Shard) -> Self {
        Self::Shard(Box::new(shard))
    }
}

impl SetAdd {
    /// The item whose set it is.
    #[must_use]
    pub fn key(&self) -> ItemKey {
        match self {
            Self::ShardDone(run, group, _) => ItemKey::Group(run.clone(), *group),
            Self::GroupFull(run, _) => ItemKey::Instance(run.instance.clone()),
        }
    }

    /// Whether this item has it already.
    pub(crate) fn is_in(&self, item: &Item) -> bool {
        match (self, item) {
            (Self::ShardDone(_, _, shard), Item::Group(group)) => group.done.contains(shard),
            (Self::GroupFull(run, no), Item::Instance(instance)) => {
                instance.generation == run.generation && instance.groups_done.contains(no)
            }
            _ => false,
        }
    }
}

impl<T> Page<T> {
    pub(crate) fn empty() -> Self {
        Self { items: Vec::new(), next: None }
    }
}
