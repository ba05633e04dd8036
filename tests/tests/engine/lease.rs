//! Leases in their daily use: kept while work goes on, given back at its end, taken over soon after a crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shardcron_domain::time::Duration as Span;
use shardcron_engine::{Sweep, events};
use shardcron_store::Item;
use shardcron_store::hooked::{Operation, Verdict};
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::gate::{Act, LATENCY, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::{LEASE, World};

/// Requests of this name take so long.
struct Slow {
    what: &'static str,
    latency: Duration,
}

impl Script for Slow {
    fn latency(&self, request: &Request) -> Duration {
        if request.what.contains(self.what) { self.latency } else { LATENCY }
    }
}

fn slow(what: &'static str, seconds: u64) -> Character {
    Character { script: Box::new(Slow { what, latency: Duration::from_secs(seconds) }), ..Character::default() }
}

fn taking(object: &'static str, seconds: u64) -> Deeds {
    let took = Duration::from_secs(seconds);
    Arc::new(move |source| if source.ends_with(object) { Deed::Take(took) } else { Deed::Count })
}

fn takeovers(world: &World) -> u32 {
    let instance = world.instance(&instance_id()).map_or(0, |instance| instance.takeovers);
    world.shards().iter().map(|shard| shard.takeovers).sum::<u32>() + instance
}

async fn until_claimed(world: &World) {
    world.until(60, "a claim", |world| (!world.journal.events(events::CLAIMED).is_empty()).then_some(())).await;
}

/// dagster-io/dagster#11802: what comes before the first record takes longer than the lease.
#[tokio::test(start_paused = true)]
async fn a_slow_opening_keeps_its_lease() {
    for what in ["results", "get"] {
        let fixture = Fixture::new(1, 2, 3);
        let world = World::with(&fixture, 1);
        let mut slow = world.process("slow", slow(what, 12));
        slow.start(Some(fixture.job()));
        if what == "results" {
            until_claimed(&world).await;
        }
        let _other = world.healthy("other", &fixture.job());
        world.until_ended(300).await;
        world.assert_exact(&fixture).await;
        assert_eq!(takeovers(&world), 0, "{what}");
    }
}

/// aws/serverless-application-model#1424, xuxueli/xxl-job#1667: a batch that takes far longer than the lease and the message's visibility is one attempt.
#[tokio::test(start_paused = true)]
async fn a_long_batch_is_one_attempt() {
    let fixture = Fixture::new(1, 2, 3);
    let world = World::with(&fixture, 1);
    let character = |seed| Character { deeds: taking("00.csv", 300), seed, ..Character::default() };
    let mut processes: [Process; 2] = [1, 2].map(|seed| world.process(&format!("p{seed}"), character(seed)));
    for process in &mut processes {
        process.start(Some(fixture.job()));
    }
    world.until_ended(900).await;
    world.assert_exact(&fixture).await;
    assert_eq!((world.journal.events(events::CLAIMED).len(), takeovers(&world)), (1, 0));
}

/// apache/airflow#23520, apache/dolphinscheduler#13283: a process that starts looks at all, and takes nothing from one that works.
#[tokio::test(start_paused = true)]
async fn a_start_takes_no_shard_from_its_live_owner() {
    let fixture = Fixture::new(1, 2, 3);
    let world = World::with(&fixture, 1);
    let mut worker = world.process("worker", Character { deeds: taking("00.csv", 60), ..Character::default() });
    worker.start(Some(fixture.job()));
    until_claimed(&world).await;
    for restart in 0..5 {
        let mut scheduler = world.healthy(&format!("scheduler {restart}"), &fixture.job());
        scheduler.engine.sweep(Sweep::All).await.unwrap();
        tokio::time::sleep(Duration::from_secs(7)).await;
        scheduler.kill();
    }
    world.until_ended(300).await;
    world.assert_exact(&fixture).await;
    assert_eq!((world.journal.events(events::CLAIMED).len(), takeovers(&world)), (1, 0));
}

/// apache/airflow#23520 for steps: fan-out and finalize have a live owner too.
#[tokio::test(start_paused = true)]
async fn a_start_takes_no_step_from_its_live_owner() {
    for what in ["list", "part-"] {
        let fixture = Fixture::new(1, 2, 3);
        let world = World::with(&fixture, 1);
        let mut worker = world.process("worker", slow(what, 30));
        worker.start(Some(fixture.job()));
        let at_it = |world: &World| {
            let instance = world.instance(&instance_id())?;
            (instance.lease.is_some() && (what == "list" || instance.is_full())).then_some(())
        };
        world.until(60, "the slow step", at_it).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let scheduler = world.process("scheduler", Character::default());
        scheduler.engine.sweep(Sweep::All).await.unwrap();
        world.until_ended(300).await;
        world.assert_exact(&fixture).await;
        assert!(worker.troubles().is_empty(), "{what}: {:?}", worker.troubles());
        assert_eq!(takeovers(&world), 0, "{what}");
    }
}

/// awslabs/amazon-dynamodb-lock-client#42, awslabs/amazon-dynamodb-lock-client#88, cirello-io/dynamolock#778, finos/opengris-scaler#883: after a crash the next owner is there within the lease and a second, also if no
/// process lives as long as a lease.
#[tokio::test(start_paused = true)]
async fn a_crash_is_taken_over_within_about_one_lease() {
    let fixture = Fixture::new(1, 2, 3);
    let world = World::with(&fixture, 1);
    let mut first = world.process("first", Character { deeds: taking("01.csv", 3600), ..Character::default() });
    first.start(Some(fixture.job()));
    until_claimed(&world).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let crash = world.time.now();
    first.kill();
    let mut number = 0;
    while world.journal.events(events::CLAIMED).len() < 2 {
        number += 1;
        let mut short_lived = world.healthy(&format!("short-lived {number}"), &fixture.job());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(number < 10, "{}", world.journal.last(100));
        if world.journal.events(events::CLAIMED).len() < 2 {
            short_lived.kill();
        } else {
            world.until_ended(60).await;
        }
    }
    let claim = world.journal.events(events::CLAIMED)[1].at;
    assert!(claim.since(crash) <= LEASE.plus_secs(2), "{} after the crash", claim.since(crash));
    world.assert_exact(&fixture).await;
    assert_eq!(takeovers(&world), 1);
}

/// Adds seconds; the domain's duration has no sum.
trait PlusSecs {
    fn plus_secs(self, secs: i64) -> Span;
}

impl PlusSecs for Span {
    fn plus_secs(self, secs: i64) -> Span {
        Span(self.0 + secs * 1000)
    }
}

/// snowplow/enrich#649: two healthy processes don't take shards from each other.
#[tokio::test(start_paused = true)]
async fn healthy_processes_take_nothing_from_each_other() {
    let fixture = Fixture::new(6, 3, 3);
    let world = World::with(&fixture, 1);
    let character = |seed| Character { deeds: taking(".csv", 4), seed, shard_workers: 1, ..Character::default() };
    let mut processes: [Process; 3] = [1, 2, 3].map(|seed| world.process(&format!("p{seed}"), character(seed)));
    for process in &mut processes {
        process.start(Some(fixture.job()));
    }
    world.until_ended(600).await;
    world.assert_exact(&fixture).await;
    assert_eq!((world.journal.events(events::CLAIMED).len(), takeovers(&world)), (world.shards().len(), 0));
}

/// The store refuses to be asked for a while, from its n-th write on.
struct Outage {
    from: usize,
    length: usize,
}

impl Script for Outage {
    fn before(&self, request: &Request) -> Act {
        let out = request.write.is_some_and(|write| (self.from..self.from + self.length).contains(&write));
        if out { Act::Deny(Verdict::Throttle) } else { Act::Proceed }
    }
}

/// awslabs/amazon-dynamodb-lock-client#6: a store that is out isn't a lost lease: short outages pass unnoticed, long ones are called what they are.
#[tokio::test(start_paused = true)]
async fn an_outage_isnt_a_lost_lease() {
    for (length, noticed) in [(5, false), (60, true)] {
        let fixture = Fixture::new(1, 2, 3);
        let world = World::with(&fixture, 1);
        let character =
            Character { script: Box::new(Outage { from: 12, length }), shard_workers: 1, ..Character::default() };
        let mut process = world.process("a", character);
        process.start(Some(fixture.job()));
        world.until_ended(300).await;
        world.assert_exact(&fixture).await;
        let troubles = process.troubles();
        assert!(troubles.iter().all(|trouble| trouble.lost.is_none()), "{troubles:?}");
        assert_eq!(takeovers(&world) > 0, noticed, "{troubles:?}\n{}", world.journal.last(100));
    }
}

/// The process stands still at its first owner write of a shard.
#[derive(Default)]
struct FreezeAtCommit(AtomicBool);

impl Script for FreezeAtCommit {
    fn before(&self, request: &Request) -> Act {
        let is_it = request.what.contains("Owner") && !self.0.swap(true, Ordering::Relaxed);
        if is_it { Act::Freeze } else { Act::Proceed }
    }
}

/// apache/dolphinscheduler#8110: of one write that the store refuses, one event tells; a metric counts events.
#[tokio::test(start_paused = true)]
async fn a_fenced_write_is_told_of_once() {
    let fixture = Fixture::new(1, 2, 3);
    let world = World::with(&fixture, 1);
    let script = Box::<FreezeAtCommit>::default();
    let mut paused = world.process("paused", Character { script, shard_workers: 1, ..Character::default() });
    paused.start(Some(fixture.job()));
    world.until(60, "the pause", |_| (paused.life.state() == State::Frozen).then_some(())).await;
    let _other = world.healthy("other", &fixture.job());
    world.until_ended(60).await;
    assert_eq!(world.journal.events(events::FENCED).len(), 0);
    paused.life.thaw();
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.assert_exact(&fixture).await;
    let told = world.journal.events(events::FENCED);
    assert_eq!(told.len(), 1, "{told:#?}");
}

/// Writes of shards take a while.
struct SlowShards;

impl Script for SlowShards {
    fn latency(&self, request: &Request) -> Duration {
        let is_shard = matches!(&request.operation, Some(Operation::Put(put)) if matches!(put.item, Item::Shard(_)));
        if is_shard { Duration::from_millis(120) } else { LATENCY }
    }
}

/// A fan-out into many groups, none of which takes long, while all of them take longer than the lease.
#[tokio::test(start_paused = true)]
async fn a_long_fan_out_of_short_parts_keeps_its_lease() {
    const SHARDS: usize = 1_000;
    let fixture = Fixture::new(1, 1, 2);
    let world = World::with(&fixture, 1);
    world.checker.go_light();
    let job = fixture.job_with(|job| {
        job["input"] = serde_json::json!({ "list": { "buckets": SHARDS } });
        job["work"]["custom"]["with"] = serde_json::json!({ "groupBy": ["item"], "sum": ["item"] });
        job["shards"] = serde_json::json!({ "targetRecords": 1 });
    });
    let mut processes = [1, 2].map(|seed| {
        let character = Character { script: Box::new(SlowShards), shard_workers: 0, seed, ..Character::default() };
        world.process(&format!("p{seed}"), character)
    });
    for process in &mut processes {
        process.start(Some(job.clone()));
    }
    let running = |world: &World| world.instance(&instance_id()).filter(|found| found.status.name() == "Running");
    let instance = world.until(120, "the end of fan-out", running).await;
    let took = world.time.now().since(instance.started_at.unwrap());
    assert!(took > LEASE, "it took {took:?}: too short to show anything");
    assert_eq!((instance.takeovers, instance.failures), (0, 0), "{}", world.journal.last(50));
    assert_eq!(world.shards().len(), SHARDS);
}
