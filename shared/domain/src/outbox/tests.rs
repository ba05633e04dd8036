use super::*;
use crate::boundary::{Position, Range};
use crate::ids::{Attempt, Owner, RunId, ShardId, ShardKey, WriteId};
use crate::lease::Claimer;
use crate::shard::{Claim, Counts};
use crate::time::Duration;

fn instance() -> InstanceId {
    "pay:2026-08-29T16:00:00Z".parse().unwrap()
}

fn stamp(id: &str, at: i64) -> Stamp {
    Stamp { write_id: WriteId(id.to_owned()), now: Reading::exact(Millis(at)) }
}

/// A shard with records 0 to 10, leased until 5,000.
fn leased() -> Shard {
    let run = RunId { instance: instance(), generation: Generation(2) };
    let key = ShardKey { run, shard: ShardId::numbered(0) };
    let range = Range::new(Position::Key(0), Position::Key(10)).unwrap();
    let claimer = Claimer {
        owner: Owner("a".to_owned()),
        write_id: WriteId("claim".to_owned()),
        now: Reading::exact(Millis(0)),
        lease: Duration(5_000),
        backoff_limit: 6,
    };
    match Shard::new(key, range, Attempt::FIRST, None, WriteId("new".to_owned())).claim(&claimer) {
        Claim::Claimed(shard) => *shard,
        other => panic!("{other:?}"),
    }
}

fn effect(key: &str) -> Effect {
    Effect { key: key.to_owned(), body: "{}".to_owned(), content_type: None }
}

fn counts(records: u64) -> Counts {
    Counts { input: records, output: records, rejected: 0 }
}

fn answer(status: u16) -> Answer {
    Answer::Status { status, text: "no\n  thanks".to_owned(), retry_after: None }
}

#[test]
fn a_request_id_is_of_job_time_and_key_and_of_nothing_else() {
    let id = RequestId::of(&instance(), "[\"42\"]");
    // printf 'pay\n2026-08-29T16:00:00Z\n["42"]' | sha256sum | cut -c1-32
    assert_eq!(id.as_str(), "3d39466e33c9603848caaf76f16f0d27");
    let zoned: InstanceId = "pay:2026-08-30T00:00:00+08:00".parse().unwrap();
    assert_eq!(RequestId::of(&zoned, "[\"42\"]"), id);
    for (other, key) in [
        ("pay:2026-08-29T16:00:01Z", "[\"42\"]"),
        ("pa:2026-08-29T16:00:00Z", "[\"42\"]"),
        ("pay:2026-08-29T16:00:00Z", "[\"4\"]"),
    ] {
        assert_ne!(RequestId::of(&other.parse().unwrap(), key), id, "{other} {key}");
    }
}

#[test]
fn a_fence_token_rises_with_claims_and_with_reruns() {
    let of = |generation, token| FenceToken::of(Generation(generation), Token(token));
    assert_eq!(of(2, 7).to_string(), "2000000007");
    assert!(of(1, 8) > of(1, 7));
    assert!(of(2, 1) > of(1, u64::MAX));
    // A reader in whose language numbers are binary floats compares them rightly.
    assert!(of(9_000_000, 1).0 < 1 << 53);
}

#[test]
fn an_answer_says_what_can_be_done() {
    use Meaning::{Fenced, Later, Refused, Sent, Unknown, Unusable};
    for status in [200, 201, 204, 299] {
        assert_eq!(answer(status).meaning(true, true), Sent { status });
    }
    for status in [409, 412] {
        assert!(matches!(answer(status).meaning(true, false), Fenced(_)), "{status}");
    }
    // Of a target that compares nothing: still at work on the first one, or a refusal of what it says.
    assert!(matches!(answer(409).meaning(false, true), Unknown { .. }));
    for status in [400, 403, 404, 409, 410, 412, 413, 422] {
        let refused = Refused { status, text: "no thanks".to_owned() };
        assert_eq!(answer(status).meaning(false, false), refused);
    }
    for status in [425, 429] {
        assert!(matches!(answer(status).meaning(true, true), Later { .. }), "{status}");
    }
    for status in [408, 500, 502, 503, 504, 599] {
        assert!(matches!(answer(status).meaning(false, false), Unknown { .. }), "{status}");
    }
    for status in [301, 307, 401, 407] {
        assert!(matches!(answer(status).meaning(false, false), Unusable(_)), "{status}");
    }
    assert!(matches!(Answer::NotSent("x".into()).meaning(true, true), Later { .. }));
    assert!(matches!(Answer::Lost("x".into()).meaning(true, true), Unknown { .. }));
    let patience = Some(Duration(7));
    let slow = Answer::Status { status: 503, text: String::new(), retry_after: patience };
    assert_eq!(slow.meaning(false, false), Unknown { why: "it answers 503".to_owned(), after: patience });
}

#[test]
fn effects_are_numbered_on_from_commit_to_commit() {
    let shard = leased();
    let done = Range::new(Position::Key(0), Position::Key(2)).unwrap();
    let next = shard.commit(&stamp("1", 10), done, counts(2), None, false).unwrap();
    let (next, rows) = next.with_effects(vec![effect("a"), effect("b")], "https://x/").unwrap();
    assert_eq!(rows.iter().map(|row| row.no).collect::<Vec<_>>(), [0, 1]);
    let (next, rows) = next.with_effects(vec![effect("c")], "https://x/").unwrap();
    assert_eq!((rows[0].no, rows[0].key.as_str(), next.outbox.rows), (2, "c", 3));
    assert_eq!(rows[0].request_id, RequestId::of(&instance(), "c"));
    assert!(!next.outbox.is_drained());
}

#[test]
fn a_shard_with_something_in_its_outbox_cant_be_done() {
    let shard = leased();
    let all = Range::new(Position::Key(0), Position::Key(10)).unwrap();
    let whole = shard.commit(&stamp("1", 10), all, counts(10), None, true).unwrap();
    assert!(matches!(whole.with_effects(vec![effect("a")], "x"), Err(OwnerError::Undrained(_))));
    let open = shard.commit(&stamp("1", 10), all, counts(10), None, false).unwrap();
    let (open, rows) = open.with_effects(vec![effect("a")], "x").unwrap();
    let nothing = Range::new(Position::Key(10), Position::Key(10)).unwrap();
    let finish = |shard: &Shard| shard.commit(&stamp("3", 30), nothing, counts(0), None, true);
    assert!(matches!(finish(&open), Err(OwnerError::Undrained(_))));
    let sent = rows[0].after(&Meaning::Sent { status: 200 }, open.token, Millis(20));
    let drained = open.settle(&stamp("2", 20), &sent, OnRefused::Fail).unwrap();
    assert_eq!(finish(&drained).unwrap().status, ShardStatus::Done);
}

#[test]
fn only_the_next_row_is_settled_and_a_refusal_only_where_it_is_recorded() {
    let (shard, rows) = leased().with_effects(vec![effect("a"), effect("b")], "x").unwrap();
    let settle = |row: &OutboxRow, meaning: Meaning, on_refused| {
        shard.settle(&stamp("1", 10), &row.after(&meaning, Token(1), Millis(10)), on_refused).unwrap()
    };
    let refused = || Meaning::Refused { status: 422, text: "no".to_owned() };
    let unknown = || Meaning::Unknown { why: "no answer".to_owned(), after: None };
    assert_eq!(settle(&rows[1], Meaning::Sent { status: 200 }, OnRefused::Record).outbox.settled, 0);
    assert_eq!(settle(&rows[0], unknown(), OnRefused::Record).outbox.settled, 0);
    assert_eq!(settle(&rows[0], refused(), OnRefused::Fail).outbox, Outbox { rows: 2, settled: 0, refused: 0 });
    assert_eq!(settle(&rows[0], refused(), OnRefused::Record).outbox, Outbox { rows: 2, settled: 1, refused: 1 });
    let sent = settle(&rows[0], Meaning::Sent { status: 200 }, OnRefused::Fail);
    assert_eq!((sent.outbox.settled, sent.progressed), (1, true));
    assert!(sent.version > shard.version && sent.token == shard.token);
    let late = shard.settle(&stamp("1", 5_000), &rows[0], OnRefused::Fail);
    assert!(matches!(late, Err(OwnerError::LeaseOver { .. })), "{late:?}");
}

#[test]
fn unknown_tries_are_counted_and_what_was_heard_is_cut() {
    let (_, rows) = leased().with_effects(vec![effect("a")], "x").unwrap();
    let unknown = Meaning::Unknown { why: "é".repeat(1_000), after: None };
    let twice = rows[0].after(&unknown, Token(1), Millis(1)).after(&unknown, Token(2), Millis(2));
    let EffectState::Unknown { tries: 2, token: Token(2), last, .. } = twice.state else { panic!("{twice:?}") };
    assert_eq!(last.chars().count(), limits::ERROR_SUMMARY_MAX);
}

#[test]
fn an_owner_acts_only_within_its_lease() {
    let shard = leased();
    assert!(shard.may_act(Reading::exact(Millis(4_999))));
    assert!(!shard.may_act(Reading { at: Millis(4_999), uncertainty: Duration(1) }));
    assert!(!Shard { status: ShardStatus::Pending, ..shard }.may_act(Reading::exact(Millis(0))));
}

#[test]
fn an_effect_beyond_a_bound_is_refused() {
    assert_eq!(effect("a").check(), Ok(()));
    assert_eq!(effect("").check(), Err(EffectError::Key(0)));
    let long = "k".repeat(limits::EFFECT_KEY_BYTES_MAX + 1);
    assert_eq!(effect(&long).check(), Err(EffectError::Key(long.len())));
    let body = "b".repeat(limits::EFFECT_BODY_BYTES_MAX);
    assert_eq!(Effect { body: body.clone(), ..effect("a") }.check(), Ok(()));
    assert!(matches!(Effect { body: body + "b", ..effect("a") }.check(), Err(EffectError::Body { .. })));
    let of_type = |text: &str| Effect { content_type: Some(text.to_owned()), ..effect("a") }.check();
    assert_eq!(of_type("text/plain; charset=utf-8"), Ok(()));
    assert!(matches!(of_type("a\r\nx: y"), Err(EffectError::ContentType(_))));
}
