//! Any store, with a hook before and after each request: faults, pauses and crashes at exactly chosen places.
//!
//! The stand-ins for AWS never show a lost answer, a conflict of transactions or throttling; here they are made, on
//! the memory store as on DynamoDB's adapter. A pause or the end of a process is the hook's own: its functions may
//! wait, or never return.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use shardcron_domain::backfill::{Backfill, BackfillId};
use shardcron_domain::ids::{GroupNo, InstanceId, JobName, RunId, ShardKey, WriteId};
use shardcron_domain::instance::Instance;
use shardcron_domain::outbox::OutboxRow;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::{Millis, ScheduledTime};

use crate::{Item, ItemKey, Page, Put, SetAdd, Store, StoreError, Transacted, Written};

/// A request, as the hook sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// [`Store::get`].
    Get(ItemKey),
    /// [`Store::put`].
    Put(Box<Put>),
    /// [`Store::transact`].
    Transact(Vec<Put>, WriteId),
    /// [`Store::add`].
    Add(SetAdd),
    /// [`Store::due_jobs`].
    DueJobs(ScheduledTime),
    /// [`Store::open_instances`].
    OpenInstances(Millis),
    /// [`Store::open_backfills`].
    OpenBackfills(Millis),
    /// [`Store::jobs`].
    Jobs,
    /// [`Store::instances`].
    Instances(JobName),
    /// [`Store::skips`].
    Skips(JobName),
    /// [`Store::skip_at`].
    SkipAt(JobName, ScheduledTime),
    /// [`Store::backfills`].
    Backfills(JobName),
    /// [`Store::shards`].
    Shards(RunId, GroupNo),
    /// [`Store::results`].
    Results(ShardKey),
    /// [`Store::rejects`].
    Rejects(ShardKey),
    /// [`Store::effects`].
    Effects(ShardKey, u32),
}

impl Operation {
    /// Whether it can change anything.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self, Self::Put(_) | Self::Transact(..) | Self::Add(_))
    }

    /// The items that it writes, each on its own condition.
    #[must_use]
    pub fn written(&self) -> Vec<ItemKey> {
        match self {
            Self::Put(put) => vec![put.item.key()],
            Self::Transact(puts, _) => puts.iter().map(|put| put.item.key()).collect(),
            Self::Add(add) => vec![add.key()],
            _ => Vec::new(),
        }
    }

    /// The port's name of it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Get(_) => "get",
            Self::Put(_) => "put",
            Self::Transact(..) => "transact",
            Self::Add(_) => "add",
            Self::DueJobs(_) => "due_jobs",
            Self::OpenInstances(_) => "open_instances",
            Self::OpenBackfills(_) => "open_backfills",
            Self::Jobs => "jobs",
            Self::Instances(_) => "instances",
            Self::Skips(_) => "skips",
            Self::SkipAt(..) => "skip_at",
            Self::Backfills(_) => "backfills",
            Self::Shards(..) => "shards",
            Self::Results(_) => "results",
            Self::Rejects(_) => "rejects",
            Self::Effects(..) => "effects",
        }
    }
}

/// What becomes of a request, before or after it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Proceed,
    /// No answer: [`StoreError::Unknown`] for a write, [`StoreError::Unavailable`] for a read. Before: it never arrived.
    /// After: it took effect.
    LoseAnswer,
    /// No answer, and the write takes effect when [`Hooked::deliver`] is called. Before only; as `LoseAnswer` for a
    /// read or after.
    Delay,
    /// [`StoreError::Conflict`], without effect. Before only; a write's.
    Conflict,
    /// [`StoreError::Throttled`], without effect. Before only.
    Throttle,
    /// [`StoreError::Refused`], without effect. Before only.
    Refuse,
}

/// What a hook does. A verdict that its place doesn't allow, as said there, is taken as [`Verdict::LoseAnswer`].
#[async_trait]
pub trait Hook: Send + Sync {
    /// Before the request takes effect.
    async fn before(&self, operation: &Operation) -> Verdict {
        let _ = operation;
        Verdict::Proceed
    }

    /// After it took effect, before its answer is given.
    async fn after(&self, operation: &Operation) -> Verdict {
        let _ = operation;
        Verdict::Proceed
    }
}

/// A store with a hook.
#[derive(Debug)]
pub struct Hooked<S, H> {
    store: S,
    hook: H,
    delayed: Mutex<VecDeque<Operation>>,
}

/// The cause of an error that a hook made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hook's verdict was {0:?}")]
pub struct Injected(pub Verdict);

impl<S: Store, H: Hook> Hooked<S, H> {
    /// This store with this hook.
    #[must_use]
    pub fn new(store: S, hook: H) -> Self {
        Self { store, hook, delayed: Mutex::default() }
    }

    /// The store itself, without the hook.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// The hook.
    #[must_use]
    pub fn hook(&self) -> &H {
        &self.hook
    }

    /// Lets the delayed writes arrive, in the order in which they were sent, and says how many there were. Nobody hears
    /// their outcomes.
    pub async fn deliver(&self) -> usize {
        let mut count = 0;
        loop {
            // The lock isn't held while a write is under way.
            let next = self.delayed.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(operation) = next else { return count };
            count += 1;
            // Nobody hears whether it was applied, lost or an error.
            match operation {
                Operation::Put(put) => drop(self.store.put(*put).await),
                Operation::Transact(puts, token) => drop(self.store.transact(puts, &token).await),
                Operation::Add(add) => drop(self.store.add(add).await),
                _ => {}
            }
        }
    }

    async fn before(&self, operation: &Operation) -> Result<(), StoreError> {
        let verdict = self.hook.before(operation).await;
        let what = operation.name().to_owned();
        match verdict {
            Verdict::Proceed => Ok(()),
            Verdict::Throttle => Err(StoreError::Throttled { what }),
            Verdict::Refuse => Err(StoreError::Refused { what, source: Box::new(Injected(verdict)) }),
            Verdict::Conflict if operation.is_write() => Err(StoreError::Conflict { what }),
            Verdict::Delay if operation.is_write() => {
                self.delayed.lock().unwrap_or_else(PoisonError::into_inner).push_back(operation.clone());
                Err(no_answer(operation, verdict))
            }
            Verdict::Conflict | Verdict::Delay | Verdict::LoseAnswer => Err(no_answer(operation, verdict)),
        }
    }

    async fn after<T>(&self, operation: &Operation, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        match self.hook.after(operation).await {
            Verdict::Proceed => answer,
            verdict => Err(no_answer(operation, verdict)),
        }
    }
}

fn no_answer(operation: &Operation, verdict: Verdict) -> StoreError {
    let (what, source) = (operation.name().to_owned(), Box::new(Injected(verdict)));
    if operation.is_write() { StoreError::Unknown { what, source } } else { StoreError::Unavailable { what, source } }
}

#[async_trait]
impl<S: Store, H: Hook> Store for Hooked<S, H> {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, StoreError> {
        let operation = Operation::Get(key.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.get(key).await).await
    }

    async fn put(&self, put: Put) -> Result<Written, StoreError> {
        let operation = Operation::Put(Box::new(put.clone()));
        self.before(&operation).await?;
        self.after(&operation, self.store.put(put).await).await
    }

    async fn transact(&self, puts: Vec<Put>, token: &WriteId) -> Result<Transacted, StoreError> {
        let operation = Operation::Transact(puts.clone(), token.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.transact(puts, token).await).await
    }

    async fn add(&self, add: SetAdd) -> Result<Written, StoreError> {
        let operation = Operation::Add(add.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.add(add).await).await
    }

    async fn due_jobs(&self, until: ScheduledTime, limit: usize) -> Result<Vec<(ScheduledTime, JobName)>, StoreError> {
        let operation = Operation::DueJobs(until);
        self.before(&operation).await?;
        self.after(&operation, self.store.due_jobs(until, limit).await).await
    }

    async fn open_instances(&self, until: Millis, limit: usize) -> Result<Vec<(Millis, InstanceId)>, StoreError> {
        let operation = Operation::OpenInstances(until);
        self.before(&operation).await?;
        self.after(&operation, self.store.open_instances(until, limit).await).await
    }

    async fn open_backfills(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, JobName, BackfillId)>, StoreError> {
        let operation = Operation::OpenBackfills(until);
        self.before(&operation).await?;
        self.after(&operation, self.store.open_backfills(until, limit).await).await
    }

    async fn jobs(&self, after: Option<String>) -> Result<Page<Job>, StoreError> {
        let operation = Operation::Jobs;
        self.before(&operation).await?;
        self.after(&operation, self.store.jobs(after).await).await
    }

    async fn instances(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<Instance>, StoreError> {
        let operation = Operation::Instances(job.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.instances(job, from, to, after).await).await
    }

    async fn skips(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<SkippedRange>, StoreError> {
        let operation = Operation::Skips(job.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.skips(job, from, to, after).await).await
    }

    async fn skip_at(&self, job: &JobName, at: ScheduledTime) -> Result<Option<SkippedRange>, StoreError> {
        let operation = Operation::SkipAt(job.clone(), at);
        self.before(&operation).await?;
        self.after(&operation, self.store.skip_at(job, at).await).await
    }

    async fn backfills(&self, job: &JobName) -> Result<Vec<Backfill>, StoreError> {
        let operation = Operation::Backfills(job.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.backfills(job).await).await
    }

    async fn shards(&self, run: &RunId, group: GroupNo) -> Result<Vec<Shard>, StoreError> {
        let operation = Operation::Shards(run.clone(), group);
        self.before(&operation).await?;
        self.after(&operation, self.store.shards(run, group).await).await
    }

    async fn results(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<ResultRow>, StoreError> {
        let operation = Operation::Results(shard.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.results(shard, after).await).await
    }

    async fn rejects(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<RejectRow>, StoreError> {
        let operation = Operation::Rejects(shard.clone());
        self.before(&operation).await?;
        self.after(&operation, self.store.rejects(shard, after).await).await
    }

    async fn effects(&self, shard: &ShardKey, from: u32, after: Option<String>) -> Result<Page<OutboxRow>, StoreError> {
        let operation = Operation::Effects(shard.clone(), from);
        self.before(&operation).await?;
        self.after(&operation, self.store.effects(shard, from, after).await).await
    }
}
