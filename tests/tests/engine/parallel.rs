//! Batches of one shard that are prepared at the same time and committed in the order in which they are ready.

use std::time::Duration;

use shardcron_domain::limits::CHECKPOINT_RANGES_MAX;
use shardcron_engine::events;
use shardcron_store::ItemKey;
use shardcron_store::hooked::Operation;
use shardcron_tests::gate::{Act, Request, Script};
use shardcron_tests::keyed::Keyed;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

/// One shard of 300 records in pages of 5, which take up to two seconds each to prepare.
const ONE: Keyed = Keyed { from: -50, through: 300, shard: 1_000, page: 5, cost: 0, skew: 1, stage: 2_000, at_once: 8 };

fn job(keyed: Keyed) -> String {
    keyed.job_with(|job| job["parallelism"] = 1.into())
}

async fn run(keyed: Keyed) -> (World, f64) {
    let world = World::new(1);
    let mut process = world.process("p", Character::default());
    process.start(Some(job(keyed)));
    let instance = world.until_ended(600).await;
    world.assert_published(&keyed.expected(), keyed.records()).await;
    let took = instance.ended_at.unwrap().since(instance.started_at.unwrap());
    (world, took.0 as f64 / 1000.0)
}

#[tokio::test(start_paused = true)]
async fn batches_that_wait_are_done_many_at_a_time() {
    let (_, one) = run(Keyed { at_once: 1, ..ONE }).await;
    let (world, eight) = run(ONE).await;
    assert!(eight * 3.0 < one, "{eight} s with eight at once, {one} s with one");
    let gaps = world.checker.most_ranges();
    assert!((1..=CHECKPOINT_RANGES_MAX).contains(&gaps), "{gaps} ranges beyond a gap at most");
}

/// Stops the process at its n-th commit.
struct AtCommit {
    number: std::sync::atomic::AtomicI64,
    act: Act,
}

impl Script for AtCommit {
    fn after(&self, request: &Request) -> Act {
        let is_commit = matches!(&request.operation, Some(Operation::Transact(puts, _))
            if matches!(puts[0].item.key(), ItemKey::Shard(_)));
        let is_it = is_commit && self.number.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1;
        if is_it { self.act } else { Act::Proceed }
    }
}

/// Ten owners, each dead after some commits: what is in the prefix or in the ranges isn't done again.
#[tokio::test(start_paused = true)]
async fn finished_ranges_outlive_their_owners() {
    let world = World::new(1);
    let next = |deaths: usize| {
        let number = std::sync::atomic::AtomicI64::new(if deaths < 10 { 3 } else { i64::MAX });
        let script = Box::new(AtCommit { number, act: Act::Crash });
        let mut process =
            world.process(&format!("p{deaths}"), Character { script, seed: deaths as u64, ..Character::default() });
        process.start(Some(job(ONE)));
        process
    };
    let (_, deaths) = world.supervise(900, next).await;
    assert_eq!(deaths, 10);
    world.assert_published(&ONE.expected(), ONE.records()).await;
    // Each committed batch was committed once: together they are the records and no more.
    let committed = world.journal.events(events::COMMITTED);
    assert!(committed.len() as u64 <= ONE.records());
    assert!(world.checker.most_ranges() >= 2);
    assert_eq!(world.shards()[0].takeovers, 10);
}

/// However many batches and owners a shard has had, its item is one write unit.
#[tokio::test(start_paused = true)]
async fn a_shard_stays_small_through_a_thousand_batches() {
    let long = Keyed { through: 6_000, shard: 100_000, stage: 300, ..ONE };
    let world = World::new(1);
    let next = |deaths: usize| {
        let number = std::sync::atomic::AtomicI64::new(if deaths < 10 { 90 } else { i64::MAX });
        let script = Box::new(AtCommit { number, act: Act::Crash });
        let mut process =
            world.process(&format!("p{deaths}"), Character { script, seed: deaths as u64, ..Character::default() });
        process.start(Some(job(long)));
        process
    };
    let (_, deaths) = world.supervise(3_000, next).await;
    assert_eq!((deaths, world.shards()[0].takeovers), (10, 10));
    world.assert_published(&long.expected(), long.records()).await;
    assert!(world.journal.events(events::COMMITTED).len() >= 900);
    let most = world.checker.largest_shard();
    assert!((300..1024).contains(&most), "{most} bytes");
}

/// An owner that stood still beyond its lease commits none of what it had under preparation.
#[tokio::test(start_paused = true)]
async fn an_owner_that_stood_still_commits_nothing_more() {
    for number in [1, 2, 5, 9] {
        let world = World::new(1);
        let script = Box::new(AtCommit { number: number.into(), act: Act::FreezeFor(Duration::from_secs(30)) });
        let mut first = world.process("first", Character { script, ..Character::default() });
        first.start(Some(job(ONE)));
        let mut second = world.process("second", Character { seed: 2, ..Character::default() });
        second.start(Some(job(ONE)));
        world.until_ended(900).await;
        world.assert_published(&ONE.expected(), ONE.records()).await;
    }
}
