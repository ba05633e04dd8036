//! What items look like in the table.

use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason};
use shardcron_domain::backfill::Backfill;
use shardcron_domain::boundary::{ObjectPosition, Position, Range};
use shardcron_domain::checkpoint::Checkpoint;
use shardcron_domain::group::{DoneShard, Group};
use shardcron_domain::ids::{GroupNo, Owner, ShardId, Token, Version, WriteId};
use shardcron_domain::instance::Instance;
use shardcron_domain::lease::Lease;
use shardcron_domain::limits::{
    CHECKPOINT_RANGES_MAX, ERROR_SUMMARY_MAX, INPUT_ERROR_SUMMARY_MAX, JOB_NAME_MAX, SPLIT_CHILDREN_MAX,
};
use shardcron_domain::outbox::Outbox;
use shardcron_domain::shard::{Counts, Fault, FaultKind, Shard, ShardStatus, Snapshot};
use shardcron_domain::time::{Duration, Millis};

use super::super::record::{bytes, decode, encode};
use super::super::write::{Cancellation, cancellation, client_token};
use crate::conformance::{Samples, every_kind};
use crate::{Item, ItemOutcome, StoreError};

#[test]
fn an_item_says_nothing_twice() {
    let attributes = encode(&Item::from(Samples::of("daily").leased(7, 1_000))).unwrap();
    let mut names: Vec<&str> = attributes.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected =
        "PK SK attempt checkpoint counts failures kind progressed range status takeovers token version write_id";
    assert_eq!(names.join(" "), expected);
    assert_eq!(attributes["kind"], AttributeValue::S("shard".to_owned()));
    // The path in the owner's condition.
    let until = &attributes["status"].as_m().unwrap()["leased"].as_m().unwrap()["until"];
    assert_eq!(*until, AttributeValue::N("1000".to_owned()));
}

#[test]
fn a_slot_and_a_backfill_say_nothing_twice() {
    let names = |item: Item| {
        let mut names: Vec<String> = encode(&item).unwrap().into_keys().collect();
        names.sort_unstable();
        names.join(" ")
    };
    let samples = Samples::of("daily");
    assert_eq!(names(samples.slot().into()), "PK SK kind version write_id");
    let expected = "PK SK account created_at exhausted kind next_look open_at open_pk request status version write_id";
    assert_eq!(names(samples.backfill("2026-q3").into()), expected);
}

#[test]
fn sets_are_sets_and_empty_ones_are_absent() {
    let samples = Samples::of("daily");
    let group = |done: &[u32]| {
        let done = done.iter().map(|number| DoneShard { shard: ShardId::numbered(*number), children: 0 }).collect();
        encode(&Item::Group(Group { done, ..samples.group(0) })).unwrap()
    };
    assert_eq!(group(&[]).get("done"), None);
    assert_eq!(group(&[1, 2])["done"], AttributeValue::Ss(vec!["00001".to_owned(), "00002".to_owned()]));
    let instance = Instance { groups_done: [GroupNo(0), GroupNo(3)].into(), ..samples.instance(1) };
    let attributes = encode(&instance.into()).unwrap();
    assert_eq!(attributes["groups_done"], AttributeValue::Ns(vec!["0".to_owned(), "3".to_owned()]));
}

#[test]
fn index_attributes_are_there_only_while_they_are_wanted() {
    let samples = Samples::of("daily");
    let job = encode(&samples.job(Some(0)).into()).unwrap();
    assert_eq!(job["due_pk"], AttributeValue::S("DUE#4".to_owned()));
    assert_eq!(job["due_at"], AttributeValue::S("2026-01-01T00:00:00Z".to_owned()));
    assert!(!encode(&samples.job(None).into()).unwrap().contains_key("due_pk"));
    let instance = encode(&samples.instance(1).into()).unwrap();
    assert!(instance["open_pk"].as_s().unwrap().starts_with("OPEN#"));
    assert_eq!(instance["open_at"], AttributeValue::N("1767225600000".to_owned()));
    let over = Instance { next_look: None, ..samples.instance(1) };
    assert!(!encode(&over.into()).unwrap().contains_key("open_at"));
    let backfill = encode(&samples.backfill("2026-q3").into()).unwrap();
    assert_eq!(backfill["open_pk"], AttributeValue::S("BACKFILL#3".to_owned()));
    assert_eq!(backfill["open_at"], AttributeValue::N("1767225600000".to_owned()));
    let over = Backfill { next_look: None, ..samples.backfill("2026-q3") };
    assert!(!encode(&over.into()).unwrap().contains_key("open_at"));
}

/// A shard at work with the longest names and large numbers, as many finished ranges beyond a gap as there can be, rows
/// in an object and the longest fault: one write unit. So is one that has failed.
#[test]
fn a_shard_at_work_fits_one_write_unit() {
    let samples = Samples::of(&"j".repeat(JOB_NAME_MAX));
    let at = |offset| Position::Object(ObjectPosition { object: 999_999, offset, line: 999_999_999 });
    let range = |from, to| Range::new(at(from), at(to)).unwrap();
    let uuid = "018f3a5e-7c9b-7def-8123-456789abcdef";
    let lease =
        Lease { owner: Owner(uuid.to_owned()), until: Millis(1_767_225_600_000), length: Duration::from_secs(30) };
    let start = 999_999_999_000;
    let shard = Shard {
        key: samples.shard_key(&ShardId::numbered(99_999).child(12).child(3)),
        range: range(start, start + 99_999_999),
        token: Token(1_000),
        version: Version(100_000),
        write_id: WriteId(uuid.to_owned()),
        status: ShardStatus::Leased(lease),
        checkpoint: Checkpoint {
            prefix: at(start + 1),
            ranges: (1..=CHECKPOINT_RANGES_MAX as u64)
                .map(|no| range(start + no * 2_000_000, start + no * 2_000_000 + 1_000_000))
                .collect(),
        },
        counts: Counts { input: 999_999_999, output: 999_999_998, rejected: 1 },
        snapshot: Some(Snapshot { name: uuid.to_owned(), digest: "0123456789abcdef".repeat(2) }),
        failures: 6,
        takeovers: 10,
        children: SPLIT_CHILDREN_MAX,
        worked: Duration::from_secs(86_400),
        outbox: Outbox { rows: 999_999, settled: 999_998, refused: 99 },
        deadline: Some(Millis(1_767_225_600_000)),
        last_fault: Some(Fault::new(FaultKind::Retryable, &"x".repeat(ERROR_SUMMARY_MAX))),
        ..samples.shard(0)
    };
    let fault = Fault::new(FaultKind::Input, &"x".repeat(INPUT_ERROR_SUMMARY_MAX));
    let failed = Shard { status: ShardStatus::Failed(fault), last_fault: None, ..shard.clone() };
    for shard in [shard, failed] {
        let status = shard.status.clone();
        let used = bytes(&encode(&shard.into()).unwrap());
        assert!(used < 1024, "{used} bytes: {status:?}");
    }
}

#[test]
fn every_kind_survives_the_encoding() {
    for item in every_kind() {
        let read = decode(encode(&item).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{item:?}"));
    }
}

#[test]
fn what_cannot_be_read_says_which_item_and_why() {
    let whole = encode(&Samples::of("daily").job(None).into()).unwrap();
    for (name, value, says) in [
        ("version", None, "version"),
        ("version", Some(AttributeValue::S("1".to_owned())), "job daily"),
        ("kind", Some(AttributeValue::S("slot".to_owned())), "its kind isn't job"),
        ("SK", Some(AttributeValue::S("SLOT".to_owned())), "PK `JOB#daily`, SK `SLOT`"),
    ] {
        let mut attributes = whole.clone();
        match value {
            Some(value) => attributes.insert(name.to_owned(), value),
            None => attributes.remove(name),
        };
        let error = decode(attributes).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    // A newer version's attribute isn't in the way.
    let mut newer = whole;
    newer.insert("of_a_newer_version".to_owned(), AttributeValue::Bool(true));
    assert!(decode(newer).is_ok());
}

#[test]
fn bytes_are_counted_as_dynamodb_does() {
    let item = [
        ("ab".to_owned(), AttributeValue::S("é".to_owned())),
        ("n".to_owned(), AttributeValue::N("-123".to_owned())),
        ("t".to_owned(), AttributeValue::Bool(true)),
        ("l".to_owned(), AttributeValue::L(vec![AttributeValue::S("abc".to_owned())])),
        ("m".to_owned(), AttributeValue::M([("k".to_owned(), AttributeValue::S("v".to_owned()))].into())),
    ];
    assert_eq!(bytes(&item.into()), (2 + 2) + (1 + 4) + (1 + 1) + (1 + 3 + 1 + 3) + (1 + 3 + 1 + 1 + 1));
}

#[test]
fn a_client_token_has_at_most_36_characters() {
    let uuid = "018f3a5e-7c9b-7def-8123-456789abcdef";
    assert_eq!(client_token(&WriteId(uuid.to_owned())), uuid);
    let long = client_token(&WriteId(format!("{uuid}-")));
    assert_eq!(long.len(), 32);
    assert_ne!(long, client_token(&WriteId(format!("{uuid}+"))));
}

#[test]
fn the_reasons_of_a_canceled_transaction_are_sorted() {
    let job: Item = Samples::of("daily").job(None).into();
    let sorted = |codes: &[&str]| {
        let reason = |code: &&str| {
            let there = (*code == "Lost").then(|| encode(&job).unwrap());
            let code = if matches!(*code, "Lost" | "Missing") { "ConditionalCheckFailed" } else { code };
            CancellationReason::builder().code(code).set_item(there).build()
        };
        let reasons: Vec<CancellationReason> = codes.iter().map(reason).collect();
        cancellation(&reasons, codes.len()).unwrap()
    };
    let lost = ItemOutcome::Lost(Box::new(job.clone()));
    let (held, missing) = (ItemOutcome::Held, ItemOutcome::Missing);
    assert_eq!(sorted(&["None", "Lost", "Missing"]), Cancellation::Refused(vec![held.clone(), lost.clone(), missing]));
    assert_eq!(
        sorted(&["TransactionConflict", "Lost", "ThrottlingError"]),
        Cancellation::Refused(vec![held.clone(), lost, held])
    );
    assert_eq!(sorted(&["None", "TransactionConflict"]), Cancellation::Conflict);
    assert_eq!(sorted(&["TransactionConflict", "ThrottlingError"]), Cancellation::Throttled);
    assert_eq!(sorted(&["ProvisionedThroughputExceeded", "None"]), Cancellation::Throttled);
    assert_eq!(sorted(&["Lost", "ValidationError"]), Cancellation::Other);
    assert_eq!(sorted(&["ItemCollectionSizeLimitExceeded"]), Cancellation::Other);
    assert_eq!(sorted(&["None"]), Cancellation::Other, "no reason at all");
    assert_eq!(cancellation(&[], 1).unwrap(), Cancellation::Other, "no reasons");
}
