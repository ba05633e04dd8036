//! Times that passed while nobody planned: run or recorded, as the job says, and counted exactly (G2).

use std::time::Duration;

use shardcron_domain::instance::SkipReason;
use shardcron_domain::job::CatchUp;
use shardcron_store::{Item, Store};
use shardcron_tests::fixture::job_name;
use shardcron_tests::gate::{Request, Script};
use shardcron_tests::process::Character;

use crate::support::*;

/// Three days of downtime of a minute job: 4,320 times, and each is an instance or in the one row of skips.
#[tokio::test(start_paused = true)]
async fn three_days_of_downtime_are_accounted_for_to_the_minute() {
    const TIMES: u64 = 3 * 1440;
    for (catch_up, ran) in [("all", TIMES), ("latest", 1), ("none", 1)] {
        let world = world();
        world.checker.go_light();
        let user = by_hand(&world, "user");
        user.engine.apply(&job("* * * * *", |job| job["catchUp"] = catch_up.into()), "/jobs").await.unwrap();
        until(&world, "2026-09-01T23:59:30Z").await;
        let planned = user.engine.plan_due().await.unwrap();
        assert_eq!((planned.instances as u64, planned.skipped, planned.missed), (ran, TIMES - ran, 0), "{catch_up}");
        let account = answered_once(&world, "settle");
        assert_eq!(account.expected.len() as u64, TIMES);
        assert_eq!(account.skipped(SkipReason::CatchUp), TIMES - ran);
        assert!(account.skips.len() <= 1, "{catch_up}: a run of skips is one row");
        assert_windows_tile(&account);
    }
}

/// `none` runs what is on time and nothing else; a poll that is a minute late still is (sidekiq-cron/sidekiq-cron#147).
#[tokio::test(start_paused = true)]
async fn a_poll_that_is_late_by_a_minute_loses_no_run() {
    for (catch_up, late, ran) in [("none", 61, 1), ("none", 130, 0), ("latest", 61, 1), ("latest", 86_000, 1)] {
        let world = world();
        let user = by_hand(&world, "user");
        user.engine.apply(&job("0 0 * * *", |job| job["catchUp"] = catch_up.into()), "/jobs").await.unwrap();
        until(&world, "2026-08-30T00:00:00Z").await;
        seconds(late).await;
        let planned = user.engine.plan_due().await.unwrap();
        assert_eq!((planned.instances, planned.skipped), (ran, 1 - ran as u64), "{catch_up}, {late} s late");
        answered_once(&world, "settle");
    }
}

/// Under Queue with all to be caught up the queue has a bound, and planning goes on as it empties: all run, in order.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_holds_planning_back_and_loses_nothing() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    let file = job("* * * * *", |job| {
        job["concurrencyPolicy"] = "Queue".into();
        job["catchUp"] = "all".into();
    });
    user.engine.apply(&file, "/jobs").await.unwrap();
    until(&world, "2026-08-30T02:29:30Z").await;
    let planned = user.engine.plan_due().await.unwrap();
    assert_eq!((planned.instances, planned.skipped, planned.missed), (101, 0, 0));
    let _worker = worker(&world, "worker", Duration::ZERO);
    until(&world, "2026-08-30T02:40:30Z").await;
    let account = answered_once(&world, "settle");
    assert_eq!(account.instances.len(), 161);
    assert_eq!(account.by_state()["Succeeded"], 161);
    for pair in account.instances.windows(2) {
        assert!(pair[0].ended_at.unwrap() <= pair[1].started_at.unwrap(), "in order");
    }
    assert_windows_tile(&account);
}

/// Resumed with `--catch-up`: what was skipped runs after all, and says for which reason it hadn't.
#[tokio::test(start_paused = true)]
async fn a_suspended_span_can_be_caught_up_on_request() {
    for (catch_up, ran) in [(CatchUp::All, 12), (CatchUp::Latest, 1), (CatchUp::None, 0)] {
        let world = world();
        world.checker.go_light();
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("*/5 * * * *", "Forbid"), "/jobs").await.unwrap();
        let _worker = worker(&world, "worker", Duration::ZERO);
        until(&world, "2026-08-30T00:01:00Z").await;
        user.engine.suspend(&job_name("settle"), None).await.unwrap();
        until(&world, "2026-08-30T01:01:00Z").await;
        let (suspension, backfill) = user.engine.resume_and_catch_up(&job_name("settle"), catch_up).await.unwrap();
        assert_eq!(suspension.unwrap().since, at("2026-08-30T00:01:00Z"));
        until(&world, "2026-08-30T01:06:00Z").await;
        let account = answered_once(&world, "settle");
        let caught_up = account.instances.iter().filter(|instance| instance.skipped == Some(SkipReason::Suspended));
        assert_eq!(caught_up.count(), ran);
        assert_eq!(account.by_state()["Succeeded"], ran + 2, "with 00:00 and 01:05");
        assert_windows_tile(&account);
        assert_eq!(backfill.is_some(), ran > 0);
        if let Some(backfill) = backfill {
            let over = user.engine.find_backfill(&job_name("settle"), &backfill.id).await.unwrap();
            assert!(over.is_over(), "{over:?}");
            let account = over.account;
            assert_eq!((account.begun, account.were_skipped, account.succeeded), (ran as u64, ran as u64, ran as u64));
        }
        let (nothing, none) = user.engine.resume_and_catch_up(&job_name("settle"), CatchUp::All).await.unwrap();
        assert!(nothing.is_none() && none.is_none(), "resumed twice, it acts once");
    }
}

/// A weekly job whose planner is another process each day runs each week (riverqueue/river#791).
#[tokio::test(start_paused = true)]
async fn the_schedule_is_in_the_store_and_not_in_a_process() {
    let world = world();
    by_hand(&world, "user").engine.apply(&job("0 12 * * 3", |_| {}), "/jobs").await.unwrap();
    for day in 0..15 {
        seconds(86_400).await;
        by_hand(&world, &format!("planner {day}")).engine.plan_due().await.unwrap();
    }
    let account = answered_once(&world, "settle");
    assert_eq!(account.times(), ["2026-09-02T12:00:00Z", "2026-09-09T12:00:00Z"].map(at));
}

/// The store doesn't answer for minutes: then planning goes on by itself, and the time between is accounted for
/// (apache/shardingsphere-elasticjob#1857).
#[tokio::test(start_paused = true)]
async fn planning_goes_on_after_an_outage_of_the_store() {
    struct Outage(shardcron_tests::ports::Time);
    impl Script for Outage {
        fn before(&self, request: &Request) -> shardcron_tests::gate::Act {
            let now = self.0.now();
            let out = now >= at("2026-08-30T00:10:30Z").millis() && now < at("2026-08-30T00:15:30Z").millis();
            match out && request.operation.is_some() {
                true => shardcron_tests::gate::Act::Deny(shardcron_store::hooked::Verdict::LoseAnswer),
                false => shardcron_tests::gate::Act::Proceed,
            }
        }
    }
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    for number in 0..5 {
        let file = job("* * * * *", |job| job["name"] = format!("job-{number}").into());
        user.engine.apply(&file, "/jobs").await.unwrap();
    }
    let script = Box::new(Outage(world.time));
    let mut process = world.process("worker", Character { script, ..Character::default() });
    process.start(None);
    until(&world, "2026-08-30T00:20:30Z").await;
    for number in 0..5 {
        let account = answered_once(&world, &format!("job-{number}"));
        assert_eq!(account.expected.len(), 21);
        assert_eq!(account.skipped(SkipReason::CatchUp), 4, "00:11 to 00:14; 00:15 is the latest");
        assert_eq!(account.by_state()["Succeeded"], 17);
    }
}

/// A tick that finds times with no answer says so; and 0 is said too.
#[tokio::test(start_paused = true)]
async fn a_tick_reports_what_is_missing() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |_| {}), "/jobs").await.unwrap();
    for minute in 0..3 {
        until(&world, &format!("2026-08-30T00:0{minute}:00Z")).await;
        assert_eq!(user.engine.plan_due().await.unwrap().missed, 0);
    }
    let lost = id("2026-08-30T00:01:00Z");
    assert!(world.store.remove(&shardcron_store::ItemKey::Instance(lost)));
    world.checker.accept();
    until(&world, "2026-08-30T00:03:00Z").await;
    assert_eq!(user.engine.plan_due().await.unwrap().missed, 1);
    let told = world.journal.events(shardcron_engine::events::MISSED);
    assert_eq!(told.len(), 4);
    assert_eq!(told[3].event.fields["first"], "2026-08-30T00:01:00Z");
    let items = world.store.snapshot().into_iter().filter(|item| matches!(item, Item::Instance(_))).count();
    assert_eq!(items, 3, "what is missing isn't run by itself");
    assert_eq!(world.store.due_jobs(at("2026-08-30T00:10:00Z"), 10).await.unwrap().len(), 1);
}
