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
        &["list"][..],
        &["describe", "tiny"],
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
    site.run(&["--local=.shardcorn", "apply", "job.json"]).exits(0);
    site.run(&["--local=.shardcorn", "list"]).exits(0);
}
