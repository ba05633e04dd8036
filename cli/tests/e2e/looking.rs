//! The commands that only look: what they say of what is wrong or isn't there, and that they leave it so.

use serde_json::{Value, json};

use crate::harness::{Published, Site};

const AT: &str = "2026-01-05T00:00:00Z";
const INSTANCE: &str = "tiny:2026-01-05T00:00:00Z";
const RUN: &[&str] = &["local", "run", "job.json", "--at", AT, "--json"];

/// A directory with the tiny job and two rows of input.
fn site() -> Site {
    let site = Site::new();
    site.write("in/a.csv", "city,amount\nOslo,1\nBergen,2.50\n");
    let mut job = Site::tiny("tiny");
    job["work"]["aggregate"]["groupBy"] = json!(["city"]);
    site.job("job.json", &job);
    site
}

#[test]
fn a_run_whose_certificate_is_gone_says_so_and_is_no_success() {
    let site = site();
    let published = Published::of(&site.run(RUN).exits(0));
    let certificate = std::path::Path::new(published.summary["output"].as_str().unwrap()).join("_certificate.json");
    std::fs::remove_file(certificate).unwrap();
    let again = site.run(RUN).exits(1);
    assert_eq!((again.json()["status"].as_str(), &again.json()["output"]), (Some("Succeeded"), &Value::Null));
    let results = site.run(&["--local", "results", INSTANCE, "--json"]).exits(1).error();
    for error in [again.error(), results] {
        assert_eq!(error.kind, "not_published", "{error:?}");
        assert!(error.message.contains(INSTANCE) && error.hint.unwrap().contains("shardcron rerun"));
    }
    site.run(&["--local", "rerun", INSTANCE]).exits(0);
    Published::of(&site.run(RUN).exits(0));
}

#[test]
fn an_audit_of_an_empty_range_is_refused_and_one_of_no_jobs_says_so() {
    let site = site();
    let audit = |from: &str, to: &str, more: &[&str]| {
        site.run(&[&["--local", "audit", "--from", from, "--to", to], more].concat())
    };
    site.run(&["--local", "apply", "job.json"]).exits(0);
    for to in ["2026-01-01", "2025-12-31T23:00:00Z"] {
        let error = audit("2026-01-01", to, &["tiny", "--json"]).exits(2).error();
        assert_eq!((error.kind.as_str(), error.field.as_deref()), ("value", Some("to")), "{error:?}");
    }
    audit("2026-01-01", "2026-01-02", &["tiny"]).exits(0);
    site.run(&["--local", "delete", "tiny"]).exits(0);

    let none = Site::new();
    none.job("wrong.json", &json!({}));
    none.run(&["--local", "apply", "wrong.json"]).exits(2);
    let audit = |more: &[&str]| none.run(&[&["--local", "audit", "--from", "2026-01-01"], more].concat());
    assert!(audit(&["--to", "2026-01-02"]).exits(0).text().contains("no jobs"));
    assert_eq!(audit(&["--to", "2026-01-02", "--json"]).exits(0).json(), json!({ "jobs": [], "missing": 0 }));
    audit(&["--to", "2026-01-01"]).exits(2);
}

#[test]
fn a_directory_without_an_installation_is_named_and_left_as_it_is() {
    let site = site();
    for command in [
        &["describe", "tiny"][..],
        &["describe", INSTANCE],
        &["results", INSTANCE],
        &["verify", INSTANCE],
        &["rejects", INSTANCE],
        &["effects", INSTANCE],
        &["audit", "--from", "2026-01-01", "--to", "2026-01-02"],
        &["explain", "tiny", "--at", AT],
        &["watch", INSTANCE],
        &["next", "tiny"],
        &["backfill", "list", "tiny"],
        &["cancel", INSTANCE],
        &["trigger", "tiny"],
        &["suspend", "tiny"],
    ] {
        let error = site.run(&[&["--local=.shardcorn", "--json"], command].concat()).exits(2).error();
        assert_eq!(error.kind, "no_installation", "{command:?}: {error:?}");
        assert!(error.message.contains(".shardcorn"), "{error:?}");
        let hint = error.hint.unwrap();
        assert!(hint.contains("apply") && hint.contains("local run") && hint.contains("--local=DIR"), "{hint}");
        assert!(!site.path(".shardcorn").exists(), "{command:?}");
    }
    // Nothing is an empty listing, which names the place.
    assert_eq!(site.run(&["--local=.shardcorn", "list", "--json"]).exits(0).json(), json!({ "jobs": [] }));
    assert!(site.run(&["--local=.shardcorn", "list"]).exits(0).text().contains("no installation in .shardcorn"));
    assert!(!site.path(".shardcorn").exists());
    site.run(&["--local=.shardcorn", "apply", "job.json"]).exits(0);
    site.run(&["--local=.shardcorn", "list"]).exits(0);
}

#[test]
fn results_as_json_are_one_document_of_rows_and_take_no_format() {
    let site = site();
    site.write("in/b.csv", "city,amount\n\"Ås\"\"\",12345678901234567890.5\n,7\n");
    Published::of(&site.run(RUN).exits(0));
    let expected = json!({
        "instance": INSTANCE, "generation": 1, "columns": ["city", "sum_amount"], "rows": [
            { "city": null, "sum_amount": "7" }, { "city": "Bergen", "sum_amount": "2.5" },
            { "city": "Oslo", "sum_amount": "1" }, { "city": "Ås\"", "sum_amount": "12345678901234567890.5" },
        ],
    });
    assert_eq!(site.run(&["--local", "--json", "results", INSTANCE]).exits(0).json(), expected);
    for command in ["results", "rejects"] {
        let error = site.run(&["--local", "--json", command, INSTANCE, "--format", "ndjson"]).exits(2).error();
        assert_eq!(error.kind, "usage", "{error:?}");
        assert!(error.message.contains("--format") && error.hint.unwrap().contains("--json"));
    }
    let rejects = site.run(&["--local", "--json", "rejects", INSTANCE]).exits(0).json();
    assert_eq!(rejects, json!({ "instance": INSTANCE, "generation": 1, "rejects": [] }));

    // Published as NDJSON, and nothing at all.
    let mut job = Site::tiny("lines");
    job["output"] = json!({ "objects": "lines/", "format": "ndjson" });
    job["work"]["aggregate"]["groupBy"] = json!(["city"]);
    site.job("job.json", &job);
    let run = |file: &str| Published::of(&site.run(&["local", "run", file, "--at", AT, "--json"]).exits(0));
    let results = |name: &str| site.run(&["--local", "--json", "results", name]).exits(0).json();
    let lines = results(run("job.json").instance());
    let mut rows = expected["rows"].clone();
    // CSV can't tell an empty text from none.
    rows[0]["city"] = json!("");
    assert_eq!((&lines["columns"], &lines["rows"]), (&expected["columns"], &rows));
    job["name"] = json!("nothing");
    job["input"]["objects"] = json!("none/");
    job["ifEmpty"] = json!("succeed");
    site.job("nothing.json", &job);
    let nothing = results(run("nothing.json").instance());
    assert_eq!((&nothing["columns"], &nothing["rows"]), (&expected["columns"], &json!([])));
}

#[test]
fn next_marks_the_day_on_which_the_clock_is_changed_at_midnight() {
    let site = Site::new();
    let next = ["next", "0 0 * * *", "--time-zone", "Africa/Cairo", "--after", "2025-04-23", "--count", "3"];
    let text = site.run(&next).exits(0).text();
    let marked: Vec<&str> = text.lines().filter(|line| line.contains("goes forward")).collect();
    assert!(marked.len() == 1 && marked[0].starts_with("2025-04-25 01:00:00"), "{text}");
}

#[test]
fn an_offset_as_a_zone_is_refused_as_a_zone_also_in_two_words() {
    let site = Site::new();
    let error = site.run(&["next", "@daily", "--time-zone", "-05:00", "--json"]).exits(2).error();
    assert_eq!((error.kind.as_str(), error.field.as_deref()), ("value", Some("timeZone")), "{error:?}");
    assert!(error.hint.unwrap().contains("Etc/GMT+5") && !error.message.contains("Etc"), "the hint is told once");
}

#[test]
fn control_characters_of_the_user_are_escaped_in_errors_for_people() {
    let site = Site::new();
    for command in [
        &["next", "\u{1b}[31m0 0 * * *"][..],
        &["next", "@daily", "--time-zone", "Etc/\u{7}UTC"],
        &["validate", "no\u{1b}ne.json"],
        &["fr\u{1b}ob"],
    ] {
        let text = site.run(command).exits(2).stderr;
        assert!(!text.contains(['\u{1b}', '\u{7}']) && text.contains("\\u{"), "{command:?}: {text:?}");
        assert!(text.starts_with("error: ") && text.ends_with('\n'), "{text:?}");
    }
}

#[test]
fn a_job_is_read_from_a_pipe_and_its_paths_are_those_of_the_working_directory() {
    let site = site();
    let piped = |args: &[&str]| site.run_piped(args, &std::fs::read(site.path("job.json")).unwrap());
    let valid = piped(&["validate", "/dev/stdin", "--json"]).exits(0).json();
    assert_eq!(valid, json!({ "valid": [{ "file": "/dev/stdin", "job": "tiny" }] }));
    piped(&["--local", "apply", "/dev/stdin"]).exits(0);
    // The same directory as that of the file: nothing has changed.
    assert!(site.run(&["--local", "apply", "job.json"]).exits(0).text().contains("unchanged"));
    Published::of(&piped(&["local", "run", "/dev/stdin", "--at", AT, "--json"]).exits(0));
}

#[test]
fn a_trigger_without_a_time_says_that_now_needs_a_window() {
    let site = site();
    site.run(&["--local", "apply", "job.json"]).exits(0);
    let error = site.run(&["--local", "trigger", "tiny", "--json"]).exits(2).error();
    assert_eq!(error.kind, "not_of_calendar", "{error:?}");
    let hint = error.hint.unwrap();
    assert!(hint.contains("without --at") && hint.contains("--window FROM/TO"), "{hint}");
    let help = site.run(&["trigger", "--help"]).exits(0).text();
    assert!(help.contains("now, which needs --window"), "{help}");
}

#[test]
fn the_backfills_of_a_job_that_isnt_there_are_no_empty_list() {
    let site = site();
    site.run(&["--local", "apply", "job.json"]).exits(0);
    let run = |args: &[&str]| site.run(&[&["--local", "--json"], args].concat());
    let error = run(&["backfill", "list", "nosuch"]).exits(2).error();
    assert_eq!(error.kind, "no_job");
    assert_eq!(run(&["backfill", "list", "tiny"]).exits(0).json(), json!({ "backfills": [] }));
}

#[test]
fn a_job_that_was_deleted_is_created_again() {
    let site = site();
    let apply = |more: &[&str]| site.run(&[&["--local", "apply", "job.json"], more].concat()).exits(0);
    assert_eq!(apply(&[]).text(), "job tiny created\n");
    site.run(&["--local", "delete", "tiny"]).exits(0);
    assert_eq!(apply(&["--dry-run"]).text(), "job tiny would be created again\n");
    assert_eq!(apply(&["--json"]).json()["jobs"], json!([{ "job": "tiny", "applied": "createdAgain" }]));
    assert_eq!(apply(&[]).text(), "job tiny unchanged\n");
}

#[test]
fn a_suspension_has_the_same_names_wherever_it_is_shown() {
    let site = site();
    site.run(&["--local", "apply", "job.json"]).exits(0);
    Published::of(&site.run(RUN).exits(0));
    let run = |args: &[&str]| site.run(&[&["--local", "--json"], args].concat()).exits(0).json();
    let suspended = run(&["suspend", "tiny", "--note", "moving"])["suspended"].clone();
    assert_eq!((&suspended["note"], &suspended["bySpec"]), (&json!("moving"), &json!(false)), "{suspended}");
    let documents = [run(&["list"]), run(&["describe", "tiny"]), run(&["describe", INSTANCE])];
    documents.iter().for_each(is_camel_case);
    assert_eq!(documents[0]["jobs"][0]["suspended"], suspended);
    assert_eq!(documents[1]["suspended"], suspended);
    assert!(site.run(&["--local", "describe", "tiny"]).exits(0).text().contains("suspended since"));
    assert_eq!(run(&["resume", "tiny"])["wasSuspended"], suspended);
    assert_eq!(run(&["describe", "tiny"])["suspended"], Value::Null);
}

/// No member's name has an underscore.
#[track_caller]
fn is_camel_case(document: &Value) {
    match document {
        Value::Object(members) => {
            for (name, value) in members {
                assert!(!name.contains('_'), "`{name}` in {document}");
                is_camel_case(value);
            }
        }
        Value::Array(values) => values.iter().for_each(is_camel_case),
        _ => {}
    }
}
