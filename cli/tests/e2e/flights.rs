//! The example: a month of flights, summed up.

use std::fs;

use serde_json::Value;

use crate::harness::{Published, Site, repository};

/// Records in the example's input.
pub(crate) const RECORDS: u64 = 27_004;

/// What the example publishes, computed once by another program.
pub(crate) fn expected() -> String {
    fs::read_to_string(repository().join("tests/data/flights/2013-01.expected.csv")).unwrap()
}

#[test]
fn the_example_publishes_what_another_program_computed() {
    let site = Site::with_flights();
    let run = site.run(&["local", "run", "job.json", "--json"]).exits(0);
    let published = Published::of(&run);
    assert_eq!(published.content, expected());
    assert_eq!(published.summary["executed"], true);
    assert_eq!(published.records(), [RECORDS, RECORDS, 0]);
    assert_eq!(published.certificate["totals"]["takeovers"], 0);
    assert_eq!(published.certificate["generation"], 1);
    assert_eq!(published.certificate["parts"].as_array().unwrap().len(), 1);
    assert_eq!(run.stderr, "");

    let results = site.run(&["--local", "results", published.instance()]).exits(0);
    assert_eq!(results.text(), expected());
    assert_eq!(site.run(&["--local", "results", published.instance(), "--format", "csv"]).exits(0).text(), expected());
}

#[test]
fn results_as_ndjson_have_a_line_for_each_row_with_the_same_values() {
    let site = Site::with_flights();
    let published = Published::of(&site.run(&["local", "run", "job.json", "--json"]).exits(0));
    let ndjson = site.run(&["--local", "results", published.instance(), "--format", "ndjson"]).exits(0).text();
    assert_eq!(ndjson.lines().count(), 33);
    let mut csv = "origin,carrier,count,sum_distance,sum_arr_delay\n".to_owned();
    for line in ndjson.lines() {
        let row: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        let values: Vec<&str> = row.values().map(|value| value.as_str().unwrap()).collect();
        csv.push_str(&format!("{}\n", values.join(",")));
    }
    assert_eq!(csv, expected());
    let document = site.run(&["--local", "--json", "results", published.instance()]).exits(0).json();
    let lines: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(document["rows"], Value::Array(lines));
}

#[test]
fn the_same_run_again_executes_nothing_and_touches_nothing() {
    let site = Site::with_flights();
    let first = Published::of(&site.run(&["local", "run", "job.json", "--json"]).exits(0));
    let before = site.snapshot("out");
    assert_eq!(before.len(), 2, "a part and a certificate");
    let second = Published::of(&site.run(&["local", "run", "job.json", "--at", at(&first), "--json"]).exits(0));
    assert_eq!(second.summary["executed"], false);
    for field in ["instance", "status", "generation", "attempt", "records", "parts", "output", "seconds"] {
        assert_eq!(first.summary[field], second.summary[field], "{field}");
    }
    assert_eq!(site.snapshot("out"), before);
    let text = site.run(&["local", "run", "job.json", "--at", at(&first)]).exits(0).text();
    assert!(text.contains("nothing was executed"), "{text}");
    assert_eq!(site.snapshot("out"), before);
}

#[test]
fn one_instance_published_by_two_installations_has_the_same_parts() {
    let (one, two) = (Site::with_flights(), Site::with_flights());
    let run = |site: &Site, time: &str| {
        Published::of(&site.run(&["local", "run", "job.json", "--at", time, "--json"]).exits(0))
    };
    let (one, two) = (run(&one, "2026-01-05T11:00:00Z"), run(&two, "2026-01-05T06:00"));
    assert_eq!(one.instance(), "flights:2026-01-05T11:00:00Z");
    assert_eq!(one.instance(), two.instance());
    assert_eq!(one.summary["parts"], two.summary["parts"]);
    assert_eq!(one.content, expected());
}

#[test]
fn a_time_that_isnt_the_calendars_or_is_to_come_is_refused() {
    let site = Site::with_flights();
    for (time, kind, says) in [
        ("2026-01-05T11:30:00Z", "not_of_calendar", "2026-01-05T06:00:00-05:00"),
        ("2426-01-05T11:00:00Z", "not_yet", "still to come"),
        ("tomorrow", "value", "isn't a time"),
    ] {
        let error = site.run(&["local", "run", "job.json", "--at", time, "--json"]).exits(2).error();
        assert_eq!((error.kind.as_str(), error.field.as_deref()), (kind, Some("at")), "{error:?}");
        assert!(error.message.contains(says), "{error:?}");
    }
    assert!(site.is_nothing_published());
}

/// The time of an instance, for `--at`.
fn at(published: &Published) -> &str {
    published.instance().split_once(':').unwrap().1
}
