//! Several processes on one instance of one directory.

use serde_json::{Value, json};

use crate::flights::{self, expected};
use crate::generate::{Draw, Oracle, ledger};
use crate::harness::{Process, Published, Site};
use crate::wait::{SOON, eventually, seed};

/// Starts so many runs of one instance, and asserts that all end with the same result, and that a result is counted
/// once.
fn run_together(site: &Site, processes: usize, at: &str) -> Vec<Published> {
    // A lease that none loses by being slow.
    let lease = [("SHARDCRON_LEASE_SECONDS", "60")];
    let run = ["local", "run", "job.json", "--at", at, "--json"];
    let running: Vec<Process> = (0..processes).map(|_| site.start_with(&run, &lease)).collect();
    let mut results = Vec::new();
    for run in running {
        let finished = run.finish(SOON).exits(0);
        assert_eq!(finished.stderr, "", "nothing went wrong that a person could do anything about");
        results.push(Published::of(&finished));
    }
    for result in &results {
        for field in ["instance", "records", "shards", "parts", "output", "generation", "attempt", "takeovers"] {
            assert_eq!(result.summary[field], results[0].summary[field], "{field}");
        }
        assert_eq!(result.summary["takeovers"], 0, "all were alive: {}", result.certificate);
    }
    results
}

#[test]
fn two_runs_of_one_instance_at_once_publish_it_once() {
    let site = Site::with_flights();
    let results = run_together(&site, 2, "2026-01-05T11:00:00Z");
    assert_eq!(results[0].content, expected());
    assert_eq!(results[0].records(), [flights::RECORDS, flights::RECORDS, 0]);
    assert_eq!(site.snapshot("out").len(), 2, "one part and one certificate");
}

#[test]
fn six_runs_of_one_instance_at_once_count_each_record_once() {
    let site = Site::new();
    let (files, oracle) = ledger(&mut Draw::new(seed("six runs")), 24, 200, 40);
    for (name, content) in files {
        site.write(&format!("in/{name}"), content);
    }
    site.job("job.json", &job(&json!({ "targetBytes": 10_000, "batchRecords": 50 })));
    let results = run_together(&site, 6, "2026-01-05T00:00:00Z");
    assert_eq!(results[0].content, oracle.csv());
    assert_eq!(results[0].records(), [oracle.records, oracle.records, 0]);
    let shards = results[0].certificate["shards"].as_array().unwrap();
    assert!(shards.len() >= 12, "many shards, so that the processes have something to fight for: {}", shards.len());
    assert_eq!(results[0].summary["shards"]["done"], shards.len());
}

#[test]
fn a_run_that_joins_in_the_middle_of_fan_out_doesnt_take_the_step_from_the_one_that_is_in_it() {
    let (files, oracle) = ledger(&mut Draw::new(seed("fan-out")), 230, 2, 5);
    let site = Site::new();
    for (name, content) in files {
        site.write(&format!("in/{name}"), content);
    }
    site.job("job.json", &job(&json!({ "targetBytes": 1 })));
    // Longer than a run may take here: the step's lease must not have to end.
    let variables = [("SHARDCRON_LEASE_SECONDS", "300"), ("SHARDCRON_EVENTS", "stderr")];
    let run = ["local", "run", "job.json", "--at", "2026-01-05", "--json", "--workers", "4"];
    let first = site.start_with(&run, &variables);
    let manifests = site.path(".shardcron/state/manifests");
    eventually("a manifest", SOON, || manifests.exists().then_some(()));
    let second = site.start_with(&run, &variables);
    for run in [first, second] {
        let finished = run.finish(SOON).exits(0);
        let lost = |event: &&Value| event["event"] == "trouble" || event["event"] == "step_failed";
        assert_eq!(finished.events().iter().find(lost), None);
        let published = Published::of(&finished);
        assert_eq!(published.content, oracle.csv());
        assert_eq!(published.summary["stepTakeovers"], 0, "{}", published.summary);
    }
}

/// A job over a ledger in `in/`.
pub(crate) fn job(shards: &Value) -> Value {
    json!({
        "name": "ledger", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" }, "shards": shards,
        "work": Oracle::work(), "output": { "objects": "out/", "format": "csv" },
    })
}
