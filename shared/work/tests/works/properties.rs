//! However the work is cut up and whoever goes on with it, the result is the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_work::{Room, Work};

use crate::common::{aggregate, chunks, merged, run};

fn work() -> impl Work {
    aggregate(&["g", "h"], true, &["x", "y"], &["x"], &["y"], &["", "NA"])
}

/// CSV with few groups, nulls, and numbers of which some aren't.
fn inputs() -> impl Strategy<Value = String> {
    let group = prop_oneof!["[ab]", Just("NA".to_owned()), Just(String::new())];
    let number =
        prop_oneof![4 => "-?[0-9]{1,4}([.][0-9]{1,3})?", 1 => "[0-9]e-?[0-9]", 1 => Just("NA".to_owned()), 1 => "[x-]"];
    let record = (group.clone(), group, number.clone(), number);
    prop::collection::vec(record, 1..60).prop_map(|records| {
        let lines = records.into_iter().map(|(g, h, x, y)| format!("{g},{x},{h},{y}\n"));
        format!("g,x,h,y\n{}", lines.collect::<String>())
    })
}

/// What an owner of the shard does next.
#[derive(Debug, Clone)]
enum Step {
    /// Commits, and goes on itself.
    Commit,
    /// Commits; another goes on.
    Release,
    /// Ends without a commit; another goes on from the last one.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![3 => Just(Step::Commit), 1 => Just(Step::Release), 1 => Just(Step::Crash)];
    prop::collection::vec((1..9_usize, step), 0..40)
}

/// The shard worked through in these steps, each of at most so many calls, and then to the end.
async fn interrupted(
    work: &dyn Work,
    text: &str,
    chunk: usize,
    room: Room,
    steps: &[(usize, Step)],
) -> (Vec<ResultRow>, Vec<RejectRow>) {
    let chunks = chunks("a.csv", text, chunk);
    let mut rows: BTreeMap<String, ResultRow> = BTreeMap::new();
    let (mut rejects, mut pending) = (Vec::new(), Vec::new());
    let (mut committed, mut at) = ((0, 0), (0, 0)); // a chunk and a record in it
    let mut shard = work.open(Vec::new()).unwrap();
    let end = [(usize::MAX, Step::Commit)];
    for (calls, step) in steps.iter().chain(&end) {
        for _ in 0..*calls {
            if at.0 == chunks.len() {
                break;
            }
            let processed = shard.process(&chunks[at.0], at.1, room).await.unwrap();
            pending.extend(processed.rejects);
            at.1 += processed.taken;
            if at.1 == chunks[at.0].len() {
                at = (at.0 + 1, 0);
            }
            if processed.full {
                let changes = shard.changes();
                assert!(!changes.is_empty(), "an empty room is full");
                commit(&mut rows, changes, room);
                shard.committed();
                rejects.append(&mut pending);
                committed = at;
            }
        }
        match step {
            Step::Crash => {
                pending.clear();
                at = committed;
            }
            Step::Commit | Step::Release => {
                commit(&mut rows, shard.changes(), room);
                shard.committed();
                rejects.append(&mut pending);
                committed = at;
            }
        }
        if !matches!(step, Step::Commit) {
            shard = work.open(rows.values().cloned().rev().collect()).unwrap();
        }
    }
    (rows.into_values().collect(), rejects)
}

fn commit(rows: &mut BTreeMap<String, ResultRow>, changes: Vec<ResultRow>, room: Room) {
    assert!(changes.len() <= room.rows);
    assert!(changes.iter().map(ResultRow::bytes).sum::<usize>() <= room.bytes);
    rows.extend(changes.into_iter().map(|row| (row.key.clone(), row)));
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn batches_commits_and_crashes_change_nothing(
        text in inputs(), chunk in 1..20_usize, rows in 1..6_usize, bytes in 1000..4000_usize, steps in steps(),
    ) {
        let work = work();
        let (mut expected, expected_rejects) = block(run(&work, &chunks("a.csv", &text, usize::MAX)));
        let (got, rejects) = block(interrupted(&work, &text, chunk, Room { rows, bytes, records: usize::MAX, rejects: usize::MAX }, &steps));
        expected.sort_by(|a, b| a.key.cmp(&b.key));
        prop_assert_eq!(got, expected);
        prop_assert_eq!(rejects, expected_rejects);
    }

    #[test]
    fn every_record_is_counted_once_or_rejected_once(text in inputs()) {
        let (rows, rejects) = block(run(&work(), &chunks("a.csv", &text, 7)));
        let counted: u64 = rows.iter().map(|row| row.records).sum();
        prop_assert_eq!(counted as usize + rejects.len(), text.lines().count() - 1);
    }

    #[test]
    fn shards_and_the_order_of_merging_change_nothing(
        text in inputs(), cuts in prop::collection::vec(0..60_usize, 0..4), seed in any::<u64>(),
    ) {
        let work = work();
        let whole = merged(&work, block(run(&work, &chunks("a.csv", &text, 100))).0);
        let (header, body) = text.split_once('\n').unwrap();
        let lines: Vec<&str> = body.lines().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(lines.len())).chain([0, lines.len()]).collect();
        cuts.sort_unstable();
        let mut rows = Vec::new();
        for cut in cuts.windows(2) {
            let part = format!("{header}\n{}", lines[cut[0]..cut[1]].join("\n"));
            rows.extend(block(run(&work, &chunks("a.csv", &part, 100))).0);
        }
        // Any order will do, as long as the seed decides it.
        rows.sort_by_key(|row| row.value.len() as u64 ^ row.records ^ seed.rotate_left(row.key.len() as u32));
        prop_assert_eq!(merged(&work, rows.iter().rev().cloned()), whole.clone());
        prop_assert_eq!(merged(&work, rows), whole);
    }
}
