//! Steps of an instance that fail or kill, as shards do.

use std::time::Duration;

use shardcron_domain::ids::GroupNo;
use shardcron_domain::instance::{FailReason, InstanceStatus};
use shardcron_domain::shard::{FaultKind, ShardStatus};
use shardcron_engine::{Budget, events};
use shardcron_store::hooked::Verdict;
use shardcron_store::{Guard, Item, ItemKey, Put, Store};
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::gate::{Act, AtWrite, LATENCY, Moment, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

use crate::crash::writes_of_the_road;

/// Something happens at each request of this name.
struct Whenever {
    what: &'static str,
    act: Act,
}

impl Script for Whenever {
    fn before(&self, request: &Request) -> Act {
        if request.what.contains(self.what) { self.act } else { Act::Proceed }
    }
}

fn whenever(what: &'static str, act: Act) -> Character {
    Character { script: Box::new(Whenever { what, act }), ..Character::default() }
}

fn job(fixture: &Fixture) -> String {
    fixture.job_with(|job| job["backoffLimit"] = 2.into())
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_never_answers_ends_in_failed() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", whenever("list", Act::Deny(Verdict::LoseAnswer)));
    process.start(Some(job(&fixture)));
    let instance = world.until_ended(600).await;
    let InstanceStatus::Failed(FailReason::Step(fault)) = &instance.status else { panic!("{:?}", instance.status) };
    assert_eq!(fault.kind, FaultKind::Retryable);
    assert_eq!(world.journal.events(events::STEP_FAILED).len(), 3);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_fan_out_that_kills_its_process_ends_in_failed() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let run = world.supervise(600, |number| {
        let mut process = world.process(&format!("p{number}"), whenever("manifest.json", Act::Crash));
        process.start(Some(job(&fixture)));
        process
    });
    let (instance, deaths) = run.await;
    let InstanceStatus::Failed(FailReason::Step(fault)) = &instance.status else { panic!("{:?}", instance.status) };
    assert_eq!((fault.kind, deaths), (FaultKind::Crash, 3));
    world.assert_sound();
}

/// The point of no return: from Publishing it only goes forward, however often it fails.
#[tokio::test(start_paused = true)]
async fn publishing_has_no_limit() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let run = world.supervise(1200, |number| {
        let character = match number {
            0..5 => whenever("_certificate.json", Act::Crash),
            _ => Character::default(),
        };
        let mut process = world.process(&format!("p{number}"), character);
        process.start(Some(job(&fixture)));
        process
    });
    assert_eq!(run.await.1, 5);
    world.assert_exact(&fixture).await;
}

/// A fan-out that stands still while its instance fails may put shards late. None of them is ever worked on (G9).
#[tokio::test(start_paused = true)]
async fn shards_that_are_put_after_the_end_are_never_worked_on() {
    let fixture = Fixture::small();
    let job = fixture.job_with(|job| job["backoffLimit"] = 0.into());
    let mut late = 0;
    for write in 1..=writes_of_the_road(&fixture).await {
        let world = World::with(&fixture, 1);
        let script = Box::new(AtWrite { write, moment: Moment::Before, act: Act::Freeze });
        let mut paused = world.process("paused", Character { script, ..Character::default() });
        paused.start(Some(job.clone()));
        world.until(60, "the pause", |_| (paused.life.state() == State::Frozen).then_some(())).await;
        let mut other = world.healthy("other", &job);
        let ended = world.until_ended(120).await;
        other.kill();
        world.assert_sound();
        let results = |world: &World| {
            let keys = world.checker.snapshot().into_keys();
            keys.filter(|key| matches!(key, ItemKey::Result(..))).count()
        };
        let before = results(&world);
        paused.life.thaw();
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.queue.repeat_all();
        for shard in world.shards() {
            let _ = paused.engine.run_shard(&shard.key, None, &Budget::default()).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(world.instance(&instance_id()).unwrap().status, ended.status);
        assert_eq!(results(&world), before);
        for shard in world.shards() {
            assert!(!matches!(shard.status, ShardStatus::Leased(_)), "write {write}: {shard:?}");
        }
        late += usize::from(world.checker.found().iter().any(|text| text.starts_with("G9")));
        let other_than_late = |text: &String| !text.starts_with("G9");
        let found: Vec<String> = world.checker.found().into_iter().filter(other_than_late).collect();
        assert!(found.is_empty(), "write {write}: {found:?}");
    }
    assert!(late > 0, "some shards were put late");
}

/// Requests of this name take so long.
struct Slow(&'static str, Duration);

impl Script for Slow {
    fn latency(&self, request: &Request) -> Duration {
        if request.what.contains(self.0) { self.1 } else { LATENCY }
    }
}

/// Done sets that say too much: finalize finds out and goes back, and a shard's message in between does no harm.
#[tokio::test(start_paused = true)]
async fn done_sets_that_say_too_much_are_found_out() {
    for message in [false, true] {
        let fixture = Fixture::small();
        let world = World::with(&fixture, 1);
        let mut planner = world.process("planner", Character { shard_workers: 0, ..Character::default() });
        planner.start(Some(fixture.job()));
        let running = |world: &World| {
            world.instance(&instance_id()).filter(|instance| instance.status == InstanceStatus::Running)
        };
        world.until(60, "the end of fan-out", running).await;
        planner.kill();
        let mut instance = world.instance(&instance_id()).unwrap();
        let guard = Guard::Version(instance.version);
        instance.version = instance.version.next();
        instance.groups_done.insert(GroupNo(0));
        world.store.put(Put { item: Item::Instance(Box::new(instance)), guard }).await.unwrap();
        world.checker.accept();

        let script = Box::new(Slow("shards", Duration::from_secs(1)));
        let finalizer = world.process("finalizer", Character { script, ..Character::default() });
        let worker = world.process("worker", Character::default());
        let id = instance_id();
        let shard = world.shards()[0].key.clone();
        let work = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(world.instance(&id).unwrap().status, InstanceStatus::Finalizing);
            if message {
                let _ = worker.engine.run_shard(&shard, None, &Budget::default()).await;
            }
        };
        let (handled, ()) = tokio::join!(finalizer.engine.advance(&id), work);
        handled.unwrap();
        assert_eq!(world.instance(&id).unwrap().status, InstanceStatus::Running);
        let _healthy = world.healthy("healthy", &fixture.job());
        world.until_ended(300).await;
        world.assert_exact(&fixture).await;
    }
}
