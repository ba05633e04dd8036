//! Messy input, cut up and worked on in many ways, against an aggregate that the test computes itself.

use serde_json::{Value, json};

use crate::generate::Oracle;
use crate::harness::{Published, Site, each};
use crate::messy::{self, File, NULLS_CSV, NULLS_NDJSON};
use crate::wait::seed;

/// Files of each format.
const FILES: usize = 40;

/// How the input is cut up, and by how many it is worked on.
struct Cut {
    target_bytes: u64,
    batch_records: u64,
    workers: &'static str,
}

const CUTS: [Cut; 4] = [
    Cut { target_bytes: 64 << 20, batch_records: 20_000, workers: "1" },
    Cut { target_bytes: 1, batch_records: 1, workers: "4" },
    Cut { target_bytes: 9_000, batch_records: 7, workers: "2" },
    Cut { target_bytes: 3_000, batch_records: 100, workers: "8" },
];

fn job(format: &str, output: &str, cut: &Cut) -> Value {
    // Lines are cut apart, so that one byte would make a shard of each.
    let target_bytes = if format == "ndjson" { cut.target_bytes.max(500) } else { cut.target_bytes };
    let nulls = if format == "csv" { NULLS_CSV } else { NULLS_NDJSON };
    json!({
        "name": "messy", "schedule": "@daily", "timeZone": "Asia/Shanghai",
        "input": { "objects": "in/", "format": format, "nulls": nulls },
        "shards": { "targetBytes": target_bytes, "batchRecords": cut.batch_records },
        "work": Oracle::work(), "output": { "objects": "out/", "format": output },
    })
}

fn publishes_what_the_oracle_says(format: &str, files: &[File], oracle: &Oracle) {
    let outputs = ["csv", "ndjson"];
    let cases: Vec<(&Cut, &str)> = CUTS.iter().zip(outputs.iter().copied().cycle()).collect();
    each(&cases, 3, |(cut, output)| {
        let site = Site::new();
        for (name, content) in files {
            site.write(&format!("in/{name}"), content);
        }
        site.job("job.json", &job(format, output, cut));
        let run = ["local", "run", "job.json", "--at", "2026-01-05", "--json", "--workers", cut.workers];
        let published = Published::of(&site.run(&run).exits(0));
        assert_eq!(published.instance(), "messy:2026-01-04T16:00:00Z");
        assert_eq!(published.records(), [oracle.records, oracle.records, 0], "{}", published.certificate);
        let rows =
            |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
        match *output {
            "csv" => assert_eq!(published.content, oracle.csv()),
            _ => assert_eq!(rows(&published.content), oracle.rows()),
        }
        // The other form is made of the published one; CSV has no null beside the empty text.
        let other = site.run(&["--local", "results", published.instance(), "--format", "csv"]).exits(0).text();
        assert_eq!(other, oracle.csv());
        tiles(&published.certificate, cut, format);
    });
}

/// Asserts that the shards tile the boundary: from the first file's start to the last one's end, each from where the
/// one before it ends.
fn tiles(certificate: &Value, cut: &Cut, format: &str) {
    let shards = certificate["shards"].as_array().unwrap();
    let at = |object: usize| json!({ "object": { "o": object, "b": 0, "l": 0 } });
    assert_eq!(shards[0]["range"]["from"], at(0));
    assert_eq!(shards[shards.len() - 1]["range"]["to"], at(FILES));
    for pair in shards.windows(2) {
        assert_eq!(pair[0]["range"]["to"], pair[1]["range"]["from"]);
    }
    let is_whole = cut.target_bytes > 1 << 20;
    // Plain files of JSON lines are cut within.
    let most = if is_whole {
        1
    } else if format == "ndjson" {
        usize::MAX
    } else {
        FILES
    };
    assert!(
        shards.len() <= most && (is_whole || shards.len() >= 4),
        "{} shards for {}",
        shards.len(),
        cut.target_bytes
    );
}

#[test]
fn csv_in_every_form_is_summed_up_exactly_however_it_is_cut() {
    let (files, oracle) = messy::csv(seed("csv"), FILES);
    assert!(oracle.records > 800, "{}", oracle.records);
    publishes_what_the_oracle_says("csv", &files, &oracle);
}

#[test]
fn ndjson_in_every_form_is_summed_up_exactly_however_it_is_cut() {
    let (files, oracle) = messy::ndjson(seed("ndjson"), FILES);
    assert!(oracle.records > 800, "{}", oracle.records);
    publishes_what_the_oracle_says("ndjson", &files, &oracle);
}

#[test]
fn a_commit_covers_at_most_batch_records() {
    let site = Site::new();
    let most = 50;
    let rows = "Oslo,1\n".repeat(2_000);
    site.write("in/a.csv", format!("city,amount\n{rows}"));
    let mut job = Site::tiny("batches");
    job["shards"] = json!({ "batchRecords": most });
    site.job("job.json", &job);
    let run = site
        .start_with(&["local", "run", "job.json", "--at", "2026-01-05", "--json"], &[("SHARDCRON_EVENTS", "stderr")]);
    let run = run.finish(crate::wait::SOON).exits(0);
    assert_eq!(Published::of(&run).content, "sum_amount\n2000\n");
    let commits: Vec<u64> = run
        .events()
        .iter()
        .filter(|event| event["event"] == "committed")
        .map(|event| event["records"].as_u64().unwrap())
        .collect();
    assert_eq!(commits.iter().sum::<u64>(), 2_000);
    assert!(commits.iter().all(|records| *records <= most), "batchRecords is {most}, and commits covered {commits:?}");
}
