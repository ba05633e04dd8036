//! A tick's work is bounded, regular times come first in it, and nothing that is wrong with one job stops it.

use std::time::Duration;

use shardcron_domain::limits::{PLAN_INSTANCES_MAX, TICK_STEPS_MAX};
use shardcron_domain::time::{Duration as Span, ScheduledTime};
use shardcron_engine::{Sweep, events};
use shardcron_store::{Guard, Item, ItemKey, Put, Store, Written};
use shardcron_tests::fixture::job_name;
use shardcron_tests::ports::Told;
use shardcron_tests::work::Deed;
use shardcron_tests::world::World;

use crate::support::*;

fn named(name: &str, schedule: &str, catch_up: &str) -> String {
    job(schedule, |job| {
        job["name"] = name.into();
        job["catchUp"] = catch_up.into();
    })
}

/// The troubles that name this job.
fn troubles_with(world: &World, name: &str) -> Vec<Told> {
    let troubles = world.journal.events(events::TROUBLE).into_iter();
    troubles.filter(|told| told.event.fields.get("job").is_some_and(|job| job == name)).collect()
}

/// A job of each minute, all to be caught up, is ten days behind; another is punctual.
#[tokio::test(start_paused = true)]
async fn a_job_far_behind_keeps_neither_a_punctual_one_nor_the_sweep_waiting() {
    const TIMES: usize = 10 * 1440;
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&named("behind", "* * * * *", "all"), "/jobs").await.unwrap();
    until(&world, "2026-09-08T23:58:30Z").await;
    user.engine.apply(&named("punctual", "0 0 * * *", "latest"), "/jobs").await.unwrap();
    user.engine.apply(&named("open", "59 23 * * *", "latest"), "/jobs").await.unwrap();
    until(&world, "2026-09-08T23:59:00Z").await;
    user.engine.plan_job(&job_name("open")).await.unwrap();
    until(&world, "2026-09-09T00:00:00Z").await;
    let began = world.time.now();
    let ticked = user.engine.tick(Sweep::Due).await.unwrap();
    assert!(ticked.planned.more, "it doesn't all fit one tick");
    assert_eq!(ticked.planned.missed, 0, "what is still to be planned isn't missed");
    assert!(ticked.planned.instances <= 1 + PLAN_INSTANCES_MAX * (1 + TICK_STEPS_MAX));
    let told = world.journal.events(events::PLANNED);
    let of = |name: &str| {
        let prefix = format!("{name}:");
        let is_its = move |told: &&Told| told.event.instance.as_ref().is_some_and(|id| id.starts_with(&prefix));
        told.iter().filter(is_its).cloned().collect::<Vec<_>>()
    };
    let (punctual, behind) = (of("punctual"), of("behind"));
    assert_eq!(punctual.len(), 1);
    assert!(punctual[0].at.since(began) < Span::from_secs(1), "{:?}", punctual[0].at.since(began));
    assert!(punctual[0].at <= behind[0].at, "the punctual one comes first");
    let swept = world.journal.events(events::SWEPT);
    assert_eq!(swept.len(), 1);
    let before = behind.iter().filter(|told| told.at < swept[0].at).count();
    assert_eq!(before, PLAN_INSTANCES_MAX, "one step of it, then the sweep");
    assert!(behind.len() > before, "and it goes on in the same tick");
    let mut ticks = 1;
    while user.engine.tick(Sweep::Due).await.unwrap().planned.more {
        ticks += 1;
        assert!(ticks < 10, "it comes to an end");
    }
    let account = answered_once(&world, "behind");
    assert!(account.instances.len() >= TIMES, "{}", account.instances.len());
    assert_eq!(account.skips, []);
    assert_windows_tile(&account);
}

/// Where only the time bound ends a tick, the next one goes on, and those that got no step are the next one's.
#[tokio::test(start_paused = true)]
async fn a_tick_on_a_slow_table_ends_in_time() {
    use shardcron_domain::limits::TICK_TIME_MAX;
    use shardcron_tests::gate::{Request, Script};
    use shardcron_tests::process::Character;
    struct Slow;
    impl Script for Slow {
        fn latency(&self, _: &Request) -> Duration {
            Duration::from_secs(2)
        }
    }
    const JOBS: usize = 40;
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    for number in 0..JOBS {
        user.engine.apply(&named(&format!("job-{number}"), "30 * * * *", "latest"), "/jobs").await.unwrap();
    }
    until(&world, "2026-08-30T00:30:00Z").await;
    let slow = world.process("slow", Character { script: Box::new(Slow), seed: 3, ..Character::default() });
    let began = world.time.now();
    let first = slow.engine.plan_due().await.unwrap();
    let took = world.time.now().since(began);
    assert!(first.more && first.instances < JOBS, "{first:?}");
    assert!(took.0 < TICK_TIME_MAX.0 + 60_000, "one step may be under way, and the look at what is missing: {took:?}");
    let mut planned = first.instances;
    while planned < JOBS {
        let next = slow.engine.plan_due().await.unwrap();
        assert!(next.instances > 0);
        planned += next.instances;
    }
    for number in 0..JOBS {
        answered_once(&world, &format!("job-{number}"));
    }
}

/// A trigger of a time needs that time planned, and not the days after it.
#[tokio::test(start_paused = true)]
async fn a_trigger_of_a_job_far_behind_plans_up_to_its_time() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |job| job["catchUp"] = "all".into()), "/jobs").await.unwrap();
    until(&world, "2026-09-02T00:00:10Z").await;
    let (made, is_new) =
        user.engine.trigger(&job_name("settle"), Some(at("2026-08-30T01:00:00Z")), None).await.unwrap();
    assert!(!is_new, "the planner has answered for it: {made:?}");
    let account = answered_once(&world, "settle");
    assert!(account.instances.len() <= 2 * PLAN_INSTANCES_MAX, "{}", account.instances.len());
    while user.engine.plan_due().await.unwrap().more {}
    assert_eq!(answered_once(&world, "settle").instances.len(), 3 * 1440 + 1);
}

/// A job whose spec is gone, and one in a zone that these rules don't have, are told of; all else goes on, at a tick
/// and at the start of a host.
#[tokio::test(start_paused = true)]
async fn an_unreadable_job_stops_neither_a_tick_nor_a_start() {
    let world = world();
    let user = by_hand(&world, "user");
    for name in ["gone", "elsewhere", "sound"] {
        user.engine.apply(&named(name, "* * * * *", "latest"), "/jobs").await.unwrap();
    }
    let spec = |name: &str| ItemKey::Spec(job_name(name), shardcron_domain::ids::SpecVersion::FIRST);
    let Some(Item::Spec(mut elsewhere)) = shardcron_tests::watch::item(&world.store, &spec("elsewhere")) else {
        panic!("it was applied")
    };
    elsewhere.spec = elsewhere.spec.replacen('{', r#"{"timeZone":"Mars/Olympus","#, 1);
    assert!(world.store.remove(&spec("gone")) && world.store.remove(&spec("elsewhere")));
    let put = Put { item: Item::Spec(elsewhere), guard: Guard::Absent };
    assert_eq!(world.store.put(put).await.unwrap(), Written::Applied);
    world.checker.accept();
    user.engine.mend_all_next_fires().await.unwrap();
    for name in ["gone", "elsewhere"] {
        assert_eq!(troubles_with(&world, name).len(), 1, "a start tells of {name}");
    }
    let _worker = with_deeds(&world, "worker", std::sync::Arc::new(|_| Deed::Count));
    until(&world, "2026-08-30T00:05:30Z").await;
    for name in ["gone", "elsewhere"] {
        assert!(troubles_with(&world, name).len() > 5, "each tick tells of {name}");
    }
    let account = answered_once(&world, "sound");
    assert_eq!((account.expected.len(), account.by_state().get("Succeeded")), (6, Some(&6)));
    assert!(!world.journal.events(events::MISSED).is_empty());
}

/// Each tick says how many times are missing, whether something was due or not.
#[tokio::test(start_paused = true)]
async fn a_tick_with_nothing_due_reports_0_missed() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.plan_due().await.unwrap();
    user.engine.apply(&job("0 12 * * *", |_| {}), "/jobs").await.unwrap();
    user.engine.plan_due().await.unwrap();
    let told = world.journal.events(events::MISSED);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|told| told.event.fields["missed"] == 0 && !told.event.fields.contains_key("job")));
}

/// A job whose next time was taken away by hand isn't due any more: an audit says what it misses, and the next start
/// of a host, or any command that plans, puts it back.
#[tokio::test(start_paused = true)]
async fn a_job_that_fell_out_of_the_due_index_is_found_by_an_audit_and_mended() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |job| job["catchUp"] = "all".into()), "/jobs").await.unwrap();
    let name = job_name("settle");
    let mut lost = user.engine.job(&name).await.unwrap().unwrap();
    let before = lost.version;
    (lost.next_fire, lost.version) = (None, before.next());
    let put = Put { item: Item::Job(lost), guard: Guard::Version(before) };
    assert_eq!(world.store.put(put).await.unwrap(), Written::Applied);
    until(&world, "2026-08-30T00:10:00Z").await;
    assert_eq!(user.engine.plan_due().await.unwrap().instances, 0);
    let behind = ScheduledTime::from_second(at("2026-08-30T00:10:00Z").as_second() + 1).unwrap();
    let audit = user.engine.audit(&name, at("2026-08-30T00:00:00Z"), behind).await.unwrap();
    assert_eq!((audit.missing.len(), audit.pending), (9, 2));
    user.engine.mend_all_next_fires().await.unwrap();
    assert_eq!(user.engine.plan_due().await.unwrap().instances, 11);
    assert_eq!(answered_once(&world, "settle").instances.len(), 11);
}
