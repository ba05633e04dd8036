use serde_json::{Value, json};

use super::*;
use crate::job::{JobSpec, WorkSpec};

fn job(effects: Value) -> String {
    json!({
        "name": "pay", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" },
        "work": { "send": { "key": ["invoice_id"] } }, "effects": effects,
        "output": { "objects": "out/", "format": "csv" }
    })
    .to_string()
}

#[track_caller]
fn says(effects: Value, kind: SpecErrorKind, field: &str, part: &str) {
    let error = JobSpec::parse(&job(effects)).unwrap_err();
    assert_eq!((error.kind, error.field.as_str()), (kind, field), "{error}");
    let text = format!("{error}; {}", error.hint.as_deref().unwrap_or_default());
    assert!(text.contains(part), "`{text}` lacks `{part}`");
}

#[test]
fn a_target_alone_has_the_defaults_and_is_read_back() {
    let read = JobSpec::parse(&job(json!({ "target": "https://ledger.example/payments" }))).unwrap();
    let effects = read.effects.clone().unwrap();
    assert_eq!(effects.target(), EffectTarget::Http("https://ledger.example/payments"));
    assert_eq!((effects.compares_tokens, effects.on_refused, effects.timeout_seconds), (false, OnRefused::Fail, 10));
    assert_eq!(JobSpec::parse(&read.to_json()), Ok(read.clone()));
    let WorkSpec::Send(send) = &read.work else { panic!("{:?}", read.work) };
    assert_eq!(send.columns(), ["invoice_id", "request_id"]);
}

#[test]
fn every_field_is_read_back() {
    let effects = json!({ "target": "https://h:8443/p?a=b%20c", "comparesTokens": true, "onRefused": "record",
        "timeoutSeconds": 300, "authorizationEnv": "SHARDCRON_SECRET_LEDGER", "outcomes": "https://h/p/{id}" });
    let read = JobSpec::parse(&job(effects)).unwrap();
    assert_eq!(JobSpec::parse(&read.to_json()), Ok(read.clone()));
    let effects = read.effects.unwrap();
    assert!(effects.compares_tokens && effects.on_refused == OnRefused::Record);
    for (target, queue) in [
        ("sqs:payments", "payments"),
        ("sqs:payments.fifo", "payments.fifo"),
        ("sqs:https://sqs.eu-west-1.amazonaws.com/1/payments", "https://sqs.eu-west-1.amazonaws.com/1/payments"),
    ] {
        let effects = JobSpec::parse(&job(json!({ "target": target }))).unwrap().effects.unwrap();
        assert_eq!(effects.target(), EffectTarget::Sqs(queue));
    }
}

#[test]
fn a_target_that_leads_nowhere_is_refused() {
    use SpecErrorKind::{Missing, Type, Value as Wrong};
    says(json!({}), Missing, "effects.target", "https://");
    says(json!([]), Type, "effects", "an object");
    for (target, part) in [
        ("ftp://h/", "sqs:queue-name"),
        ("ledger.example", "sqs:queue-name"),
        ("https://", "names no host"),
        ("https:///p", "names no host"),
        ("https://:80/", "names no host"),
        ("https://user:secret@h/", "authorizationEnv"),
        ("https://h/#a", "fragment"),
        ("https://h/a b", "%20"),
        ("https://h/é", "percent-encoded"),
        ("https://h/\r\nx: y", "percent-encoded"),
        ("sqs:", "neither a queue's name"),
        ("sqs:a b", "neither a queue's name"),
        ("sqs:http://", "names no host"),
    ] {
        says(json!({ "target": target }), Wrong, "effects.target", part);
    }
}

#[test]
fn a_secret_is_named_and_never_sent_in_the_open() {
    use SpecErrorKind::Value as Wrong;
    let with = |target: &str, name: &str| json!({ "target": target, "authorizationEnv": name });
    for name in ["AWS_SECRET_ACCESS_KEY", "SHARDCRON_SECRET_", "SHARDCRON_SECRET_a b", "PATH"] {
        says(with("https://h/", name), Wrong, "effects.authorizationEnv", "SHARDCRON_SECRET_");
    }
    for target in ["http://h/", "http://127.0.0.1.evil.example/", "http://localhost.example/"] {
        says(with(target, "SHARDCRON_SECRET_A"), Wrong, "effects.authorizationEnv", "https://");
    }
    for target in ["http://127.0.0.1:1/", "http://localhost/", "http://[::1]:80/x", "https://h/"] {
        assert!(JobSpec::parse(&job(with(target, "SHARDCRON_SECRET_A"))).is_ok(), "{target}");
    }
}

#[test]
fn what_a_queue_cant_do_isnt_asked_of_it() {
    for (name, value) in [
        ("comparesTokens", json!(true)),
        ("authorizationEnv", json!("SHARDCRON_SECRET_A")),
        ("outcomes", json!("https://h/{id}")),
    ] {
        let mut effects = json!({ "target": "sqs:q" });
        effects[name] = value;
        says(effects, SpecErrorKind::Value, &format!("effects.{name}"), "a queue");
    }
}

#[test]
fn outcomes_are_asked_for_by_id() {
    for text in ["https://h/", "https://h/{id}/{id}"] {
        says(json!({ "target": "https://h/", "outcomes": text }), SpecErrorKind::Value, "effects.outcomes", "{id}");
    }
    let odd = json!({ "target": "https://h/", "outcomes": "https://h/{ID}/{id}" });
    says(odd, SpecErrorKind::Value, "effects.outcomes", "character");
}

#[test]
fn a_send_needs_a_key() {
    let with = |send: Value| {
        let text = job(json!({ "target": "https://h/" })).replace(r#"{"key":["invoice_id"]}"#, &send.to_string());
        JobSpec::parse(&text)
    };
    assert_eq!(with(json!({})).unwrap_err().field, "work.send.key");
    assert_eq!(with(json!({ "key": [] })).unwrap_err().kind, SpecErrorKind::Missing);
    assert_eq!(with(json!({ "key": ["a", "request_id"] })).unwrap_err().field, "work.send.key[1]");
    assert!(with(json!({ "key": ["a"], "body": ["b", "a"] })).is_ok());
}

#[test]
fn a_work_and_effects_need_each_other() {
    let effects = JobSpec::parse(&job(json!({ "target": "https://h/" }))).unwrap().effects;
    assert_eq!(check_emits(effects.as_ref(), true), Ok(()));
    assert_eq!(check_emits(None, false), Ok(()));
    assert_eq!(check_emits(None, true).unwrap_err().kind, SpecErrorKind::Missing);
    assert_eq!(check_emits(effects.as_ref(), false).unwrap_err().field, "effects");
}
