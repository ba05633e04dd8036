//! Work that fails: pauses that grow, a bound on attempts, and an end that is clean.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shardcron_domain::instance::{FailReason, InstanceStatus};
use shardcron_domain::shard::FaultKind;
use shardcron_engine::events;
use shardcron_tests::fixture::{Fixture, input};
use shardcron_tests::process::Character;
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::World;

/// One shard of three objects of three records.
fn one_shard() -> Fixture {
    Fixture::new(1, 3, 3)
}

fn job(fixture: &Fixture, backoff_limit: u32) -> String {
    fixture.job_with(|job| {
        job["backoffLimit"] = backoff_limit.into();
        // A batch is an object's records, so that a deed at an object is a deed at a batch.
        job["shards"]["batchRecords"] = 3.into();
    })
}

/// Does `deed` at the first `times` meetings with the object, and then counts.
fn at_first(object: &'static str, times: usize, deed: Deed) -> Deeds {
    let met = AtomicUsize::new(0);
    Arc::new(move |source| {
        let is_it = source.ends_with(object) && met.fetch_add(1, Ordering::Relaxed) < times;
        if is_it { deed } else { Deed::Count }
    })
}

fn of(deeds: Deeds) -> Character {
    Character { deeds, ..Character::default() }
}

/// The reason for which the instance has failed because of a shard.
fn shard_fault(status: &InstanceStatus) -> (FaultKind, String) {
    match status {
        InstanceStatus::Failed(FailReason::Shard { fault, .. }) => (fault.kind, fault.summary().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// A while later, with all messages sent again, nothing has begun anew.
async fn assert_stays_ended(world: &World) {
    let before = world.checker.snapshot();
    world.queue.repeat_all();
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.assert_sound();
    assert!(world.checker.snapshot() == before, "{}", world.journal.last(50));
    assert!(world.shards().iter().all(|shard| !shard.status.is_open()));
}

#[tokio::test(start_paused = true)]
async fn retryable_failures_are_retried_after_growing_pauses() {
    let fixture = one_shard();
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", of(at_first("01.csv", 4, Deed::Fail)));
    process.start(Some(job(&fixture, 6)));
    world.until_ended(120).await;
    world.assert_exact(&fixture).await;
    let (claims, failures) = (world.journal.events(events::CLAIMED), world.journal.events(events::ATTEMPT_FAILED));
    assert_eq!((claims.len(), failures.len()), (5, 4));
    for (failure, ceiling) in failures.iter().zip([1, 2, 4, 8]) {
        let next = claims.iter().find(|claim| claim.at > failure.at).expect("there is another attempt");
        // Messages come at whole seconds, so up to one later.
        assert!(next.at.since(failure.at).0 <= (ceiling + 1) * 1000 + 100, "{failure:?}, {next:?}");
    }
    assert_eq!(world.shards()[0].failures, 0, "progress ends the count");
    assert_eq!(world.shards()[0].takeovers, 0, "a failure that was told isn't a takeover");
}

#[tokio::test(start_paused = true)]
async fn progress_ends_the_count_of_failures() {
    let fixture = one_shard();
    let world = World::with(&fixture, 1);
    let met = AtomicUsize::new(0);
    // Each object fails twice: six failures, never more than two in a row.
    let deeds: Deeds =
        Arc::new(move |_| if met.fetch_add(1, Ordering::Relaxed) % 3 < 2 { Deed::Fail } else { Deed::Count });
    let mut process = world.process("a", of(deeds));
    process.start(Some(job(&fixture, 2)));
    world.until_ended(300).await;
    world.assert_exact(&fixture).await;
    assert_eq!(world.journal.events(events::ATTEMPT_FAILED).len(), 6);
}

/// kubernetes/kubernetes#130103, awslabs/amazon-kinesis-client#702.
#[tokio::test(start_paused = true)]
async fn a_work_that_always_fails_gets_one_attempt_more_than_the_limit() {
    for limit in [0, 1, 3] {
        let fixture = one_shard();
        let world = World::with(&fixture, 1);
        let mut processes: Vec<_> = ["a", "b"].map(|name| world.process(name, of(Arc::new(|_| Deed::Fail)))).into();
        for process in &mut processes {
            process.start(Some(job(&fixture, limit)));
        }
        let instance = world.until_ended(600).await;
        assert_eq!(shard_fault(&instance.status).0, FaultKind::Retryable);
        assert_eq!(world.journal.events(events::CLAIMED).len(), limit as usize + 1);
        assert_eq!(world.journal.events(events::ATTEMPT_FAILED).len(), limit as usize + 1);
        assert_stays_ended(&world).await;
        assert_eq!(world.journal.events(events::CLAIMED).len(), limit as usize + 1);
    }
}

/// kubernetes/kubernetes#69774: a process that dies without a word counts as a failure, so that it doesn't loop for ever.
#[tokio::test(start_paused = true)]
async fn a_batch_that_kills_its_process_ends_in_failed() {
    for limit in [0, 2] {
        let fixture = one_shard();
        let world = World::with(&fixture, 1);
        let (_, deaths) = {
            let run = world.supervise(600, |number| {
                let kill: Deeds = Arc::new(|source| if source.ends_with("01.csv") { Deed::Kill } else { Deed::Count });
                let mut process = world.process(&format!("p{number}"), Character { seed: number as u64, ..of(kill) });
                process.start(Some(job(&fixture, limit)));
                process
            });
            let (instance, deaths) = run.await;
            let (kind, text) = shard_fault(&instance.status);
            assert_eq!(kind, FaultKind::Crash);
            assert!(text.contains("stopped without a word"), "{text}");
            (instance, deaths)
        };
        // The first death comes after progress (object 00), so it isn't one of those in a row.
        assert_eq!(deaths, limit as usize + 2);
        assert_eq!(world.journal.events(events::CLAIMED).len(), deaths);
        let _idle = world.healthy("idle", &job(&fixture, limit));
        assert_stays_ended(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn deaths_with_progress_between_them_go_on_to_the_end() {
    let fixture = one_shard();
    let world = World::with(&fixture, 1);
    let met = Arc::new(AtomicUsize::new(0));
    let (_, deaths) =
        world
            .supervise(600, |number| {
                let met = Arc::clone(&met);
                // Each object kills once.
                let deeds: Deeds = Arc::new(move |_| {
                    if met.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { Deed::Kill } else { Deed::Count }
                });
                let mut process = world.process(&format!("p{number}"), Character { seed: number as u64, ..of(deeds) });
                process.start(Some(job(&fixture, 1)));
                process
            })
            .await;
    assert_eq!(deaths, 3);
    world.assert_exact(&fixture).await;
}

/// awslabs/amazon-kinesis-client#10: what a batch had counted when it failed isn't counted twice.
#[tokio::test(start_paused = true)]
async fn a_failure_in_the_middle_of_a_batch_keeps_nothing_of_it() {
    let fixture = one_shard();
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", of(at_first("01.csv", 3, Deed::CountAndFail)));
    process.start(Some(job(&fixture, 6)));
    world.until_ended(300).await;
    world.assert_exact(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_input_fails_at_once() {
    let fixture = one_shard();
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", of(at_first("01.csv", 99, Deed::Refuse)));
    process.start(Some(job(&fixture, 6)));
    let instance = world.until_ended(60).await;
    assert_eq!(shard_fault(&instance.status).0, FaultKind::Input);
    assert_eq!(world.journal.events(events::CLAIMED).len(), 1);
    assert_stays_ended(&world).await;
}

/// awslabs/amazon-kinesis-client#702: a record that can't be counted is in the rejects once, or fails the job; it is never left out silently.
#[tokio::test(start_paused = true)]
async fn a_bad_record_is_rejected_once_or_fails_the_job() {
    for allowed in [0, 1] {
        let fixture = one_shard();
        let world = World::with(&fixture, 1);
        let bad = format!("{}m0,x12\n", fixture.objects[1].1);
        world.objects.overwrite(&input("01.csv"), bad);
        let mut process = world.process("a", of(at_first("02.csv", 2, Deed::Fail)));
        process.start(Some(fixture.job_with(|job| job["rejects"] = serde_json::json!({ "max": allowed }))));
        let instance = world.until_ended(120).await;
        world.assert_sound();
        if allowed == 0 {
            assert_eq!(shard_fault(&instance.status).0, FaultKind::Input);
            assert!(shard_fault(&instance.status).1.contains("01.csv, line 5"), "{:?}", instance.status);
            continue;
        }
        assert_eq!(instance.status, InstanceStatus::Succeeded);
        let counts = instance.counts.unwrap();
        assert_eq!((counts.input, counts.output, counts.rejected), (10, 9, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_after_the_boundary_fails_the_job_at_once() {
    let fixture = one_shard();
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", of(at_first("00.csv", 1, Deed::Take(Duration::from_secs(2)))));
    process.start(Some(job(&fixture, 6)));
    world.until(60, "the claim", |world| (!world.journal.events(events::CLAIMED).is_empty()).then_some(())).await;
    world.objects.overwrite(&input("02.csv"), "merchant,amount\nm9,999\n");
    let instance = world.until_ended(60).await;
    let (kind, text) = shard_fault(&instance.status);
    assert_eq!(kind, FaultKind::Input);
    assert!(text.contains("02.csv") && text.contains("has changed"), "{text}");
    assert_stays_ended(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_was_tampered_with_fails_the_job_at_once() {
    // Of two shards, one at a time, so that the second reads the page when it isn't what it was.
    let fixture = Fixture::new(2, 1, 3);
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", of(at_first("00.csv", 1, Deed::Take(Duration::from_secs(2)))));
    process.start(Some(fixture.job_with(|job| {
        job["backoffLimit"] = 6.into();
        job["parallelism"] = 1.into();
    })));
    world.until(60, "the claim", |world| (!world.journal.events(events::CLAIMED).is_empty()).then_some(())).await;
    let pages = world.objects.find(|key| key.contains("manifests/") && !key.ends_with("/manifest.json"));
    assert_eq!(pages.len(), 1, "{pages:?}");
    world.objects.overwrite(&pages[0].0, "{}");
    let instance = world.until_ended(60).await;
    let (kind, text) = shard_fault(&instance.status);
    assert_eq!(kind, FaultKind::Input);
    assert!(text.contains("a manifest can't be used"), "{text}");
    assert_eq!(world.journal.events(events::CLAIMED).len(), 2);
    assert_stays_ended(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_input_fails_at_once() {
    let fixture = one_shard();
    let world = World::new(1);
    let mut process = world.process("a", Character::default());
    process.start(Some(fixture.job()));
    let instance = world.until_ended(60).await;
    let InstanceStatus::Failed(FailReason::EmptyInput { place }) = &instance.status else {
        panic!("{:?}", instance.status)
    };
    assert_eq!(place, "s3://ledger/in/");
    assert_stays_ended(&world).await;
}
