//! Reads: items and partitions consistently, the two indexes as they are.

use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join_all;
use shardcron_domain::backfill::{Backfill, BackfillId};
use shardcron_domain::ids::{GroupNo, InstanceId, JobName, RunId, ShardKey};
use shardcron_domain::instance::Instance;
use shardcron_domain::limits::{INDEX_BUCKETS, INDEX_PAGE_MAX};
use shardcron_domain::outbox::OutboxRow;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::{Millis, ScheduledTime};

use super::expressions::{self, Expression};
use super::record::{Attributes, decode, key_attributes, key_of, place};
use super::{DynamoStore, failure};
use crate::table::{
    BACKFILL_PREFIX, DUE_INDEX, INSTANCE_PREFIX, Index, OPEN_INDEX, PK, REJECT_PREFIX, RESULT_PREFIX, SHARD_PREFIX, SK,
    SKIP_PREFIX, backfill_bucket, due_bucket, effect_sk, group_pk, job_pk, open_bucket, outbox_pk, result_pk,
};
use crate::{Item, ItemKey, Page, StoreError};

impl DynamoStore {
    pub(super) async fn get_item(&self, key: &ItemKey) -> Result<Option<Item>, StoreError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key_attributes(key)))
            .consistent_read(true)
            .set_return_consumed_capacity(self.capacity_wanted())
            .send()
            .await;
        let output = answer.map_err(|error| failure::of_read(format!("reading {key}"), &self.table, error))?;
        self.read_units("GetItem", output.consumed_capacity());
        output.item.map(decode).transpose()
    }

    pub(super) async fn query_due(
        &self,
        until: ScheduledTime,
        limit: usize,
    ) -> Result<Vec<(ScheduledTime, JobName)>, StoreError> {
        let buckets = (0..INDEX_BUCKETS).map(|bucket| expressions::due(due_bucket(bucket), until));
        let found = self.query_index(DUE_INDEX, buckets, limit).await?;
        let entry = |(at, key): (AttributeValue, ItemKey)| match (at.as_s().map(|at| at.parse()), &key) {
            (Ok(Ok(at)), ItemKey::Job(job)) => Ok((at, job.clone())),
            _ => Err(bad_entry(DUE_INDEX, &key)),
        };
        earliest(found.into_iter().map(entry), limit)
    }

    pub(super) async fn query_open(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, InstanceId)>, StoreError> {
        let buckets = (0..INDEX_BUCKETS).map(|bucket| expressions::open(open_bucket(bucket), until));
        let found = self.query_index(OPEN_INDEX, buckets, limit).await?;
        let entry = |(at, key): (AttributeValue, ItemKey)| match (at.as_n().map(|at| at.parse()), &key) {
            (Ok(Ok(at)), ItemKey::Instance(id)) => Ok((Millis(at), id.clone())),
            _ => Err(bad_entry(OPEN_INDEX, &key)),
        };
        earliest(found.into_iter().map(entry), limit)
    }

    pub(super) async fn query_open_backfills(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, JobName, BackfillId)>, StoreError> {
        let buckets = (0..INDEX_BUCKETS).map(|bucket| expressions::open(backfill_bucket(bucket), until));
        let found = self.query_index(OPEN_INDEX, buckets, limit).await?;
        let entry = |(at, key): (AttributeValue, ItemKey)| match (at.as_n().map(|at| at.parse()), &key) {
            (Ok(Ok(at)), ItemKey::Backfill(job, id)) => Ok((Millis(at), job.clone(), id.clone())),
            _ => Err(bad_entry(OPEN_INDEX, &key)),
        };
        earliest(found.into_iter().map(entry), limit)
    }

    /// The entries of all of an index's partitions, asked for at once: each with its time and whose it is.
    async fn query_index(
        &self,
        index: Index,
        buckets: impl Iterator<Item = Expression>,
        limit: usize,
    ) -> Result<Vec<(AttributeValue, ItemKey)>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let entries = try_join_all(buckets.map(|bucket| self.query_bucket(index, bucket, limit))).await?;
        entries
            .into_iter()
            .flatten()
            .map(|mut entry| {
                let key = key_of(&entry)?;
                let at = entry.remove(index.sort).ok_or_else(|| bad_entry(index, &key))?;
                Ok((at, key))
            })
            .collect()
    }

    async fn query_bucket(
        &self,
        index: Index,
        bucket: Expression,
        limit: usize,
    ) -> Result<Vec<Attributes>, StoreError> {
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let page = INDEX_PAGE_MAX.min(limit - found.len());
            let answer = self
                .client
                .query()
                .table_name(&self.table)
                .index_name(index.name)
                .key_condition_expression(bucket.text)
                .set_expression_attribute_names(Some(bucket.names()))
                .set_expression_attribute_values(bucket.values())
                .limit(page as i32)
                .set_exclusive_start_key(start.take())
                .set_return_consumed_capacity(self.capacity_wanted())
                .send()
                .await;
            let what = || format!("reading the index {}", index.name);
            let output = answer.map_err(|error| failure::of_read(what(), &self.table, error))?;
            self.read_units("Query", output.consumed_capacity());
            found.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            if start.is_none() || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    /// Asks for what follows `after`, a cursor as this function made it: `[partition key, sort key]` in JSON.
    pub(super) async fn scan_jobs(&self, after: Option<String>) -> Result<Page<Job>, StoreError> {
        let what = || "listing the jobs".to_owned();
        let start = match after.map(|cursor| serde_json::from_str::<(String, String)>(&cursor)).transpose() {
            Ok(start) => start.map(|(pk, sk)| place(pk, sk)),
            Err(source) => return Err(StoreError::Refused { what: what(), source: Box::new(source) }),
        };
        let filter = expressions::is_job();
        let answer = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression(filter.text)
            .set_expression_attribute_names(Some(filter.names()))
            .set_expression_attribute_values(filter.values())
            .consistent_read(true)
            .set_exclusive_start_key(start)
            .set_return_consumed_capacity(self.capacity_wanted())
            .send()
            .await;
        let output = answer.map_err(|error| failure::of_read(what(), &self.table, error))?;
        self.read_units("Scan", output.consumed_capacity());
        let next = output.last_evaluated_key.as_ref().map(|last| {
            let part = |name| text_of(last, name);
            serde_json::Value::from(vec![part(PK), part(SK)]).to_string()
        });
        Ok(Page { items: read_all(output.items, |item| item.into_job())?, next })
    }

    pub(super) async fn query_instances(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<Instance>, StoreError> {
        let Some(range) = times(job, INSTANCE_PREFIX, from, to) else { return Ok(Page::empty()) };
        let what = || format!("listing the instances of {job}");
        self.query_page(job_pk(job), range, after, what, |item| item.into_instance()).await
    }

    pub(super) async fn query_skips(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<SkippedRange>, StoreError> {
        let Some(range) = times(job, SKIP_PREFIX, from, to) else { return Ok(Page::empty()) };
        let what = || format!("listing the skips of {job}");
        self.query_page(job_pk(job), range, after, what, |item| item.into_skip()).await
    }

    pub(super) async fn query_shards(&self, run: &RunId, group: GroupNo) -> Result<Vec<Shard>, StoreError> {
        let what = || format!("listing the shards of group {group} of {run}");
        self.query_all(group_pk(run, group), SHARD_PREFIX, what, |item| item.into_shard()).await
    }

    pub(super) async fn query_backfills(&self, job: &JobName) -> Result<Vec<Backfill>, StoreError> {
        let what = || format!("listing the backfills of {job}");
        self.query_all(job_pk(job), BACKFILL_PREFIX, what, |item| item.into_backfill()).await
    }

    pub(super) async fn query_skip_at(
        &self,
        job: &JobName,
        at: ScheduledTime,
    ) -> Result<Option<SkippedRange>, StoreError> {
        // A bare prefix stands before every sort key that begins with it.
        let range = expressions::between(job_pk(job), SKIP_PREFIX.to_owned(), format!("{SKIP_PREFIX}{at}"));
        let query = self.query(&range).scan_index_forward(false).limit(1);
        let output = self.send_query(query, || format!("reading the skip of {job} at {at}")).await?;
        let last = read_all(output.items, |item| item.into_skip())?.pop();
        Ok(last.filter(|skip| skip.to >= at))
    }

    pub(super) async fn query_results(
        &self,
        shard: &ShardKey,
        after: Option<String>,
    ) -> Result<Page<ResultRow>, StoreError> {
        let pk = result_pk(shard);
        let range = expressions::beginning(pk.clone(), RESULT_PREFIX);
        self.query_page(pk, range, after, || format!("reading the results of {shard}"), |item| item.into_result()).await
    }

    pub(super) async fn query_rejects(
        &self,
        shard: &ShardKey,
        after: Option<String>,
    ) -> Result<Page<RejectRow>, StoreError> {
        let pk = result_pk(shard);
        let range = expressions::beginning(pk.clone(), REJECT_PREFIX);
        self.query_page(pk, range, after, || format!("reading the rejects of {shard}"), |item| item.into_reject()).await
    }

    pub(super) async fn query_effects(
        &self,
        shard: &ShardKey,
        from: u32,
        after: Option<String>,
    ) -> Result<Page<OutboxRow>, StoreError> {
        let pk = outbox_pk(shard);
        let range = expressions::between(pk.clone(), effect_sk(from), effect_sk(u32::MAX));
        self.query_page(pk, range, after, || format!("reading the outbox of {shard}"), |item| item.into_effect()).await
    }

    /// All items of a partition whose sort key begins so.
    async fn query_all<T>(
        &self,
        pk: String,
        prefix: &str,
        what: impl Fn() -> String,
        of: impl Fn(Item) -> Option<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let range = expressions::beginning(pk.clone(), prefix);
            let page = self.query_page(pk.clone(), range, after, &what, &of).await?;
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// One page (at most 1 MB: AWS quota) of a partition, from after the sort key `after`.
    async fn query_page<T>(
        &self,
        pk: String,
        range: Expression,
        after: Option<String>,
        what: impl Fn() -> String,
        of: impl Fn(Item) -> Option<T>,
    ) -> Result<Page<T>, StoreError> {
        let query = self.query(&range).set_exclusive_start_key(after.map(|sk| place(pk, sk)));
        let output = self.send_query(query, what).await?;
        let next = output.last_evaluated_key.as_ref().map(|last| text_of(last, SK));
        Ok(Page { items: read_all(output.items, of)?, next })
    }

    /// A consistent query of a part of a partition.
    fn query(&self, range: &Expression) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .key_condition_expression(range.text)
            .set_expression_attribute_names(Some(range.names()))
            .set_expression_attribute_values(range.values())
            .consistent_read(true)
            .set_return_consumed_capacity(self.capacity_wanted())
    }

    async fn send_query(
        &self,
        query: QueryFluentBuilder,
        what: impl Fn() -> String,
    ) -> Result<QueryOutput, StoreError> {
        let output = query.send().await.map_err(|error| failure::of_read(what(), &self.table, error))?;
        self.read_units("Query", output.consumed_capacity());
        Ok(output)
    }
}

/// The items of a job at times in `[from, to)`; `None` when there can't be any. DynamoDB's BETWEEN includes both ends,
/// and times are whole seconds.
fn times(job: &JobName, prefix: &str, from: ScheduledTime, to: ScheduledTime) -> Option<Expression> {
    let last = ScheduledTime::from_second(to.as_second() - 1).ok().filter(|last| from <= *last)?;
    Some(expressions::between(job_pk(job), format!("{prefix}{from}"), format!("{prefix}{last}")))
}

fn read_all<T>(items: Option<Vec<Attributes>>, of: impl Fn(Item) -> Option<T>) -> Result<Vec<T>, StoreError> {
    let read = |attributes| {
        let item = decode(attributes)?;
        let key = item.key();
        of(item).ok_or_else(|| StoreError::Corrupt { key: key.to_string(), why: "it stands among others".to_owned() })
    };
    items.unwrap_or_default().into_iter().map(read).collect()
}

fn text_of(attributes: &Attributes, name: &str) -> String {
    attributes.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default()
}

fn earliest<T: Ord>(entries: impl Iterator<Item = Result<T, StoreError>>, limit: usize) -> Result<Vec<T>, StoreError> {
    let mut entries = entries.collect::<Result<Vec<T>, _>>()?;
    entries.sort();
    entries.truncate(limit);
    Ok(entries)
}

fn bad_entry(index: Index, key: &ItemKey) -> StoreError {
    StoreError::Corrupt { key: key.to_string(), why: format!("its entry in the index {} isn't one", index.name) }
}
