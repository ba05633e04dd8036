//! One planner whose clock is a day wrong: it can plan early or not at all, and doubles and loses nothing (G12).
//!
//! The clock that is wrong here is the storage clock's reading itself. In production that one comes from the store's
//! own answers, so that a machine's clock doesn't matter; these are the bounds for when even that fails.

use shardcron_domain::time::Duration;
use shardcron_engine::EngineError;
use shardcron_tests::fixture::job_name;
use shardcron_tests::gate::Peace;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::world::World;

use crate::support::*;

const JOBS: usize = 60;

fn wrong_by(world: &World, days: i64) -> Process {
    let skew = Duration::from_secs(days * 86_400);
    world.process("wrong", Character { skew, seed: 3, ..Character::default() })
}

async fn hourly(world: &World, user: &Process) {
    world.checker.go_light();
    for number in 0..JOBS {
        let file = job("0 * * * *", |job| job["name"] = format!("job-{number}").into());
        user.engine.apply(&file, "/jobs").await.unwrap();
    }
}

/// A day ahead: no burst beyond what `catchUp` allows, nothing twice, and the schedule goes on by itself
/// (sidekiq-scheduler/sidekiq-scheduler#283, apache/shardingsphere-elasticjob#513).
#[tokio::test(start_paused = true)]
async fn a_planner_a_day_ahead_makes_no_burst_and_nothing_twice() {
    let world = world();
    let user = by_hand(&world, "user");
    hourly(&world, &user).await;
    until(&world, "2026-08-30T02:00:30Z").await;
    user.engine.plan_due().await.unwrap();
    let wrong = wrong_by(&world, 1);
    for _ in 0..30 {
        let planned = wrong.engine.plan_due().await.unwrap();
        assert!(planned.instances <= JOBS, "at most one a job is caught up: {planned:?}");
        seconds(1).await;
    }
    for _ in 0..36 {
        minutes(60).await;
        assert_eq!(user.engine.plan_due().await.unwrap().missed, 0);
    }
    for number in 0..JOBS {
        let name = format!("job-{number}");
        let account = answered_once(&world, &name);
        assert_eq!(account.expected.len(), 39);
        // The day that the wrong clock said was over is recorded as not caught up, and ends when it has really passed.
        let last = account.expected.last().unwrap();
        assert_eq!(account.times().last(), Some(last));
        let audit = user.engine.audit(&job_name(&name), at("2026-08-30T00:00:00Z"), at("2026-09-02T00:00:00Z")).await;
        assert_eq!(audit.unwrap().missing, []);
    }
}

/// A day behind: it plans nothing and stops nobody else, and a command of it loses no time.
#[tokio::test(start_paused = true)]
async fn a_planner_a_day_behind_silences_nobody() {
    let world = world();
    let user = by_hand(&world, "user");
    hourly(&world, &user).await;
    let wrong = wrong_by(&world, -1);
    for hour in 1..=12 {
        until(&world, &format!("2026-08-30T{hour:02}:00:10Z")).await;
        let planned = wrong.engine.plan_due().await.unwrap();
        assert_eq!((planned.instances, planned.skipped, planned.missed), (0, 0, 0));
        let planned = user.engine.plan_due().await.unwrap();
        assert_eq!(planned.instances, JOBS);
    }
    let early = wrong.engine.trigger(&job_name("job-0"), Some(at("2026-08-30T12:00:00Z")), None).await;
    assert!(matches!(early, Ok((_, false)) | Err(EngineError::Future { .. })), "{early:?}");
    wrong.engine.suspend(&job_name("job-1"), None).await.unwrap();
    wrong.engine.apply(&job("*/30 * * * *", |job| job["name"] = "job-2".into()), "/jobs").await.unwrap();
    wrong.engine.delete(&job_name("job-3")).await.unwrap();
    until(&world, "2026-08-30T14:00:10Z").await;
    user.engine.resume(&job_name("job-1")).await.unwrap();
    user.engine.plan_due().await.unwrap();
    until(&world, "2026-08-31T14:00:10Z").await;
    user.engine.plan_due().await.unwrap();
    for number in 0..JOBS {
        answered_once(&world, &format!("job-{number}"));
    }
    assert!(answered_once(&world, "job-2").expected.len() > 60, "the edit counts");
}

/// A worker and planner with wrong clocks beside right ones, over Forbid: one at a time, each time once.
#[tokio::test(start_paused = true)]
async fn a_wrong_clock_doesnt_break_the_overlap_policy() {
    for (days, policy) in [(1, "Forbid"), (-1, "Forbid"), (1, "Queue"), (1, "Replace"), (-1, "Replace")] {
        let world = world();
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("*/2 * * * *", policy), "/jobs").await.unwrap();
        let _right = calm(&world, "right", Box::new(Peace));
        until(&world, "2026-08-30T00:04:30Z").await;
        let mut wrong = wrong_by(&world, days);
        wrong.start(None);
        minutes(1).await;
        wrong.kill();
        minutes(10).await;
        answered_once(&world, "settle");
        until_all_ended(&world, "settle", 200).await;
    }
}
