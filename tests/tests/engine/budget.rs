//! Executors whose time ends: they commit, give back, and another goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shardcron_domain::limits::SHUTDOWN_MARGIN;
use shardcron_domain::time::Duration as Span;
use shardcron_engine::{Budget, events};
use shardcron_tests::fixture::Fixture;
use shardcron_tests::process::Character;
use shardcron_tests::work::Deed;
use shardcron_tests::world::World;

/// The job, whose shards aren't cut: there would be nobody for the other half.
fn alone(fixture: &Fixture) -> String {
    fixture.job_with(|job| job["parallelism"] = 1.into())
}

fn second_each() -> Arc<dyn Fn(&str) -> Deed + Send + Sync> {
    Arc::new(|_| Deed::Take(Duration::from_secs(1)))
}

#[tokio::test(start_paused = true)]
async fn a_short_budget_continues_without_a_takeover() {
    let fixture = Fixture::new(1, 12, 3);
    let world = World::with(&fixture, 1);
    let budget = Some(Span(SHUTDOWN_MARGIN.0 + 2_500));
    let mut process = world.process("a", Character { deeds: second_each(), budget, ..Character::default() });
    process.start(Some(alone(&fixture)));
    world.until_ended(120).await;
    world.assert_exact(&fixture).await;
    let shard = &world.shards()[0];
    assert_eq!((shard.takeovers, shard.failures), (0, 0));
    let released = world.journal.events(events::RELEASED).len();
    assert!((3..=12).contains(&released), "{released}");
    assert_eq!(world.journal.events(events::CLAIMED).len(), released + 1);
}

/// vmware-archive/vmware-go-kcl#26: who is asked to stop gives its shard back at once, not by letting its lease end.
#[tokio::test(start_paused = true)]
async fn a_clean_stop_hands_over_at_once() {
    let fixture = Fixture::new(1, 12, 3);
    let world = World::with(&fixture, 1);
    let mut planner = world.process("planner", Character { shard_workers: 0, ..Character::default() });
    planner.start(Some(alone(&fixture)));
    world.until(60, "the shard", |world| (!world.shards().is_empty()).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let key = world.shards()[0].key.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let first = world.process("first", Character { deeds: second_each(), ..Character::default() });
    let budget = Budget { ends: None, stop: Some(Arc::clone(&stop)) };
    let ask = async {
        tokio::time::sleep(Duration::from_millis(3500)).await;
        stop.store(true, Ordering::Relaxed);
        world.time.now()
    };
    let (handled, asked) = tokio::join!(first.engine.run_shard(&key, None, &budget), ask);
    handled.unwrap();
    let _second = world.healthy("second", &alone(&fixture));
    world.until_ended(60).await;
    world.assert_exact(&fixture).await;
    let claims = world.journal.events(events::CLAIMED);
    assert_eq!(claims.len(), 2);
    assert!(claims[1].at.since(asked).0 < 3_000, "{} after the stop", claims[1].at.since(asked));
    assert_eq!(world.shards()[0].takeovers, 0);
}
