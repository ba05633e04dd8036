//! The store on DynamoDB: the only home of its SDK and of expression strings.
//!
//! # Protocol
//!
//! Every conditional request asks for the item that stood against it (`ReturnValuesOnConditionCheckFailure=ALL_OLD`),
//! so that [`Written::Lost`] carries it at no further read.
//!
//! The SDK itself sends a request again after a timeout or a 5xx. When the first transmission took effect and only its
//! answer was lost, the second meets the first one's item: the condition fails, and the outcome is `Lost` to *the
//! sender's own write*. Nothing here can tell that from another's; the write id on the item can, so whoever gets
//! `Lost(item)` compares [`Item::write_id`](crate::Item::write_id) with its own (for an item that is written once: the
//! whole item), and takes an equal one as applied. Additions to sets need no such care, and transactions carry a token
//! by which DynamoDB itself knows them again for ten minutes.
//!
//! An error of a write says "not done" only if every transmission of it was answered; otherwise it is
//! [`StoreError::Unknown`], whatever the last answer was.
//!
//! # Cost
//!
//! Reads of items and of partitions are strongly consistent, which costs twice the units of eventually consistent ones.
//! Writes within a transaction cost twice those of single ones. A failed condition costs as a write of the item there,
//! and isn't in any report of consumed capacity.

mod create;
mod expressions;
mod failure;
mod read;
mod record;
mod transmissions;
mod write;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use shardcron_domain::backfill::{Backfill, BackfillId};
use shardcron_domain::ids::{GroupNo, InstanceId, JobName, RunId, ShardKey, WriteId};
use shardcron_domain::instance::Instance;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::{Millis, ScheduledTime};

pub use transmissions::{DateInterceptor, DateObserver};

use crate::{Item, ItemKey, Page, Put, SetAdd, Store, StoreError, Transacted, Written};

/// Who is told what requests consume.
pub trait CapacityObserver: Send + Sync {
    /// A request consumed this many units, the indexes' included (AWS, "DynamoDB read and write operations": a write
    /// unit is 1 KB, a read unit 4 KB). `operation` is the API's name of it.
    fn consumed(&self, operation: &'static str, read_units: f64, write_units: f64);
}

/// The store on one DynamoDB table.
#[derive(Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
    capacity: Option<Arc<dyn CapacityObserver>>,
}

impl fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoStore").field("table", &self.table).finish_non_exhaustive()
    }
}

impl DynamoStore {
    /// A store on this table. Endpoint, credentials, retries and timeouts are the client's.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, table: table.into(), capacity: None }
    }

    /// The same store, asking with each request for what it consumes and telling `observer`.
    #[must_use]
    pub fn with_capacity_observer(self, observer: Arc<dyn CapacityObserver>) -> Self {
        Self { capacity: Some(observer), ..self }
    }

    /// The table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    fn capacity_wanted(&self) -> Option<ReturnConsumedCapacity> {
        self.capacity.is_some().then_some(ReturnConsumedCapacity::Total)
    }

    fn read_units<'a>(&self, operation: &'static str, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        if let Some(observer) = &self.capacity {
            observer.consumed(operation, units(consumed), 0.0);
        }
    }

    fn write_units<'a>(&self, operation: &'static str, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        if let Some(observer) = &self.capacity {
            observer.consumed(operation, 0.0, units(consumed));
        }
    }
}

fn units<'a>(consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) -> f64 {
    consumed.into_iter().filter_map(ConsumedCapacity::capacity_units).sum()
}

/// Bytes of an item as DynamoDB counts them; what every implementation bounds items by.
///
/// # Errors
/// [`StoreError::Refused`] for one that can't be written as an item.
pub fn item_bytes(item: &Item) -> Result<usize, StoreError> {
    record::encode(item).map(|attributes| record::bytes(&attributes))
}

#[async_trait]
impl Store for DynamoStore {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, StoreError> {
        self.get_item(key).await
    }

    async fn put(&self, put: Put) -> Result<Written, StoreError> {
        self.put_item(&put).await
    }

    async fn transact(&self, puts: Vec<Put>, token: &WriteId) -> Result<Transacted, StoreError> {
        self.transact_write_items(&puts, token).await
    }

    async fn add(&self, add: SetAdd) -> Result<Written, StoreError> {
        self.update_item(&add).await
    }

    async fn due_jobs(&self, until: ScheduledTime, limit: usize) -> Result<Vec<(ScheduledTime, JobName)>, StoreError> {
        self.query_due(until, limit).await
    }

    async fn open_instances(&self, until: Millis, limit: usize) -> Result<Vec<(Millis, InstanceId)>, StoreError> {
        self.query_open(until, limit).await
    }

    async fn open_backfills(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, JobName, BackfillId)>, StoreError> {
        self.query_open_backfills(until, limit).await
    }

    async fn jobs(&self, after: Option<String>) -> Result<Page<Job>, StoreError> {
        self.scan_jobs(after).await
    }

    async fn instances(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<Instance>, StoreError> {
        self.query_instances(job, from, to, after).await
    }

    async fn skips(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<SkippedRange>, StoreError> {
        self.query_skips(job, from, to, after).await
    }

    async fn skip_at(&self, job: &JobName, at: ScheduledTime) -> Result<Option<SkippedRange>, StoreError> {
        self.query_skip_at(job, at).await
    }

    async fn backfills(&self, job: &JobName) -> Result<Vec<Backfill>, StoreError> {
        self.query_backfills(job).await
    }

    async fn shards(&self, run: &RunId, group: GroupNo) -> Result<Vec<Shard>, StoreError> {
        self.query_shards(run, group).await
    }

    async fn results(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<ResultRow>, StoreError> {
        self.query_results(shard, after).await
    }

    async fn rejects(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<RejectRow>, StoreError> {
        self.query_rejects(shard, after).await
    }
}

#[cfg(test)]
mod tests;
