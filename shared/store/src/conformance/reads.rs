//! Queries.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use shardcron_domain::backfill::Backfill;
use shardcron_domain::boundary::{ObjectPosition, Position};
use shardcron_domain::ids::{Generation, GroupNo, RunId, ShardId, ShardKey, Token, Version};
use shardcron_domain::instance::Instance;
use shardcron_domain::outbox::{EffectState, OutboxRow};
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::shard::{Fault, FaultKind, Shard};
use shardcron_domain::time::{Millis, ScheduledTime};

use super::samples::Samples;
use super::writes::{put, put_new};
use crate::{AttemptLog, Guard, Item, Page, Store, StoreError, StoredEffect, StoredResult, Written};

/// Waits for what an index will say: it may lag behind the items.
#[expect(clippy::disallowed_methods, reason = "a condition is waited for, up to a bound")]
async fn eventually<T, F>(expected: T, read: impl Fn() -> F)
where
    T: PartialEq + Debug,
    F: Future<Output = Result<T, StoreError>>,
{
    let mut found = read().await.expect("a read");
    for _ in 0..100 {
        if found == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        found = read().await.expect("a read");
    }
    assert_eq!(found, expected);
}

/// All pages, and how many they were.
async fn all<T, F>(read: impl Fn(Option<String>) -> F) -> (Vec<T>, usize)
where
    F: Future<Output = Result<Page<T>, StoreError>>,
{
    let (mut items, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = read(after).await.expect("a page");
        items.extend(page.items);
        pages += 1;
        after = page.next;
        if after.is_none() {
            return (items, pages);
        }
    }
}

/// A job stands in the due index while it has a next time; an instance or backfill in the open index while it has a
/// next look, each found by its own query only.
pub async fn entries_of_an_index_appear_and_vanish(store: &dyn Store) {
    let samples = Samples::of("vanish");
    let job = samples.job(Some(5));
    put_new(store, job.clone()).await;
    let due = |minute| store.due_jobs(Samples::at(minute), 10);
    eventually(vec![(Samples::at(5), job.name.clone())], || due(5)).await;
    eventually(vec![], || due(4)).await;
    eventually(vec![], || store.due_jobs(Samples::at(5), 0)).await;
    let next = Job { next_fire: None, version: Version(2), ..job.clone() };
    assert_eq!(put(store, next.into(), Guard::Version(Version(1))).await, Written::Applied);
    eventually(vec![], || due(5)).await;

    let instance = Instance { next_look: Some(Millis(-5)), ..samples.instance(1) };
    put_new(store, instance.clone()).await;
    let open = |at| store.open_instances(Millis(at), 10);
    eventually(vec![(Millis(-5), instance.id.clone())], || open(-5)).await;
    eventually(vec![], || open(-6)).await;
    let next = Instance { next_look: None, version: Version(2), ..instance };
    assert_eq!(put(store, next.into(), Guard::Version(Version(1))).await, Written::Applied);
    eventually(vec![], || open(i64::MAX)).await;

    let backfill = Backfill { next_look: Some(Millis(-5)), ..samples.backfill("b") };
    put_new(store, backfill.clone()).await;
    put_new(store, Instance { next_look: Some(Millis(-7)), ..samples.instance(2) }).await;
    let backfills = |at| store.open_backfills(Millis(at), 1);
    eventually(vec![(Millis(-5), samples.job.clone(), backfill.id.clone())], || backfills(-5)).await;
    eventually(vec![], || backfills(-6)).await;
    eventually(vec![], || store.open_backfills(Millis(-5), 0)).await;
    eventually(vec![(Millis(-7), samples.instance(2).id)], || open(i64::MAX)).await;
    let next = Backfill { next_look: None, version: Version(2), ..backfill };
    assert_eq!(put(store, next.into(), Guard::Version(Version(1))).await, Written::Applied);
    eventually(vec![], || backfills(i64::MAX)).await;
}

/// What is in several buckets comes as one, earliest first and bounded.
pub async fn entries_of_all_buckets_come_earliest_first(store: &dyn Store) {
    let (mut due, mut open, mut backfills) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..40 {
        let samples = Samples::of(&format!("job-{number}"));
        let minute = (number * 7) % 40;
        put_new(store, samples.job(Some(minute))).await;
        due.push((Samples::at(minute), samples.job));
        let samples = Samples::of("many");
        let instance = Instance { next_look: Some(Millis(minute * 1000)), ..samples.instance(number) };
        open.push((Millis(minute * 1000), instance.id.clone()));
        put_new(store, instance).await;
        let look = Millis(minute % 10 * 1000);
        let backfill = Backfill { next_look: Some(look), ..samples.backfill(&format!("b{number}")) };
        backfills.push((look, samples.job, backfill.id.clone()));
        put_new(store, backfill).await;
    }
    due.sort();
    open.sort();
    backfills.sort();
    eventually(due.clone(), || store.due_jobs(Samples::at(1_000), 1_000)).await;
    eventually(open.clone(), || store.open_instances(Millis(1_000_000), 1_000)).await;
    eventually(due[..3].to_vec(), || store.due_jobs(Samples::at(1_000), 3)).await;
    eventually(open[..3].to_vec(), || store.open_instances(Millis(1_000_000), 3)).await;
    eventually(backfills.clone(), || store.open_backfills(Millis(1_000_000), 1_000)).await;
    eventually(backfills[..3].to_vec(), || store.open_backfills(Millis(1_000_000), 3)).await;
}

/// All jobs are listed, and nothing else.
pub async fn jobs_are_listed(store: &dyn Store) {
    let mut jobs: Vec<Job> = Vec::new();
    for number in 0..5 {
        let samples = Samples::of(&format!("listed-{number}"));
        jobs.push(samples.job(None));
        put_new(store, samples.job(None)).await;
        put_new(store, Item::Spec(samples.spec(1))).await;
        put_new(store, samples.instance(1)).await;
    }
    let (mut listed, _) = all(|after| store.jobs(after)).await;
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(listed, jobs);
}

/// The instances of `[from, to)` come in order of time, in as many pages as it takes.
pub async fn instances_of_a_span_in_pages(store: &dyn Store) {
    let samples = Samples::of("span");
    put_new(store, samples.job(None)).await;
    put_new(store, Samples::of("span-2").instance(150)).await;
    put_new(store, Item::Skip(samples.skip(150))).await;
    for minute in (0..300).rev() {
        put_new(store, samples.instance(minute)).await;
    }
    let read = |from: i64, to: i64| {
        let job = &samples.job;
        all(move |after| store.instances(job, Samples::at(from), Samples::at(to), after))
    };
    for (from, to) in [(0, 300), (10, 270), (299, 300), (-5, 1)] {
        let (found, _) = read(from, to).await;
        let expected: Vec<Instance> = (from.max(0)..to).map(|minute| samples.instance(minute)).collect();
        assert_eq!(found, expected, "[{from}, {to})");
    }
    for (from, to) in [(5, 5), (9, 5), (300, 400)] {
        assert_eq!(read(from, to).await.0, vec![], "[{from}, {to})");
    }
}

/// The skips that begin in `[from, to)`.
pub async fn skips_of_a_span(store: &dyn Store) {
    let samples = Samples::of("skips");
    for minute in [1, 3, 5] {
        put_new(store, Item::Skip(samples.skip(minute))).await;
        put_new(store, samples.instance(minute)).await;
    }
    let (found, _) = all(|after| store.skips(&samples.job, Samples::at(1), Samples::at(5), after)).await;
    assert_eq!(found, vec![samples.skip(1), samples.skip(3)]);
}

/// A run of skips covers its first time, its last and what is between them; no other run or item answers for it.
pub async fn a_skip_covers_its_times(store: &dyn Store) {
    let samples = Samples::of("covers");
    let run = |from, to| SkippedRange { to: Samples::at(to), ..samples.skip(from) };
    let runs = [run(10, 20), run(21, 21), run(30, 40)];
    for skip in &runs {
        put_new(store, Item::Skip(skip.clone())).await;
    }
    // What stands near them in the table.
    put_new(store, samples.job(None)).await;
    put_new(store, Item::Spec(samples.spec(1))).await;
    for minute in [5, 15, 25, 45] {
        put_new(store, samples.instance(minute)).await;
    }
    for (job, from, to) in [("cover", 0, 50), ("covers-", 0, 50), ("covers2", 25, 26)] {
        let other = Samples::of(job);
        put_new(store, Item::Skip(SkippedRange { to: Samples::at(to), ..other.skip(from) })).await;
    }
    let second = |minute, seconds| {
        ScheduledTime::from_second(Samples::at(minute).as_second() + seconds).expect("a time near the first of 2026")
    };
    for (at, expected) in [
        (Samples::at(0), None),
        (second(10, -1), None),
        (Samples::at(10), Some(0)),
        (Samples::at(15), Some(0)),
        (Samples::at(20), Some(0)),
        (second(20, 1), None),
        (Samples::at(21), Some(1)),
        (second(21, 1), None),
        (second(30, -1), None),
        (Samples::at(30), Some(2)),
        (Samples::at(40), Some(2)),
        (second(40, 1), None),
        (Samples::at(1_000_000), None),
    ] {
        let found = store.skip_at(&samples.job, at).await.expect("a read");
        assert_eq!(found, expected.map(|place: usize| runs[place].clone()), "{at}");
    }
    let nobody = Samples::of("nobody").job;
    assert_eq!(store.skip_at(&nobody, Samples::at(15)).await.expect("a read"), None);
}

/// The backfills of a job by id, also where they are more than one answer holds.
pub async fn backfills_of_one_job_only(store: &dyn Store) {
    let samples = Samples::of("backfills");
    assert_eq!(store.backfills(&samples.job).await.expect("backfills"), vec![]);
    // Some 7 KB each; a page of DynamoDB holds 1 MB.
    let mut expected: Vec<Backfill> = (0..160).map(|n| samples.busy_backfill(&format!("b{n}"))).collect();
    expected.push(Backfill { next_look: None, ..samples.backfill("Over") });
    for backfill in &expected {
        put_new(store, backfill.clone()).await;
    }
    put_new(store, samples.job(None)).await;
    put_new(store, samples.instance(1)).await;
    put_new(store, Item::Skip(samples.skip(2))).await;
    for other in ["backfill", "backfills2"] {
        put_new(store, Samples::of(other).backfill("b")).await;
    }
    expected.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(store.backfills(&samples.job).await.expect("backfills"), expected);
}

/// The shards of a group, children of splits included, and none of its other items or of another group or generation.
pub async fn shards_of_one_group_only(store: &dyn Store) {
    let samples = Samples::of("shards");
    let shard = |id: &ShardId| Shard { key: samples.shard_key(id), ..samples.shard(0) };
    let mut ids: Vec<ShardId> = (100..200).rev().map(ShardId::numbered).collect();
    ids.extend([ids[0].child(1), ids[99].child(1), ids[99].child(1).child(2)]);
    for id in ids.iter().chain([&ShardId::numbered(99), &ShardId::numbered(200)]) {
        put_new(store, shard(id)).await;
    }
    let run = RunId { generation: Generation(2), ..samples.run(1) };
    put_new(store, Shard { key: ShardKey { run, shard: ids[0].clone() }, ..samples.shard(0) }).await;
    put_new(store, Item::Group(samples.group(1))).await;
    let fault = Fault::new(FaultKind::Crash, "gone");
    let (owner, text) = ("owner".to_owned(), "gone".to_owned());
    let key = samples.shard_key(&ids[0]);
    let attempt = AttemptLog { shard: key, token: Token(1), owner, ended_at: Millis(0), fault, text };
    put_new(store, Item::Attempt(attempt)).await;

    ids.sort();
    let expected: Vec<Shard> = ids.iter().map(shard).collect();
    assert_eq!(store.shards(&samples.run(1), GroupNo(1)).await.expect("shards"), expected);
    assert_eq!(store.shards(&samples.run(1), GroupNo(7)).await.expect("shards"), vec![]);
}

/// Results come in the order of their keys' bytes, in pages where they are more than one answer holds.
pub async fn results_beyond_a_megabyte_in_order(store: &dyn Store) {
    let samples = Samples::of("results");
    let value = "v".repeat(50_000);
    let mut keys: Vec<String> = (0..120).map(|number| format!("{number:04}")).collect();
    keys.extend(["", "z", "é", "\u{ffff}", "\u{1F980}", "a#b", "R#"].map(str::to_owned));
    for key in keys.iter().rev() {
        let value = if key.len() == 4 && key.starts_with('0') { &value[..10_000] } else { &value };
        put_new(store, samples.result(key, value)).await;
    }
    put_new(store, samples.reject(Position::Item(1))).await;
    let shard = samples.shard(0).key;
    let sibling = samples.shard_key(&ShardId::numbered(0).child(1));
    let Item::Result(StoredResult { row, .. }) = samples.result("sibling", "") else { unreachable!() };
    put_new(store, Item::Result(StoredResult { shard: sibling, row })).await;

    let (found, pages) = all(|after| store.results(&shard, after)).await;
    keys.sort();
    let read: Vec<String> = found.into_iter().map(|row| row.key).collect();
    assert_eq!(read, keys);
    assert!(pages > 1, "{pages}");
}

/// Rejects come in the order of the input, also of negative keys.
pub async fn rejects_stand_in_the_order_of_the_input(store: &dyn Store) {
    let at = |object, offset| Position::Object(ObjectPosition { object, offset, line: 0 });
    let inputs = [
        vec![at(0, 9), at(0, 10), at(0, u64::MAX), at(2, 0), at(10, 0), at(u32::MAX, 1)],
        [i64::MIN, -10, -9, 0, 9, 10, i64::MAX].map(Position::Key).to_vec(),
        [0, 9, 10, u32::MAX].map(Position::Item).to_vec(),
    ];
    for (number, positions) in inputs.into_iter().enumerate() {
        let samples = Samples::of(&format!("rejects-{number}"));
        for position in positions.iter().rev() {
            put_new(store, samples.reject(*position)).await;
        }
        put_new(store, samples.result("k", "v")).await;
        let shard = samples.shard(0).key;
        let (found, _) = all(|after| store.rejects(&shard, after)).await;
        assert_eq!(found.into_iter().map(|row| row.position).collect::<Vec<_>>(), positions);
    }
}

/// Effects come in the order of their numbers, from any number on, in pages where they are more than one answer holds;
/// and only those of the shard. A row that was written again is there once.
pub async fn effects_from_a_number_on_in_order(store: &dyn Store) {
    let samples = Samples::of("effects");
    let key = samples.shard(0).key;
    let big = |no: u32| StoredEffect {
        row: OutboxRow { body: "b".repeat(10_000), ..samples.effect(no).row },
        ..samples.effect(no)
    };
    for no in (0..120).rev() {
        put_new(store, Item::Effect(big(no))).await;
    }
    put_new(store, Item::Effect(samples.effect(u32::MAX))).await;
    let sibling = samples.shard_key(&ShardId::numbered(0).child(1));
    put_new(store, Item::Effect(StoredEffect { shard: sibling.clone(), ..samples.effect(3) })).await;
    put_new(store, samples.result("k", "v")).await;
    let state = EffectState::Sent { at: Millis(1), token: Token(1), status: 200 };
    let sent = StoredEffect { row: OutboxRow { state: state.clone(), ..samples.effect(7).row }, shard: key.clone() };
    assert_eq!(put(store, Item::Effect(sent), Guard::Rides).await, Written::Applied);

    let (found, pages) = all(|after| store.effects(&key, 0, after)).await;
    let numbers: Vec<u32> = found.iter().map(|row| row.no).collect();
    assert_eq!(numbers, (0..120).chain([u32::MAX]).collect::<Vec<_>>());
    assert_eq!(found[7].state, state);
    assert!(pages > 1, "{pages}");
    let (found, _) = all(|after| store.effects(&key, 119, after)).await;
    assert_eq!(found.iter().map(|row| row.no).collect::<Vec<_>>(), [119, u32::MAX]);
    assert_eq!(all(|after| store.effects(&sibling, 0, after)).await.0.len(), 1);
    assert_eq!(all(|after| store.effects(&sibling, 4, after)).await.0, vec![]);
}
