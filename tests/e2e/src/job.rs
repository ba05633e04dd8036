//! Jobs of the tests' own, with input of which the result is known beforehand.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stack::Stack;
use crate::wait::{SOON, eventually};

/// Groups that the records fall into.
const GROUPS: u64 = 3;

/// Records that the pace is taken from, or as many as come within the time.
const PACE_RECORDS: u64 = 300;
const PACE_TIME: Duration = Duration::from_secs(10);

/// Of a job that commits each record by itself: the shortest that is worth it, and the longest that a test waits for.
const PACED_RECORDS: std::ops::RangeInclusive<u64> = 300..=30_000;

/// A job that sums up numbered records, and its input.
pub struct Sums<'a> {
    stack: &'a Stack,
    /// The job's name: of one test, and of one run of it.
    pub name: String,
    files: u64,
    records: u64,
}

impl<'a> Sums<'a> {
    /// A job with so many files of so many records each, and its input in the bucket.
    #[must_use]
    pub fn new(stack: &'a Stack, test: &str, files: u64, records: u64) -> Self {
        let job = Self { stack, name: format!("{test}-{}", stack.run()), files, records };
        for file in 0..files {
            stack.put(&job.key(file), &job.content(file));
        }
        job
    }

    /// A job of one shard that takes about so long when each record is a commit. How many records that is, the endpoint
    /// and the machine decide: a shorter job is run first, to see.
    #[must_use]
    pub fn lasting(stack: &'a Stack, test: &str, time: Duration) -> Self {
        let probe = Self::new(stack, &format!("{test}-pace"), 1, 2 * PACE_RECORDS);
        probe.apply(&json!({ "shards": { "batchRecords": 1 } }));
        let instance = probe.trigger();
        let done = || stack.describe(&instance)["records"]["in"].as_u64().unwrap();
        let before = eventually("the first record", SOON, || Some(done()).filter(|done| *done > 0));
        let since = Instant::now();
        let per_second = eventually("the pace", SOON, || {
            let (records, elapsed) = (done() - before, since.elapsed());
            let is_seen = records >= PACE_RECORDS || elapsed >= PACE_TIME || before + records == probe.total();
            is_seen.then(|| records as f64 / elapsed.as_secs_f64())
        });
        let records = (per_second * time.as_secs_f64()) as u64;
        Self::new(stack, test, 1, records.clamp(*PACED_RECORDS.start(), *PACED_RECORDS.end()))
    }

    /// The key of one of its files.
    #[must_use]
    pub fn key(&self, file: u64) -> String {
        format!("input/{}/{file:05}.ndjson", self.name)
    }

    /// One of its files: record `n` of all adds `n` to the group of its remainder.
    #[must_use]
    pub fn content(&self, file: u64) -> String {
        let numbers = file * self.records..(file + 1) * self.records;
        numbers.map(|number| format!("{{\"group\":\"g{}\",\"amount\":{number}}}\n", number % GROUPS)).collect()
    }

    /// How many records there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.files * self.records
    }

    /// What is to be published, by adding up.
    #[must_use]
    pub fn expected(&self) -> String {
        let mut text = "group,count,sum_amount\n".to_owned();
        for group in 0..GROUPS {
            let numbers = (group..self.total()).step_by(GROUPS as usize);
            text.push_str(&format!("g{group},{},{}\n", numbers.clone().count(), numbers.sum::<u64>()));
        }
        text
    }

    /// The job, a file a shard, with these fields in the place of the usual ones; those of `shards` one by one.
    #[must_use]
    pub fn spec(&self, fields: &Value) -> Value {
        // The last is the largest, and no other fits in beside one: so none is cut, and no two share a shard.
        let file_bytes = self.content(self.files - 1).len();
        let mut spec = json!({
            "name": self.name, "schedule": "@daily",
            "input": { "objects": self.stack.place("input", &self.name), "format": "ndjson" },
            "shards": { "targetBytes": file_bytes, "split": false },
            "work": { "aggregate": { "groupBy": ["group"], "count": true, "sum": ["amount"] } },
            "output": { "objects": self.stack.place("output", &self.name), "format": "csv" },
        });
        for (name, value) in fields.as_object().unwrap() {
            match (value.as_object(), name.as_str()) {
                (Some(members), "shards") => {
                    members.iter().for_each(|(name, value)| spec["shards"][name] = value.clone())
                }
                _ => spec[name] = value.clone(),
            }
        }
        spec
    }

    /// Applies it by the planner.
    pub fn apply(&self, fields: &Value) {
        self.stack.invoke(&json!({ "command": "apply", "spec": self.spec(fields) }));
    }

    /// Triggers it at a midnight that its calendar has; gives the instance's name.
    #[must_use]
    pub fn trigger(&self) -> String {
        let at = "2026-01-05T00:00:00Z";
        let made = self.stack.invoke(&json!({ "command": "trigger", "job": self.name, "at": at }));
        assert_eq!(made["created"], true, "{made}");
        made["instance"].as_str().unwrap().to_owned()
    }

    /// Asserts that an instance has published what adding up gives, with every record accounted for once.
    pub fn assert_exact(&self, instance: &str) {
        let ended = self.stack.describe(instance);
        assert_eq!(ended["status"], "Succeeded", "{ended}");
        let total = self.total();
        assert_eq!(ended["records"], json!({ "in": total, "out": total, "rejected": 0 }), "{ended}");
        assert_eq!(self.stack.results(instance), self.expected());
    }
}
