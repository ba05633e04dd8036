//! The ends of instances are announced: each, after it is written, whatever crashes and however the bus behaves.

use std::sync::atomic::{AtomicUsize, Ordering};

use shardcron_domain::ids::{Attempt, Generation};
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::location::Root;
use shardcron_engine::announce::Announcement;
use shardcron_engine::{Sweep, events};
use shardcron_objects::ObjectName;
use shardcron_store::Item;
use shardcron_store::hooked::Verdict;
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::gate::{Act, AtWrite, Moment, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

fn taken(world: &World) -> Vec<Announcement> {
    world.bus.as_ref().unwrap().taken()
}

/// Waits until the instance has ended and nothing of it is left to do.
async fn until_told(world: &World, seconds: i64) -> Instance {
    let is_told = |world: &World| {
        world.instance(&instance_id()).filter(|instance| instance.status.is_terminal() && !instance.is_unannounced())
    };
    world.until(seconds, "the announcement", is_told).await
}

/// It names what is there.
fn assert_names_its_certificate(world: &World, end: &Announcement) {
    let place = end.certificate.as_ref().unwrap();
    let name = ObjectName { root: Root::Bucket(place.bucket.clone()), key: place.key.clone() };
    assert!(world.objects.snapshot().iter().any(|(found, _)| *found == name), "{place:?} isn't there");
    assert!(place.key.ends_with("_certificate.json"));
}

#[tokio::test(start_paused = true)]
async fn an_end_is_announced_once_with_all_that_its_readers_need() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1).announcing();
    let _process = world.healthy("a", &fixture.job());
    until_told(&world, 60).await;
    let taken = taken(&world);
    assert_eq!(taken.len(), 1);
    assert_names_its_certificate(&world, &taken[0]);
    let told = serde_json::to_value(&taken[0]).unwrap();
    let expected = serde_json::json!({
        "job": "settle", "scheduledTime": "2026-08-30T00:00:00Z", "instance": "settle:2026-08-30T00:00:00Z",
        "generation": 1, "attempt": 1, "window": { "start": "2026-08-29T00:00:00Z", "end": "2026-08-30T00:00:00Z" },
        "outcome": "Succeeded",
        "certificate": { "bucket": "ledger", "key": "out/settle@2026-08-30T00:00:00Z/_certificate.json" },
        "counts": { "recordsIn": 27, "recordsOut": 27, "rejected": 0 },
    });
    assert_eq!(told, expected);
}

/// The process dies at each of its writes and announcements, on either side, and its memory with it.
#[tokio::test(start_paused = true)]
async fn no_crash_loses_an_announcement() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1).announcing();
    let whole = world.healthy("a", &fixture.job());
    until_told(&world, 60).await;
    let mut doubled = 0;
    for write in 1..=whole.gate.writes() {
        for moment in [Moment::Before, Moment::After] {
            let world = World::with(&fixture, 1).announcing();
            let script = Box::new(AtWrite { write, moment, act: Act::Crash });
            let mut first = world.process("first", Character { script, ..Character::default() });
            first.start(Some(fixture.job()));
            world.until(60, "the crash", |_| (first.life.state() == State::Dead).then_some(())).await;
            first.kill();
            world.queue.clear();
            world.journal.note("world", &format!("write {write} was the last of the first process"));
            let _second = world.healthy("second", &fixture.job());
            until_told(&world, 120).await;
            let taken = taken(&world);
            assert!((1..=2).contains(&taken.len()), "write {write}, {moment:?}: {taken:?}");
            assert!(taken.iter().all(|end| *end == taken[0] && end.outcome == "Succeeded"), "{taken:?}");
            assert_names_its_certificate(&world, &taken[0]);
            doubled += usize::from(taken.len() == 2);
        }
    }
    // The one moment at which nobody can know: taken, and not noted.
    assert_eq!(doubled, 2);
}

/// So many announcements aren't taken, or are taken and not answered.
struct Deaf {
    left: AtomicUsize,
    answers_only: bool,
}

impl Deaf {
    fn act(&self, request: &Request, here: bool) -> Act {
        let is_one = here && request.what.starts_with("announce");
        if is_one && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Act::Deny(Verdict::LoseAnswer);
        }
        Act::Proceed
    }
}

impl Script for Deaf {
    fn before(&self, request: &Request) -> Act {
        self.act(request, !self.answers_only)
    }

    fn after(&self, request: &Request) -> Act {
        self.act(request, self.answers_only)
    }
}

fn deaf(times: usize, answers_only: bool) -> Character {
    let script = Box::new(Deaf { left: AtomicUsize::new(times), answers_only });
    Character { script, ..Character::default() }
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_is_down_gets_it_later_and_holds_nothing_up() {
    for answers_only in [false, true] {
        let fixture = Fixture::small();
        let world = World::with(&fixture, 1).announcing();
        let mut process = world.process("a", deaf(4, answers_only));
        process.start(Some(fixture.job()));
        let ended = world.until_ended(60).await;
        assert!(ended.is_unannounced(), "the outcome doesn't wait for the bus");
        let told = until_told(&world, 300).await;
        assert_eq!(told.status, InstanceStatus::Succeeded);
        assert_eq!(taken(&world).len(), if answers_only { 5 } else { 1 });
        // Each is told of, and the pauses between them grow.
        let troubles: Vec<i64> = world.journal.events(events::TROUBLE).iter().map(|told| told.at.0).collect();
        assert_eq!(troubles.len(), 4);
        assert!(troubles[3] - troubles[2] > troubles[1] - troubles[0], "{troubles:?}");
        world.assert_exact(&fixture).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_way_to_end_is_announced_with_its_reason() {
    let fixture = Fixture::small();
    // Nothing there: it fails.
    let world = World::new(1).announcing();
    let _process = world.healthy("a", &fixture.job());
    until_told(&world, 120).await;
    let end = &taken(&world)[0];
    assert_eq!((end.outcome, &end.certificate, &end.counts), ("Failed", &None, &None));
    assert!(end.reason.as_ref().unwrap().starts_with("the input is empty"), "{end:?}");
    // Cancelled.
    let world = World::with(&fixture, 1).announcing();
    let mut planner = world.process("planner", Character { shard_workers: 0, ..Character::default() });
    planner.start(Some(fixture.job()));
    let running =
        |world: &World| world.instance(&instance_id()).filter(|instance| instance.status == InstanceStatus::Running);
    world.until(60, "its shards", running).await;
    planner.engine.cancel(&instance_id(), None, "ada").await.unwrap();
    let end = &taken(&world)[0];
    assert_eq!((end.outcome, end.reason.as_deref()), ("Cancelled", Some("cancelled by ada")));
    // Replaced by the next one.
    let world = World::with(&fixture, 1).announcing();
    let job = fixture.job_with(|job| {
        job["schedule"] = "* * * * *".into();
        job["concurrencyPolicy"] = "Replace".into();
    });
    let mut planner = world.process("planner", Character { shard_workers: 0, ..Character::default() });
    planner.start(Some(job));
    world.until(200, "a replacement", |world| (!taken(world).is_empty()).then_some(())).await;
    let end = &taken(&world)[0];
    assert_eq!((end.outcome, end.reason.as_deref()), ("Replaced", Some("replaced by settle:2026-08-30T00:01:00Z")));
}

/// A new run takes the place of what remembers the last one's announcement: it begins after that, or not yet.
#[tokio::test(start_paused = true)]
async fn a_rerun_before_the_announcement_loses_none() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1).announcing();
    let mut worker = world.process("a", deaf(usize::MAX, false));
    worker.start(Some(fixture.job()));
    assert!(world.until_ended(60).await.is_unannounced());
    let refused = worker.engine.rerun(&instance_id(), None).await;
    assert!(refused.is_err(), "while the bus is down it can't begin: {refused:?}");
    assert_eq!(world.instance(&instance_id()).unwrap().generation, Generation(1));
    worker.kill();
    let user = world.process("user", Character::default());
    user.engine.rerun(&instance_id(), None).await.unwrap();
    let _healthy = world.healthy("b", &fixture.job());
    let is_second = |world: &World| {
        let instance = world.instance(&instance_id())?;
        (instance.generation == Generation(2) && instance.status.is_terminal()).then_some(())
    };
    world.until(60, "the second generation", is_second).await;
    until_told(&world, 60).await;
    let runs: Vec<_> = taken(&world).iter().map(|end| (end.generation, end.attempt)).collect();
    assert_eq!(runs, [(Generation(1), Attempt(1)), (Generation(2), Attempt(1))]);
}

/// A bus that is taken away: what waited for it leaves the open index, so that no sweep looks at it for ever.
#[tokio::test(start_paused = true)]
async fn without_a_bus_an_end_is_an_end() {
    let fixture = Fixture::small();
    let mut world = World::with(&fixture, 1).announcing();
    let mut worker = world.process("a", deaf(usize::MAX, false));
    worker.start(Some(fixture.job()));
    assert!(world.until_ended(60).await.is_unannounced());
    worker.kill();
    let bus = world.bus.take().unwrap();
    let _healthy = world.healthy("b", &fixture.job());
    until_told(&world, 120).await;
    assert!(bus.taken().is_empty());
    // And one that never knew a bus ends with one write.
    let world = World::with(&fixture, 1);
    let _process = world.healthy("a", &fixture.job());
    assert_eq!(world.until_ended(60).await.next_look, None);
}

/// A bus that doesn't answer holds up a sweep once, and not once for each end that waits for it.
#[tokio::test(start_paused = true)]
async fn a_sweep_asks_a_dead_bus_once() {
    let fixture = Fixture::new(1, 1, 2);
    let world = World::with(&fixture, 1).announcing();
    let mut worker = world.process("a", deaf(usize::MAX, false));
    worker.start(Some(fixture.job_with(|job| job["schedule"] = "* * * * *".into())));
    let ends = |world: &World| {
        let items = world.checker.snapshot().into_values();
        let ended = items.filter_map(|item| match item {
            Item::Instance(instance) if instance.is_unannounced() => Some(*instance),
            _ => None,
        });
        ended.collect::<Vec<_>>()
    };
    world.until(600, "five ends", |world| (ends(world).len() == 5).then_some(())).await;
    worker.kill();
    let tries = AtomicUsize::new(1_000);
    let sweeper = world.process(
        "b",
        Character { script: Box::new(Deaf { left: tries, answers_only: false }), ..Character::default() },
    );
    let before = world.journal.events(events::TROUBLE).len();
    sweeper.engine.sweep(Sweep::All).await.unwrap();
    assert_eq!(world.journal.events(events::TROUBLE).len(), before + 1);
    assert_eq!(sweeper.gate.writes(), 1 + 5, "one announcement, and a note of the next look for each");
    assert!(ends(&world).iter().all(|instance| instance.next_look > Some(world.time.now())));
    let _healthy = world.healthy("c", &fixture.job());
    let all_told = |world: &World| ends(world).is_empty().then_some(());
    world.until(600, "all to be told", all_told).await;
    assert!(taken(&world).len() >= 5);
}
