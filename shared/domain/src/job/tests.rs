use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::limits;

/// The design's example, without what has a default.
fn small() -> Value {
    json!({
        "name": "daily-settlement",
        "schedule": "0 0 * * *",
        "input": { "objects": "s3://ledger/transactions/{window.start:%Y/%m/%d}/", "format": "csv" },
        "work": { "aggregate": { "groupBy": ["merchant_id"], "sum": ["amount"], "count": true } },
        "output": { "objects": "s3://ledger/settled/", "format": "csv" }
    })
}

/// The small job with a value set at this path of names; without a value, with the field taken out.
fn with(path: &str, value: impl Into<Option<Value>>) -> String {
    let mut job = small();
    let mut at = &mut job;
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    for parent in parents.split('.').filter(|parent| !parent.is_empty()) {
        let members = at.as_object_mut().unwrap();
        at = members.entry(parent).or_insert_with(|| json!({}));
    }
    match value.into() {
        Some(value) => drop(at.as_object_mut().unwrap().insert(name.to_owned(), value)),
        None => drop(at.as_object_mut().unwrap().remove(name)),
    }
    job.to_string()
}

fn refused(text: &str) -> SpecError {
    match JobSpec::parse(text) {
        Err(error) => error,
        Ok(job) => panic!("accepted {text} as {job:?}"),
    }
}

/// Asserts what is said of a job with this value: the kind, the field, and parts of message and hint.
#[track_caller]
fn says(path: &str, value: impl Into<Option<Value>>, kind: SpecErrorKind, field: &str, parts: &[&str]) {
    let error = refused(&with(path, value));
    assert_eq!((error.kind, error.field.as_str()), (kind, field), "{error}");
    let text = format!("{error}; {}", error.hint.as_deref().unwrap_or_default());
    for part in parts {
        assert!(text.contains(part), "`{text}` lacks `{part}`");
    }
}

#[test]
fn a_small_job_has_the_defaults() {
    let job = JobSpec::parse(&small().to_string()).unwrap();
    assert_eq!(job.name.as_str(), "daily-settlement");
    assert_eq!((job.time_zone.as_str(), job.dst), ("UTC", Dst::default()));
    assert_eq!((job.concurrency_policy, job.concurrency_key.clone()), (ConcurrencyPolicy::Allow, None));
    assert_eq!((job.catch_up, job.suspend, job.if_empty), (CatchUp::Latest, false, IfEmpty::Fail));
    assert_eq!((job.starting_deadline_seconds, job.active_deadline_seconds), (None, None));
    assert_eq!((job.backoff_limit, job.parallelism, job.rejects.max), (6, 64, 0));
    assert_eq!(
        job.shards,
        ShardsSpec {
            target_bytes: 64 << 20,
            target_records: None,
            batch_records: 20_000,
            parallel_batches: 1,
            split: true
        }
    );
    assert!(job.input.nulls.is_empty());
    let WorkSpec::Aggregate(aggregate) = &job.work else { panic!("{:?}", job.work) };
    assert_eq!(aggregate.columns(), ["merchant_id", "count", "sum_amount"]);
}

#[test]
fn every_field_is_read() {
    let text = r#"{ "name": "a", "schedule": "@daily", "timeZone": "Asia/Shanghai",
        "dst": { "gap": "skip", "overlap": "both" }, "concurrencyPolicy": "Queue", "concurrencyKey": "k",
        "startingDeadlineSeconds": 3600, "catchUp": "all", "suspend": true, "activeDeadlineSeconds": 7200,
        "backoffLimit": 0, "parallelism": 1, "ifEmpty": "succeed",
        "input": { "objects": "data/", "format": "ndjson", "nulls": ["", "NA"] },
        "shards": { "targetBytes": 1, "batchRecords": 2 },
        "work": { "custom": { "name": "mine", "with": { "z": [1, null, "x"], "a": true } } },
        "rejects": { "max": 18446744073709551615 }, "output": { "objects": "out/", "format": "ndjson" } }"#;
    let job = JobSpec::parse(text).unwrap();
    assert_eq!(job.dst, Dst { gap: Some(crate::calendar::Gap::Skip), overlap: Some(crate::calendar::Overlap::Both) });
    assert_eq!((job.concurrency_policy, job.catch_up), (ConcurrencyPolicy::Queue, CatchUp::All));
    assert_eq!((job.starting_deadline_seconds, job.active_deadline_seconds), (Some(3600), Some(7200)));
    assert_eq!((job.backoff_limit, job.parallelism, job.rejects.max), (0, 1, u64::MAX));
    assert_eq!(job.input.nulls, ["", "NA"]);
    let WorkSpec::Custom(custom) = &job.work else { panic!("{:?}", job.work) };
    assert_eq!(custom.with["z"], json!([1, null, "x"]));
    assert_eq!(JobSpec::parse(&job.to_json()), Ok(job));
}

#[test]
fn keys_and_lists_are_read() {
    let job = |input: Value| JobSpec::parse(&with("input", input)).unwrap();
    for (input, expected) in [
        (json!({ "keys": { "from": -5, "through": 10 } }), LastKey::Key(10)),
        (json!({ "keys": { "from": -5, "through": "max_id" } }), LastKey::MaxId),
    ] {
        let job = job(input);
        assert_eq!(job.input.source, InputSource::Keys { keys: KeysSpec { from: -5, through: expected } });
        assert_eq!(JobSpec::parse(&job.to_json()), Ok(job));
    }
    for (input, expected) in [
        (json!({ "list": ["a", "b"], "nulls": ["b"] }), ListSpec::Items(vec!["a".into(), "b".into()])),
        (json!({ "list": { "buckets": 16 } }), ListSpec::Buckets { buckets: 16 }),
        (json!({ "list": { "days": "window" } }), ListSpec::Days { days: DaysOf::Window }),
    ] {
        let job = job(input);
        assert_eq!(job.input.source, InputSource::List { list: expected });
        assert_eq!(JobSpec::parse(&job.to_json()), Ok(job));
    }
}

#[test]
fn keys_and_lists_that_cant_be_are_refused() {
    use SpecErrorKind::{Missing, Type, UnknownField, Value as Wrong};
    let both = json!({ "keys": { "from": 1, "through": 2 }, "list": ["a"] });
    says("input", both, Wrong, "input", &["not several"]);
    says("input", json!({ "keys": { "from": 1 } }), Missing, "input.keys.through", &["max_id"]);
    says("input", json!({ "keys": { "from": 2, "through": 1 } }), Wrong, "input.keys.through", &["before"]);
    says("input", json!({ "keys": { "from": 1.5, "through": 2 } }), Type, "input.keys.from", &["whole number"]);
    says("input", json!({ "keys": { "from": 1, "through": "max" } }), Type, "input.keys.through", &["`max_id`"]);
    says("input", json!({ "keys": { "from": 1, "through": i64::MAX } }), Wrong, "input.keys.through", &["greatest"]);
    says("input", json!({ "keys": { "form": 1, "through": 2 } }), UnknownField, "input.keys.form", &["`from`"]);
    let format = json!({ "keys": { "from": 1, "through": 2 }, "format": "csv" });
    says("input", format, Wrong, "input.format", &["only objects"]);
    says("input", json!({ "list": [] }), Wrong, "input.list", &["no items"]);
    says("input", json!({ "list": ["a", ""] }), Wrong, "input.list[1]", &["at least one"]);
    says("input", json!({ "list": ["a", "a"] }), Wrong, "input.list[1]", &["twice"]);
    says("input", json!({ "list": { "buckets": 0 } }), Wrong, "input.list.buckets", &["from 1 to 10000"]);
    says("input", json!({ "list": {} }), Missing, "input.list", &["`buckets` or `days`"]);
    says("shards", json!({ "parallelBatches": 9 }), Wrong, "shards.parallelBatches", &["from 1 to 8"]);
}

#[test]
fn what_is_stored_names_its_defaults() {
    let job = JobSpec::parse(&small().to_string()).unwrap();
    let stored: Value = serde_json::from_str(&job.to_json()).unwrap();
    assert_eq!(stored["timeZone"], "UTC");
    assert_eq!(
        stored["shards"],
        json!({ "targetBytes": 67_108_864, "batchRecords": 20_000, "parallelBatches": 1, "split": true })
    );
    assert_eq!(stored["rejects"], json!({ "max": 0 }));
    assert!(stored.get("activeDeadlineSeconds").is_none());
}

#[test]
fn a_field_that_isnt_known_is_refused_with_the_nearest() {
    use SpecErrorKind::UnknownField;
    says("timezone", json!("UTC"), UnknownField, "timezone", &["did you mean `timeZone`?"]);
    says("backofLimit", json!(1), UnknownField, "backofLimit", &["`backoffLimit`"]);
    says("input.formt", json!("csv"), UnknownField, "input.formt", &["`format`"]);
    says("work.aggregate.group_by", json!([]), UnknownField, "work.aggregate.group_by", &["`groupBy`"]);
    says("rejects.zzz", json!(1), UnknownField, "rejects.zzz", &["the fields here are `max`"]);
    says("dst.gaps", json!("skip"), UnknownField, "dst.gaps", &["`gap`"]);
}

#[test]
fn a_field_that_must_be_there_is_missed_with_an_example() {
    for field in ["name", "schedule", "input", "work", "output", "input.objects", "input.format", "output.format"] {
        says(field, None, SpecErrorKind::Missing, field, &["missing", "write \""]);
    }
    says("work", json!({}), SpecErrorKind::Missing, "work", &["`aggregate`, `send` or `custom`"]);
    says("work", json!({ "custom": {} }), SpecErrorKind::Missing, "work.custom.name", &[]);
    says(
        "work.aggregate",
        json!({ "groupBy": ["a"] }),
        SpecErrorKind::Missing,
        "work.aggregate",
        &["computes nothing"],
    );
}

#[test]
fn a_value_of_another_type_is_named_with_what_is_expected() {
    use SpecErrorKind::Type;
    says("name", json!(5), Type, "name", &["expected a text, found the number 5"]);
    says("input", json!("s3://b/"), Type, "input", &["expected an object, found the text `s3://b/`"]);
    says("suspend", json!("yes"), Type, "suspend", &["expected true or false, found the text `yes`"]);
    says("work.aggregate.sum", json!("amount"), Type, "work.aggregate.sum", &["write [\"amount\"]"]);
    says("work.aggregate.sum", json!(["a", 1]), Type, "work.aggregate.sum[1]", &["found the number 1"]);
    says("catchUp", json!(false), Type, "catchUp", &["`all`, `latest` or `none`", "found false"]);
    says("rejects", json!([1]), Type, "rejects", &["found a list"]);
    says("backoffLimit", json!("3"), Type, "backoffLimit", &["write 3 without quotes"]);
    for field in ["name", "dst", "concurrencyKey", "activeDeadlineSeconds", "parallelism", "input.nulls"] {
        says(field, Value::Null, Type, field, &["null", "leave the field out"]);
    }
}

#[test]
fn a_number_is_whole_and_within_its_bounds() {
    use SpecErrorKind::{Type, Value as Wrong};
    says("parallelism", json!(0), Wrong, "parallelism", &["0 is out of range", "from 1 to 10000"]);
    says("parallelism", json!(10_001), Wrong, "parallelism", &["10001"]);
    says("backoffLimit", json!(-1), Wrong, "backoffLimit", &["-1 is out of range", "from 0"]);
    says("backoffLimit", json!(1_u64 << 31), Wrong, "backoffLimit", &["2147483648"]);
    says("activeDeadlineSeconds", json!(0), Wrong, "activeDeadlineSeconds", &["from 1"]);
    says("backoffLimit", json!(2.5), Type, "backoffLimit", &["whole number", "found the number 2.5"]);
    says("shards.targetBytes", json!(1e3), Type, "shards.targetBytes", &["write 1000"]);
    says("rejects.max", json!(1e30), Type, "rejects.max", &["whole number"]);
    let text = with("rejects.max", json!("@")).replace("\"@\"", "18446744073709551616");
    assert_eq!((refused(&text).kind, refused(&text).field.as_str()), (Type, "rejects.max"));
    let text = with("rejects.max", json!("@")).replace("\"@\"", "1e999");
    assert_eq!(refused(&text).kind, SpecErrorKind::Syntax);
}

#[test]
fn a_word_is_one_of_the_choices_also_in_case() {
    use SpecErrorKind::Value as Wrong;
    says("concurrencyPolicy", json!("allow"), Wrong, "concurrencyPolicy", &["did you mean `Allow`?"]);
    says("catchUp", json!("Latest"), Wrong, "catchUp", &["did you mean `latest`?"]);
    says("input.format", json!("parquet"), Wrong, "input.format", &["expected `csv` or `ndjson`"]);
    says("dst.gap", json!("both"), Wrong, "dst.gap", &["`next` or `skip`"]);
    says("ifEmpty", json!("success"), Wrong, "ifEmpty", &["`succeed`"]);
}

#[test]
fn columns_are_named_once() {
    use SpecErrorKind::Value as Wrong;
    says("work.aggregate.sum", json!(["a", "b", "a"]), Wrong, "work.aggregate.sum[2]", &["twice"]);
    says("work.aggregate.groupBy", json!(["a", ""]), Wrong, "work.aggregate.groupBy[1]", &["empty"]);
    says("work.aggregate.groupBy", json!(["a", "count"]), Wrong, "work.aggregate.groupBy[1]", &["two columns `count`"]);
    says("input.nulls", json!(["NA", "NA"]), Wrong, "input.nulls[1]", &["twice"]);
    let many: Vec<String> = (0..=limits::COLUMNS_MAX).map(|n| n.to_string()).collect();
    says("work.aggregate.max", json!(many), Wrong, "work.aggregate.max", &["101 items"]);
    says("work.aggregate.min", json!(["x".repeat(256)]), Wrong, "work.aggregate.min[0]", &["256 bytes"]);
    // The same column may be summed and compared.
    assert!(JobSpec::parse(&with("work.aggregate.max", json!(["amount"]))).is_ok());
}

#[test]
fn locations_are_checked_after_their_times_are_filled_in() {
    use SpecErrorKind::Value as Wrong;
    says("input.objects", json!("s3://b_/x/"), Wrong, "input.objects", &["bucket"]);
    says("input.objects", json!("s3://ledger/{window.begin:%Y}/"), Wrong, "input.objects", &["window.begin"]);
    says("input.objects", json!("s3://ledger/{time:%}/"), Wrong, "input.objects", &["format of a time"]);
    says("input.objects", json!("s3://ledger/{time:%n}/"), Wrong, "input.objects", &["control character"]);
    says("input.objects", json!(""), Wrong, "input.objects", &["empty"]);
    says("output.objects", json!("s3://ledger/out"), Wrong, "output.objects", &["write `s3://ledger/out/`"]);
    says("output.objects", json!("out/{time}/"), Wrong, "output.objects", &["isn't a template"]);
    says("output.objects", json!("gs://ledger/out/"), Wrong, "output.objects", &["scheme"]);
    for objects in ["data/2013-01.csv", "./data/", "s3://other", "/var/data/{{x}}/", "{time:%Y}/"] {
        assert!(JobSpec::parse(&with("input.objects", json!(objects))).is_ok(), "{objects}");
    }
}

#[test]
fn an_output_within_the_input_is_refused() {
    for (input, output, within) in [
        ("data/", "data/out/", true),
        ("./data/", "data/", true),
        ("s3://ledger/", "s3://ledger/out/", true),
        ("s3://ledger/in/", "s3://ledger/", false),
        ("data", "data/out/", true),
        ("./data", "data/", true),
        ("s3://ledger/in", "s3://ledger/in/out/", true),
        ("s3://ledger", "s3://ledger/out/", true),
        ("/", "out/", true),
        ("data/{{x}}", "data/", false),
        ("data/{time:%Y}", "data/2026/out/", false),
        ("data", "data2/", false),
        ("s3://ledger/in", "s3://other/in/", false),
        ("data/", "data2/", false),
        ("data/a.csv", "data/", false),
    ] {
        let text = with("input.objects", json!(input)).replace("s3://ledger/settled/", output);
        assert_eq!(JobSpec::parse(&text).is_err(), within, "{input} {output}");
    }
}

#[test]
fn all_that_was_missed_doesnt_go_with_a_policy_that_loses_it() {
    for policy in ["Forbid", "Replace"] {
        let text = with("catchUp", json!("all")).replacen('{', &format!(r#"{{"concurrencyPolicy":"{policy}","#), 1);
        let error = refused(&text);
        assert_eq!((error.kind, error.field.as_str()), (SpecErrorKind::Value, "catchUp"));
        assert_eq!(error.hint.as_deref(), Some("write concurrencyPolicy Queue or Allow"));
    }
}

#[test]
fn what_isnt_built_yet_is_said_to_be_so() {
    for (path, value) in [("input.table", json!("t")), ("work.transform", json!({})), ("work.lambda", json!("f"))] {
        says(path, value, SpecErrorKind::NotSupported, path, &["isn't supported yet"]);
    }
}

#[test]
fn a_marker_for_a_ready_input_is_one_object_and_has_a_bound() {
    let job = JobSpec::parse(&with("input.ready", json!({ "object": "data/{time:%Y}/_SUCCESS", "withinSeconds": 60 })));
    assert_eq!(job.unwrap().input.ready.unwrap().within_seconds, 60);
    says(
        "input.ready",
        json!({ "object": "data/", "withinSeconds": 60 }),
        SpecErrorKind::Value,
        "input.ready.object",
        &["ends in `/`"],
    );
    says("input.ready", json!({ "object": "data/x" }), SpecErrorKind::Missing, "input.ready.withinSeconds", &[]);
    says(
        "input.ready",
        json!({ "object": "data/x", "withinSeconds": 0 }),
        SpecErrorKind::Value,
        "input.ready.withinSeconds",
        &[],
    );
}

#[test]
fn text_that_isnt_json_is_refused_with_its_place() {
    let error = refused("{\n  \"name\": \"a\",\n}");
    assert_eq!((error.kind, error.line, error.column), (SpecErrorKind::Syntax, Some(3), Some(1)));
    assert_eq!(error.to_string(), "line 3, column 1: it isn't JSON: trailing comma");
    for text in ["", " \n", "{", "{} {}", "// a\n{}", "{\"a\": NaN}", "{\"a\": 01}", &"[".repeat(1000)] {
        assert_eq!(refused(text).kind, SpecErrorKind::Syntax, "{text}");
    }
    assert_eq!(refused("[]").kind, SpecErrorKind::Type);
    assert!(JobSpec::parse(&format!("\u{feff}{}", small())).is_ok());
    assert_eq!(refused(&" ".repeat(limits::SPEC_BYTES_MAX + 1)).kind, SpecErrorKind::Value);
}

#[test]
fn a_key_that_is_there_twice_is_refused_with_its_path_and_place() {
    let error = refused("{ \"name\": \"a\",\n  \"work\": { \"aggregate\": { \"count\": true, \"count\": false } } }");
    assert_eq!(
        (error.kind, error.field.as_str(), error.line),
        (SpecErrorKind::Syntax, "work.aggregate.count", Some(2))
    );
    let error = refused(r#"{ "work": { "custom": { "with": [1, { "a": 1, "\u0061": 2 }] } } }"#);
    assert_eq!(error.field, "work.custom.with[1].a");
}

#[test]
fn the_calendar_names_the_field_that_is_wrong() {
    let start = ScheduledTime::from_second(0).unwrap();
    let calendar = |path: &str, value: Value| {
        JobSpec::parse(&with(path, value)).unwrap().calendar(&ZoneRules::bundled(), start).map(|_| ())
    };
    assert_eq!(calendar("timeZone", json!("Asia/Shanghai")), Ok(()));
    let zone = calendar("timeZone", json!("Asia/Shanghia")).unwrap_err();
    assert_eq!((zone.kind, zone.field.as_str()), (SpecErrorKind::Value, "timeZone"));
    assert!(zone.hint.is_some());
    assert_eq!(calendar("schedule", json!("61 * * * *")).unwrap_err().field, "schedule");
}

#[test]
fn the_example_is_a_job_that_can_be_run() {
    let job = JobSpec::parse(include_str!("../../../../examples/flights/job.json")).unwrap();
    job.calendar(&ZoneRules::bundled(), ScheduledTime::from_second(0).unwrap()).unwrap();
}

#[test]
fn a_guess_is_made_only_where_it_is_near() {
    let fields = ["schedule", "suspend", "shards"];
    assert_eq!(nearest("shedule", fields), Some("schedule"));
    assert_eq!(nearest("SUSPEND", fields), Some("suspend"));
    assert_eq!(nearest("retries", fields), None);
    assert_eq!(nearest("", fields), None);
    assert_eq!(nearest("x", []), None);
}

proptest! {
    #[test]
    fn a_job_is_read_back_from_its_canonical_form(
        policy in 0..2_usize, catch_up in 0..3_usize, seconds in prop::option::of(1..=limits::KUBERNETES_INT_MAX),
        backoff in 0..=limits::KUBERNETES_INT_MAX, bytes in 1..=limits::SHARD_BYTES_MAX, max in any::<u64>(),
        columns in prop::collection::hash_set("\\PC{1,12}", 1..6), nulls in prop::collection::hash_set("\\PC{0,5}", 0..4),
        gap in prop::option::of(prop::bool::ANY), count in any::<bool>(),
    ) {
        let mut job = small();
        job["concurrencyPolicy"] = json!(["Allow", "Queue"][policy]);
        job["catchUp"] = json!(["all", "latest", "none"][catch_up]);
        if let Some(seconds) = seconds {
            job["startingDeadlineSeconds"] = json!(seconds);
        }
        if let Some(gap) = gap {
            job["dst"] = json!({ "gap": if gap { "next" } else { "skip" } });
        }
        job["backoffLimit"] = json!(backoff);
        job["shards"] = json!({ "targetBytes": bytes });
        job["rejects"] = json!({ "max": max });
        job["input"]["nulls"] = json!(nulls);
        job["work"]["aggregate"]["count"] = json!(count);
        job["work"]["aggregate"]["sum"] = json!(columns);
        let job = JobSpec::parse(&job.to_string()).unwrap();
        let stored = job.to_json();
        prop_assert_eq!(JobSpec::parse(&stored).unwrap().to_json(), stored.clone());
        prop_assert_eq!(JobSpec::parse(&stored), Ok(job));
    }

    #[test]
    fn any_text_is_a_job_or_an_error(text in "\\PC{0,40}|[{}\\[\\]:,\"a-z0-9 ]{0,40}") {
        let _ = JobSpec::parse(&text);
    }
}
