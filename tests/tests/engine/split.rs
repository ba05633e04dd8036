//! Slow shards are cut, and what is cut off is done by others.

use std::time::Duration;

use shardcron_domain::instance::InstanceStatus;
use shardcron_domain::time::Duration as Span;
use shardcron_engine::events;
use shardcron_store::Item;
use shardcron_store::hooked::Operation;
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::gate::{Act, Request, Script};
use shardcron_tests::keyed::Keyed;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::work::Deed;
use shardcron_tests::world::World;

/// Eight shards of 200 keys, the first of which takes fifty times as long as each other: 100 s against 2 s.
const SKEWED: Keyed = Keyed { from: 1, through: 1_600, shard: 200, page: 5, cost: 10, skew: 50, stage: 0, at_once: 1 };

async fn run(keyed: Keyed, parallelism: u32, splits: bool) -> (World, Span) {
    let world = World::new(1);
    let job = keyed.job_with(|job| {
        job["parallelism"] = parallelism.into();
        job["shards"]["split"] = splits.into();
    });
    let mut processes: Vec<Process> = (0..4)
        .map(|seed| world.process(&format!("p{seed}"), Character { seed, shard_workers: 2, ..Character::default() }))
        .collect();
    for process in &mut processes {
        process.start(Some(job.clone()));
    }
    let instance = world.until_ended(600).await;
    world.assert_published(&keyed.expected(), keyed.records()).await;
    let took = instance.ended_at.unwrap().since(instance.started_at.unwrap());
    (world, took)
}

#[tokio::test(start_paused = true)]
async fn a_skewed_input_ends_in_less_than_half_the_time() {
    let (whole, without) = run(SKEWED, 8, false).await;
    let (cut, with) = run(SKEWED, 8, true).await;
    assert_eq!(whole.shards().len(), 8);
    assert!(cut.shards().len() > 10, "{}", cut.shards().len());
    assert!(with.0 * 2 < without.0, "{with} with splits, {without} without");
    println!("skewed input: {without} without splits, {with} with {} shards", cut.shards().len());
}

#[tokio::test(start_paused = true)]
async fn a_shard_isnt_cut_while_others_wait() {
    // Two at once, and the others wait until the first shard is nearly over.
    let slow = Keyed { skew: 5, cost: 40, ..SKEWED };
    let (world, _) = run(slow, 1, true).await;
    assert_eq!(world.shards().len(), 8);
}

/// Whatever its kind, an input is cut where a record begins: between objects, and within lines of JSON.
#[tokio::test(start_paused = true)]
async fn packed_objects_and_lines_are_cut_between_records() {
    let objects = Fixture::new(1, 12, 3);
    let lines = {
        let mut fixture = Fixture::new(1, 1, 6_000);
        let csv = std::mem::take(&mut fixture.objects);
        let rows = csv[0].1.lines().skip(1).map(|row| row.split_once(',').unwrap());
        let lines: String =
            rows.map(|(merchant, amount)| format!("{{\"merchant\":\"{merchant}\",\"amount\":{amount}}}\n")).collect();
        fixture.objects = vec![("00.ndjson".to_owned(), lines)];
        fixture
    };
    for (fixture, format) in [(objects, "csv"), (lines, "ndjson")] {
        let world = World::with(&fixture, 1);
        let job = fixture.job_with(|job| {
            job["input"]["format"] = format.into();
            job["shards"]["targetBytes"] = 1_000_000.into();
            job["shards"]["batchRecords"] = if format == "csv" { 2 } else { 500 }.into();
        });
        let mut processes: Vec<Process> = (0..3)
            .map(|seed| {
                let deeds = std::sync::Arc::new(|_: &str| Deed::Take(Duration::from_millis(1_500)));
                world.process(&format!("p{seed}"), Character { seed, deeds, ..Character::default() })
            })
            .collect();
        for process in &mut processes {
            process.start(Some(job.clone()));
        }
        world.until_ended(600).await;
        world.assert_exact(&fixture).await;
        assert!(world.shards().len() > 1, "{format}: it was never cut");
    }
}

/// Stops, one after the other, each process that cuts, before or after the write.
struct AtSplit {
    after: bool,
    crash: bool,
}

impl Script for AtSplit {
    fn before(&self, request: &Request) -> Act {
        if self.after { Act::Proceed } else { self.act(request) }
    }

    fn after(&self, request: &Request) -> Act {
        if self.after { self.act(request) } else { Act::Proceed }
    }
}

impl AtSplit {
    fn act(&self, request: &Request) -> Act {
        match request.is_split() {
            true if self.crash => Act::Crash,
            true => Act::FreezeFor(Duration::from_secs(12)),
            false => Act::Proceed,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_interrupted_before_or_after_its_write_loses_and_doubles_nothing() {
    for (after, crash) in [(false, true), (true, true), (false, false), (true, false)] {
        let world = World::new(1);
        let job = SKEWED.job_with(|job| job["parallelism"] = 8.into());
        let character = |seed| Character { seed, script: Box::new(AtSplit { after, crash }), ..Character::default() };
        let mut first = world.process("first", character(1));
        first.start(Some(job.clone()));
        let mut second = world.process("second", Character { seed: 2, shard_workers: 2, ..Character::default() });
        second.start(Some(job));
        world.until_ended(900).await;
        world.assert_published(&SKEWED.expected(), SKEWED.records()).await;
        assert!(!world.journal.events(events::SPLIT).is_empty());
    }
}

/// Stands still before its first write of a shard.
struct AtFence(std::sync::atomic::AtomicBool);

impl Script for AtFence {
    fn before(&self, request: &Request) -> Act {
        let is_shard = matches!(&request.operation, Some(Operation::Put(put)) if matches!(&put.item, Item::Shard(_)));
        let is_first = is_shard && !self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
        if is_first { Act::FreezeFor(Duration::from_secs(8)) } else { Act::Proceed }
    }
}

/// Who stops an instance has read its shards, and while it fences them one is cut: what was cut off is fenced too (G9).
#[tokio::test(start_paused = true)]
async fn a_cut_beside_the_fencing_of_its_shard_leaves_nothing_open() {
    let world = World::new(1);
    let job = SKEWED.job_with(|job| job["parallelism"] = 16.into());
    let mut planner = world.process("planner", Character { shard_workers: 0, ..Character::default() });
    planner.start(Some(job));
    let is_running =
        |world: &World| world.instance(&instance_id()).filter(|instance| instance.status == InstanceStatus::Running);
    world.until(60, "the end of fan-out", is_running).await;
    planner.kill();
    // One that doesn't sweep and has its hands full: nobody else fences, and nobody claims what is cut off.
    let mut worker = world.process("worker", Character { shard_workers: 1, tick: None, ..Character::default() });
    worker.start(None);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = world.shards().len();
    let script = Box::new(AtFence(false.into()));
    let canceller = world.process("canceller", Character { script, ..Character::default() });
    let ended = canceller.engine.cancel(&instance_id(), None, "somebody").await.unwrap();
    assert!(ended.status.is_terminal(), "{:?}", ended.status);
    assert!(world.shards().len() > before, "nothing was cut meanwhile");
    assert!(world.shards().iter().all(|shard| !shard.status.is_open()));
    world.assert_sound();
}
