//! Cancel, retry and rerun: of exactly the run that they name, once, and in their turn at the slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shardcron_domain::ids::Generation;
use shardcron_domain::instance::{InstanceStatus, Outcome};
use shardcron_domain::shard::ShardStatus;
use shardcron_engine::command::Expect;
use shardcron_engine::{EngineError, events};
use shardcron_tests::fixture::{Fixture, instance_id, job_name};
use shardcron_tests::process::Character;
use shardcron_tests::work::Deed;
use shardcron_tests::world::World;

use crate::support::*;

/// Under Allow with runs longer than the interval: the second is cancelled, and only that (xuxueli/xxl-job#471).
#[tokio::test(start_paused = true)]
async fn a_cancel_in_flight_is_of_that_one_only() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(100));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:03:30Z").await;
    let second = id("2026-08-30T00:02:00Z");
    let ended = user.engine.cancel(&second, None, "ada").await.unwrap();
    assert_eq!(ended.status, InstanceStatus::Cancelled { by: "ada".to_owned() });
    assert!(world.shards().iter().filter(|shard| shard.key.run.instance == second).all(|s| !s.status.is_open()));
    until(&world, "2026-08-30T00:07:30Z").await;
    let states =
        ["00:00", "00:01", "00:02", "00:03", "00:04"].map(|time| state(&world, &id(&format!("2026-08-30T{time}:00Z"))));
    assert_eq!(states, ["Succeeded", "Succeeded", "Cancelled", "Succeeded", "Succeeded"]);
    answered_once(&world, "settle");
}

/// The same cancel, delivered again: at once, after its end, after a retry of it, and racing with itself.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_is_delivered_twice_acts_once() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(30));
    let (user, other) = (by_hand(&world, "user"), by_hand(&world, "other"));
    user.engine.apply(&with_policy("0 0 * * *", "Forbid"), "/jobs").await.unwrap();
    until_state(&world, &instance_id(), "Running", 40).await;
    let expect = Some(Expect::of(&instance(&world, &instance_id())));
    let id = instance_id();
    let (one, two) = tokio::join!(user.engine.cancel(&id, expect, "ada"), other.engine.cancel(&id, expect, "ada"));
    assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
    until_state(&world, &id, "Cancelled", 5).await;
    user.engine.cancel(&id, expect, "ada").await.unwrap();
    assert_eq!(world.journal.events(events::ENDED).len(), 1);
    let retried = user.engine.retry(&id, expect).await.unwrap();
    assert_eq!(retried.attempt.0, 2);
    let late = user.engine.cancel(&id, expect, "ada").await;
    assert!(matches!(late, Err(EngineError::Superseded { .. })), "{late:?}");
    let again = user.engine.retry(&id, expect).await;
    assert!(matches!(again, Err(EngineError::Superseded { .. })), "{again:?}");
    until_state(&world, &id, "Succeeded", 60).await;
    let ended = user.engine.cancel(&id, None, "ada").await;
    assert!(matches!(ended, Err(EngineError::Instance(_))), "{ended:?}");
    answered_once(&world, "settle");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_waiting_one_takes_it_off_the_queue() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(200));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:02:30Z").await;
    user.engine.suspend(&job_name("settle"), Some("no more".to_owned())).await.unwrap();
    let waiting = id("2026-08-30T00:01:00Z");
    assert_eq!(state(&world, &waiting), "Waiting");
    user.engine.cancel(&waiting, None, "ada").await.unwrap();
    assert_eq!(state(&world, &waiting), "Cancelled");
    until(&world, "2026-08-30T00:08:00Z").await;
    assert!(instance(&world, &waiting).started_at.is_none());
    let states = ["00:00", "00:02"].map(|time| state(&world, &id(&format!("2026-08-30T{time}:00Z"))));
    assert_eq!(states, ["Succeeded", "Succeeded"]);
    answered_once(&world, "settle");
}

/// Of three shards one fails: the retry does that one alone, and each record counts once.
#[tokio::test(start_paused = true)]
async fn a_retry_continues_on_the_results_that_are_there() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let well = Arc::new(AtomicBool::new(false));
    let now_well = Arc::clone(&well);
    let deeds = Arc::new(move |source: &str| {
        let is_bad = source.contains("05.csv") && !now_well.load(Ordering::Relaxed);
        // Time for the others to be done.
        if is_bad { Deed::Refuse } else { Deed::Count }
    });
    let mut process = world.process("a", Character { deeds, shard_workers: 1, ..Character::default() });
    process.start(Some(fixture.job_with(|job| job["concurrencyPolicy"] = "Forbid".into())));
    until_state(&world, &instance_id(), "Failed", 60).await;
    let tokens = |world: &World| -> Vec<u64> {
        world.shards().iter().filter(|shard| shard.status == ShardStatus::Done).map(|shard| shard.token.0).collect()
    };
    let done_before = tokens(&world);
    assert!(!done_before.is_empty());
    let committed = world.journal.events(events::COMMITTED).len();
    well.store(true, Ordering::Relaxed);
    process.engine.retry(&instance_id(), None).await.unwrap();
    until_state(&world, &instance_id(), "Succeeded", 60).await;
    world.assert_exact(&fixture).await;
    let records: u64 = world.journal.events(events::COMMITTED)[committed..]
        .iter()
        .map(|told| told.event.fields["records"].as_u64().unwrap())
        .sum();
    assert!(records < fixture.records, "{records} of {} were done again", fixture.records);
    let done_first = world.shards().into_iter().take(done_before.len()).map(|shard| shard.token.0).collect::<Vec<_>>();
    assert_eq!(done_first, done_before, "no finished shard was claimed again");
}

#[tokio::test(start_paused = true)]
async fn a_rerun_is_another_generation_and_takes_the_certificates_place() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::ZERO);
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("0 0 * * *", "Queue"), "/jobs").await.unwrap();
    until_state(&world, &instance_id(), "Succeeded", 60).await;
    let first = instance(&world, &instance_id());
    user.engine.rerun(&instance_id(), Some(Expect::of(&first))).await.unwrap();
    let twice = user.engine.rerun(&instance_id(), Some(Expect::of(&first))).await;
    assert!(matches!(twice, Err(EngineError::Superseded { .. })), "{twice:?}");
    until_state(&world, &instance_id(), "Succeeded", 60).await;
    let second = instance(&world, &instance_id());
    assert_eq!((second.generation, second.attempt.0), (Generation(2), 1));
    let certificate = user.engine.certificate(&second).await.unwrap().unwrap();
    assert_eq!(certificate.generation, Generation(2));
    world.assert_exact(&tiny()).await;
}

/// Under Forbid what somebody asks for is refused while another holds the slot; under Queue it waits its turn.
#[tokio::test(start_paused = true)]
async fn retry_rerun_and_trigger_come_to_the_slot_as_scheduled_ones_do() {
    for policy in ["Forbid", "Queue"] {
        let world = world();
        let well = Arc::new(AtomicBool::new(false));
        let healthy = Arc::clone(&well);
        let deeds =
            Arc::new(
                move |_: &str| {
                    if healthy.load(Ordering::Relaxed) { Deed::Take(Duration::from_secs(50)) } else { Deed::Refuse }
                },
            );
        let _worker = with_deeds(&world, "worker", deeds);
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("* * * * *", policy), "/jobs").await.unwrap();
        until_state(&world, &instance_id(), "Failed", 40).await;
        well.store(true, Ordering::Relaxed);
        until(&world, "2026-08-30T00:01:20Z").await;
        user.engine.suspend(&job_name("settle"), None).await.unwrap();
        let window = instance(&world, &instance_id()).window;
        let retried = user.engine.retry(&instance_id(), None).await;
        let triggered = user.engine.trigger(&job_name("settle"), None, Some(window)).await;
        if policy == "Forbid" {
            assert!(matches!(retried, Err(EngineError::Overlap { .. })), "{retried:?}");
            assert!(matches!(triggered, Err(EngineError::Overlap { .. })), "{triggered:?}");
            let rerun = user.engine.rerun(&instance_id(), None).await;
            assert!(matches!(rerun, Err(EngineError::Overlap { .. })), "{rerun:?}");
            assert_eq!(state(&world, &instance_id()), "Failed");
        } else {
            assert_eq!(retried.unwrap().status.name(), "Waiting");
            let triggered = triggered.unwrap().0;
            assert_eq!(triggered.status.name(), "Waiting");
            until_state(&world, &triggered.id, "Succeeded", 300).await;
            assert_eq!(state(&world, &instance_id()), "Succeeded");
            // One that has succeeded is run again from scratch, in its turn too.
            let rerun = user.engine.rerun(&instance_id(), None).await.unwrap();
            assert_eq!(rerun.status.name(), "Planned");
            let waits = user.engine.rerun(&triggered.id, None).await.unwrap();
            assert_eq!(waits.status.name(), "Waiting");
            until_state(&world, &triggered.id, "Succeeded", 300).await;
            assert_eq!(state(&world, &instance_id()), "Succeeded");
        }
        answered_once(&world, "settle");
    }
}

/// What is asked for under Replace stops the one at work, and a cancel of it then doesn't change how it ends.
#[tokio::test(start_paused = true)]
async fn a_rerun_under_replace_ends_the_holder_as_replaced() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::from_secs(50));
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Replace"), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:01:20Z").await;
    user.engine.suspend(&job_name("settle"), None).await.unwrap();
    let holder = id("2026-08-30T00:01:00Z");
    user.engine.rerun(&instance_id(), None).await.unwrap();
    until_state(&world, &instance_id(), "Succeeded", 120).await;
    assert_eq!(outcome(&world, &holder), Some(Outcome::Replaced { by: instance_id() }));
    assert!(user.engine.cancel(&holder, None, "ada").await.is_err());
    let refused = user.engine.retry(&holder, None).await;
    assert!(matches!(refused, Err(EngineError::Instance(_))), "a replaced one is rerun, not retried: {refused:?}");
    answered_once(&world, "settle");
}
