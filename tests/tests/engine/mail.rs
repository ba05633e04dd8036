//! Messages are hints: doubled, reordered or lost, they change only when things happen.

use std::time::Duration;

use shardcron_domain::ids::ShardKey;
use shardcron_domain::time::Duration as Span;
use shardcron_engine::messages::{InstanceMessage, ShardMessage};
use shardcron_engine::{Budget, Sweep, events};
use shardcron_queue::{Queue, QueueName};
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::process::Character;
use shardcron_tests::queue::Mail;
use shardcron_tests::world::World;

/// kubernetes/kubernetes#105200, PowerJob/PowerJob#748: two processes get every message twice and in any order.
#[tokio::test(start_paused = true)]
async fn every_message_twice_and_in_any_order() {
    for seed in 0..20 {
        let fixture = Fixture::small();
        let world = World::with(&fixture, seed);
        world.queue.treat(Mail { lost: 0, doubled: 100, shuffled: true });
        let mut processes: Vec<_> = [1, 2]
            .map(|number| world.process(&format!("p{number}"), Character { seed: number, ..Character::default() }))
            .into();
        for process in &mut processes {
            process.start(Some(fixture.job()));
        }
        world.until_ended(120).await;
        world.assert_exact(&fixture).await;
        assert_eq!(world.journal.events(events::CLAIMED).len(), 3, "each shard is claimed once");
        assert_eq!(world.journal.events(events::ENDED).len(), 1);
    }
}

/// Each step is done twice, at the same time and one after the other.
#[tokio::test(start_paused = true)]
async fn every_step_twice() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let (one, other) = (world.process("one", Character::default()), world.process("other", Character::default()));
    one.engine.apply(&fixture.job(), "/jobs").await.unwrap();
    tokio::time::sleep(Duration::from_secs(25)).await;
    let (first, second) = tokio::join!(one.engine.plan_due(), other.engine.plan_due());
    assert_eq!(first.unwrap().instances + second.unwrap().instances, 1);
    let id = instance_id();
    for _ in 0..2 {
        for _ in 0..2 {
            let _ = tokio::join!(one.engine.advance(&id), other.engine.advance(&id));
        }
        for shard in world.shards() {
            for _ in 0..2 {
                let budget = Budget::default();
                let _ = tokio::join!(
                    one.engine.run_shard(&shard.key, None, &budget),
                    other.engine.run_shard(&shard.key, None, &budget)
                );
            }
        }
    }
    world.assert_exact(&fixture).await;
    assert!(world.shards().iter().all(|shard| shard.takeovers == 0));
}

/// kubernetes/kubernetes#108023: all messages are lost but those that the sweep sends.
#[tokio::test(start_paused = true)]
async fn the_sweep_alone_brings_a_job_to_its_end() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    let process = world.process("a", Character::default());
    process.engine.apply(&fixture.job(), "/jobs").await.unwrap();
    let mut seconds = 0;
    while world.instance(&instance_id()).is_none_or(|instance| !instance.status.is_terminal()) {
        seconds += 1;
        assert!(seconds < 120, "{}", world.journal.last(100));
        tokio::time::sleep(Duration::from_secs(1)).await;
        process.engine.plan_due().await.unwrap();
        world.queue.clear();
        process.engine.sweep(Sweep::Due).await.unwrap();
        let instances = world.queue.receive(QueueName::Instances, 10, Span::ZERO).await.unwrap();
        let shards = world.queue.receive(QueueName::Shards, 10, Span::ZERO).await.unwrap();
        for message in instances {
            let message: InstanceMessage = serde_json::from_str(&message.body).unwrap();
            process.engine.advance(&message.instance.0).await.unwrap();
        }
        for message in shards {
            let message: ShardMessage = serde_json::from_str(&message.body).unwrap();
            process.engine.run_shard(&message.key(), None, &Budget::default()).await.unwrap();
        }
    }
    world.assert_exact(&fixture).await;
}

/// A message about a done shard is the end of it: it doesn't set off those of the next ones, as the end of the shard did.
#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_when_its_shard_is_done_begets_no_other() {
    let fixture = Fixture::new(6, 6, 2);
    let world = World::with(&fixture, 1);
    let process = world.process("a", Character::default());
    let job = fixture.job_with(|job| job["parallelism"] = 1.into());
    process.engine.apply(&job, "/jobs").await.unwrap();
    tokio::time::sleep(Duration::from_secs(25)).await;
    process.engine.plan_due().await.unwrap();
    process.engine.advance(&instance_id()).await.unwrap();
    let run = async |shard: &ShardKey| {
        process.engine.run_shard(shard, None, &Budget::default()).await.unwrap();
    };
    let shards: Vec<ShardKey> = world.shards().into_iter().map(|shard| shard.key).collect();
    for shard in &shards[..4] {
        world.queue.clear();
        run(shard).await;
        assert_eq!(world.queue.len(), 1, "the end of {shard} sends the next");
    }
    world.queue.clear();
    for shard in &shards[..4] {
        run(shard).await;
    }
    assert!(world.queue.is_empty(), "{} messages", world.queue.len());
}

/// apache/dolphinscheduler#15761: without workers the sweep doesn't fill the queue, and on their return there is one attempt.
#[tokio::test(start_paused = true)]
async fn without_workers_the_queue_isnt_flooded() {
    let fixture = Fixture::new(1, 3, 3);
    let world = World::with(&fixture, 1);
    let mut planner = world.process("planner", Character { shard_workers: 0, ..Character::default() });
    planner.start(Some(fixture.job()));
    tokio::time::sleep(Duration::from_secs(630)).await;
    assert!(world.queue.len() < 15, "{} messages", world.queue.len());
    let _worker = world.healthy("worker", &fixture.job());
    world.until_ended(60).await;
    world.assert_exact(&fixture).await;
    assert_eq!(world.journal.events(events::CLAIMED).len(), 1);
}
