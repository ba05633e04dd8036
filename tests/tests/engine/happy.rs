//! The road without a fault, and that a second walk on it does nothing.

use std::sync::Arc;
use std::time::Duration;

use shardcron_engine::apply::Applied;
use shardcron_engine::{Sweep, events};
use shardcron_tests::fixture::{Fixture, instance_id, job_name};
use shardcron_tests::planning::assert_planned;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

#[tokio::test(start_paused = true)]
async fn memory_objects_conform() {
    let objects = Arc::new(shardcron_tests::objects::MemoryObjects::default());
    shardcron_objects::conformance::all(objects, |part| shardcron_objects::Root::Bucket(part.to_owned())).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_its_road_and_is_exact() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", Character::default());
    process.start(Some(fixture.job()));
    world.until_ended(60).await;
    world.assert_exact(&fixture).await;
    assert!(world.shards().iter().all(|shard| shard.takeovers == 0 && shard.failures == 0));
    assert_planned(&world, &job_name("settle")).await;
}

/// `shards.batchRecords` bounds what is done again after a crash: no commit covers more.
#[tokio::test(start_paused = true)]
async fn a_commit_covers_at_most_batch_records() {
    let fixture = Fixture::new(1, 2, 5);
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", Character::default());
    process.start(Some(fixture.job_with(|job| job["shards"]["batchRecords"] = 2.into())));
    world.until_ended(60).await;
    world.assert_exact(&fixture).await;
    let commits = world.journal.events(events::COMMITTED);
    let records: Vec<u64> = commits.iter().map(|told| told.event.fields["records"].as_u64().unwrap()).collect();
    assert!(records.iter().all(|records| *records <= 2), "{records:?}");
}

/// PowerJob/PowerJob#748, apache/airflow#23520, awslabs/amazon-kinesis-client#1733: whatever comes again after the end, nothing is written any more.
#[tokio::test(start_paused = true)]
async fn a_second_run_of_everything_writes_nothing() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let mut first = world.process("first", Character::default());
    first.start(Some(fixture.job()));
    world.until_ended(60).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    first.kill();
    assert!(world.queue.is_empty(), "handled messages are deleted");

    let mut second = world.process("second", Character { seed: 2, ..Character::default() });
    let applied = second.engine.apply(&fixture.job(), "/jobs").await.unwrap();
    assert_eq!(applied.1, Applied::Unchanged);
    world.queue.repeat_all();
    second.start(Some(fixture.job()));
    tokio::time::sleep(Duration::from_secs(120)).await;
    second.engine.advance(&instance_id()).await.unwrap();
    second.engine.sweep(Sweep::All).await.unwrap();
    assert_eq!(second.gate.writes(), 0, "{}", world.journal.last(50));
    assert!(world.queue.is_empty(), "repeated messages are deleted");
    world.assert_exact(&fixture).await;
}
