//! Deadlines of starting, of working, and of the input: each has the last word, and says that it had.

use std::sync::Arc;
use std::time::Duration;

use shardcron_domain::instance::{FailReason, InstanceStatus, Outcome, SkipReason};
use shardcron_domain::location::Root;
use shardcron_engine::{EngineError, events};
use shardcron_objects::ObjectName;
use shardcron_tests::fixture::{instance_id, job_name};
use shardcron_tests::work::Deed;

use crate::support::*;

/// `startingDeadlineSeconds` cuts the past off, on the edge too, whatever `catchUp` would still run.
#[tokio::test(start_paused = true)]
async fn times_beyond_the_starting_deadline_are_recorded_as_such() {
    for (catch_up, ran) in [("all", 59), ("latest", 1), ("none", 1)] {
        let world = world();
        world.checker.go_light();
        let user = by_hand(&world, "user");
        let file = job("* * * * *", |job| {
            job["startingDeadlineSeconds"] = 3540.into();
            job["catchUp"] = catch_up.into();
        });
        user.engine.apply(&file, "/jobs").await.unwrap();
        until(&world, "2026-08-30T02:59:00Z").await;
        user.engine.plan_due().await.unwrap();
        let account = answered_once(&world, "settle");
        assert_eq!((account.expected.len(), account.instances.len()), (180, ran), "{catch_up}");
        // 02:00 is exactly 3540 s ago: too late, as in Kubernetes.
        assert_eq!(account.skipped(SkipReason::StartingDeadlineExceeded), 121, "{catch_up}");
        assert_eq!(account.skips[0].to, at("2026-08-30T02:00:00Z"));
        assert_eq!(
            account.skips.len(),
            if catch_up == "latest" || catch_up == "none" { 2 } else { 1 },
            "a run of skips is one row"
        );
    }
}

/// A time that came while the slot was taken is in time all the same: it was planned when it came. Only what nobody
/// planned is too late (temporalio/documentation#5288).
#[tokio::test(start_paused = true)]
async fn waiting_for_the_slot_isnt_lateness() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(180));
    let user = by_hand(&world, "user");
    let file = job("* * * * *", |job| {
        job["concurrencyPolicy"] = "Queue".into();
        job["startingDeadlineSeconds"] = 60.into();
    });
    user.engine.apply(&file, "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:03:30Z").await;
    user.engine.suspend(&job_name("settle"), None).await.unwrap();
    until(&world, "2026-08-30T00:14:00Z").await;
    assert_eq!(answered_once(&world, "settle").by_state()["Succeeded"], 4);
}

/// Attempts that fail every few seconds, with retries left: at its end the deadline wins (kubernetes/website#7722).
#[tokio::test(start_paused = true)]
async fn the_active_deadline_beats_the_retries_that_are_left() {
    let world = world();
    let attempts = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, time) = (Arc::clone(&attempts), world.time);
    let deeds = Arc::new(move |_: &str| {
        seen.lock().unwrap().push(time.now());
        Deed::Fail
    });
    let _worker = with_deeds(&world, "worker", deeds);
    let file = job("0 0 * * *", |job| {
        job["backoffLimit"] = 1000.into();
        job["activeDeadlineSeconds"] = 20.into();
    });
    by_hand(&world, "user").engine.apply(&file, "/jobs").await.unwrap();
    until_state(&world, &instance_id(), "Failed", 100).await;
    let ended = instance(&world, &instance_id());
    assert_eq!(ended.status, InstanceStatus::Failed(FailReason::DeadlineExceeded));
    let deadline = ended.started_at.unwrap().plus(shardcron_domain::time::Duration::from_secs(20));
    let late = ended.ended_at.unwrap().since(deadline);
    assert!((0..=2_500).contains(&late.0), "it ended {late:?} after its deadline");
    minutes(10).await;
    let attempts = attempts.lock().unwrap().clone();
    assert!(attempts.len() >= 2 && attempts.iter().all(|at| *at < deadline), "{attempts:?}");
    answered_once(&world, "settle");
}

/// The work takes no notice of the deadline: it ends as Failed in time, and the late commit is refused
/// (kubernetes/kubernetes#43512). A retry has a deadline of its own.
#[tokio::test(start_paused = true)]
async fn work_that_ignores_the_deadline_cant_commit_after_it() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(60));
    let user = by_hand(&world, "user");
    let file = job("0 0 * * *", |job| job["activeDeadlineSeconds"] = 20.into());
    user.engine.apply(&file, "/jobs").await.unwrap();
    until_state(&world, &instance_id(), "Failed", 60).await;
    let ended = instance(&world, &instance_id());
    let took = ended.ended_at.unwrap().since(ended.started_at.unwrap());
    assert!((20_000..=22_500).contains(&took.0), "{took:?}");
    minutes(3).await;
    assert_eq!(outcome(&world, &instance_id()), Some(Outcome::Failed(FailReason::DeadlineExceeded)));
    assert!(world.shards().iter().all(|shard| shard.counts.input == 0), "nothing was committed late");
    let retried = user.engine.retry(&instance_id(), None).await.unwrap();
    assert_eq!(retried.deadline, None);
    seconds(10).await;
    assert_eq!(state(&world, &instance_id()), "Running");
    until_state(&world, &instance_id(), "Failed", 30).await;
}

/// Nothing of an instance runs, no worker there: the deadline counts from the first claim, not from the plan.
#[tokio::test(start_paused = true)]
async fn the_active_deadline_counts_from_the_start_of_the_work() {
    let world = world();
    let user = by_hand(&world, "user");
    let file = job("0 0 * * *", |job| job["activeDeadlineSeconds"] = 20.into());
    user.engine.apply(&file, "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:01Z").await;
    user.engine.plan_due().await.unwrap();
    until(&world, "2026-08-30T01:00:00Z").await;
    let _worker = worker(&world, "worker", Duration::from_secs(10));
    until_state(&world, &instance_id(), "Succeeded", 200).await;
}

fn marker() -> ObjectName {
    ObjectName { root: Root::Bucket("upstream".to_owned()), key: "done/2026-08-30".to_owned() }
}

fn waits_for_marker(schedule: &str, policy: &str) -> String {
    job(schedule, |job| {
        job["concurrencyPolicy"] = policy.into();
        job["input"]["ready"] = serde_json::json!({ "object": "s3://upstream/done/{time:%F}", "withinSeconds": 300 });
    })
}

#[tokio::test(start_paused = true)]
async fn an_instance_waits_for_its_input_and_starts_when_it_is_there() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::ZERO);
    by_hand(&world, "user").engine.apply(&waits_for_marker("0 0 * * *", "Forbid"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:04:00Z").await;
    assert_eq!(state(&world, &instance_id()), "Waiting");
    assert!(world.queue.len() <= 4, "{} messages wait with it", world.queue.len());
    world.objects.overwrite(&marker(), "there".to_owned());
    until_state(&world, &instance_id(), "Succeeded", 10).await;
    answered_once(&world, "settle");
}

/// While it waits its messages are lost: the sweep looks again.
#[tokio::test(start_paused = true)]
async fn an_instance_that_waits_for_its_input_needs_no_message() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::ZERO);
    by_hand(&world, "user").engine.apply(&waits_for_marker("0 0 * * *", "Allow"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:02:00Z").await;
    world.queue.clear();
    world.objects.overwrite(&marker(), "there".to_owned());
    until_state(&world, &instance_id(), "Succeeded", 30).await;
}

#[tokio::test(start_paused = true)]
async fn input_that_isnt_ready_in_time_fails_the_instance() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::ZERO);
    let user = by_hand(&world, "user");
    user.engine.apply(&waits_for_marker("0 0 * * *", "Forbid"), "/jobs").await.unwrap();
    until_state(&world, &instance_id(), "Failed", 400).await;
    let ended = instance(&world, &instance_id());
    let InstanceStatus::Failed(FailReason::NotReady { object }) = &ended.status else { panic!("{ended:?}") };
    assert!(object.contains("done/2026-08-30"), "{object}");
    let late = ended.ended_at.unwrap().since(at("2026-08-30T00:05:00Z").millis());
    assert!((0..=3_000).contains(&late.0), "{late:?}");
    assert!(world.shards().is_empty());
    // A retry doesn't read an input that isn't there either; once it is, it does.
    user.engine.retry(&instance_id(), None).await.unwrap();
    until_state(&world, &instance_id(), "Failed", 20).await;
    assert!(world.shards().is_empty(), "the marker still isn't there");
    world.objects.overwrite(&marker(), "there".to_owned());
    user.engine.retry(&instance_id(), None).await.unwrap();
    until_state(&world, &instance_id(), "Succeeded", 20).await;
    answered_once(&world, "settle");
}

/// One that waits for its input can be cancelled, and holds its slot as long as it waits.
#[tokio::test(start_paused = true)]
async fn an_instance_that_waits_for_its_input_holds_its_slot_and_can_be_cancelled() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::ZERO);
    let user = by_hand(&world, "user");
    user.engine.apply(&waits_for_marker("* * * * *", "Forbid"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:02:30Z").await;
    assert_eq!(answered_once(&world, "settle").skipped(SkipReason::Overlap), 2);
    user.engine.cancel(&instance_id(), None, "ada").await.unwrap();
    assert_eq!(state(&world, &instance_id()), "Cancelled");
    let refused = user.engine.cancel(&instance_id(), None, "bob").await;
    assert!(refused.is_ok(), "it stays cancelled: {refused:?}");
    until(&world, "2026-08-30T00:03:30Z").await;
    assert_eq!(state(&world, &id("2026-08-30T00:03:00Z")), "Waiting");
    let overlap = user.engine.trigger(&job_name("settle"), Some(at("2026-08-30T00:02:00Z")), None).await;
    assert!(matches!(overlap, Err(EngineError::Overlap { .. })), "{overlap:?}");
    assert_eq!(world.journal.events(events::ENDED).len(), 1);
}
