//! A job with its input, and what must come out: computed here record by record, without any of shardcron's code.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shardcron_domain::ids::{InstanceId, JobName};
use shardcron_domain::location::Root;
use shardcron_domain::time::Millis;
use shardcron_objects::ObjectName;

use crate::ports::SeededRandom;
use crate::work::SCRIPTED;

/// When the world's time begins: twenty seconds before the job's scheduled time.
pub const BASE: Millis = Millis(1_788_047_980_000);

/// The job's instance that tests are about.
pub const INSTANCE: &str = "settle:2026-08-30T00:00:00Z";

/// Bytes of one record: `m1,123` and the line's end.
const RECORD_BYTES: usize = 7;

/// The header of each object.
const HEADER: &str = "merchant,amount\n";

/// A job with its input.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The objects below `s3://ledger/in/`, by key.
    pub objects: Vec<(String, String)>,
    /// How many records are in them.
    pub records: u64,
    /// What is published in the end, as CSV.
    pub expected: String,
    target_bytes: usize,
}

impl Fixture {
    /// So many shards of so many objects of so many records.
    #[must_use]
    pub fn new(shards: usize, objects: usize, records: usize) -> Self {
        let random = SeededRandom::new(7);
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut made = Vec::new();
        for number in 0..shards * objects {
            let mut content = HEADER.to_owned();
            for _ in 0..records {
                let (merchant, amount) = (format!("m{}", random.below(5)), 100 + random.below(900));
                content.push_str(&format!("{merchant},{amount}\n"));
                let sum = sums.entry(merchant).or_default();
                *sum = (sum.0 + 1, sum.1 + amount);
            }
            made.push((format!("{number:02}.csv"), content));
        }
        let rows: String = sums.iter().map(|(name, (count, sum))| format!("{name},{count},{sum}\n")).collect();
        Self {
            objects: made,
            records: (shards * objects * records) as u64,
            expected: format!("merchant,count,sum_amount\n{rows}"),
            target_bytes: objects * (HEADER.len() + records * RECORD_BYTES),
        }
    }

    /// Two shards of one object of so many records, each record of a merchant of its own: more rows than a transaction
    /// holds.
    #[must_use]
    pub fn many_rows(records: usize) -> Self {
        let (mut objects, mut rows) = (Vec::new(), BTreeMap::new());
        for number in 0..2 {
            let mut content = HEADER.to_owned();
            for record in 0..records {
                let (merchant, amount) = (format!("m{number}-{record}"), 100 + record);
                content.push_str(&format!("{merchant},{amount}\n"));
                rows.insert(merchant, amount);
            }
            objects.push((format!("{number:02}.csv"), content));
        }
        let rows: String = rows.iter().map(|(name, sum)| format!("{name},1,{sum}\n")).collect();
        let expected = format!("merchant,count,sum_amount\n{rows}");
        Self { objects, records: 2 * records as u64, expected, target_bytes: 1 }
    }

    /// Three shards of three objects of three records.
    #[must_use]
    pub fn small() -> Self {
        Self::new(3, 3, 3)
    }

    /// The job's file.
    #[must_use]
    pub fn job(&self) -> String {
        self.job_with(|_| {})
    }

    /// The job's file, changed.
    #[must_use]
    pub fn job_with(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut job = json!({
            "name": "settle",
            "schedule": "0 0 * * *",
            "backoffLimit": 6,
            "input": { "objects": "s3://ledger/in/", "format": "csv" },
            "shards": { "targetBytes": self.target_bytes, "batchRecords": 2 },
            "work": { "custom": { "name": SCRIPTED } },
            "output": { "objects": "s3://ledger/out/", "format": "csv" },
        });
        change(&mut job);
        job.to_string()
    }
}

/// An object of the input.
#[must_use]
pub fn input(key: &str) -> ObjectName {
    ObjectName { root: Root::Bucket("ledger".to_owned()), key: format!("in/{key}") }
}

/// The instance that tests are about.
#[must_use]
pub fn instance_id() -> InstanceId {
    INSTANCE.parse().expect("a good name")
}

/// A job's name.
#[must_use]
pub fn job_name(name: &str) -> JobName {
    name.parse().expect("a good name")
}
