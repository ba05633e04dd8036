//! The commands that look, plan and change, and what a changed spec means.

use serde_json::{Value, json};

use crate::crash::tells;
use crate::harness::{Published, Site};

#[test]
fn version_tells_that_of_the_zone_rules() {
    let site = Site::new();
    let version = site.run(&["version", "--json"]).exits(0).json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    let tzdb = version["tzdb"].as_str().unwrap();
    assert!(tzdb.len() == 5 && tzdb.starts_with("20"), "{tzdb}");
    let text = site.run(&["version"]).exits(0).text();
    assert!(text.contains(tzdb), "{text}");
}

#[test]
fn next_prints_times_of_a_schedule_without_any_installation() {
    let site = Site::new();
    let next = |args: &[&str]| site.run(&[&["next", "--json"], args].concat()).exits(0).json()["times"].clone();
    let zone = ["--time-zone", "America/New_York"];
    // 2026-03-08: the clock goes forward from 02:00 to 03:00 there.
    assert_eq!(
        next(&[&["30 2 * * *", "--after", "2026-03-07", "--count", "3"], &zone[..]].concat()),
        json!(["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]),
    );
    assert_eq!(
        next(&[&["30 2 * * *", "--from", "2026-03-08", "--to", "2026-03-10", "--gap", "skip"], &zone[..]].concat()),
        json!(["2026-03-09T06:30:00Z"]),
    );
    // --after is excluded, --from is included, --to isn't.
    assert_eq!(next(&["@hourly", "--after", "2026-01-01T00:00Z", "--count", "1"]), json!(["2026-01-01T01:00:00Z"]));
    assert_eq!(
        next(&["@hourly", "--from", "2026-01-01T00:00Z", "--to", "2026-01-01T01:00Z"]),
        json!(["2026-01-01T00:00:00Z"])
    );
    assert_eq!(
        next(&["rate(90 minutes)", "--after", "2026-01-01T00:00Z", "--count", "2"]),
        json!(["2026-01-01T01:30:00Z", "2026-01-01T03:00:00Z"]),
    );
    assert_eq!(next(&["0 0 * * *"]).as_array().unwrap().len(), 5);
    assert!(!site.path(".shardcron").exists());
}

#[test]
fn next_names_the_field_of_a_schedule_or_argument_that_is_wrong() {
    let site = Site::new();
    for (args, field, says) in [
        (&["-5 * * * *"][..], "schedule", "`-5`"),
        (&["61 * * * *"], "schedule", "minute"),
        (&["0 0 0 * * *"], "schedule", "six"),
        (&["@daily", "--time-zone", "CET+1"], "timeZone", "CET+1"),
        (&["@daily", "--after", "noon"], "after", "`noon`"),
        (&["@daily", "--from", "x", "--to", "2026-01-01"], "from", "`x`"),
    ] {
        let error = site.run(&[&["next", "--json"], args].concat()).exits(2).error();
        assert_eq!((error.kind.as_str(), error.field.as_deref()), ("value", Some(field)), "{args:?}: {error:?}");
        assert!(error.message.contains(says), "{args:?}: {error:?}");
    }
}

#[test]
fn what_isnt_there_is_exit_2_for_a_name_and_an_empty_listing_for_a_place() {
    let site = Site::new();
    site.job("job.json", &Site::tiny("tiny"));
    site.run(&["--local", "apply", "--dry-run", "job.json"]).exits(0);
    assert_eq!(site.run(&["--local", "list", "--json"]).exits(0).json(), json!({ "jobs": [] }));
    assert!(site.run(&["--local", "list"]).exits(0).text().contains("no jobs yet"));
    let instance = "none:2026-01-05T00:00:00Z";
    for (command, kind) in [
        (["describe", "none"], "no_job"),
        (["next", "none"], "no_job"),
        (["describe", instance], "no_instance"),
        (["results", instance], "no_instance"),
        (["describe", "none:someday"], "value"),
    ] {
        let error = site.run(&[&["--local", "--json"], &command[..]].concat()).exits(2).error();
        assert_eq!(error.kind, kind, "{command:?}: {error:?}");
        assert!(error.message.contains("none") || error.message.contains("someday"), "{error:?}");
    }
}

#[test]
fn apply_says_what_it_changed_and_a_dry_run_changes_nothing() {
    let site = Site::new();
    site.job("job.json", &Site::tiny("tiny"));
    let apply = |more: &[&str]| site.run(&[&["--local", "--json", "apply", "job.json"], more].concat()).exits(0).json();
    let jobs = || site.run(&["--local", "--json", "list"]).exits(0).json()["jobs"].clone();
    let outcome = |dry: bool, applied: &str| json!({ "jobs": [{ "job": "tiny", "applied": applied }], "dryRun": dry });
    assert_eq!(apply(&["--dry-run"]), outcome(true, "created"));
    assert_eq!(jobs(), json!([]));
    assert_eq!(apply(&[]), outcome(false, "created"));
    assert_eq!(apply(&[]), outcome(false, "unchanged"));
    assert_eq!(jobs()[0]["specVersion"], 1);
    let mut changed = Site::tiny("tiny");
    changed["schedule"] = json!("30 1 * * *");
    site.job("job.json", &changed);
    assert_eq!(apply(&["--dry-run"]), outcome(true, "changed"));
    assert_eq!((jobs()[0]["specVersion"].clone(), jobs()[0]["schedule"].clone()), (json!(1), json!("0 0 * * *")));
    assert_eq!(apply(&[]), outcome(false, "changed"));
    assert_eq!((jobs()[0]["specVersion"].clone(), jobs()[0]["schedule"].clone()), (json!(2), json!("30 1 * * *")));
    assert!(jobs()[0]["next"].as_str().unwrap().ends_with("T01:30:00Z"), "{}", jobs());
    let described = site.run(&["--local", "--json", "describe", "tiny"]).exits(0).json();
    assert_eq!(
        (described["spec"]["schedule"].clone(), described["specVersion"].clone()),
        (json!("30 1 * * *"), json!(2))
    );
    let valid = site.run(&["validate", "job.json", "--json"]).exits(0).json();
    assert_eq!(valid, json!({ "valid": [{ "file": "job.json", "job": "tiny" }] }));
}

#[test]
fn a_changed_spec_counts_from_now_on_and_not_for_an_instance_that_is_there() {
    let site = Site::new();
    site.write("in/a.csv", "city,amount\nOslo,1\nBergen,2\nOslo,3\n");
    site.job("job.json", &Site::tiny("tiny"));
    let begun = ["local", "run", "job.json", "--at", "2026-01-05", "--json"];
    let run = site.start_with(&begun, &[("SHARDCRON_EVENTS", "stderr")]);
    tells(&run, "planned", 1);
    run.kill();
    let mut changed = Site::tiny("tiny");
    changed["work"] = json!({ "aggregate": { "groupBy": ["city"], "count": true } });
    changed["output"]["format"] = json!("ndjson");
    site.job("job.json", &changed);
    assert_eq!(Published::of(&site.run(&begun).exits(0)).content, "sum_amount\n6\n");
    let later = Published::of(&site.run(&["local", "run", "job.json", "--at", "2026-01-06", "--json"]).exits(0));
    assert_eq!(later.content, "{\"city\":\"Bergen\",\"count\":\"1\"}\n{\"city\":\"Oslo\",\"count\":\"2\"}\n");
    assert_eq!(
        site.run(&["--local", "results", later.instance(), "--format", "csv"]).exits(0).text(),
        "city,count\nBergen,1\nOslo,2\n"
    );
    let windows: Vec<Value> = ["05", "06"]
        .iter()
        .map(|day| site.run(&["--local", "describe", &format!("tiny:2026-01-{day}T00:00:00Z"), "--json"]).exits(0).json()["window"].clone())
        .collect();
    assert_eq!(windows[0]["end"], windows[1]["start"], "windows tile time: {windows:?}");
}

#[test]
fn a_table_beside_a_local_command_is_refused_and_nothing_is_run() {
    let site = Site::with_flights();
    for command in [&["local", "run", "job.json"][..], &["local", "up"]] {
        let error = site.run(&[command, &["--table", "prod", "--json"]].concat()).exits(2).error();
        assert_eq!((error.kind.as_str(), error.field.as_deref()), ("usage", Some("table")), "{error:?}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("host")), "{error:?}");
    }
    assert!(!site.path(".shardcron").exists());
}

#[test]
fn a_command_that_an_instance_is_past_says_where_it_stands_and_what_to_do() {
    let site = Site::new();
    site.write("in/a.csv", "amount\n1\n");
    site.job("job.json", &Site::tiny("tiny"));
    let at = "2026-01-05T00:00:00Z";
    let instance = &format!("tiny:{at}");
    site.run(&["local", "run", "job.json", "--at", at]).exits(0);
    for (command, says) in [("cancel", "can't be stopped"), ("retry", "can't be retried")] {
        let error = site.run(&["--local", command, instance, "--json"]).exits(2).error();
        assert_eq!(error.kind, "illegal", "{error:?}");
        assert!(error.message.contains("is Succeeded") && error.message.contains(says), "{error:?}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("shardcron rerun")), "{error:?}");
    }
}

#[test]
fn schema_prints_the_committed_one_and_completions_know_the_commands() {
    let site = Site::new();
    let committed = std::fs::read_to_string(crate::harness::repository().join("docs/job.schema.json")).unwrap();
    assert_eq!(site.run(&["schema"]).exits(0).text(), committed);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = site.run(&["completions", shell]).exits(0).text();
        for word in ["verify", "rejects", "backfill", "per-minute"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let error = site.run(&["completions", "tcsh", "--json"]).exits(2).error();
    assert!(error.kind == "usage" && error.message.contains("tcsh"), "{error:?}");
    assert!(!site.path(".shardcron").exists());
}
