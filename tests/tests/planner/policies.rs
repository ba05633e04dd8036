//! Overlap policies with real shards at work: decided by the store, under races, and over jobs that share a slot (G7).
//!
//! The watch over slots fails each of these tests when at any write an instance is at work without holding its slot.

use std::sync::Arc;
use std::time::Duration;

use shardcron_domain::instance::{InstanceStatus, Outcome, SkipReason};
use shardcron_engine::{EngineError, events};
use shardcron_store::ItemKey;
use shardcron_tests::fixture::{instance_id, job_name};
use shardcron_tests::process::Character;
use shardcron_tests::work::Deed;

use crate::support::*;

/// Two schedulers, runs of 3.5 intervals: of every four times one runs and three are skipped (kubernetes/kubernetes#107827).
#[tokio::test(start_paused = true)]
async fn forbid_runs_one_at_a_time_and_records_the_others_as_overlap() {
    let world = world();
    let job = with_policy("* * * * *", "Forbid");
    let _one = worker(&world, "one", Duration::from_secs(210));
    let _two = worker(&world, "two", Duration::from_secs(210));
    by_hand(&world, "user").engine.apply(&job, "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:15:50Z").await;
    let account = answered_once(&world, "settle");
    assert_eq!(account.expected.len(), 16);
    assert_eq!(account.times(), ["00:00", "00:04", "00:08", "00:12"].map(|time| at(&format!("2026-08-30T{time}:00Z"))));
    assert_eq!(account.skipped(SkipReason::Overlap), 12);
    assert_eq!(account.by_state()["Succeeded"], 4);
    assert_windows_tile(&account);
}

#[tokio::test(start_paused = true)]
async fn queue_runs_all_in_order_one_at_a_time() {
    let world = world();
    let _one = worker(&world, "one", Duration::from_secs(90));
    let _two = worker(&world, "two", Duration::from_secs(90));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:09:30Z").await;
    user.engine.suspend(&job_name("settle"), None).await.unwrap();
    until(&world, "2026-08-30T00:20:00Z").await;
    let account = answered_once(&world, "settle");
    assert_eq!(account.by_state()["Succeeded"], 10, "{:?}", account.by_state());
    for pair in account.instances.windows(2) {
        assert!(pair[0].ended_at.unwrap() <= pair[1].started_at.unwrap(), "{} and {}", pair[0].id, pair[1].id);
        let idle = pair[1].started_at.unwrap().since(pair[0].ended_at.unwrap());
        assert!(idle.0 < 2_000, "the slot is passed on at once: {idle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replace_ends_the_old_one_before_the_new_one_is_claimed() {
    let world = world();
    let _one = worker(&world, "one", Duration::from_secs(150));
    let _two = worker(&world, "two", Duration::from_secs(150));
    by_hand(&world, "user").engine.apply(&with_policy("* * * * *", "Replace"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:05:30Z").await;
    let account = answered_once(&world, "settle");
    assert_eq!(account.instances.len(), 6);
    for pair in account.instances.windows(2) {
        assert_eq!(pair[0].status, InstanceStatus::Replaced { by: pair[1].id.clone() });
        assert!(pair[0].ended_at.unwrap() <= pair[1].started_at.unwrap());
    }
    assert_eq!(account.instances[5].status.name(), "Running");
}

/// The worker of the replaced one stands still through all of it and then goes on: none of its writes commits (G9).
#[tokio::test(start_paused = true)]
async fn a_late_commit_of_a_replaced_instance_is_refused() {
    let world = world();
    let deeds = Arc::new(|_: &str| Deed::Take(Duration::from_secs(2)));
    let mut old = world.process("old", Character { deeds, tick: None, ..Character::default() });
    old.start(None);
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("0 0 * * *", "Replace"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:00Z").await;
    user.engine.plan_due().await.unwrap();
    until_state(&world, &instance_id(), "Running", 10).await;
    seconds(1).await;
    old.life.freeze();
    let (new, is_new) =
        user.engine.trigger(&job_name("settle"), None, Some(instance(&world, &instance_id()).window)).await.unwrap();
    assert!(is_new);
    assert_eq!(new.status.name(), "Waiting");
    let _fresh = worker(&world, "fresh", Duration::ZERO);
    until_state(&world, &new.id, "Succeeded", 60).await;
    assert_eq!(outcome(&world, &instance_id()), Some(Outcome::Replaced { by: new.id.clone() }));
    let refused = world.journal.events(events::FENCED).len();
    old.life.thaw();
    seconds(30).await;
    let fenced = world.journal.events(events::FENCED);
    assert!(fenced.len() > refused && fenced.last().unwrap().process == "old", "{fenced:?}");
    assert_eq!(outcome(&world, &instance_id()), Some(Outcome::Replaced { by: new.id }));
    answered_once(&world, "settle");
}

/// Two jobs with one `concurrencyKey`: whichever policy each has, the slot has one holder.
#[tokio::test(start_paused = true)]
async fn jobs_with_one_key_share_one_slot() {
    for (one, other) in [("Forbid", "Forbid"), ("Queue", "Queue"), ("Queue", "Replace"), ("Forbid", "Queue")] {
        let world = world();
        let _worker = worker(&world, "worker", Duration::from_secs(40));
        let user = by_hand(&world, "user");
        for (name, policy) in [("settle", one), ("export", other)] {
            let job = job("* * * * *", |job| {
                job["name"] = name.into();
                job["concurrencyPolicy"] = policy.into();
                job["concurrencyKey"] = "ledger".into();
            });
            user.engine.apply(&job, "/jobs").await.unwrap();
        }
        until(&world, "2026-08-30T00:06:30Z").await;
        let accounts = ["settle", "export"].map(|name| answered_once(&world, name));
        let ended = accounts.iter().map(|account| account.by_state().get("Succeeded").copied().unwrap_or(0));
        assert!(ended.sum::<usize>() >= 6, "{one} and {other}: the slot isn't idle");
        let skipped: u64 = accounts.iter().map(|account| account.skipped(SkipReason::Overlap)).sum();
        match (one, other) {
            ("Forbid", "Forbid") => assert_eq!(skipped, 7),
            ("Queue", "Queue") => assert_eq!(skipped, 0),
            _ => {}
        }
    }
}

/// However many planners tick at one instant, each time has one answer, and one planner made it.
#[tokio::test(start_paused = true)]
async fn fifty_planners_of_one_instant_make_one_outcome() {
    for policy in ["Allow", "Forbid", "Queue", "Replace"] {
        let world = world();
        let planners: Vec<_> = (0..50).map(|number| by_hand(&world, &format!("planner {number}"))).collect();
        planners[0].engine.apply(&with_policy("* * * * *", policy), "/jobs").await.unwrap();
        for round in 0..3 {
            until(&world, &format!("2026-08-30T00:0{round}:00Z")).await;
            let mut ticks = tokio::task::JoinSet::new();
            for planner in &planners {
                let engine = planner.engine.clone();
                ticks.spawn(async move { engine.plan_due().await.unwrap() });
            }
            let planned = ticks.join_all().await;
            let outcomes: u64 = planned.iter().map(|planned| planned.instances as u64 + planned.skipped).sum();
            assert_eq!(outcomes, 1, "{policy}, minute {round}");
        }
        assert_eq!(answered_once(&world, "settle").expected.len(), 3);
    }
}

/// A run by hand counts for Forbid in both orders (kubernetes/kubernetes#126384).
#[tokio::test(start_paused = true)]
async fn a_run_by_hand_counts_for_forbid_in_both_orders() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(90));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("*/2 * * * *", "Forbid"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:30Z").await;
    let window = instance(&world, &instance_id()).window;
    let refused = user.engine.trigger(&job_name("settle"), None, Some(window)).await;
    assert!(matches!(refused, Err(EngineError::Overlap { .. })), "{refused:?}");
    until(&world, "2026-08-30T00:03:45Z").await;
    let (by_hand, _) = user.engine.trigger(&job_name("settle"), None, Some(window)).await.unwrap();
    until(&world, "2026-08-30T00:06:30Z").await;
    let account = answered_once(&world, "settle");
    assert_eq!(state(&world, &by_hand.id), "Succeeded");
    assert_eq!(account.skipped(SkipReason::Overlap), 1, "00:04 met the run by hand: {:?}", account.skips);
}

/// A holder whose record somebody deletes blocks nothing (kubernetes/kubernetes#37957).
#[tokio::test(start_paused = true)]
async fn a_holder_that_is_deleted_by_hand_blocks_nothing() {
    for policy in ["Forbid", "Queue", "Replace"] {
        let world = world();
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("* * * * *", policy), "/jobs").await.unwrap();
        until(&world, "2026-08-30T00:00:10Z").await;
        user.engine.plan_due().await.unwrap();
        if policy == "Queue" {
            until(&world, "2026-08-30T00:01:10Z").await;
            user.engine.plan_due().await.unwrap();
        }
        assert!(world.store.remove(&ItemKey::Instance(instance_id())));
        world.checker.accept();
        let _worker = worker(&world, "worker", Duration::ZERO);
        until(&world, "2026-08-30T00:03:10Z").await;
        for minute in ["00:02", "00:03"] {
            assert_eq!(state(&world, &id(&format!("2026-08-30T{minute}:00Z"))), "Succeeded", "{policy}");
        }
        assert!(!world.journal.events(events::HOLDER_GONE).is_empty());
        world.assert_sound();
    }
}
