//! The store in memory: what the port means, in as few words as it takes, for tests and simulation.
//!
//! It passes the same checks as the adapter ([`conformance`](crate::conformance)) and refuses the same items by the
//! same bounds. What DynamoDB does at times, and its stand-ins never do, is to be asked for here: indexes lag behind
//! when they are [let](MemoryStore::let_indexes_lag), queries see half of a transaction when they are
//! [let](MemoryStore::let_queries_see_halves), a write meets a transaction where [`Holds`](crate::holds::Holds) are kept,
//! and throttling and lost answers come from [`Hooked`](crate::hooked::Hooked). No request of the port is a batch,
//! so none leaves items unprocessed. Its pages are short, so that code which forgets the second one is found out.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use shardcron_domain::backfill::{Backfill, BackfillId};
use shardcron_domain::ids::{GroupNo, InstanceId, JobName, RunId, ShardId, ShardKey, Version, WriteId};
use shardcron_domain::instance::Instance;
use shardcron_domain::outbox::OutboxRow;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::{Millis, ScheduledTime};

use crate::table::{IndexEntry, index_entry, keys, parse};
use crate::{
    Guard, Item, ItemKey, ItemOutcome, Page, Put, SetAdd, Store, StoreError, Transacted, Written, bounds, dynamo,
};

mod state;
use state::{IndexRead, State, indexed};

/// Items of a page unless set otherwise.
const PAGE_ITEMS: usize = 100;

/// Transactions that are known again by their token. DynamoDB knows them for ten minutes; there is no clock here.
const TOKENS_KEPT: usize = 10_000;

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    page_items: usize,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::default(), page_items: PAGE_ITEMS }
    }

    /// The same store with pages of this many items, at least 1.
    #[must_use]
    pub fn with_page_items(self, page_items: usize) -> Self {
        Self { page_items: page_items.max(1), ..self }
    }

    /// All items at one moment, by key: what invariants are checked on.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Item> {
        self.state().items.values().cloned().collect()
    }

    /// Looks at all items at one moment, without a copy of them: for invariants that are checked after each write.
    pub fn inspect<T>(&self, look: impl FnOnce(&BTreeMap<ItemKey, Item>) -> T) -> T {
        look(&self.state().items)
    }

    /// Takes an item away, and says whether it was there. For tests of what an audit finds: the port doesn't do this.
    pub fn remove(&self, key: &ItemKey) -> bool {
        self.state().items.remove(key).is_some()
    }

    /// From now on each read of an index sees what there was at the read of its kind before, and the first what there is
    /// now: DynamoDB's global secondary indexes follow their table after a while, and nothing bounds it.
    pub fn let_indexes_lag(&self) {
        let mut state = self.state();
        let now = indexed(&state.items);
        state.lagging = Some([now.clone(), now.clone(), now]);
    }

    /// From now on the first query that meets the items of a transaction sees some of them, and of the others what was there
    /// before: DynamoDB's queries and transactions are isolated item by item only.
    pub fn let_queries_see_halves(&self) {
        self.state().unseen.get_or_insert_default();
    }

    /// How many times a query has seen half of a transaction.
    #[must_use]
    pub fn halves_seen(&self) -> usize {
        self.state().halves_seen
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each request changes the state in one step at its end, so a panic within one leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The items from `start` on as long as `of` takes them, a page of them after the sort key `after`.
    fn page<T>(
        &self,
        start: ItemKey,
        after: Option<String>,
        of: impl Fn(&Item) -> Option<T>,
    ) -> Result<Page<T>, StoreError> {
        let start = match after {
            None => Bound::Included(start),
            Some(sk) => {
                let pk = keys(&start).pk;
                let corrupt = || StoreError::Corrupt { key: format!("the cursor `{sk}`"), why: "it isn't one".into() };
                Bound::Excluded(parse(&pk, &sk).ok_or_else(corrupt)?)
            }
        };
        let (found, is_more) = self.state().query(start, self.page_items, of);
        let next = if is_more { found.last().map(|(key, _)| keys(key).sk) } else { None };
        Ok(Page { items: found.into_iter().map(|(_, entry)| entry).collect(), next })
    }

    fn entries<T: Ord>(&self, read: IndexRead, limit: usize, of: impl Fn(&Item, IndexEntry) -> Option<T>) -> Vec<T> {
        let mut state = self.state();
        let State { items, lagging, .. } = &mut *state;
        let entry = |item: &Item| index_entry(item).and_then(|entry| of(item, entry));
        let mut found: Vec<T> = match lagging {
            None => items.values().filter_map(entry).collect(),
            Some(lagging) => {
                let seen = std::mem::replace(&mut lagging[read as usize], indexed(items));
                seen.iter().filter_map(entry).collect()
            }
        };
        found.sort();
        found.truncate(limit);
        found
    }
}

/// The version that [`Guard`] compares; items that are written once have none.
fn version(item: &Item) -> Option<Version> {
    match item {
        Item::Job(job) => Some(job.version),
        Item::Instance(instance) => Some(instance.version),
        Item::Slot(slot) => Some(slot.version),
        Item::Backfill(backfill) => Some(backfill.version),
        Item::Group(group) => Some(group.version),
        Item::Shard(shard) => Some(shard.version),
        Item::Spec(_) | Item::Skip(_) | Item::Attempt(_) | Item::Result(_) | Item::Reject(_) | Item::Effect(_) => None,
    }
}

fn holds(guard: &Guard, there: Option<&Item>) -> bool {
    match guard {
        Guard::Absent => there.is_none(),
        Guard::Version(wanted) => there.and_then(version) == Some(*wanted),
        Guard::Owner { token, version, at } => match there {
            Some(Item::Shard(shard)) => {
                let leased = matches!(&shard.status, ShardStatus::Leased(lease) if lease.until > *at);
                shard.token == *token && shard.version == *version && leased
            }
            _ => false,
        },
        Guard::Rides => true,
    }
}

fn check(guard: &Guard, there: Option<&Item>) -> ItemOutcome {
    match (holds(guard, there), there) {
        (true, _) => ItemOutcome::Held,
        (false, Some(item)) => ItemOutcome::Lost(Box::new(item.clone())),
        (false, None) => ItemOutcome::Missing,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the same request token came with other items before")]
struct TokenReused;

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, StoreError> {
        Ok(self.state().items.get(key).cloned())
    }

    async fn put(&self, put: Put) -> Result<Written, StoreError> {
        let key = put.item.key();
        let sized = (key, dynamo::item_bytes(&put.item)?);
        bounds::item(&sized).map_err(|error| error.refusing(format!("the write of {}", sized.0)))?;
        let mut state = self.state();
        Ok(match check(&put.guard, state.items.get(&sized.0)) {
            ItemOutcome::Held => {
                state.write(sized.0, put.item);
                Written::Applied
            }
            ItemOutcome::Lost(item) => Written::Lost(item),
            ItemOutcome::Missing => Written::Missing,
        })
    }

    async fn transact(&self, puts: Vec<Put>, token: &WriteId) -> Result<Transacted, StoreError> {
        let what = || format!("the transaction of {} items", puts.len());
        let mut sized = Vec::with_capacity(puts.len());
        for put in &puts {
            sized.push((put.item.key(), dynamo::item_bytes(&put.item)?));
        }
        bounds::transaction(&sized, &token.0).map_err(|error| error.refusing(what()))?;
        let mut state = self.state();
        if let Some((_, before)) = state.applied.iter().find(|(id, _)| id == token) {
            if *before == puts {
                return Ok(Transacted::Applied);
            }
            return Err(StoreError::Refused { what: what(), source: Box::new(TokenReused) });
        }
        let outcomes: Vec<ItemOutcome> =
            puts.iter().zip(&sized).map(|(put, (key, _))| check(&put.guard, state.items.get(key))).collect();
        if outcomes.iter().any(|outcome| *outcome != ItemOutcome::Held) {
            return Ok(Transacted::Refused(outcomes));
        }
        state.write_all(puts.iter().zip(sized).map(|(put, (key, _))| (key, put.item.clone())).collect());
        if state.applied.len() == TOKENS_KEPT {
            state.applied.pop_front();
        }
        state.applied.push_back((token.clone(), puts));
        Ok(Transacted::Applied)
    }

    async fn add(&self, add: SetAdd) -> Result<Written, StoreError> {
        let key = add.key();
        let mut state = self.state();
        let Some(mut item) = state.items.get(&key).cloned() else { return Ok(Written::Missing) };
        if add.is_in(&item) {
            return Ok(Written::Applied);
        }
        match (add, &mut item) {
            (SetAdd::ShardDone(_, _, shard), Item::Group(group)) => {
                group.done.insert(shard);
                group.version = group.version.next();
            }
            (SetAdd::GroupFull(run, no), Item::Instance(instance)) if instance.generation == run.generation => {
                instance.groups_done.insert(no);
                instance.version = instance.version.next();
            }
            _ => return Ok(Written::Lost(Box::new(item))),
        }
        state.write(key, item);
        Ok(Written::Applied)
    }

    async fn due_jobs(&self, until: ScheduledTime, limit: usize) -> Result<Vec<(ScheduledTime, JobName)>, StoreError> {
        Ok(self.entries(IndexRead::DueJobs, limit, |item, entry| match (item, entry) {
            (Item::Job(job), IndexEntry::Due { at, .. }) if at <= until => Some((at, job.name.clone())),
            _ => None,
        }))
    }

    async fn open_instances(&self, until: Millis, limit: usize) -> Result<Vec<(Millis, InstanceId)>, StoreError> {
        Ok(self.entries(IndexRead::OpenInstances, limit, |item, entry| match (item, entry) {
            (Item::Instance(instance), IndexEntry::Open { at, .. }) if at <= until => Some((at, instance.id.clone())),
            _ => None,
        }))
    }

    async fn open_backfills(
        &self,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, JobName, BackfillId)>, StoreError> {
        Ok(self.entries(IndexRead::OpenBackfills, limit, |item, entry| match (item, entry) {
            (Item::Backfill(backfill), IndexEntry::Open { at, .. }) if at <= until => {
                Some((at, backfill.job.clone(), backfill.id.clone()))
            }
            _ => None,
        }))
    }

    async fn jobs(&self, after: Option<String>) -> Result<Page<Job>, StoreError> {
        let state = self.state();
        // Here a cursor is the name itself.
        let rest = state.items.values().filter_map(|item| item.clone().into_job());
        let mut rest = rest.filter(|job| after.as_deref().is_none_or(|after| job.name.as_str() > after));
        let items: Vec<Job> = rest.by_ref().take(self.page_items).collect();
        let next = rest.next().and(items.last()).map(|job| job.name.to_string());
        Ok(Page { items, next })
    }

    async fn instances(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<Instance>, StoreError> {
        self.page(ItemKey::Instance(InstanceId { job: job.clone(), at: from }), after, |item| match item {
            Item::Instance(instance) if instance.id.job == *job && instance.id.at < to => Some((**instance).clone()),
            _ => None,
        })
    }

    async fn skips(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
        after: Option<String>,
    ) -> Result<Page<SkippedRange>, StoreError> {
        self.page(ItemKey::Skip(job.clone(), from), after, |item| match item {
            Item::Skip(skip) if skip.job == *job && skip.from < to => Some(skip.clone()),
            _ => None,
        })
    }

    async fn skip_at(&self, job: &JobName, at: ScheduledTime) -> Result<Option<SkippedRange>, StoreError> {
        let state = self.state();
        let last = state.items.range(..=ItemKey::Skip(job.clone(), at)).next_back();
        Ok(match last {
            Some((_, Item::Skip(skip))) if skip.job == *job && skip.to >= at => Some(skip.clone()),
            _ => None,
        })
    }

    async fn backfills(&self, job: &JobName) -> Result<Vec<Backfill>, StoreError> {
        let state = self.state();
        let of_job = |item: &Item| match item {
            Item::Backfill(backfill) if backfill.job == *job => Some((**backfill).clone()),
            _ => None,
        };
        Ok(state.items.values().filter_map(of_job).collect())
    }

    async fn shards(&self, run: &RunId, group: GroupNo) -> Result<Vec<Shard>, StoreError> {
        let start = ItemKey::Shard(ShardKey { run: run.clone(), shard: ShardId::numbered(0) });
        let (found, _) = self.state().query(Bound::Included(start), usize::MAX, |item| match item {
            Item::Shard(shard) if shard.key.run == *run => Some((**shard).clone()),
            _ => None,
        });
        Ok(found.into_iter().map(|(_, shard)| shard).filter(|shard| shard.key.shard.group() == group).collect())
    }

    async fn results(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<ResultRow>, StoreError> {
        self.page(ItemKey::Result(shard.clone(), String::new()), after, |item| match item {
            Item::Result(result) if result.shard == *shard => Some(result.row.clone()),
            _ => None,
        })
    }

    async fn rejects(&self, shard: &ShardKey, after: Option<String>) -> Result<Page<RejectRow>, StoreError> {
        self.page(ItemKey::Reject(shard.clone(), String::new()), after, |item| match item {
            Item::Reject(reject) if reject.shard == *shard => Some(reject.row.clone()),
            _ => None,
        })
    }

    async fn effects(&self, shard: &ShardKey, from: u32, after: Option<String>) -> Result<Page<OutboxRow>, StoreError> {
        self.page(ItemKey::Effect(shard.clone(), from), after, |item| match item {
            Item::Effect(effect) if effect.shard == *shard => Some(effect.row.clone()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
