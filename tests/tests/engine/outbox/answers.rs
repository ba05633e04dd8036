//! What targets answer: refusals, patience, and tokens that are ahead.

use serde_json::json;
use shardcron_domain::instance::{FailReason, InstanceStatus};
use shardcron_domain::outbox::{EffectState, FenceToken};
use shardcron_effects::{EffectTargets, Sender};
use shardcron_engine::events;
use shardcron_tests::fixture::instance_id;
use shardcron_tests::process::Character;
use shardcron_tests::target::GatedTarget;
use shardcron_tests::world::World;

use super::{Paying, rows, states};

fn failure(status: &InstanceStatus) -> String {
    match status {
        InstanceStatus::Failed(FailReason::Shard { fault, .. }) => fault.summary().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_fails_the_instance_and_a_retry_asks_the_target_again() {
    let paying = Paying::new(4, &json!({}));
    let world = World::with(&paying.fixture, 1);
    world.target.refuse("m0-1", true);
    let process = world.healthy("a", &paying.job);
    let instance = world.until_ended(60).await;
    let why = failure(&instance.status);
    assert_eq!(why, "https://ledger.example/ refuses the effect [\"m0-1\"] with status 422: status 422");
    assert_eq!(states(&world)[..2], ["sent", "refused"]);
    paying.assert_in_order(&world);
    assert!(world.target.accepted().iter().all(|accepted| !accepted.body.contains("m0-2")), "it went on");

    // As long as the target refuses it, the instance fails; it is never passed over.
    process.engine.retry(&instance_id(), None).await.unwrap();
    failure(&world.until_ended(60).await.status);
    world.target.refuse("m0-1", false);
    process.engine.retry(&instance_id(), None).await.unwrap();
    world.until_ended(60).await;
    paying.assert_all_sent(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_recorded_where_the_job_says_so_and_counted_in_the_certificate() {
    let paying = Paying::new(4, &json!({ "onRefused": "record" }));
    let world = World::with(&paying.fixture, 1);
    world.target.refuse("m0-1", true);
    world.target.refuse("m1-3", true);
    let process = world.healthy("a", &paying.job);
    let instance = world.until_ended(60).await;
    world.assert_exact(&paying.fixture).await;
    assert_eq!(states(&world), ["sent", "refused", "sent", "sent", "sent", "sent", "sent", "refused"]);
    let EffectState::Refused { status, text, .. } = &rows(&world)[1].state else { unreachable!() };
    assert_eq!((*status, text.as_str()), (422, "status 422"));
    let certificate = process.engine.certificate(&instance).await.unwrap().unwrap();
    assert_eq!((certificate.totals.effects.sent, certificate.totals.effects.refused), (6, 2));
    assert_eq!(certificate.shards[0].effects.refused, 1);
    let progress = process.engine.progress(&instance).await.unwrap();
    assert_eq!((progress.effects, progress.effects_waiting), (certificate.totals.effects, 0));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_asks_for_patience_gets_it_and_no_attempt_is_lost() {
    for status in [408, 425, 429, 500, 503] {
        let paying = Paying::new(2, &json!({}));
        let world = World::with(&paying.fixture, 1);
        world.target.answer_next([status; 3]);
        let mut process = world.process("a", Character { shard_workers: 1, ..Character::default() });
        process.start(Some(paying.job.clone()));
        world.until_ended(120).await;
        paying.assert_all_sent(&world).await;
        assert_eq!(world.journal.events(events::ATTEMPT_FAILED).len(), 0, "{status}");
        assert_eq!(world.target.received(), paying.effects() + 3, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_out_for_long_is_waited_for_by_the_shards_own_pauses() {
    let paying = Paying::new(2, &json!({}));
    let world = World::with(&paying.fixture, 1);
    world.target.answer_next([503; 13]);
    let mut process = world.process("a", Character { shard_workers: 1, ..Character::default() });
    process.start(Some(paying.job.clone()));
    world.until_ended(600).await;
    paying.assert_all_sent(&world).await;
    assert!(world.journal.events(events::ATTEMPT_FAILED).len() >= 2);
    let takeovers: u32 = world.shards().iter().map(|shard| shard.takeovers).sum();
    assert_eq!(takeovers, 0);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_out_for_ever_fails_the_instance_at_its_backoff_limit() {
    let paying = Paying::new(2, &json!({}));
    let world = World::with(&paying.fixture, 1);
    world.target.answer_next([503; 1_000]);
    let _process = world.healthy("a", &paying.job);
    let why = failure(&world.until_ended(3_000).await.status);
    assert!(why.contains("hasn't settled an effect: it answers 503"), "{why}");
    assert_eq!(world.target.accepted(), []);
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_fail_the_instance_and_refuse_no_effect() {
    let paying = Paying::new(2, &json!({ "onRefused": "record" }));
    let world = World::with(&paying.fixture, 1);
    world.target.answer_next([401]);
    let process = world.healthy("a", &paying.job);
    let why = failure(&world.until_ended(60).await.status);
    assert!(why.contains("can't be used: it answers 401"), "{why}");
    assert!(!states(&world).contains(&"refused"), "{:?}", states(&world));
    process.engine.retry(&instance_id(), None).await.unwrap();
    world.until_ended(60).await;
    paying.assert_all_sent(&world).await;
}

/// The table was made anew, and the target remembers: each claim's token is higher, until it is high enough.
#[tokio::test(start_paused = true)]
async fn a_target_that_is_ahead_is_caught_up_with_by_claims() {
    let paying = Paying::comparing(2);
    let world = World::with(&paying.fixture, 1);
    let observer = world.process("observer", Character::default());
    let target = GatedTarget { target: world.target.clone(), gate: observer.gate.clone() };
    let effects = shardcron_domain::job::JobSpec::parse(&paying.job).unwrap().effects.unwrap();
    let shard = shardcron_domain::ids::ShardId::numbered(0);
    let generation = shardcron_domain::ids::Generation::FIRST;
    let sender = Sender { instance: instance_id(), generation, shard, token: FenceToken(1_000_000_003) };
    target.install(&effects, &sender).await;
    let _process = world.healthy("a", &paying.job);
    world.until_ended(300).await;
    paying.assert_all_sent(&world).await;
    let failed = world.journal.events(events::ATTEMPT_FAILED);
    assert_eq!(failed.len(), 2, "{failed:#?}");
    let why = failed[0].event.fields["error"].as_str().unwrap();
    assert!(why.contains("has seen a higher token of shard 00000"), "{why}");
}

/// A record takes a row and an effect of its commit's transaction: 44 of them fit, and rows stay items.
#[tokio::test(start_paused = true)]
async fn commits_are_as_large_as_a_transaction_holds() {
    let mut paying = Paying::of(1, 100, &json!({}));
    paying.job = paying.job.replace("\"batchRecords\":2", "\"batchRecords\":1000");
    let world = World::with(&paying.fixture, 1);
    let _process = world.healthy("a", &paying.job);
    world.until_ended(60).await;
    paying.assert_all_sent(&world).await;
    let records: Vec<u64> = world
        .journal
        .events(events::COMMITTED)
        .iter()
        .map(|told| told.event.fields["records"].as_u64().unwrap())
        .collect();
    assert_eq!(records, [44, 44, 12]);
    assert!(world.shards().iter().all(|shard| shard.snapshot.is_none()));
}
