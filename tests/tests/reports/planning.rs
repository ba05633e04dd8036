//! Times that were lost, doubled or late elsewhere.

use std::time::Duration;

use shardcron_domain::instance::SkipReason;
use shardcron_domain::time::{Duration as Span, ScheduledTime};
use shardcron_engine::events;
use shardcron_tests::fixture::{instance_id, job_name};
use shardcron_tests::gate::{FreezeAtRequest, LATENCY, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::{Character, Process};

use crate::support::*;

fn named(name: &str, schedule: &str) -> String {
    job(schedule, |job| job["name"] = name.into())
}

fn after(moment: &str, seconds: i64) -> String {
    ScheduledTime::from_second(at(moment).as_second() + seconds).unwrap().to_string()
}

/// sidekiq-cron/sidekiq-cron#132: with twenty schedulers a run starts as soon as with one, and once.
#[tokio::test(start_paused = true)]
async fn twenty_schedulers_start_ten_runs_in_time() {
    let world = world();
    let _nodes: Vec<Process> =
        (0..20).map(|number| worker(&world, &format!("node {number}"), Duration::ZERO)).collect();
    by_hand(&world, "user").engine.apply(&job("* * * * *", |_| {}), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:09:30Z").await;
    let account = answered_once(&world, "settle");
    assert_eq!((account.expected.len(), account.by_state()["Succeeded"]), (10, 10));
    for instance in &account.instances {
        let late = instance.started_at.unwrap().since(instance.id.at.millis());
        assert!(late.0 < 2_000, "{} started {late:?} late", instance.id);
    }
    assert_eq!(world.journal.events(events::ENDED).len(), 10);
}

/// Each request to the store takes 200 ms.
struct SlowStore;

impl Script for SlowStore {
    fn latency(&self, request: &Request) -> Duration {
        if request.operation.is_some() { Duration::from_millis(200) } else { LATENCY }
    }
}

/// xuxueli/xxl-job#3948: a store too slow for 300 jobs of a minute loses none of their times silently. (Jobs of a second
/// there; a minute is the least here.)
#[tokio::test(start_paused = true)]
async fn a_slow_store_loses_no_time_silently() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    for number in 0..300 {
        user.engine.apply(&named(&format!("job-{number}"), "* * * * *"), "/jobs").await.unwrap();
    }
    let slow = world.process("slow", Character { script: Box::new(SlowStore), ..Character::default() });
    while world.time.now() < at("2026-08-30T00:20:00Z").millis() {
        slow.engine.plan_due().await.unwrap();
        seconds(1).await;
    }
    user.engine.plan_due().await.unwrap();
    let (mut ran, mut skipped) = (0, 0);
    for number in 0..300 {
        let account = answered_once(&world, &format!("job-{number}"));
        assert!(!account.instances.is_empty(), "job-{number}");
        (ran, skipped) = (ran + account.instances.len() as u64, skipped + account.skipped(SkipReason::CatchUp));
        assert_eq!(
            account.instances.len() as u64 + account.skipped(SkipReason::CatchUp),
            account.expected.len() as u64
        );
    }
    assert!(skipped > 0, "the store was too slow for {ran} times");
    let told = world.journal.events(events::SKIPPED);
    assert_eq!(told.iter().map(|told| told.event.fields["count"].as_u64().unwrap()).sum::<u64>(), skipped);
}

/// xuxueli/xxl-job#1099: of thousands of jobs that are due at once each is planned within a few ticks.
#[tokio::test(start_paused = true)]
async fn thousands_of_jobs_of_one_second_are_all_planned() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    for number in 0..2600 {
        // The last ones have been due longest.
        let schedule = if number < 2550 { "0 12 * * *" } else { "50 11 * * *" };
        user.engine.apply(&named(&format!("job-{number:04}"), schedule), "/jobs").await.unwrap();
    }
    until(&world, "2026-08-30T12:00:10Z").await;
    let mut planned = Vec::new();
    for _ in 0..4 {
        planned.push(user.engine.plan_due().await.unwrap().instances);
        if planned.len() == 1 {
            let oldest = at("2026-08-30T11:50:00Z");
            let ids = (2550..2600).map(|number| job_name(&format!("job-{number:04}")));
            for job in ids {
                let id = shardcron_domain::ids::InstanceId { job, at: oldest };
                assert_ne!(state(&world, &id), "-", "the longest due are planned first: {id}");
            }
        }
    }
    assert_eq!(planned, [1000, 1000, 600, 0]);
}

/// oban-bg/oban#1290: whoever plans is restarted just before midnight, each night, and no midnight is lost.
#[tokio::test(start_paused = true)]
async fn a_restart_just_before_midnight_loses_no_midnight() {
    let world = world();
    by_hand(&world, "user").engine.apply(&job("0 0 * * *", |_| {}), "/jobs").await.unwrap();
    for night in 0..20 {
        let midnight = after("2026-08-30T00:00:00Z", night * 86_400);
        until(&world, &after(&midnight, -10)).await;
        let mut before = worker(&world, &format!("before {night}"), Duration::ZERO);
        until(&world, &after(&midnight, -1)).await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        before.kill();
        let mut behind = worker(&world, &format!("behind {night}"), Duration::ZERO);
        until(&world, &after(&midnight, 30)).await;
        behind.kill();
    }
    let account = answered_once(&world, "settle");
    assert_eq!((account.expected.len(), account.skips.len(), account.by_state()["Succeeded"]), (20, 0, 20));
}

/// xuxueli/xxl-job#2572: a planner that decides by what it read five seconds ago plans nothing again.
#[tokio::test(start_paused = true)]
async fn a_planner_with_stale_reads_plans_nothing_again() {
    for number in 1.. {
        let world = world();
        let user = by_hand(&world, "user");
        user.engine.apply(&job("* * * * *", |_| {}), "/jobs").await.unwrap();
        until(&world, "2026-08-30T00:00:10Z").await;
        let script = Box::new(FreezeAtRequest::new(number));
        let stale = world.process("stale", Character { script, seed: 5, ..Character::default() });
        let meanwhile = async {
            seconds(2).await;
            let stands = stale.life.state() == State::Frozen;
            if stands {
                user.engine.plan_due().await.unwrap();
                seconds(3).await;
                stale.life.thaw();
            }
            stands
        };
        let (planned, stood) = tokio::join!(stale.engine.plan_due(), meanwhile);
        planned.unwrap();
        assert_eq!(answered_once(&world, "settle").times(), [at("2026-08-30T00:00:00Z")], "request {number}");
        assert_eq!(world.journal.events(events::PLANNED).len(), 1, "request {number}");
        if !stood {
            assert!(number > 3, "{number}");
            return;
        }
    }
}

/// apache/shardingsphere-elasticjob#513: a planner whose clock is a day ahead makes no time twice. (It takes its clock
/// from the store's answers, so this is a store that is wrong.)
#[tokio::test(start_paused = true)]
async fn a_planner_a_day_ahead_makes_no_time_twice() {
    for catch_up in ["all", "latest"] {
        let world = world();
        let user = by_hand(&world, "user");
        user.engine.apply(&job("0 * * * *", |job| job["catchUp"] = catch_up.into()), "/jobs").await.unwrap();
        until(&world, "2026-08-30T00:10:00Z").await;
        let day = Span::from_secs(86_400);
        let ahead = world.process("ahead", Character { skew: day, seed: 3, ..Character::default() });
        for _ in 0..30 {
            ahead.engine.plan_due().await.unwrap();
            seconds(1).await;
        }
        for hour in 1..=36 {
            until(&world, &after("2026-08-30T00:00:05Z", hour * 3600)).await;
            user.engine.plan_due().await.unwrap();
        }
        let account = answered_once(&world, "settle");
        assert_eq!(account.expected.len(), 37, "{catch_up}");
        let late = account.times().into_iter().filter(|time| *time > at("2026-08-31T00:00:00Z")).count();
        assert_eq!(late, 12, "{catch_up}: once the time has come that it had planned through, all goes on");
    }
}

/// DataDog/datadog-agent#36975: what ran on time by its own zone isn't missed.
#[tokio::test(start_paused = true)]
async fn a_job_in_a_zone_that_runs_on_time_is_never_missed() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("30 8 * * 1-6", |job| job["timeZone"] = "Europe/Paris".into()), "/jobs").await.unwrap();
    for hour in 1..=7 * 24 {
        until(&world, &after("2026-08-30T00:30:02Z", hour * 3600)).await;
        user.engine.plan_due().await.unwrap();
    }
    let audit =
        user.engine.audit(&job_name("settle"), at("2026-08-30T00:00:00Z"), at("2026-09-06T00:00:00Z")).await.unwrap();
    assert_eq!((audit.expected, audit.instances["Planned"], audit.missing), (6, 6, vec![]));
    let told = world.journal.events(events::MISSED);
    assert!(!told.is_empty() && told.iter().all(|told| told.event.fields["missed"] == 0), "{told:?}");
}

/// temporalio/temporal#10503: an overlap, a deadline and a late start are told apart.
#[tokio::test(start_paused = true)]
async fn an_overlap_a_deadline_and_a_late_start_are_told_apart() {
    let world = world();
    let user = by_hand(&world, "user");
    let overlapping = job("*/10 * * * *", |job| job["concurrencyPolicy"] = "Forbid".into());
    let expiring = job("0 0 * * *", |job| {
        job["name"] = "expiring".into();
        job["startingDeadlineSeconds"] = 300.into();
    });
    user.engine.apply(&overlapping, "/jobs").await.unwrap();
    user.engine.apply(&expiring, "/jobs").await.unwrap();
    user.engine.apply(&named("late", "5 0 * * *"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:00Z").await;
    user.engine.plan_job(&job_name("settle")).await.unwrap();
    until(&world, "2026-08-30T00:10:00Z").await;
    user.engine.plan_due().await.unwrap();
    let reasons: Vec<(String, u64)> = world
        .journal
        .events(events::SKIPPED)
        .iter()
        .map(|told| {
            (told.event.fields["reason"].as_str().unwrap().to_owned(), told.event.fields["count"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(reasons, [("Overlap".to_owned(), 1), ("StartingDeadlineExceeded".to_owned(), 1)]);
    let delays: Vec<(String, u64)> = world
        .journal
        .events(events::PLANNED)
        .iter()
        .map(|told| (told.event.instance.clone().unwrap(), told.event.fields["scheduleDelayMs"].as_u64().unwrap()))
        .collect();
    assert_eq!(delays.len(), 2);
    assert!(delays[0].0 == instance_id().to_string() && delays[0].1 < 1_000, "{delays:?}");
    assert!(delays[1].0.starts_with("late:") && delays[1].1 >= 300_000, "{delays:?}");
}
