//! A work over keys: what stands behind them is computed, and reading and preparing it take the time that a job says.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use shardcron_domain::job::AggregateSpec;
use shardcron_domain::record::Chunk;
use shardcron_domain::result::ResultRow;
use shardcron_work::{Aggregate, KeyPage, KeyRecord, KeySource, Merge, ShardWork, Stage, Work, WorkError, Works};

use crate::life::Life;
use crate::ports::SeededRandom;

/// The name that jobs call it by.
pub const KEYED: &str = "keyed";

/// What stands behind the keys, and how long it takes. Every seventh key has no record.
#[derive(Clone, Copy, Debug)]
pub struct Keyed {
    /// The first key.
    pub from: i64,
    /// The last key, which the work is asked for.
    pub through: i64,
    /// Keys of a shard.
    pub shard: u32,
    /// Records that are read at once: small, so that there are many chunks.
    pub page: usize,
    /// Milliseconds to read a record.
    pub cost: u64,
    /// How many times as long the keys of the first shard take.
    pub skew: u64,
    /// Milliseconds, at most, to prepare a chunk: drawn for each, so that chunks overtake each other.
    pub stage: u64,
    /// Chunks that are prepared at once.
    pub at_once: u32,
}

impl Keyed {
    /// The job's file, changed.
    #[must_use]
    pub fn job_with(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut job = json!({
            "name": "settle",
            "schedule": "0 0 * * *",
            "input": { "keys": { "from": self.from, "through": "max_id" } },
            "shards": { "targetRecords": self.shard, "batchRecords": 10, "parallelBatches": self.at_once },
            "work": { "custom": { "name": KEYED, "with": {
                "from": self.from, "through": self.through, "page": self.page,
                "cost": self.cost, "skew": self.skew, "slow": self.shard, "stage": self.stage,
                "atOnce": self.at_once,
            } } },
            "output": { "objects": "s3://ledger/out/", "format": "csv" },
        });
        change(&mut job);
        job.to_string()
    }

    /// How many records there are.
    #[must_use]
    pub fn records(&self) -> u64 {
        (self.from..=self.through).filter(|key| has_record(*key)).count() as u64
    }

    /// What is published in the end, as CSV.
    #[must_use]
    pub fn expected(&self) -> String {
        let mut groups: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for key in (self.from..=self.through).filter(|key| has_record(*key)) {
            let group = groups.entry(key.rem_euclid(5).to_string()).or_default();
            *group = (group.0 + 1, group.1 + key);
        }
        let rows: String = groups.iter().map(|(name, (count, sum))| format!("{name},{count},{sum}\n")).collect();
        format!("bucket,count,sum_key\n{rows}")
    }
}

fn has_record(key: i64) -> bool {
    key % 7 != 0
}

/// These works, and [`KEYED`].
#[must_use]
pub fn with_keyed(works: Works, life: Arc<Life>) -> Works {
    works.with(KEYED, move |with, input| {
        let number = |name: &str| with[name].as_i64().unwrap_or_default();
        let spec = AggregateSpec {
            group_by: vec!["bucket".to_owned()],
            count: true,
            sum: vec!["key".to_owned()],
            ..AggregateSpec::default()
        };
        let source = Source {
            slow: number("from")..number("from") + number("slow"),
            through: number("through"),
            page: number("page") as usize,
            cost: number("cost") as u64,
            skew: number("skew") as u64,
            life: Arc::clone(&life),
        };
        let stage = number("stage") as u64;
        let stage =
            (stage > 0 || number("atOnce") > 1).then(|| Arc::new(Delay { most: stage, life: Arc::clone(&life) }));
        let inner = Aggregate::new(spec, &input.nulls);
        Ok(Arc::new(KeyedWork { inner, source: Arc::new(source), stage }) as Arc<dyn Work>)
    })
}

struct KeyedWork {
    inner: Aggregate,
    source: Arc<Source>,
    stage: Option<Arc<Delay>>,
}

impl Work for KeyedWork {
    fn open(&self, committed: Vec<ResultRow>) -> Result<Box<dyn ShardWork>, WorkError> {
        self.inner.open(committed)
    }

    fn merge(&self) -> Box<dyn Merge> {
        self.inner.merge()
    }

    fn keys(&self) -> Option<Arc<dyn KeySource>> {
        Some(Arc::clone(&self.source) as _)
    }

    fn stage(&self) -> Option<Arc<dyn Stage>> {
        self.stage.as_ref().map(|stage| Arc::clone(stage) as _)
    }
}

struct Source {
    slow: Range<i64>,
    through: i64,
    page: usize,
    cost: u64,
    skew: u64,
    life: Arc<Life>,
}

#[async_trait]
impl KeySource for Source {
    async fn max_key(&self) -> Result<Option<i64>, WorkError> {
        Ok(Some(self.through))
    }

    async fn read(&self, range: Range<i64>, limit: usize) -> Result<KeyPage, WorkError> {
        let mut keys = range.clone().filter(|key| has_record(*key));
        let taken: Vec<i64> = keys.by_ref().take(limit.min(self.page)).collect();
        let next = keys.next();
        let cost = |key: &i64| self.cost * if self.slow.contains(key) { self.skew } else { 1 };
        let cost: u64 = taken.iter().map(cost).sum();
        if cost > 0 {
            tokio::time::sleep(Duration::from_millis(cost)).await;
            self.life.pass().await;
        }
        let fields = |key: i64| vec![field("key", key), field("bucket", key.rem_euclid(5))];
        let records = taken.into_iter().map(|key| KeyRecord { key, fields: fields(key) }).collect();
        Ok(KeyPage { records, next })
    }
}

fn field(name: &str, value: i64) -> (String, Option<String>) {
    (name.to_owned(), Some(value.to_string()))
}

/// Prepares a chunk by taking its time.
struct Delay {
    most: u64,
    life: Arc<Life>,
}

#[async_trait]
impl Stage for Delay {
    async fn prepare(&self, chunk: Chunk) -> Result<Chunk, WorkError> {
        // By the place and not by an own chance, so that a takeover waits as long.
        let place = chunk.record(0).from().to_string();
        let seed = place.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let delay = SeededRandom::new(seed).below(self.most.max(1));
        tokio::time::sleep(Duration::from_millis(delay)).await;
        self.life.pass().await;
        Ok(chunk)
    }
}
