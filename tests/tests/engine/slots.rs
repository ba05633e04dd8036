//! Slots under a look that stands still.

use std::time::Duration;

use shardcron_domain::instance::InstanceStatus;
use shardcron_engine::Sweep;
use shardcron_store::{Item, Store};
use shardcron_tests::fixture::{Fixture, job_name};
use shardcron_tests::gate::FreezeAtRequest;
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

/// A sweep that has read an instance which waits, and stands still until that is cancelled, doesn't put it back among
/// those that wait.
#[tokio::test(start_paused = true)]
async fn a_look_that_stood_still_puts_no_ended_instance_into_its_slot() {
    let mut stopped = 0;
    for number in 1.. {
        let fixture = Fixture::new(1, 1, 2);
        let world = World::with(&fixture, 1);
        let user = world.process("user", Character::default());
        let job = fixture.job_with(|job| {
            job["schedule"] = "* * * * *".into();
            job["concurrencyPolicy"] = "Queue".into();
        });
        user.engine.apply(&job, "/jobs").await.unwrap();
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            user.engine.plan_due().await.unwrap();
        }
        let name = job_name("settle");
        let (from, to) = ("2026-08-30T00:00:00Z".parse().unwrap(), "2026-08-31T00:00:00Z".parse().unwrap());
        let instances = world.store.instances(&name, from, to, None).await.unwrap();
        let second = instances.items.into_iter().next_back().unwrap();
        assert!(matches!(second.status, InstanceStatus::Waiting(_)), "{:?}", second.status);

        let script = Box::new(FreezeAtRequest::new(number));
        let sweeper = world.process("sweeper", Character { script, seed: 5, ..Character::default() });
        let cancel = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let is_stopped = sweeper.life.state() == State::Frozen;
            if is_stopped {
                user.engine.cancel(&second.id, None, "somebody").await.unwrap();
                sweeper.life.thaw();
            }
            is_stopped
        };
        let (looked, is_stopped) = tokio::join!(sweeper.engine.look_at(&second.id, Sweep::All), cancel);
        looked.unwrap();
        world.assert_sound();
        if !is_stopped {
            break;
        }
        stopped += 1;
        let waiting = world.store.snapshot().into_iter().find_map(|item| match item {
            Item::Slot(slot) => Some(slot.waiting),
            _ => None,
        });
        assert_eq!(waiting, Some(Vec::new()), "stopped at request {number}");
    }
    assert!(stopped >= 3, "{stopped}");
}
