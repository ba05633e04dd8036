//! Runs that elsewhere were stuck, failed or begun anew when processes went away.

use std::sync::Arc;
use std::time::Duration;

use shardcron_domain::instance::{FailReason, InstanceStatus};
use shardcron_domain::shard::ShardStatus;
use shardcron_engine::{Sweep, events};
use shardcron_tests::fixture::{Fixture, instance_id, job_name};
use shardcron_tests::process::{Character, Process};
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::World;

use crate::support::*;

/// A process that looks round once a minute only, for runs of many hours.
fn calm(world: &World, name: &str, shard_workers: usize, deeds: Deeds) -> Process {
    let seed = name.bytes().map(u64::from).sum();
    let tick = Some(Duration::from_secs(60));
    let mut process = world.process(name, Character { deeds, seed, shard_workers, tick, ..Character::default() });
    process.start(None);
    process
}

/// apache/dolphinscheduler#13283: a shard of hours, all workers restarted once: one takeover, and it runs to its end.
#[tokio::test(start_paused = true)]
async fn a_shard_of_hours_is_taken_over_once_by_one_restart() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("0 0 * * *", "Allow"), "/jobs").await.unwrap();
    let deeds = || -> Deeds { Arc::new(|_| Deed::Take(Duration::from_secs(2 * 3600))) };
    let only_work = |name: &str| {
        let character = Character { deeds: deeds(), shard_workers: 1, tick: None, ..Character::default() };
        let mut process = world.process(name, Character { seed: u64::from(name.as_bytes()[0]), ..character });
        process.start(None);
        process
    };
    let mut workers = ["a", "b"].map(only_work);
    for hour in 0..=3 {
        until(&world, &format!("2026-08-30T{hour:02}:00:00Z")).await;
        user.engine.plan_due().await.unwrap();
        user.engine.sweep(Sweep::Due).await.unwrap();
        if hour == 1 {
            workers.iter_mut().for_each(Process::kill);
            workers = ["c", "d"].map(only_work);
        }
    }
    minutes(10).await;
    assert_eq!(state(&world, &instance_id()), "Succeeded");
    assert_eq!(world.shards()[0].takeovers, 1);
    assert_eq!(world.journal.events(events::CLAIMED).len(), 2);
    world.assert_exact(&tiny()).await;
}

/// kagkarlsson/db-scheduler#565, quartz-scheduler/quartz#93: killed in the middle of a run and restarted, also when the
/// next time is due already: the run goes on, and so do later times, also under Forbid.
async fn killed_in_the_middle(restart: &str) {
    for policy in ["Allow", "Forbid"] {
        let world = world();
        let mut first = worker(&world, "first", Duration::from_secs(20));
        by_hand(&world, "user").engine.apply(&with_policy("* * * * *", policy), "/jobs").await.unwrap();
        until(&world, "2026-08-30T00:00:10Z").await;
        assert_eq!(state(&world, &instance_id()), "Running");
        first.kill();
        world.queue.clear();
        until(&world, restart).await;
        let _second = worker(&world, "second", Duration::from_secs(20));
        until(&world, "2026-08-30T00:06:50Z").await;
        assert_eq!(state(&world, &instance_id()), "Succeeded", "{policy}");
        let shards = world.shards();
        let ours = shards.iter().find(|shard| shard.key.run.instance == instance_id()).unwrap();
        assert_eq!(ours.takeovers, 1, "{policy}");
        let account = answered_once(&world, "settle");
        for minute in 4..=6 {
            assert_eq!(state(&world, &id(&format!("2026-08-30T00:0{minute}:00Z"))), "Succeeded", "{policy}");
        }
        assert!(account.instances.iter().all(|one| one.status.name() == "Succeeded"), "{:?}", account.by_state());
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_run_is_finished_and_the_next_time_runs() {
    killed_in_the_middle("2026-08-30T00:00:30Z").await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_run_is_finished_also_when_the_next_time_is_due_already() {
    killed_in_the_middle("2026-08-30T00:01:30Z").await;
}

/// apache/airflow#42553: a death is one failure, however often and by however many it is found.
#[tokio::test(start_paused = true)]
async fn a_death_is_counted_once_however_many_find_it() {
    let world = world();
    let mut first = worker(&world, "first", Duration::from_secs(20));
    // With two counted failures it would have failed.
    let file = job("0 0 * * *", |job| job["backoffLimit"] = 1.into());
    by_hand(&world, "user").engine.apply(&file, "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:10Z").await;
    first.kill();
    seconds(30).await;
    let finders = ["x", "y", "z"].map(|name| by_hand(&world, name));
    for _ in 0..3 {
        for finder in &finders {
            finder.engine.sweep(Sweep::All).await.unwrap();
        }
        world.queue.repeat_all();
    }
    let _workers = ["second", "third", "fourth"].map(|name| worker(&world, name, Duration::from_secs(20)));
    until_state(&world, &instance_id(), "Succeeded", 120).await;
    assert_eq!(world.shards()[0].takeovers, 1);
    assert_eq!(world.journal.events(events::CLAIMED).len(), 2);
    world.assert_exact(&tiny()).await;
}

/// PowerJob/PowerJob#304: all workers vanish in the middle, and ten minutes later others come.
#[tokio::test(start_paused = true)]
async fn work_goes_on_when_all_workers_vanish_and_others_come() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let slow = || -> Deeds { Arc::new(|_| Deed::Take(Duration::from_secs(5))) };
    let mut former: Vec<Process> = ["a", "b", "c"]
        .iter()
        .map(|name| world.process(name, Character { deeds: slow(), shard_workers: 1, ..Character::default() }))
        .collect();
    former[0].start(Some(fixture.job()));
    former[1..].iter_mut().for_each(|process| process.start(None));
    until(&world, "2026-08-30T00:00:08Z").await;
    assert_eq!(state(&world, &instance_id()), "Running");
    former.iter_mut().for_each(Process::kill);
    minutes(10).await;
    assert_eq!(state(&world, &instance_id()), "Running", "nobody is there to end it");
    let _latter = ["d", "e"].map(|name| with_deeds(&world, name, slow()));
    world.until_ended(120).await;
    world.assert_exact(&fixture).await;
}

/// kubernetes/kubernetes#109485: one of hundreds of shards fails with no retry left: none stays open, and the rest adds up.
#[tokio::test(start_paused = true)]
async fn one_failure_of_hundreds_of_shards_leaves_none_open() {
    const SHARDS: usize = 250;
    let fixture = Fixture::new(SHARDS, 1, 1);
    let world = World::with(&fixture, 1);
    world.checker.go_light();
    let deeds: Deeds =
        Arc::new(|source| if source.ends_with("/03.csv") { Deed::Refuse } else { Deed::Take(Duration::from_secs(3)) });
    let workers = ["a", "b"].map(|name| with_deeds(&world, name, Arc::clone(&deeds)));
    let file = fixture.job_with(|job| job["backoffLimit"] = 0.into());
    workers[0].engine.apply(&file, "/jobs").await.unwrap();
    until_state(&world, &instance_id(), "Failed", 300).await;
    let ended = instance(&world, &instance_id());
    assert!(matches!(ended.status, InstanceStatus::Failed(FailReason::Shard { .. })), "{:?}", ended.status);
    minutes(5).await;
    let shards = world.shards();
    assert_eq!(shards.len(), SHARDS);
    let count = |wanted: fn(&ShardStatus) -> bool| shards.iter().filter(|shard| wanted(&shard.status)).count();
    let (done, failed) = (count(|status| *status == ShardStatus::Done), count(|s| matches!(s, ShardStatus::Failed(_))));
    let fenced = count(|status| matches!(status, ShardStatus::Fenced(_)));
    assert!(failed == 1 && fenced > 0 && done + failed + fenced == SHARDS, "{done}, {failed}, {fenced}");
    let claimed = world.journal.events(events::CLAIMED);
    assert!(claimed.iter().all(|told| told.at <= ended.ended_at.unwrap()), "nothing is begun after the end");
}

/// The-AI-Alliance/cube-harness#458: shards that wait their turn for hours are no orphans.
#[tokio::test(start_paused = true)]
async fn shards_that_wait_their_turn_for_hours_are_not_failed() {
    const SHARDS: usize = 30;
    let fixture = Fixture::new(SHARDS, 1, 1);
    let world = World::with(&fixture, 1);
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&fixture.job_with(|job| job["backoffLimit"] = 0.into()), "/jobs").await.unwrap();
    let deeds: Deeds = Arc::new(|_| Deed::Take(Duration::from_secs(600)));
    let _workers = ["a", "b"].map(|name| calm(&world, name, 1, Arc::clone(&deeds)));
    until(&world, "2026-08-30T02:00:00Z").await;
    assert!(world.shards().iter().any(|shard| shard.status == ShardStatus::Pending), "some have waited for two hours");
    until(&world, "2026-08-30T02:45:00Z").await;
    assert_eq!(state(&world, &instance_id()), "Succeeded");
    assert_eq!(world.journal.events(events::CLAIMED).len(), SHARDS);
    assert!(world.shards().iter().all(|shard| shard.takeovers == 0 && shard.failures == 0));
    world.assert_exact(&fixture).await;
    assert_eq!(answered_once(&world, job_name("settle").as_str()).instances.len(), 1);
}
