//! Edits, suspensions and deletions: each counts from when it is made, and no time between is lost.

use std::time::Duration;

use shardcron_domain::instance::SkipReason;
use shardcron_domain::time::ScheduledTime;
use shardcron_engine::events;
use shardcron_tests::fixture::{instance_id, job_name};
use shardcron_tests::process::Character;

use crate::support::*;

/// Times are counted from the creation and from the edit alike (kubernetes/kubernetes#63371, kubernetes/kubernetes#65457).
#[tokio::test(start_paused = true)]
async fn what_is_created_or_edited_at_15_first_runs_tomorrow_at_14() {
    let world = world();
    let user = by_hand(&world, "user");
    let named = |name: &str, schedule: &str| job(schedule, |job| job["name"] = name.into());
    user.engine.apply(&named("edited", "0 6 * * *"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T06:00:10Z").await;
    user.engine.plan_due().await.unwrap();
    until(&world, "2026-08-30T15:00:00Z").await;
    user.engine.apply(&named("edited", "0 14 * * *"), "/jobs").await.unwrap();
    user.engine.apply(&named("created", "0 14 * * *"), "/jobs").await.unwrap();
    for hour in 16..60 {
        until(&world, &hour_of(hour)).await;
        user.engine.plan_due().await.unwrap();
    }
    let edited = answered_once(&world, "edited");
    assert_eq!(edited.times(), ["2026-08-30T06:00:00Z", "2026-08-31T14:00:00Z"].map(at));
    assert_windows_tile(&edited);
    assert_eq!(answered_once(&world, "created").times(), [at("2026-08-31T14:00:00Z")]);
}

fn hour_of(hour: i64) -> String {
    ScheduledTime::from_second(at("2026-08-30T00:00:00Z").as_second() + hour * 3600).unwrap().to_string()
}

/// An edit from Allow to Forbid counts when the open ones have ended: until then the former policy plans on.
#[tokio::test(start_paused = true)]
async fn a_change_to_forbid_waits_for_the_open_ones() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(150));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:01:30Z").await;
    user.engine.apply(&with_policy("* * * * *", "Forbid"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:20:10Z").await;
    let account = answered_once(&world, "settle");
    // 00:00 and 00:01 overlap, so every later one under Allow meets an open one: none is skipped until all have ended.
    let first_held = account.instances.iter().position(|instance| instance.slot.is_some());
    assert!(first_held.is_none(), "runs of 150 s each minute never leave a gap: {first_held:?}");
    assert_eq!(account.skips, []);
    user.engine.suspend(&job_name("settle"), None).await.unwrap();
    minutes(5).await;
    user.engine.resume(&job_name("settle")).await.unwrap();
    minutes(10).await;
    let account = answered_once(&world, "settle");
    let held: Vec<_> = account.instances.iter().filter(|instance| instance.slot.is_some()).collect();
    assert!(held.len() >= 3 && account.skipped(SkipReason::Overlap) >= 6, "{:?}", account.skips);
    for pair in held.windows(2) {
        assert!(pair[0].ended_at.unwrap() <= pair[1].started_at.unwrap());
    }
}

/// A policy can be edited before its job has ever come to its slot.
#[tokio::test(start_paused = true)]
async fn a_policy_can_change_before_the_first_run() {
    for (policy, key) in [("Forbid", Some("ledger")), ("Queue", Some("ledger")), ("Allow", None), ("Replace", None)] {
        let world = world();
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("* * * * *", "Forbid"), "/jobs").await.unwrap();
        let edited = job("* * * * *", |job| {
            job["concurrencyPolicy"] = policy.into();
            if let Some(key) = key {
                job["concurrencyKey"] = key.into();
            }
        });
        user.engine.apply(&edited, "/jobs").await.unwrap();
        let _worker = worker(&world, "worker", Duration::ZERO);
        until(&world, "2026-08-30T00:02:30Z").await;
        assert_eq!(answered_once(&world, "settle").by_state().get("Succeeded"), Some(&3), "{policy} {key:?}");
    }
}

/// From one slot to another: while one of ours holds the former, it is the former that counts.
#[tokio::test(start_paused = true)]
async fn a_change_of_key_waits_for_the_holder_of_the_former_slot() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(150));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Forbid"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:30Z").await;
    let edited = job("* * * * *", |job| {
        job["concurrencyPolicy"] = "Forbid".into();
        job["concurrencyKey"] = "ledger".into();
    });
    user.engine.apply(&edited, "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:08:30Z").await;
    let account = answered_once(&world, "settle");
    for pair in account.instances.windows(2) {
        assert!(pair[0].ended_at.unwrap() <= pair[1].started_at.unwrap());
    }
    assert_ne!(account.instances[0].slot, account.instances[1].slot);
    assert_eq!(account.skipped(SkipReason::Overlap), 6);
}

/// A suspended span is recorded, and counts against nothing afterwards (kubernetes/kubernetes#45825, kubernetes/kubernetes#110919).
#[tokio::test(start_paused = true)]
async fn a_suspended_span_is_recorded_and_isnt_caught_up() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("*/5 * * * *", |_| {}), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:01:00Z").await;
    user.engine.suspend(&job_name("settle"), Some("holidays".to_owned())).await.unwrap();
    until(&world, "2026-09-06T00:00:30Z").await;
    user.engine.resume(&job_name("settle")).await.unwrap();
    until(&world, "2026-09-06T00:05:00Z").await;
    user.engine.plan_due().await.unwrap();
    let account = answered_once(&world, "settle");
    assert_eq!(account.times(), ["2026-08-30T00:00:00Z", "2026-09-06T00:05:00Z"].map(at));
    assert_eq!(account.skipped(SkipReason::Suspended), 7 * 288);
    assert_eq!(account.skips.len(), 1, "a run of skips is one row");
    assert_windows_tile(&account);
}

/// Deleted and applied again: nothing is expected of the time between, and the windows go on.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_and_applied_again_counts_from_then() {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:03:30Z").await;
    user.engine.delete(&job_name("settle")).await.unwrap();
    assert!(user.engine.trigger(&job_name("settle"), Some(at("2026-08-30T00:03:00Z")), None).await.is_err());
    until(&world, "2026-08-30T01:00:30Z").await;
    assert_eq!(user.engine.plan_due().await.unwrap().instances, 0);
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T01:02:00Z").await;
    user.engine.plan_due().await.unwrap();
    let account = answered_once(&world, "settle");
    assert_eq!(account.expected.len(), 6);
    let audit = user.engine.audit(&job_name("settle"), at("2026-08-29T00:00:00Z"), at("2026-08-31T00:00:00Z")).await;
    let audit = audit.unwrap();
    assert_eq!((audit.expected, audit.missing), (6, vec![]));
}

/// What runs under a deleted job goes on to its end; and the slot isn't lost with the job.
#[tokio::test(start_paused = true)]
async fn an_instance_outlives_its_job() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(60));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:01:10Z").await;
    user.engine.delete(&job_name("settle")).await.unwrap();
    minutes(5).await;
    assert_eq!(state(&world, &instance_id()), "Succeeded");
    assert_eq!(state(&world, &id("2026-08-30T00:01:00Z")), "Succeeded");
    answered_once(&world, "settle");
}

/// With a full queue and all to be caught up, planning holds back; a suspension, an edit or a deletion then loses none
/// of the times that were held back.
#[tokio::test(start_paused = true)]
async fn a_command_during_a_full_queue_loses_no_time() {
    for command in ["suspend", "apply", "delete", "apply suspended"] {
        let world = world();
        world.checker.go_light();
        let user = by_hand(&world, "user");
        let file = |schedule: &str, suspend: bool| {
            job(schedule, |job| {
                job["concurrencyPolicy"] = "Queue".into();
                job["catchUp"] = "all".into();
                job["suspend"] = suspend.into();
            })
        };
        user.engine.apply(&file("* * * * *", false), "/jobs").await.unwrap();
        until(&world, "2026-08-30T03:00:00Z").await;
        user.engine.plan_due().await.unwrap();
        assert_eq!(answered_once(&world, "settle").instances.len(), 101, "one holds, 100 wait");
        let name = job_name("settle");
        match command {
            "suspend" => drop(user.engine.suspend(&name, None).await.unwrap()),
            "apply" => drop(user.engine.apply(&file("*/7 * * * *", false), "/jobs").await.unwrap()),
            "delete" => user.engine.delete(&name).await.unwrap(),
            _ => drop(user.engine.apply(&file("* * * * *", true), "/jobs").await.unwrap()),
        }
        let _worker = worker(&world, "worker", Duration::ZERO);
        until(&world, "2026-08-30T03:10:00Z").await;
        let audit = user.engine.audit(&name, at("2026-08-30T00:00:00Z"), at("2026-08-30T03:01:00Z")).await.unwrap();
        assert_eq!(audit.missing, [], "{command}");
        let account = answered_once(&world, "settle");
        assert!(account.expected.len() >= 181, "{command}: {}", account.expected.len());
    }
}

/// An edit from Queue to Replace while the queue is as long as it can be: the job is still planned.
#[tokio::test(start_paused = true)]
async fn a_long_queue_can_be_replaced() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
    for minute in 0..101 {
        until(&world, &format!("2026-08-30T{:02}:{:02}:00Z", minute / 60, minute % 60)).await;
        user.engine.plan_due().await.unwrap();
    }
    user.engine.apply(&with_policy("* * * * *", "Replace"), "/jobs").await.unwrap();
    let _worker = worker(&world, "worker", Duration::from_secs(20));
    until(&world, "2026-08-30T01:50:30Z").await;
    assert!(world.journal.events(events::TROUBLE).is_empty(), "{:?}", world.journal.events(events::TROUBLE).first());
    let account = answered_once(&world, "settle");
    assert_eq!(account.expected.len(), 111);
    assert_eq!(state(&world, &id("2026-08-30T01:50:00Z")), "Succeeded");
    assert!(account.instances.iter().all(|instance| instance.status.is_terminal()), "{:?}", account.by_state());
}

/// What was made without a slot shows in the open index some time later: until it surely does, an edit away from Allow
/// isn't in force, whatever the index shows.
#[tokio::test(start_paused = true)]
async fn a_change_from_allow_waits_until_the_open_index_can_be_believed() {
    for (edited_at, first_held) in
        [("2026-08-30T00:00:50Z", "2026-08-30T00:02:00Z"), ("2026-08-30T00:00:20Z", "2026-08-30T00:01:00Z")]
    {
        let world = world();
        let _worker = worker(&world, "worker", Duration::ZERO);
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
        until(&world, edited_at).await;
        user.engine.apply(&with_policy("* * * * *", "Forbid"), "/jobs").await.unwrap();
        until(&world, "2026-08-30T00:04:30Z").await;
        let account = answered_once(&world, "settle");
        let held = account.instances.iter().find(|instance| instance.slot.is_some());
        assert_eq!(held.map(|instance| instance.id.at), Some(at(first_held)), "edited at {edited_at}");
    }
}

/// Fifty runs by hand of fifty skipped times, at one instant and under one job's version: each is made.
#[tokio::test(start_paused = true)]
async fn fifty_triggers_of_one_job_at_once_all_settle() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T01:00:30Z").await;
    user.engine.plan_due().await.unwrap();
    let mut triggers = tokio::task::JoinSet::new();
    for minute in 0..50 {
        let character = Character { seed: 1_000 + minute, ..Character::default() };
        let engine = world.process(&format!("user {minute}"), character).engine.clone();
        let at = at(&format!("2026-08-30T00:{minute:02}:00Z"));
        triggers.spawn(async move { engine.trigger(&job_name("settle"), Some(at), None).await.unwrap().1 });
    }
    assert!(triggers.join_all().await.into_iter().all(|is_new| is_new));
    let account = answered_once(&world, "settle");
    let triggered = account.instances.iter().filter(|instance| instance.skipped == Some(SkipReason::CatchUp));
    assert_eq!(triggered.count(), 50);
}

/// After a day without a planner: who stops the job doesn't set off what was missed; a time that is just due runs.
#[tokio::test(start_paused = true)]
async fn whoever_stops_a_job_starts_nothing_that_was_missed() {
    for command in ["suspend", "delete", "apply suspended"] {
        for (catch_up, moment, runs) in [
            ("all", "2026-08-31T00:30:00Z", 0),
            ("latest", "2026-08-31T00:30:00Z", 0),
            ("all", "2026-08-31T01:00:20Z", 1),
            ("latest", "2026-08-31T01:00:20Z", 1),
        ] {
            let world = world();
            let user = by_hand(&world, "user");
            let file = |suspend: bool| {
                job("0 * * * *", |job| {
                    job["catchUp"] = catch_up.into();
                    job["suspend"] = suspend.into();
                })
            };
            user.engine.apply(&file(false), "/jobs").await.unwrap();
            until(&world, moment).await;
            let name = job_name("settle");
            match command {
                "suspend" => drop(user.engine.suspend(&name, None).await.unwrap()),
                "delete" => user.engine.delete(&name).await.unwrap(),
                _ => drop(user.engine.apply(&file(true), "/jobs").await.unwrap()),
            }
            let account = answered_once(&world, "settle");
            assert_eq!(account.instances.len(), runs, "{command}, {catch_up}, {moment}: {:?}", account.times());
            assert_eq!(account.skipped(SkipReason::CatchUp) as usize, account.expected.len() - runs, "{command}");
        }
    }
}
