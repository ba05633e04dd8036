//! Cancelling, and short budgets, in the middle of an outbox.

use std::time::Duration;

use serde_json::json;
use shardcron_domain::instance::InstanceStatus;
use shardcron_domain::limits::SHUTDOWN_MARGIN;
use shardcron_domain::time::Duration as Span;
use shardcron_engine::events;
use shardcron_tests::fixture::instance_id;
use shardcron_tests::gate::{LATENCY, Request, Script};
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

use super::Paying;

/// Each effect is under way for so long.
struct SlowSends(Duration);

impl Script for SlowSends {
    fn latency(&self, request: &Request) -> Duration {
        if request.what.starts_with("send ") { self.0 } else { LATENCY }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_the_sending_and_a_retry_goes_on_with_it() {
    let paying = Paying::new(8, &json!({}));
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(SlowSends(Duration::from_millis(500)));
    let mut process = world.process("a", Character { script, ..Character::default() });
    process.start(Some(paying.job.clone()));
    world.until(60, "some effects", |world| (world.target.accepted().len() >= 5).then_some(())).await;
    process.engine.cancel(&instance_id(), None, "a test").await.unwrap();
    let at_cancel = world.target.accepted().len();
    let instance = world.until_ended(60).await;
    assert!(matches!(instance.status, InstanceStatus::Cancelled { .. }), "{:?}", instance.status);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let sent = world.target.accepted().len();
    // Of each shard the one in flight, and the one that left before its fence was written.
    assert!(sent <= at_cancel + 4 && sent < paying.effects(), "{at_cancel} at the cancel, {sent} in the end");
    paying.assert_in_order(&world);

    process.engine.retry(&instance_id(), None).await.unwrap();
    world.until_ended(120).await;
    paying.assert_all_sent(&world).await;
}

#[tokio::test(start_paused = true)]
async fn short_budgets_send_all_without_a_takeover() {
    let paying = Paying::new(6, &json!({ "timeoutSeconds": 1 }));
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(SlowSends(Duration::from_millis(700)));
    let budget = Some(Span(SHUTDOWN_MARGIN.0 + 3_000));
    let mut process = world.process("a", Character { script, budget, ..Character::default() });
    process.start(Some(paying.job.clone()));
    world.until_ended(300).await;
    paying.assert_all_sent(&world).await;
    assert!(world.journal.events(events::RELEASED).len() >= 2);
    assert!(world.shards().iter().all(|shard| (shard.takeovers, shard.failures) == (0, 0)));
    assert_eq!(world.target.received(), paying.effects());
}

/// The lease is kept while a target takes its time, and given up to nobody.
#[tokio::test(start_paused = true)]
async fn a_slow_target_keeps_the_lease() {
    let paying = Paying::new(2, &json!({ "timeoutSeconds": 60 }));
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(SlowSends(Duration::from_secs(40)));
    let mut slow = world.process("slow", Character { script, ..Character::default() });
    slow.start(Some(paying.job.clone()));
    let _other = world.healthy("other", &paying.job);
    world.until_ended(600).await;
    paying.assert_all_sent(&world).await;
    assert!(world.shards().iter().all(|shard| shard.takeovers == 0));
    assert_eq!(world.target.received(), paying.effects());
}

#[tokio::test(start_paused = true)]
async fn a_target_beyond_its_time_is_without_an_answer() {
    let paying = Paying::new(1, &json!({ "timeoutSeconds": 2 }));
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(SlowSends(Duration::from_secs(3)));
    let mut slow = world.process("slow", Character { script, ..Character::default() });
    slow.start(Some(paying.job.clone()));
    let told = |world: &World| world.journal.events(events::EFFECT_UNKNOWN).first().cloned();
    let event = world.until(60, "an unknown effect", told).await;
    assert_eq!(event.event.fields["error"], "no answer within 2 s");
}
