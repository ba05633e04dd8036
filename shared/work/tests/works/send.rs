//! `send`: one effect and one row for each record.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use shardcron_domain::boundary::{ObjectPosition, Position};
use shardcron_domain::ids::InstanceId;
use shardcron_domain::job::{JobSpec, SendSpec, SpecErrorKind};
use shardcron_domain::limits::{COMMIT_BYTES_MAX, COMMIT_ROWS_MAX, EFFECT_BODY_BYTES_MAX, EFFECT_KEY_BYTES_MAX};
use shardcron_domain::outbox::{Effect, RequestId};
use shardcron_domain::record::{Chunk, Source};
use shardcron_domain::result::ResultRow;
use shardcron_work::{Room, SendWork, ShardWork, Work, WorkError, Works};

use crate::common::{ROOMY, aggregate, chunks, merged};

fn instance() -> InstanceId {
    "pay:2026-08-29T16:00:00Z".parse().unwrap()
}

fn send(key: &[&str], body: &[&str], nulls: &[&str]) -> Arc<dyn Work> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let work = SendWork::new(SendSpec { key: owned(key), body: owned(body) }, &owned(nulls));
    work.for_instance(&instance()).unwrap()
}

async fn taken(work: &dyn Work, chunk: &Chunk) -> (Box<dyn ShardWork>, Vec<String>) {
    let mut shard = work.open(Vec::new()).unwrap();
    let processed = shard.process(chunk, 0, ROOMY).await.unwrap();
    assert_eq!((processed.taken, processed.full), (chunk.len(), false));
    (shard, processed.rejects.into_iter().map(|reject| reject.why).collect())
}

fn bodies(shard: &dyn ShardWork) -> Vec<String> {
    shard.effects().into_iter().map(|effect| effect.body).collect()
}

#[tokio::test]
async fn a_record_is_sent_as_json_with_the_digits_that_it_has() {
    let chunk = chunks("a.csv", "id,amount,note\n1,10.10,\n2,1e3,NA\n", 9).remove(0);
    let (shard, rejects) = taken(&*send(&["id"], &[], &["NA"]), &chunk).await;
    assert_eq!(rejects, Vec::<String>::new());
    let expected = [r#"{"id":"1","amount":"10.10","note":""}"#, r#"{"id":"2","amount":"1e3","note":null}"#];
    assert_eq!(bodies(&*shard), expected);
    let id = RequestId::of(&instance(), "[\"1\"]");
    let row = ResultRow { key: "[\"1\"]".to_owned(), value: format!("\"{id}\""), records: 1 };
    assert_eq!((shard.changes()[0].clone(), shard.effects()[0].key.as_str()), (row, "[\"1\"]"));
    let output = merged(&*send(&["id"], &[], &[]), shard.changes());
    assert!(output.to_csv().starts_with(&format!("id,request_id\n1,{id}\n2,")), "{}", output.to_csv());

    let (shard, _) = taken(&*send(&["id"], &["note", "id"], &[]), &chunk).await;
    assert_eq!(bodies(&*shard)[1], r#"{"note":"NA","id":"2"}"#);
}

#[tokio::test]
async fn a_record_with_names_of_its_own_is_sent_by_them() {
    let mut chunk = Chunk::new(Arc::new(Source { name: "a.ndjson".to_owned(), columns: None }));
    let at = |offset| Position::Object(ObjectPosition { object: 0, offset, line: offset });
    let text = |text: &str| Some(text.to_owned());
    chunk.push_named(
        at(0),
        at(1),
        1,
        vec![("b".to_owned(), text("[1]")), ("id".to_owned(), text("7")), ("c".to_owned(), None)],
    );
    let (shard, _) = taken(&*send(&["id"], &[], &[]), &chunk).await;
    assert_eq!(bodies(&*shard), [r#"{"b":"[1]","id":"7","c":null}"#]);
    let (shard, _) = taken(&*send(&["id"], &["x", "b"], &[]), &chunk).await;
    assert_eq!(bodies(&*shard), [r#"{"x":null,"b":"[1]"}"#]);
}

#[tokio::test]
async fn what_has_no_key_of_its_own_or_is_too_long_is_rejected() {
    let (long_key, long) = ("k".repeat(EFFECT_KEY_BYTES_MAX), "b".repeat(EFFECT_BODY_BYTES_MAX));
    let text = format!("id,x\n1,a\n,b\n1,c\n{long_key},d\n2,{long}\n");
    let chunk = chunks("a.csv", &text, 9).remove(0);
    let (shard, rejects) = taken(&*send(&["id"], &[], &[""]), &chunk).await;
    assert_eq!(bodies(&*shard), [r#"{"id":"1","x":"a"}"#]);
    let parts =
        ["column `id` has no value", "an earlier record has its key [\"1\"]", "its key has 904 bytes", "bytes as JSON"];
    assert_eq!(rejects.len(), parts.len());
    for (why, part) in rejects.iter().zip(parts) {
        assert!(why.contains(part), "`{why}` lacks `{part}`");
    }
    // Also where the earlier one was committed by another owner.
    let mut resumed = send(&["id"], &[], &[]).open(shard.changes()).unwrap();
    let again = resumed.process(&chunk, 2, Room { records: 1, ..ROOMY }).await.unwrap();
    assert_eq!((again.taken, again.rejects.len()), (1, 1));
    assert_eq!(resumed.rows().len(), 1);
}

#[tokio::test]
async fn a_column_that_isnt_there_is_an_error_with_the_nearest() {
    let chunk = chunks("a.csv", "invoice_id,x\n1,a\n", 9).remove(0);
    for (key, body) in [("invoiceid", "x"), ("x", "invoiceid")] {
        let mut shard = send(&[key], &[body], &[]).open(Vec::new()).unwrap();
        let error = shard.process(&chunk, 0, ROOMY).await.unwrap_err().to_string();
        assert!(error.contains("no column `invoiceid`") && error.contains("did you mean `invoice_id`?"), "{error}");
    }
}

#[test]
fn one_key_in_two_shards_is_an_error() {
    let work = send(&["id"], &[], &[]);
    let row = |key: &str| ResultRow { key: key.to_owned(), value: "\"x\"".to_owned(), records: 1 };
    let mut merge = work.merge();
    merge.add(row("[\"1\"]")).unwrap();
    let error = merge.add(row("[\"1\"]")).unwrap_err();
    assert!(matches!(error, WorkError::Input { .. }) && error.to_string().contains("two shards"), "{error}");
    for bad in [row("1"), row("[]"), ResultRow { value: "x".to_owned(), ..row("[\"2\"]") }] {
        assert!(matches!(work.merge().add(bad), Err(WorkError::State { .. })));
    }
    assert!(matches!(work.open(vec![ResultRow { records: 2, ..row("[\"1\"]") }]), Err(WorkError::State { .. })));
}

#[test]
fn a_work_that_asks_for_effects_needs_a_job_that_says_where_they_go() {
    let job = |work: serde_json::Value, effects: Option<serde_json::Value>| {
        let mut job = json!({
            "name": "a", "schedule": "@daily", "work": work, "input": { "objects": "in/", "format": "csv" },
            "output": { "objects": "out/", "format": "csv" }
        });
        if let Some(effects) = effects {
            job["effects"] = effects;
        }
        JobSpec::parse(&job.to_string()).unwrap()
    };
    let works = Works::builtin()
        .with("counts", |_, _| Ok(Arc::new(aggregate(&[], true, &[], &[], &[], &[])) as Arc<dyn Work>))
        .with("sends", |_, _| Ok(send(&["id"], &[], &[])));
    let to = || Some(json!({ "target": "https://h/" }));
    let own = |name: &str| json!({ "custom": { "name": name } });
    for work in [json!({ "send": { "key": ["id"] } }), own("sends")] {
        assert!(works.for_instance(&job(work.clone(), to()), &instance()).is_ok());
        let error = works.for_job(&job(work, None)).err().unwrap();
        assert_eq!((error.kind, error.field.as_str()), (SpecErrorKind::Missing, "effects"));
    }
    for work in [json!({ "aggregate": { "count": true } }), own("counts")] {
        assert!(works.for_job(&job(work.clone(), None)).is_ok());
        let error = works.for_job(&job(work, to())).err().unwrap();
        assert_eq!((error.kind, error.field.as_str()), (SpecErrorKind::Value, "effects"));
    }
}

/// Drives a shard commit by commit, with a new owner after each; the effects in order.
async fn in_batches(work: &dyn Work, chunk: &Chunk, room: Room) -> Vec<Effect> {
    let (mut effects, mut rows, mut first) = (Vec::new(), Vec::new(), 0);
    while first < chunk.len() {
        let mut shard = work.open(rows.clone()).unwrap();
        let processed = shard.process(chunk, first, room).await.unwrap();
        assert!(processed.taken > 0, "it goes on");
        first += processed.taken;
        let (changes, asked) = (shard.changes(), shard.effects());
        let bytes =
            changes.iter().map(ResultRow::bytes).sum::<usize>() + asked.iter().map(Effect::bytes).sum::<usize>();
        assert!(changes.len() + asked.len() <= room.rows && bytes <= room.bytes, "more than there was room for");
        shard.committed();
        assert_eq!((shard.changes(), shard.effects()), (Vec::new(), Vec::new()));
        rows.extend(changes);
        effects.extend(asked);
    }
    effects
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// However a shard is cut into commits, it asks for the same effects, and each commit has room for them.
    #[test]
    fn effects_dont_depend_on_how_a_shard_is_cut(ids in prop::collection::vec(0..40u32, 1..60), rows in 2..12usize, bytes in 300..900usize) {
        let text: String = ids.iter().map(|id| format!("{id},x\n")).collect();
        let chunk = chunks("a.csv", &format!("id,x\n{text}"), 100).remove(0);
        let work = send(&["id"], &[], &[]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let whole = runtime.block_on(in_batches(&*work, &chunk, ROOMY));
        let cut = runtime.block_on(in_batches(&*work, &chunk, Room { rows, bytes, ..ROOMY }));
        prop_assert_eq!(&cut, &whole);
        prop_assert!(whole.iter().all(|effect| effect.check().is_ok()));
    }
}

#[tokio::test]
async fn an_effect_of_the_greatest_size_fits_a_commit() {
    let body = "b".repeat(EFFECT_BODY_BYTES_MAX - 30);
    let chunk = chunks("a.csv", &format!("id,x\n1,{body}\n2,{body}\n"), 9).remove(0);
    let room = Room { rows: COMMIT_ROWS_MAX, bytes: COMMIT_BYTES_MAX, ..ROOMY };
    assert_eq!(in_batches(&*send(&["id"], &[], &[]), &chunk, room).await.len(), 2);
}
