//! What an audit finds and what explain says: rows that somebody took away, over edits and deletions of the job.

use std::sync::Arc;
use std::time::Duration;

use shardcron_domain::instance::SkipReason;
use shardcron_domain::time::ScheduledTime;
use shardcron_engine::Engine;
use shardcron_engine::audit::Audit;
use shardcron_store::ItemKey;
use shardcron_tests::fixture::job_name;
use shardcron_tests::work::Deed;
use shardcron_tests::world::World;

use crate::support::*;

async fn audit(engine: &Engine, from: &str, to: &str) -> Audit {
    engine.audit(&job_name("settle"), at(from), at(to)).await.unwrap()
}

/// Ten minutes that ran, ten that were suspended, ten that ran.
async fn half_an_hour() -> (World, shardcron_tests::process::Process) {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |job| job["catchUp"] = "all".into()), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:09:30Z").await;
    user.engine.plan_due().await.unwrap();
    user.engine.suspend(&job_name("settle"), None).await.unwrap();
    until(&world, "2026-08-30T00:19:30Z").await;
    user.engine.resume(&job_name("settle")).await.unwrap();
    until(&world, "2026-08-30T00:29:30Z").await;
    user.engine.plan_due().await.unwrap();
    (world, user)
}

#[tokio::test(start_paused = true)]
async fn an_audit_finds_what_was_taken_away() {
    let (world, user) = half_an_hour().await;
    let whole = audit(&user.engine, "2026-08-30T00:00:00Z", "2026-08-30T00:30:00Z").await;
    assert_eq!((whole.expected, whole.pending, whole.missing.len()), (30, 0, 0));
    assert_eq!(whole.instances, [("Planned", 20)].into());
    assert_eq!(whole.skipped, [("Suspended".to_owned(), 10)].into());
    // A range that begins within a run of skips still finds its row.
    let part = audit(&user.engine, "2026-08-30T00:15:00Z", "2026-08-30T00:22:00Z").await;
    assert_eq!((part.expected, part.skipped["Suspended"], part.instances["Planned"], part.missing.len()), (7, 5, 2, 0));

    for gone in ["2026-08-30T00:00:00Z", "2026-08-30T00:07:00Z", "2026-08-30T00:29:00Z"] {
        assert!(world.store.remove(&ItemKey::Instance(id(gone))));
    }
    let found = audit(&user.engine, "2026-08-30T00:00:00Z", "2026-08-30T00:30:00Z").await;
    let gone = ["2026-08-30T00:00:00Z", "2026-08-30T00:07:00Z", "2026-08-30T00:29:00Z"].map(at);
    assert_eq!(found.missing, gone, "the latest too: it was planned, so it isn't pending");
    assert!(world.store.remove(&ItemKey::Skip(job_name("settle"), at("2026-08-30T00:10:00Z"))));
    let found = audit(&user.engine, "2026-08-30T00:00:00Z", "2026-08-30T00:30:00Z").await;
    assert_eq!(found.missing.len(), 13);
    assert_eq!(found.expected, 30);
    assert_eq!(found.instances.values().sum::<u64>() + found.skipped.values().sum::<u64>(), 17);
    assert_eq!(user.engine.explain(&job_name("settle"), at("2026-08-30T00:07:00Z")).await.unwrap().verdict, "missing");
}

/// Each time is held against the spec that was in force at it; a deleted job expects nothing.
#[tokio::test(start_paused = true)]
async fn an_audit_follows_the_edits_of_a_job() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    let file = |schedule: &str| job(schedule, |job| job["catchUp"] = "all".into());
    user.engine.apply(&file("*/10 * * * *"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T01:05:00Z").await;
    user.engine.apply(&file("*/7 * * * *"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T02:01:00Z").await;
    user.engine.plan_due().await.unwrap();
    user.engine.delete(&job_name("settle")).await.unwrap();
    until(&world, "2026-08-30T03:01:00Z").await;
    user.engine.apply(&file("*/10 * * * *"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T04:01:00Z").await;
    user.engine.plan_due().await.unwrap();
    let found = audit(&user.engine, "2026-08-29T00:00:00Z", "2026-09-30T00:00:00Z").await;
    // 00:00 to 01:00 by tens; 01:07 to 02:00 by sevens; nothing; 03:10 to 04:00 by tens.
    assert_eq!((found.expected, found.missing.len(), found.pending), (7 + 9 + 6, 0, 0));
    assert_eq!(found.instances, [("Planned", 22)].into());
    for gone in ["2026-08-30T00:50:00Z", "2026-08-30T01:28:00Z", "2026-08-30T03:20:00Z"] {
        assert!(world.store.remove(&ItemKey::Instance(id(gone))));
    }
    let found = audit(&user.engine, "2026-08-29T00:00:00Z", "2026-09-30T00:00:00Z").await;
    assert_eq!(found.missing, ["2026-08-30T00:50:00Z", "2026-08-30T01:28:00Z", "2026-08-30T03:20:00Z"].map(at));
    assert_eq!(found.expected, 22);
    for (time, verdict) in [
        ("2026-08-30T01:10:00Z", "notOfCalendar"),
        ("2026-08-30T00:07:00Z", "notOfCalendar"),
        ("2026-08-30T02:30:00Z", "notOfCalendar"),
        ("2026-08-30T04:10:00Z", "future"),
    ] {
        assert_eq!(user.engine.explain(&job_name("settle"), at(time)).await.unwrap().verdict, verdict, "{time}");
    }
}

/// Times that nobody has planned for longer than a tick or two are missing; those that have just come aren't.
#[tokio::test(start_paused = true)]
async fn an_audit_finds_that_nobody_plans() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |_| {}), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:10:30Z").await;
    let found = audit(&user.engine, "2026-08-30T00:00:00Z", "2026-08-30T01:00:00Z").await;
    assert_eq!((found.expected, found.pending), (11, 2));
    assert_eq!(found.missing.len(), 9);
    assert_eq!(user.engine.explain(&job_name("settle"), at("2026-08-30T00:02:00Z")).await.unwrap().verdict, "pending");
}

/// Each verdict of explain, and the row that says so.
#[tokio::test(start_paused = true)]
async fn explain_says_what_became_of_a_time() {
    let world = world();
    let hold = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let held = Arc::clone(&hold);
    let deeds = Arc::new(move |_: &str| match held.load(std::sync::atomic::Ordering::Relaxed) {
        0 => Deed::Count,
        1 => Deed::Refuse,
        _ => Deed::Take(Duration::from_secs(1000)),
    });
    let _worker = with_deeds(&world, "worker", deeds);
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:30Z").await;
    hold.store(1, std::sync::atomic::Ordering::Relaxed);
    until(&world, "2026-08-30T00:01:30Z").await;
    hold.store(2, std::sync::atomic::Ordering::Relaxed);
    until(&world, "2026-08-30T00:03:30Z").await;
    user.engine.cancel(&id("2026-08-30T00:03:00Z"), None, "ada").await.unwrap();
    until(&world, "2026-08-30T00:04:30Z").await;
    user.engine.suspend(&job_name("settle"), None).await.unwrap();
    until(&world, "2026-08-30T00:06:30Z").await;
    for (time, verdict, says) in [
        ("00:00:00", "ran", "the planner wrote it down"),
        ("00:01:00", "failed", "refuses"),
        ("00:02:00", "running", "Running"),
        ("00:03:00", "cancelled", "ada"),
        ("00:04:00", "waiting", "slot"),
        ("00:05:00", "skipped", "Suspended"),
        ("00:07:00", "future", "still to come"),
        ("00:02:30", "notOfCalendar", "00:03:00Z"),
    ] {
        let time: ScheduledTime = at(&format!("2026-08-30T{time}Z"));
        let explained = user.engine.explain(&job_name("settle"), time).await.unwrap();
        assert_eq!(explained.verdict, verdict, "{time}: {explained:?}");
        assert!(explained.reason.contains(says), "{time}: {explained:?}");
        assert_eq!(explained.row.is_none(), verdict == "notOfCalendar");
    }
    assert_eq!(answered_once(&world, "settle").skipped(SkipReason::Suspended), 2);
}

/// The rows of a step become visible one by one: what is only coming isn't missing.
#[tokio::test(start_paused = true)]
async fn a_step_of_which_half_is_seen_leaves_nothing_missing() {
    let world = world();
    world.store.let_queries_see_halves();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |job| job["catchUp"] = "all".into()), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:10:30Z").await;
    let name = job_name("settle");
    assert_eq!(user.engine.plan_job(&name).await.unwrap().instances, 11);
    let audit = user.engine.audit(&name, at("2026-08-30T00:00:00Z"), at("2026-08-30T00:11:00Z")).await.unwrap();
    assert!(world.store.halves_seen() > 0, "the first look saw half of it");
    assert_eq!((audit.expected, audit.missing), (11, vec![]));
}

/// Nor does the planner's own look at the recent past, in the tick that has just planned it, call it missing.
#[tokio::test(start_paused = true)]
async fn a_tick_that_sees_half_of_what_it_has_planned_reports_nothing_missing() {
    let world = world();
    world.store.let_queries_see_halves();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |job| job["catchUp"] = "all".into()), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:10:30Z").await;
    let planned = user.engine.plan_due().await.unwrap();
    assert!(world.store.halves_seen() > 0, "the first look saw half of it");
    assert_eq!((planned.instances, planned.missed), (11, 0));
}
