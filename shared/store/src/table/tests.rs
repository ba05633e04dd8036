//! Keys, both ways.

use std::collections::BTreeSet;

use proptest::prelude::*;
use shardcron_domain::backfill::BackfillId;
use shardcron_domain::limits::PK_BYTES_MAX;

use super::*;

fn key() -> impl Strategy<Value = ItemKey> {
    let job = "[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}".prop_map(|name| name.parse::<JobName>().unwrap());
    let time = (-62_167_219_200i64..253_402_207_200).prop_map(|s| ScheduledTime::from_second(s).unwrap());
    let shard_id = (any::<u32>(), proptest::collection::vec(0u32..200, 0..3))
        .prop_map(|(no, splits)| splits.into_iter().fold(ShardId::numbered(no), |id, n| id.child(n)));
    let run = (job, time, any::<u32>()).prop_map(|(job, at, generation)| RunId {
        instance: InstanceId { job, at },
        generation: Generation(generation),
    });
    (run, shard_id, any::<u64>(), any::<u32>(), ".{0,20}", 0..13).prop_map(|(run, shard, long, short, text, kind)| {
        let (job, at) = (run.instance.job.clone(), run.instance.at);
        let shard = ShardKey { run: run.clone(), shard };
        match kind {
            0 => ItemKey::Job(job),
            1 => ItemKey::Spec(job, SpecVersion(short)),
            2 => ItemKey::Instance(run.instance),
            3 => ItemKey::Skip(job, at),
            4 => ItemKey::Group(run, GroupNo(short)),
            5 => ItemKey::Shard(shard),
            6 => ItemKey::Attempt(shard, Token(long)),
            7 => ItemKey::Result(shard, text),
            8 => ItemKey::Slot(SlotKey::Job(job)),
            9 => ItemKey::Slot(SlotKey::Shared(job.to_string().parse().unwrap())),
            10 => ItemKey::Backfill(job.clone(), job.to_string().parse().unwrap()),
            11 => ItemKey::Reject(shard, text),
            _ => ItemKey::Effect(shard, short),
        }
    })
}

proptest! {
    #[test]
    fn a_key_is_read_back_as_it_was_written(key in key()) {
        let Keys { pk, sk } = keys(&key);
        prop_assert!(pk.len() <= PK_BYTES_MAX);
        prop_assert_eq!(parse(&pk, &sk), Some(key));
    }
}

#[test]
fn keys_are_written_as_documented() {
    let run = RunId { instance: "daily:2026-08-29T16:00:00Z".parse().unwrap(), generation: Generation(2) };
    let shard = ShardKey { run: run.clone(), shard: ShardId::numbered(142).child(1) };
    let written = |key: &ItemKey| {
        let Keys { pk, sk } = keys(key);
        format!("{pk} {sk}")
    };
    let job = || run.instance.job.clone();
    assert_eq!(written(&ItemKey::Job(job())), "JOB#daily JOB");
    assert_eq!(written(&ItemKey::Spec(job(), SpecVersion(7))), "JOB#daily SPEC#0000000007");
    assert_eq!(written(&ItemKey::Instance(run.instance.clone())), "JOB#daily INST#2026-08-29T16:00:00Z");
    assert_eq!(written(&ItemKey::Skip(job(), run.instance.at)), "JOB#daily SKIP#2026-08-29T16:00:00Z");
    let backfill: BackfillId = "2026-q3".parse().unwrap();
    assert_eq!(written(&ItemKey::Backfill(job(), backfill)), "JOB#daily BACKFILL#2026-q3");
    assert_eq!(written(&ItemKey::Slot(SlotKey::Job(job()))), "SLOT#job/daily SLOT");
    assert_eq!(written(&ItemKey::Slot(SlotKey::Shared("ledger".parse().unwrap()))), "SLOT#key/ledger SLOT");
    let group = "INST#daily#2026-08-29T16:00:00Z#2#1";
    assert_eq!(written(&ItemKey::Group(run.clone(), GroupNo(1))), format!("{group} GROUP"));
    assert_eq!(written(&ItemKey::Shard(shard.clone())), format!("{group} SHARD#00142.1"));
    assert_eq!(written(&ItemKey::Attempt(shard.clone(), Token(9))), format!("{group} ATT#00142.1#0000000009"));
    let results = "RES#daily#2026-08-29T16:00:00Z#2#00142.1";
    assert_eq!(written(&ItemKey::Result(shard.clone(), "a#b".into())), format!("{results} R#a#b"));
    assert_eq!(written(&ItemKey::Reject(shard.clone(), "0001".into())), format!("{results} X#0001"));
    let outbox = "OUT#daily#2026-08-29T16:00:00Z#2#00142.1";
    assert_eq!(written(&ItemKey::Effect(shard, 12)), format!("{outbox} E#0000000012"));
}

#[test]
fn what_no_item_is_named_is_refused() {
    for (pk, sk) in [
        ("JOB#daily", "SPEC#7"),
        ("JOB#daily", "INST#2026-08-30T00:00:00+08:00"),
        ("JOB#da ily", "JOB"),
        ("INST#daily#2026-08-29T16:00:00Z#2#0", "SHARD#00142"),
        ("INST#daily#2026-08-29T16:00:00Z#02#1", "GROUP"),
        ("RES#daily#2026-08-29T16:00:00Z#2#00142", "Y#a"),
        ("OUT#daily#2026-08-29T16:00:00Z#2#00142", "E#12"),
        ("OUT#daily#2026-08-29T16:00:00Z#2#00142", "R#0000000012"),
        ("JOB#daily", "BACKFILL#"),
        ("JOB#daily", "BACKFILL#2026#q3"),
        ("SLOT#daily", "SLOT"),
        ("SLOT#jobs/daily", "SLOT"),
        ("SLOT#key/ledger/2", "SLOT"),
        ("SLOT#job/daily", "JOB"),
        ("", ""),
    ] {
        assert_eq!(parse(pk, sk), None, "{pk} {sk}");
    }
}

#[test]
fn buckets_are_all_used_and_stay_what_they_are() {
    let used: BTreeSet<u32> = (0..200).map(|n| bucket(&format!("job-{n}"))).collect();
    assert_eq!(used.len() as u32, INDEX_BUCKETS);
    assert_eq!([bucket("daily"), bucket("daily:2026-08-29T16:00:00Z"), bucket("daily/2026-q3")], [4, 6, 3]);
}
