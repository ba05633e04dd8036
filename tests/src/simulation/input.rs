//! What a simulated job reads, and what must come out: computed here record by record, without any of shardcron's code.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::keyed::Keyed;
use crate::ports::SeededRandom;
use crate::work::SCRIPTED;

/// A record as it was made.
#[derive(Clone, Debug)]
struct Record {
    group: String,
    /// None where it isn't a number.
    amount: Option<u64>,
    /// Whether it is no record at all.
    broken: bool,
}

/// What must come out of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// What is published, as CSV.
    pub csv: String,
    /// Records of the input.
    pub records: u64,
    /// Those of them that are rejected.
    pub rejected: u64,
}

/// An input: objects, a range of keys, or a list.
#[derive(Clone)]
pub struct Input {
    /// In words.
    pub what: String,
    /// The objects below `s3://ledger/in/`, by key.
    pub objects: Vec<(String, String)>,
    records: Vec<Record>,
    keyed: Option<Keyed>,
    /// The columns that it is grouped by and summed.
    columns: (&'static str, &'static str),
    /// The job's `input` and `shards`.
    job: (Value, Value),
}

impl Input {
    /// An input drawn; with this many bad records, where it can have any.
    #[must_use]
    pub fn draw(random: &SeededRandom, bad: u64) -> Self {
        match random.below(9) {
            0..=2 => Self::csv(random, bad),
            3..=4 => Self::ndjson(random, bad),
            5 => Self::list(random, bad),
            _ => Self::keys(random),
        }
    }

    fn csv(random: &SeededRandom, bad: u64) -> Self {
        let many_rows = random.once_in(6);
        let (shards, objects) = (1 + random.below(4), 1 + random.below(3));
        let (count, each) =
            if many_rows { (2, 95 + random.below(60)) } else { (shards * objects, 1 + random.below(5)) };
        let batch = if many_rows { 60 + random.below(100) } else { 1 + random.below(4) };
        let records = records(random, count * each, many_rows, bad, false);
        let line = |record: &Record| format!("{},{}\n", record.group, amount(record));
        let made = records.chunks(each as usize).map(|chunk| chunk.iter().map(line).collect::<String>());
        let made: Vec<_> =
            made.enumerate().map(|(no, rows)| (format!("{no:02}.csv"), format!("merchant,amount\n{rows}"))).collect();
        let target = if many_rows { 1 } else { objects * (16 + 8 * each) };
        Self {
            what: format!("{count} objects of CSV with {each} records each"),
            objects: made,
            records,
            keyed: None,
            columns: ("merchant", "amount"),
            job: objects_job("csv", target, batch),
        }
    }

    fn ndjson(random: &SeededRandom, bad: u64) -> Self {
        // One large object is cut within; several small ones aren't.
        let is_large = random.once_in(2);
        let (count, each) =
            if is_large { (1, 20 + random.below(60)) } else { (1 + random.below(4), 1 + random.below(9)) };
        let target = if is_large { 100 + random.below(900) } else { 1 + random.below(600) };
        let records = records(random, count * each, false, bad, true);
        let line = |record: &Record| match record.broken {
            true => "{\"merchant\":\n".to_owned(),
            false => format!("{}\n", json!({ "merchant": record.group, "amount": amount(record) })),
        };
        let made = records.chunks(each as usize).map(|chunk| chunk.iter().map(line).collect::<String>());
        Self {
            what: format!("{count} objects of NDJSON with {each} records each, cut at {target} bytes"),
            objects: made.enumerate().map(|(no, rows)| (format!("{no:02}.ndjson"), rows)).collect(),
            records,
            keyed: None,
            columns: ("merchant", "amount"),
            job: objects_job("ndjson", target, 1 + random.below(6)),
        }
    }

    fn list(random: &SeededRandom, bad: u64) -> Self {
        let count = 1 + random.below(if random.once_in(4) { 120 } else { 24 });
        let bad = bad.min(count);
        let mut items: Vec<String> = (0..count).map(|item| format!("{item:03}")).collect();
        for _ in 0..bad {
            let place = random.below(count) as usize;
            items[place] = format!("x{place:02}");
        }
        let to_record = |item: &String| Record { group: item.clone(), amount: item.parse().ok(), broken: false };
        let (target, batch) = (1 + random.below(9), 1 + random.below(5));
        Self {
            what: format!("a list of {count} items, {target} a shard"),
            objects: Vec::new(),
            records: items.iter().map(to_record).collect(),
            keyed: None,
            columns: ("item", "item"),
            job: (json!({ "list": items }), json!({ "targetRecords": target, "batchRecords": batch })),
        }
    }

    fn keys(random: &SeededRandom) -> Self {
        let from = random.below(40) as i64 - 20;
        let slow = random.once_in(2);
        let staged = random.once_in(2);
        let keyed = Keyed {
            from,
            through: from + 20 + random.below(130) as i64,
            shard: if slow { 30 + random.below(150) } else { 15 + random.below(60) } as u32,
            page: 1 + random.below(8) as usize,
            cost: if slow { 30 + random.below(90) } else { random.below(12) },
            skew: if slow { 1 + random.below(12) } else { 1 },
            stage: if staged { 1 + random.below(4_000) } else { 0 },
            at_once: if staged { 1 + random.below(8) as u32 } else { 1 },
        };
        let job: Value = serde_json::from_str(&keyed.job_with(|_| {})).expect("it was just made");
        let mut shards = job["shards"].clone();
        shards["batchRecords"] = (3 + random.below(20)).into();
        Self {
            what: format!("{keyed:?}"),
            objects: Vec::new(),
            records: Vec::new(),
            keyed: Some(keyed),
            columns: ("bucket", "key"),
            job: (job["input"].clone(), shards),
        }
    }

    /// The job's file: before an edit, or after it, which takes away the sums and changes the batches.
    #[must_use]
    pub fn job(&self, edited: bool) -> Value {
        let (input, mut shards) = self.job.clone();
        let work = match self.keyed {
            Some(keyed) => {
                let job: Value = serde_json::from_str(&keyed.job_with(|_| {})).expect("it was just made");
                job["work"].clone()
            }
            None => {
                let sum = if edited { json!([]) } else { json!([self.columns.1]) };
                json!({ "custom": { "name": SCRIPTED, "with": { "groupBy": [self.columns.0], "sum": sum } } })
            }
        };
        if edited {
            shards["batchRecords"] = (shards["batchRecords"].as_u64().unwrap_or_default() + 1).into();
        }
        json!({
            "name": "settle", "input": input, "shards": shards, "work": work,
            "output": { "objects": "s3://ledger/out/", "format": "csv" },
        })
    }

    /// What must come out under the spec as it is stored.
    #[must_use]
    pub fn expected(&self, spec: &Value) -> Expected {
        if let Some(keyed) = self.keyed {
            return Expected { csv: keyed.expected(), records: keyed.records(), rejected: 0 };
        }
        let (group, column) = self.columns;
        let sums = spec["work"]["custom"]["with"]["sum"].as_array().is_some_and(|columns| !columns.is_empty());
        let mut groups: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut rejected = 0;
        for record in &self.records {
            match record.amount {
                _ if record.broken => rejected += 1,
                None if sums => rejected += 1,
                amount => {
                    let sum = groups.entry(&record.group).or_default();
                    *sum = (sum.0 + 1, sum.1 + amount.unwrap_or_default());
                }
            }
        }
        let csv = if sums {
            let rows = groups.iter().map(|(name, (count, sum))| format!("{name},{count},{sum}\n"));
            format!("{group},count,sum_{column}\n{}", rows.collect::<String>())
        } else {
            let rows = groups.iter().map(|(name, (count, _))| format!("{name},{count}\n"));
            format!("{group},count\n{}", rows.collect::<String>())
        };
        Expected { csv, records: self.records.len() as u64, rejected }
    }
}

fn objects_job(format: &str, target: u64, batch: u64) -> (Value, Value) {
    let input = json!({ "objects": "s3://ledger/in/", "format": format });
    (input, json!({ "targetBytes": target, "batchRecords": batch }))
}

/// The text of a record's amount.
fn amount(record: &Record) -> String {
    record.amount.map_or_else(|| "unknown".to_owned(), |amount| amount.to_string())
}

fn records(random: &SeededRandom, count: u64, distinct: bool, bad: u64, breakable: bool) -> Vec<Record> {
    let mut records: Vec<Record> = (0..count)
        .map(|number| Record {
            group: if distinct { format!("m{number:03}") } else { format!("m{}", random.below(5)) },
            amount: Some(100 + random.below(900)),
            broken: false,
        })
        .collect();
    for _ in 0..bad.min(count) {
        let place = random.below(count) as usize;
        records[place].amount = None;
        records[place].broken = breakable && random.once_in(3);
    }
    records
}
