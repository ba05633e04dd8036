//! Job files that are wrong, and requests that are: exit 2, an error that names the field and what to write, and
//! nothing done.

use serde_json::{Value, json};

use crate::harness::{Problem, Site};

/// A job whose file is right.
fn good() -> Value {
    json!({
        "name": "good", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" },
        "work": { "aggregate": { "count": true } }, "output": { "objects": "out/", "format": "csv" },
    })
}

/// The good job, with another value (or none) at a path such as `/input/format`.
fn with(path: &str, value: Option<Value>) -> String {
    let mut job = good();
    let (parent, name) = path.rsplit_once('/').unwrap();
    let parent = job.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => parent.insert(name.to_owned(), value),
        None => parent.remove(name),
    };
    job.to_string()
}

/// What is expected of the error about a file.
struct Wrong {
    text: String,
    kind: &'static str,
    field: Option<&'static str>,
    message: &'static str,
    hint: Option<&'static str>,
}

fn wrong(
    text: impl Into<String>,
    kind: &'static str,
    field: impl Into<Option<&'static str>>,
    message: &'static str,
    hint: impl Into<Option<&'static str>>,
) -> Wrong {
    Wrong { text: text.into(), kind, field: field.into(), message, hint: hint.into() }
}

fn table() -> Vec<Wrong> {
    let put = |path: &str, value: Value| with(path, Some(value));
    vec![
        wrong(put("/paralelism", json!(4)), "unknown_field", "paralelism", "there is no such field", "`parallelism`"),
        wrong(put("/input/formt", json!("csv")), "unknown_field", "input.formt", "no such field", "`format`"),
        wrong(put("/name", json!(5)), "type", "name", "expected a text, found the number 5", None),
        wrong(put("/backoffLimit", json!("3")), "type", "backoffLimit", "found the text `3`", "without quotes"),
        wrong(put("/name", json!("No Spaces")), "value", "name", "No Spaces", None),
        wrong(put("/timeZone", json!("Asia/Shanghia")), "value", "timeZone", "isn't an IANA zone", "Asia/Shanghai"),
        wrong(put("/timeZone", json!("+08:00")), "value", "timeZone", "+08:00", None),
        wrong(put("/schedule", json!("61 * * * *")), "value", "schedule", "`61` isn't in 0 to 59", None),
        wrong(put("/schedule", json!("0 0 0 * * *")), "value", "schedule", "six", None),
        wrong(put("/schedule", json!("0 0 31 2 *")), "value", "schedule", "never", None),
        wrong(with("/input", None), "missing_field", "input", "it is missing", "\"objects\""),
        wrong(with("/schedule", None), "missing_field", "schedule", "it is missing", "write \"schedule\""),
        wrong(put("/input/format", json!("parquet")), "value", "input.format", "expected `csv` or `ndjson`", None),
        wrong(put("/timeZone", json!(null)), "type", "timeZone", "it is null", "leave the field out"),
        wrong(put("/catchUp", json!("Latest")), "value", "catchUp", "Latest", "`latest`"),
        wrong(put("/concurrencyPolicy", json!("forbid")), "value", "concurrencyPolicy", "forbid", "`Forbid`"),
        wrong(put("/activeDeadlineSeconds", json!(0)), "value", "activeDeadlineSeconds", "0", None),
        wrong(put("/input/keys", json!({ "from": 1 })), "value", "input", "not several", None),
        wrong(
            put("/input", json!({ "keys": { "from": 1, "through": "max_id" } })),
            "value",
            "input.keys.through",
            "doesn't know which key",
            "as a number",
        ),
        wrong(
            put("/shards", json!({ "parallelBatches": 2 })),
            "value",
            "shards.parallelBatches",
            "no stage",
            "leave it",
        ),
        wrong(put("/work", json!({ "transform": {} })), "not_supported", "work.transform", "isn't supported yet", None),
        wrong(put("/output/objects", json!("in/out/")), "value", "output.objects", "read its own output", "outside"),
        wrong(put("/input/objects", json!("out")), "value", "output.objects", "read its own output", "outside"),
        wrong(put("/work/aggregate/sum", json!("x")), "type", "work.aggregate.sum", "found the text `x`", "[\"x\"]"),
        wrong(
            r#"{ "name": "a", "name": "b" }"#,
            "syntax",
            "name",
            "line 1, column 21: name: it is there twice",
            "keep one",
        ),
        wrong("{\n  \"name\": \"a\",\n  nope\n}", "syntax", None, "line 3, column 3: it isn't JSON", None),
        wrong("name: a\n", "syntax", None, "line 1, column 2", None),
        wrong("", "syntax", None, "there is nothing in it", None),
        wrong("[]", "type", None, "expected an object", None),
    ]
}

#[track_caller]
fn is_as_expected(error: &Problem, case: &Wrong) {
    let text = &case.text;
    assert_eq!((error.kind.as_str(), error.field.as_deref()), (case.kind, case.field), "{text}: {error:?}");
    assert!(error.message.starts_with("job.json: "), "the file is named: {error:?}");
    assert!(error.message.contains(case.message), "{text}: {error:?}");
    match (case.hint, &error.hint) {
        (Some(expected), Some(hint)) => {
            assert!(hint.contains(expected), "{text}: {error:?}");
        }
        (Some(_), None) => panic!("a hint is missing: {text}: {error:?}"),
        (None, _) => {}
    }
}

/// Whether no job was made.
#[track_caller]
fn nothing_is_applied(site: &Site) {
    assert_eq!(site.run(&["--local", "list", "--json"]).exits(0).json(), json!({ "jobs": [] }));
}

#[test]
fn validate_says_what_is_wrong_with_a_file() {
    let site = Site::new();
    for case in table() {
        site.write("job.json", &case.text);
        let finished = site.run(&["validate", "job.json", "--json"]).exits(2);
        assert!(finished.stdout.is_empty(), "{finished:?}");
        is_as_expected(&finished.error(), &case);
    }
    assert!(!site.path(".shardcron").exists(), "validate needs no installation, and makes none");
}

#[test]
fn apply_and_local_run_refuse_the_same_and_write_nothing() {
    let site = Site::new();
    site.job("good.json", &good());
    for case in table() {
        site.write("job.json", &case.text);
        is_as_expected(&site.run(&["--local", "apply", "job.json", "--json"]).exits(2).error(), &case);
        // The right one before the wrong one isn't applied either.
        is_as_expected(&site.run(&["--local", "apply", "good.json", "job.json", "--json"]).exits(2).error(), &case);
        is_as_expected(&site.run(&["local", "run", "job.json", "--json"]).exits(2).error(), &case);
    }
    nothing_is_applied(&site);
}

#[test]
fn a_hint_is_told_once() {
    let site = Site::new();
    site.write("job.json", with("/paralelism", Some(json!(4))));
    let error = site.run(&["validate", "job.json", "--json"]).exits(2).error();
    let hint = error.hint.unwrap();
    assert!(!error.message.contains(&hint), "the message repeats the hint: {}", error.message);
    let text = site.run(&["validate", "job.json"]).exits(2).stderr;
    assert_eq!(text.matches("`parallelism`").count(), 1, "{text}");
}

#[test]
fn a_file_that_isnt_there_or_isnt_text_is_named() {
    let site = Site::new();
    site.write("latin1.json", b"{ \"name\": \"caf\xe9\" }");
    for (file, says) in [("none.json", "No such file"), (".", "directory"), ("latin1.json", "offset 14")] {
        for command in [
            &["validate", file, "--json"][..],
            &["--local", "apply", file, "--json"],
            &["local", "run", file, "--json"],
        ] {
            let error = site.run(command).exits(2).error();
            assert_eq!(error.kind, "file", "{error:?}");
            assert!(error.message.starts_with(&format!("{file}: ")) && error.message.contains(says), "{error:?}");
        }
    }
    nothing_is_applied(&site);
}

#[test]
fn a_usage_error_is_json_where_that_is_asked_for_and_says_what_is_missing() {
    let site = Site::new();
    for (command, says) in [
        (&["frob", "--json"][..], "'frob'"),
        (&["local", "run", "--json"], "JOB.json"),
        (&["--json", "apply"], "FILE"),
        (&["next", "@daily", "--count", "x", "--json"], "'x'"),
        (&["local", "up", "--tick", "0s", "--json"], "1 s to a day"),
        (&["local", "run", "job.json", "--workers", "0", "--json"], "0"),
        (&["--local", "--table", "t", "list", "--json"], "--table"),
        (&["next", "@daily", "--from", "2026-01-01", "--json"], "--to"),
        (&["--json"], "subcommand"),
    ] {
        let finished = site.run(command).exits(2);
        assert!(finished.stdout.is_empty(), "{finished:?}");
        let error = finished.error();
        assert_eq!(error.kind, "usage", "{error:?}");
        assert!(error.message.contains(says), "{command:?}: {error:?}");
    }
    let text = site.run(&["frob"]).exits(2).stderr;
    assert!(text.starts_with("error: ") && text.contains("Usage"), "{text}");
}

#[test]
fn a_wrong_setting_is_named() {
    let site = Site::new();
    let lease =
        |value| site.start_with(&["--local", "apply", "job.json", "--json"], &[("SHARDCRON_LEASE_SECONDS", value)]);
    for value in ["1", "901", "soon"] {
        let error = lease(value).finish(crate::wait::SOON).exits(2).error();
        assert_eq!(
            (error.kind.as_str(), error.field.as_deref()),
            ("config", Some("SHARDCRON_LEASE_SECONDS")),
            "{error:?}"
        );
    }
    let error = site.run(&["list", "--json"]).exits(2).error();
    assert_eq!(error.kind, "config");
    assert!(error.hint.unwrap().contains("--local"));
}
