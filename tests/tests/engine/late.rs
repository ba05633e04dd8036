//! An executor of an earlier generation that wakes late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shardcron_domain::ids::Generation;
use shardcron_domain::instance::InstanceStatus;
use shardcron_domain::shard::ShardStatus;
use shardcron_store::Item;
use shardcron_store::hooked::Operation;
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::gate::{Act, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::World;

/// Stands still, once, right after it has written a shard as failed, before it stops the instance for that.
#[derive(Default)]
struct FreezeAfterFailure(AtomicBool);

impl Script for FreezeAfterFailure {
    fn after(&self, request: &Request) -> Act {
        let Some(Operation::Transact(puts, _)) = &request.operation else { return Act::Proceed };
        match &puts[0].item {
            Item::Shard(shard) if matches!(shard.status, ShardStatus::Failed(_)) => {
                if self.0.swap(true, Ordering::Relaxed) { Act::Proceed } else { Act::Freeze }
            }
            _ => Act::Proceed,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_an_earlier_generation_stops_no_later_one() {
    let fixture = Fixture::small();
    let world = World::with(&fixture, 1);
    // It refuses one chunk, and would count all others.
    let refused = AtomicBool::new(false);
    let deeds: Deeds =
        Arc::new(move |_| if refused.swap(true, Ordering::Relaxed) { Deed::Count } else { Deed::Refuse });
    let character =
        Character { script: Box::<FreezeAfterFailure>::default(), deeds, shard_workers: 1, ..Character::default() };
    let mut late = world.process("late", character);
    late.start(Some(fixture.job()));
    world.until(60, "the freeze", |_| (late.life.state() == State::Frozen).then_some(())).await;
    let other = world.healthy("other", &fixture.job());
    let failed = world.until_ended(120).await;
    assert!(matches!(failed.status, InstanceStatus::Failed(_)), "{:?}", failed.status);
    other.engine.rerun(&instance_id(), None).await.unwrap();
    late.life.thaw();
    let instance = world.until_ended(120).await;
    assert_eq!((instance.generation, instance.status), (Generation(2), InstanceStatus::Succeeded));
    world.assert_exact(&fixture).await;
}
