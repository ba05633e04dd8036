//! The schema against the parser: whatever one refuses by its shape, the other does too.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::job::{JobSpec, SpecErrorKind};

const COMMITTED: &str = include_str!("../../../../../docs/job.schema.json");

const EXAMPLE: &str = include_str!("../../../../../examples/flights/job.json");

const REFERENCE: &str = include_str!("../../../../../docs/job-reference.md");

fn validator() -> Validator {
    jsonschema::validator_for(&serde_json::from_str(COMMITTED).unwrap()).unwrap()
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let generated = JobSpec::schema_text();
    let mut lines = COMMITTED.lines().zip(generated.lines()).enumerate();
    let differs = lines.find(|(_, (committed, generated))| committed != generated);
    assert_eq!(differs, None, "write it anew: cargo run --bin shardcron -- schema > docs/job.schema.json");
    assert_eq!(COMMITTED.len(), generated.len());
}

/// Jobs with every field, in each of its forms.
fn jobs() -> Vec<Value> {
    let mut jobs = vec![
        serde_json::from_str(EXAMPLE).unwrap(),
        json!({
            "name": "least", "schedule": "@daily", "input": { "objects": "in/", "format": "ndjson" },
            "work": { "aggregate": { "count": true } }, "output": { "objects": "out/", "format": "csv" },
        }),
        json!({
            "name": "all", "schedule": "0 0 * * *", "timeZone": "Asia/Shanghai",
            "dst": { "gap": "skip", "overlap": "both" }, "concurrencyPolicy": "Queue", "concurrencyKey": "ledger",
            "startingDeadlineSeconds": 3600, "catchUp": "all", "suspend": true, "activeDeadlineSeconds": 7200,
            "backoffLimit": 0, "parallelism": 8, "ifEmpty": "succeed",
            "input": {
                "objects": "s3://ledger/in/{window.start:%Y}/", "format": "csv", "nulls": ["", "NA"],
                "ready": { "object": "s3://ledger/in/_SUCCESS", "withinSeconds": 60 },
            },
            "shards": { "targetBytes": 1, "batchRecords": 100 },
            "work": { "aggregate": { "groupBy": ["a"], "count": false, "sum": ["b"], "min": ["c"], "max": ["d"] } },
            "rejects": { "max": 100 }, "output": { "objects": "s3://ledger/out/", "format": "ndjson" },
        }),
    ];
    let mut custom = jobs[1].clone();
    custom["work"] = json!({ "custom": { "name": "own", "with": { "any": [1, null] } } });
    jobs.push(custom);
    jobs
}

/// A document with one thing changed, for each thing and change.
fn variants(job: &Value) -> Vec<(String, Value)> {
    let mut pointers = Vec::new();
    collect(job, String::new(), &mut pointers);
    let mut variants = Vec::new();
    for pointer in pointers {
        let others = [
            json!(null),
            json!(true),
            json!(7),
            json!(0),
            json!(-1),
            json!(1.5),
            json!(u64::MAX),
            json!("text"),
            json!(""),
            json!([]),
            json!(["a", "b"]),
            json!([1]),
            json!({}),
        ];
        for other in others {
            let mut changed = job.clone();
            let text = format!("{pointer} = {other}");
            *changed.pointer_mut(&pointer).unwrap() = other;
            variants.push((text, changed));
        }
        let object =
            |changed: &mut Value| changed.pointer_mut(&pointer).and_then(Value::as_object_mut).map(std::mem::take);
        let mut changed = job.clone();
        if let Some(members) = object(&mut changed) {
            for name in members.keys() {
                let mut fewer: Map<String, Value> = members.clone();
                fewer.remove(name);
                let mut changed = job.clone();
                *changed.pointer_mut(&pointer).unwrap() = fewer.into();
                variants.push((format!("{pointer} without {name}"), changed));
            }
            for unknown in ["unknown", "keys", "lambda", "timezone"] {
                let mut changed = job.clone();
                changed.pointer_mut(&pointer).unwrap()[unknown] = json!({});
                variants.push((format!("{pointer} with {unknown}"), changed));
            }
        }
    }
    variants
}

fn collect(value: &Value, pointer: String, found: &mut Vec<String>) {
    if let Value::Object(members) = value {
        for (name, value) in members {
            collect(value, format!("{pointer}/{name}"), found);
        }
    }
    found.push(pointer);
}

#[test]
fn the_schema_accepts_what_the_parser_takes_and_refuses_what_it_refuses_by_shape() {
    let validator = validator();
    let mut met: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for job in jobs() {
        assert!(JobSpec::parse(&job.to_string()).is_ok() && validator.is_valid(&job), "{job}");
        for (what, changed) in variants(&job) {
            let parsed = JobSpec::parse(&changed.to_string());
            let valid = validator.is_valid(&changed);
            let kind = parsed.as_ref().err().map(|error| error.kind);
            match kind {
                None => assert!(valid, "{what}: the parser takes it, and the schema doesn't: {changed}"),
                // A value can be wrong in ways that a schema doesn't know.
                Some(SpecErrorKind::Value) => {}
                Some(_) => assert!(!valid, "{what}: the schema takes it, and the parser doesn't: {parsed:?}"),
            }
            let counts = met.entry(kind.map_or("taken", SpecErrorKind::as_str)).or_default();
            if valid { counts.0 += 1 } else { counts.1 += 1 }
        }
    }
    for kind in ["taken", "unknown_field", "missing_field", "type", "value"] {
        assert!(met.contains_key(kind), "{met:?}");
    }
    // Of wrong values, ranges and words are known to it.
    let (passed, refused) = met["value"];
    assert!(refused > passed, "{met:?}");
}

#[test]
fn the_schema_accepts_every_whole_job_of_the_reference() {
    let validator = validator();
    let blocks = REFERENCE.split("```json").skip(1).map(|rest| rest.split("```").next().unwrap());
    let jobs: Vec<Value> = blocks
        .filter_map(|block| serde_json::from_str(block).ok())
        .filter(|job: &Value| job.get("schedule").is_some() && job.get("work").is_some())
        .collect();
    assert!(!jobs.is_empty(), "the reference shows at least one whole job");
    for job in jobs {
        let errors: Vec<String> = validator.iter_errors(&job).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{job}: {errors:?}");
    }
}
