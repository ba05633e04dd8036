use super::*;
use crate::boundary::Position;
use crate::certificate::EffectCounts;
use crate::ids::{Generation, Token};
use crate::shard::Counts;

fn keys(from: i64, to: i64) -> Range {
    Range::new(Position::Key(from), Position::Key(to)).unwrap()
}

fn account(id: &str, range: Range, counts: Counts) -> ShardAccount {
    ShardAccount {
        id: id.to_owned().try_into().unwrap(),
        range,
        token: Token(2),
        takeovers: 0,
        records_in: counts.input,
        records_out: counts.output,
        rejected: counts.rejected,
        effects: EffectCounts::default(),
    }
}

fn counts(input: u64, output: u64, rejected: u64) -> Counts {
    Counts { input, output, rejected }
}

fn certificate_of(shards: Vec<ShardAccount>) -> Certificate {
    Certificate {
        instance: crate::certificate::InstanceName("job:2026-01-05T00:00:00Z".parse().unwrap()),
        generation: Generation::FIRST,
        manifest_digest: "digest".to_owned(),
        parts: Vec::new(),
        totals: Totals::of(&shards),
        shards,
    }
}

/// The gaps and overlaps of these ranges in a boundary of 0 to 30, as text.
fn uncovered(ranges: &[(&str, i64, i64)]) -> Vec<String> {
    let shards = ranges.iter().map(|(id, from, to)| account(id, keys(*from, *to), Counts::default())).collect();
    cover(&certificate_of(shards), keys(0, 30))
        .into_iter()
        .map(|found| format!("{}: {}", found.place, found.message))
        .collect()
}

#[test]
fn a_gap_or_an_overlap_is_told_with_its_place() {
    assert_eq!(uncovered(&[("00000", 0, 10), ("00001", 10, 30)]), [""; 0]);
    assert_eq!(
        uncovered(&[("00000", 0, 10), ("00001", 12, 30)]),
        ["00001: no shard has the part from key 10 to key 12"]
    );
    assert_eq!(
        uncovered(&[("00000", 0, 10), ("00001", 8, 30)]),
        ["00001: it begins at key 8, and shard 00000 reaches to key 10"]
    );
    assert_eq!(uncovered(&[("00000", 0, 10)]), ["the end: no shard has the part from key 10 to key 30"]);
    assert_eq!(uncovered(&[]), ["the end: no shard has the part from key 0 to key 30"]);
    assert_eq!(uncovered(&[("00000", 0, 31)]), ["00000: it ends at key 31, behind the boundary's end at key 30"]);
}

#[test]
fn children_of_splits_and_what_is_left_of_their_parents_cover_together() {
    // In the order of the ids, which needn't be that of the boundary.
    assert_eq!(uncovered(&[("00000", 0, 4), ("00000.1", 8, 10), ("00000.2", 4, 8), ("00001", 10, 30)]), [""; 0]);
    assert_eq!(
        uncovered(&[("00000", 0, 4), ("00000.1", 8, 10), ("00001", 10, 30)]),
        ["00000.1: no shard has the part from key 4 to key 8"]
    );
}

#[test]
fn a_shard_is_held_against_its_input_and_its_recorded_rejects() {
    let said = account("00003", keys(0, 9), counts(9, 8, 1));
    assert_eq!(shard_in_input(&said, None, counts(9, 8, 1), 8, 1), []);
    let messages = |again, rejects| -> Vec<String> {
        shard_in_input(&said, None, again, 8, rejects).into_iter().map(|finding| finding.message).collect()
    };
    assert_eq!(
        messages(counts(9, 9, 0), 1),
        [
            "records out, when its input is read again: the certificate says 8, and it is 9",
            "rejected, when its input is read again: the certificate says 1, and it is 0",
        ]
    );
    assert_eq!(messages(counts(9, 8, 1), 2), ["recorded rejects: the certificate says 1, and it is 2"]);
}

#[test]
fn the_first_reject_that_differs_is_told() {
    let id: ShardId = "00003".to_owned().try_into().unwrap();
    let row = |key: i64, why: &str| RejectRow {
        position: Position::Key(key),
        line: 7,
        source: "a.csv".to_owned(),
        why: why.to_owned(),
    };
    assert_eq!(reject(&id, None, None), None);
    assert_eq!(reject(&id, Some(&row(1, "x")), Some(&row(1, "x"))), None);
    for (met, recorded, says) in [
        (Some(row(1, "x")), None, "isn't recorded"),
        (None, Some(row(1, "x")), "isn't rejected when it is read again"),
        (Some(row(1, "x")), Some(row(1, "y")), "recorded is `y`, and read again it is `x`"),
        (Some(row(1, "x")), Some(row(2, "x")), "the next reject is a.csv, line 7, key 1, and recorded is"),
    ] {
        let found = reject(&id, met.as_ref(), recorded.as_ref()).unwrap();
        assert!(found.message.contains(says), "{found:?}");
    }
}

#[test]
fn findings_beyond_the_bound_are_counted() {
    let mut findings = Findings::default();
    assert!(findings.is_empty());
    findings.extend((0..FINDINGS_MAX + 5).map(|number| Finding::new(Check::Input, number.to_string(), "gone")));
    assert_eq!((findings.findings.len(), findings.more, findings.count()), (FINDINGS_MAX, 5, FINDINGS_MAX as u64 + 5));
}

#[test]
fn effects_are_held_against_the_table() {
    use crate::ids::{Attempt, RunId, ShardKey, WriteId};
    let run = RunId { instance: "job:2026-01-05T00:00:00Z".parse().unwrap(), generation: Generation::FIRST };
    let key = ShardKey { run, shard: "00000".to_owned().try_into().unwrap() };
    let shard = Shard {
        token: Token(2),
        status: ShardStatus::Done,
        outbox: crate::outbox::Outbox { rows: 5, settled: 5, refused: 1 },
        ..Shard::new(key, keys(0, 10), Attempt::FIRST, None, WriteId("w".to_owned()))
    };
    let account = |sent, refused| ShardAccount {
        effects: EffectCounts { sent, refused },
        ..account("00000", keys(0, 10), Counts::default())
    };
    assert_eq!(shard_in_table(&account(4, 1), Some(&shard)).len(), 0);
    for (sent, refused) in [(5, 0), (0, 0), (0, 5), (1004, 1)] {
        let found = shard_in_table(&account(sent, refused), Some(&shard));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("effects"), "{found:?}");
    }
}
