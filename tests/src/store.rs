//! One memory store, shared by all processes of a world.

use std::sync::Arc;

use async_trait::async_trait;
use shardcron_domain::backfill::{Backfill, BackfillId};
use shardcron_domain::ids::{GroupNo, InstanceId, JobName, RunId, ShardKey, WriteId};
use shardcron_domain::instance::Instance;
use shardcron_domain::outbox::OutboxRow;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::{Millis, ScheduledTime};
use shardcron_store::memory::MemoryStore;
use shardcron_store::{Item, ItemKey, Page, Put, SetAdd, Store, StoreError, Transacted, Written};

/// A handle on the world's store.
#[derive(Clone, Debug)]
pub struct SharedStore(pub Arc<MemoryStore>);

#[async_trait]
impl Store for SharedStore {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, StoreError> {
        self.0.get(key).await
    }

    async fn put(&self, put: Put) -> Result<Written, StoreError> {
        self.0.put(put).await
    }

    async fn transact(&self, puts: Vec<Put>, token: &WriteId) -> Result<Transacted, StoreError> {
        self.0.transact(puts, token).await
    }

    async fn add(&self, add: SetAdd) -> Result<Written, StoreError> {
        self.0.add(add).await
    }

    async fn due_jobs(&self, until: ScheduledTime, limit: usize) -> Result<Vec<(ScheduledTime, JobName)>, StoreError> {
        self.0.due_jobs(until, limit).await
    }

    async fn open_instances(&self, until: Millis, limit: usize) -> Result<Vec<(Millis, InstanceId)>, StoreError> {
        self.0.open_instances(until, limit).await
    }

    async fn open_backfills(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, JobName, BackfillId)>, StoreError> {
        self.0.open_backfills(until, limit).await
    }

    async fn jobs(&self, after: Option<String>) -> Result<Page<Job>, StoreError> {
        self.0.jobs(after).await
    }

    async fn instances(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<Instance>, StoreError> {
        self.0.instances(job, from, to, after).await
    }

    async fn skips(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<SkippedRange>, StoreError> {
        self.0.skips(job, from, to, after).await
    }

    async fn skip_at(&self, job: &JobName, at: ScheduledTime) -> Result<Option<SkippedRange>, StoreError> {
        self.0.skip_at(job, at).await
    }

    async fn backfills(&self, job: &JobName) -> Result<Vec<Backfill>, StoreError> {
        self.0.backfills(job).await
    }

    async fn shards(&self, run: &RunId, group: GroupNo) -> Result<Vec<Shard>, StoreError> {
        self.0.shards(run, group).await
    }

    async fn results(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<ResultRow>, StoreError> {
        self.0.results(shard, after).await
    }

    async fn rejects(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<RejectRow>, StoreError> {
        self.0.rejects(shard, after).await
    }

    async fn effects(&self, shard: &ShardKey, from: u32, after: Option<String>) -> Result<Page<OutboxRow>, StoreError> {
        self.0.effects(shard, from, after).await
    }
}
