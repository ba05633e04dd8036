//! Effects outside of the result: a real receiver, a queue, and kill -9 in the middle.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shardcron_embedded::EmbeddedQueues;

use crate::harness::{Process, Published, Site};
use crate::receiver::{Receiver, sqs};
use crate::wait::{SOON, eventually};

const AT: &str = "2026-01-05T00:00:00Z";
const INSTANCE: &str = "pay:2026-01-05T00:00:00Z";
const RUN: &[&str] = &["local", "run", "job.json", "--at", AT, "--json"];
const SHARDS: usize = 3;
const RECORDS: usize = 60;

/// A directory with invoices and a job that sends each.
fn site(effects: &Value) -> Site {
    let site = Site::new();
    for shard in 0..SHARDS {
        let rows: String = (0..RECORDS).map(|n| format!("i-{shard}-{n:03},{n}.50\n")).collect();
        site.write(&format!("in/{shard}.csv"), format!("invoice,amount\n{rows}"));
    }
    site.job(
        "job.json",
        &json!({
            "name": "pay", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" },
            "shards": { "targetBytes": 1, "batchRecords": 20 },
            "work": { "send": { "key": ["invoice"] } }, "effects": effects,
            "output": { "objects": "out/", "format": "csv" },
        }),
    );
    site
}

/// The invoices of a shard, in the order of its input.
fn invoices(shard: usize) -> Vec<String> {
    (0..RECORDS).map(|n| format!("i-{shard}-{n:03}")).collect()
}

/// What was sent, by shard and in order, is the input.
#[track_caller]
fn is_all_in_order(sent: &[(String, Value)]) {
    for shard in 0..SHARDS {
        let of_shard = sent.iter().filter(|(of, _)| *of == format!("{shard:05}"));
        let invoices_sent: Vec<&str> = of_shard.map(|(_, body)| body["invoice"].as_str().unwrap()).collect();
        assert_eq!(invoices_sent, invoices(shard), "shard {shard}");
    }
    assert_eq!(sent.len(), SHARDS * RECORDS);
}

fn counts(site: &Site) -> Value {
    site.run(&["--local", "effects", INSTANCE, "--json"]).exits(0).json()["counts"].clone()
}

#[test]
fn a_run_killed_in_the_middle_of_its_effects_sends_each_once_in_order() {
    let receiver = Receiver::start();
    let site =
        site(&json!({ "target": receiver.url, "comparesTokens": true, "authorizationEnv": "SHARDCRON_SECRET_PAY" }));
    let variables = [("SHARDCRON_SECRET_PAY", "Bearer of-a-test"), ("SHARDCRON_EVENTS", "stderr")];
    let run = || site.start_with(RUN, &variables);
    // None is a multiple of a batch's effects: some shard is always within one.
    for most in [30, 70, 110] {
        receiver.hold_at(Some(most));
        let run: Process = run();
        eventually("some more effects", SOON, || (receiver.taken().len() >= most).then_some(()));
        run.kill();
    }
    let waiting = counts(&site);
    let open = waiting["pending"].as_u64().unwrap() + waiting["unknown"].as_u64().unwrap();
    assert!(open > 0, "each kill was within a batch: {waiting}");
    receiver.hold_at(None);
    let published = Published::of(&run().finish(SOON).exits(0));
    let sent: Vec<(String, Value)> = receiver.taken().into_iter().map(|taken| (taken.shard, taken.body)).collect();
    is_all_in_order(&sent);
    assert_eq!(sent[0].1["amount"].as_str().map(|amount| amount.ends_with(".50")), Some(true), "{:?}", sent[0]);
    assert!(receiver.installs() > SHARDS, "each holder's token was brought: {}", receiver.installs());

    // The output names each effect by the id that the receiver has, and the certificate counts them.
    let ids: BTreeSet<String> = receiver.taken().into_iter().map(|taken| taken.id).collect();
    let mut lines = published.content.lines();
    assert_eq!(lines.next(), Some("invoice,request_id"));
    let published_ids: BTreeSet<String> = lines.map(|line| line.split(',').nth(1).unwrap().to_owned()).collect();
    assert_eq!(published_ids, ids);
    let all = (SHARDS * RECORDS) as u64;
    assert_eq!(published.certificate["totals"]["effects"], json!({ "sent": all, "refused": 0 }));
    assert_eq!(published.summary["effects"], json!({ "sent": all, "refused": 0, "waiting": 0 }));
    assert_eq!(counts(&site), json!({ "pending": 0, "unknown": 0, "sent": all, "refused": 0 }));

    // From scratch: all is sent again under the same ids, and taken for what it is.
    let posts = receiver.posts();
    site.run(&["--local", "rerun", INSTANCE]).exits(0);
    let again = Published::of(&run().finish(SOON).exits(0));
    assert_eq!((again.summary["generation"].as_u64(), again.content), (Some(2), published.content));
    assert_eq!((receiver.taken().len() as u64, receiver.posts() - posts), (all, SHARDS * RECORDS));
}

#[test]
fn a_refused_effect_is_shown_and_a_retry_sends_it_again() {
    let receiver = Receiver::start();
    receiver.refuse("i-1-030");
    let site = site(&json!({ "target": receiver.url }));
    let failed = site.run(RUN).exits(1).json();
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("refuses the effect [\"i-1-030\"] with status 422: no such account"), "{reason}");
    let refused = site.run(&["--local", "effects", INSTANCE, "--only", "refused", "--json"]).exits(0).json();
    let effects = refused["effects"].as_array().unwrap();
    assert_eq!(effects.len(), 1, "{refused}");
    assert_eq!((effects[0]["key"].as_str(), effects[0]["status"].as_u64()), (Some("[\"i-1-030\"]"), Some(422)));
    let at = effects[0]["at"].as_str().unwrap();
    assert!(at.len() == "2026-01-05T00:00:00.000Z".len() && at.ends_with('Z'), "{at}");
    let text = site.run(&["--local", "effects", INSTANCE, "--only", "refused"]).exits(0).text();
    assert!(text.contains(" 1 refused, ") && text.contains("no such account"), "{text}");
    let counts = counts(&site);
    let waiting = counts["pending"].as_u64().unwrap() + counts["unknown"].as_u64().unwrap();
    assert!(waiting > 0, "{counts}");
    let described = site.run(&["--local", "describe", INSTANCE, "--json"]).exits(0).json();
    assert_eq!(described["effects"], json!({ "sent": counts["sent"], "refused": 1, "waiting": waiting }));
    assert_eq!(failed["effects"], described["effects"]);

    receiver.refuse_nothing();
    site.run(&["--local", "retry", INSTANCE]).exits(0);
    Published::of(&site.run(RUN).exits(0));
    is_all_in_order(&receiver.taken().into_iter().map(|taken| (taken.shard, taken.body)).collect::<Vec<_>>());
}

#[test]
fn a_run_killed_in_the_middle_sends_each_effect_once_to_a_fifo_queue() {
    let queues = EmbeddedQueues::start(&[]).unwrap();
    let endpoint = queues.endpoint();
    let fifo = json!({ "QueueName": "payments.fifo", "Attributes": { "FifoQueue": "true" } });
    let url = sqs(endpoint, "CreateQueue", &fifo)["QueueUrl"].as_str().unwrap().to_owned();
    let site = site(&json!({ "target": "sqs:payments.fifo" }));
    let variables = [
        ("AWS_ENDPOINT_URL_SQS", endpoint),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ];
    let mut sent = Vec::new();
    let mut take = || {
        let want = json!({
            "QueueUrl": url, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"],
            "MessageSystemAttributeNames": ["All"],
        });
        let received = sqs(endpoint, "ReceiveMessage", &want);
        let messages = received["Messages"].as_array().cloned().unwrap_or_default();
        for message in &messages {
            let body: Value = serde_json::from_str(message["Body"].as_str().unwrap()).unwrap();
            let id = &message["MessageAttributes"]["Idempotency-Key"]["StringValue"];
            assert_eq!(*id, message["Attributes"]["MessageDeduplicationId"], "{message}");
            let shard = message["MessageAttributes"]["Shardcron-Shard"]["StringValue"].as_str().unwrap().to_owned();
            sent.push((shard, body));
            sqs(endpoint, "DeleteMessage", &json!({ "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"] }));
        }
        (messages.len(), sent.len())
    };
    for kill in 1..=2 {
        let run = site.start_with(RUN, &variables);
        eventually("some more messages", SOON, || (take().1 >= kill * 40).then_some(()));
        run.kill();
    }
    Published::of(&site.start_with(RUN, &variables).finish(SOON).exits(0));
    while take().0 > 0 {}
    is_all_in_order(&sent);
}

#[test]
fn a_job_whose_effects_and_work_dont_go_together_is_refused() {
    let without = site(&json!({ "target": "https://ledger.example/" }));
    let mut job: Value = serde_json::from_slice(&std::fs::read(without.path("job.json")).unwrap()).unwrap();
    job.as_object_mut().unwrap().remove("effects");
    without.job("job.json", &job);
    let problem = without.run(&["validate", "job.json", "--json"]).exits(2).error();
    assert_eq!((problem.kind.as_str(), problem.field.as_deref()), ("missing_field", Some("effects")));
    job["effects"] = json!({ "target": "https://user:secret@ledger.example/" });
    without.job("job.json", &job);
    let problem = without.run(&["--local", "apply", "job.json", "--json"]).exits(2).error();
    assert_eq!((problem.kind.as_str(), problem.field.as_deref()), ("value", Some("effects.target")));
    assert!(!problem.message.contains("secret@") && problem.hint.unwrap().contains("authorizationEnv"));
    job["work"] = json!({ "aggregate": { "count": true } });
    job["effects"] = json!({ "target": "https://ledger.example/" });
    without.job("job.json", &job);
    let problem = without.run(&["validate", "job.json", "--json"]).exits(2).error();
    assert_eq!((problem.kind.as_str(), problem.field.as_deref()), ("value", Some("effects")));
}
