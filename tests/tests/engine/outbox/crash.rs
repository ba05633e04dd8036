//! Crashes and lost answers at every write and every request to the target.

use serde_json::json;
use shardcron_domain::outbox::EffectState;
use shardcron_domain::time::Duration;
use shardcron_store::hooked::Verdict;
use shardcron_tests::gate::{Act, AtWrite, Moment, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

use super::{Paying, rows};
use crate::crash::writes_of;

async fn crash_at(paying: &Paying, write: usize, moment: Moment) -> World {
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(AtWrite { write, moment, act: Act::Crash });
    let mut first = world.process("first", Character { script, ..Character::default() });
    first.start(Some(paying.job.clone()));
    world.until(60, "the crash", |_| (first.life.state() == State::Dead).then_some(())).await;
    first.kill();
    world.queue.clear();
    world.journal.note("world", &format!("write {write} was the last of the first process"));
    let _second = world.healthy("second", &paying.job);
    world.until_ended(120).await;
    paying.assert_all_sent(&world).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_crash_around_every_write_and_every_send_sends_each_effect_once_in_order() {
    let paying = Paying::comparing(3);
    let writes = writes_of(&paying.job, &paying.fixture).await;
    let mut again = 0;
    for moment in [Moment::Before, Moment::After] {
        for write in 1..=writes {
            let world = crash_at(&paying, write, moment).await;
            assert!(world.target.received() <= paying.effects() + 2, "one in flight in each of two shards");
            again += usize::from(world.target.received() > paying.effects());
        }
    }
    assert!(again >= paying.effects(), "{again} crashes came between an effect and its record");
}

/// Clocks agree within their uncertainty; effects of a shard are recorded in the order in which they went out all the same.
#[tokio::test(start_paused = true)]
async fn a_next_holder_whose_clock_is_behind_records_no_effect_before_the_last_one() {
    let paying = Paying::of(1, 6, &json!({}));
    let mut met = 0;
    for write in 1..=writes_of(&paying.job, &paying.fixture).await {
        let world = World::with(&paying.fixture, 1);
        let script = Box::new(AtWrite { write, moment: Moment::After, act: Act::Crash });
        let mut ahead = world.process("ahead", Character { script, skew: Duration(400), ..Character::default() });
        ahead.start(Some(paying.job.clone()));
        world.until(60, "the crash", |_| (ahead.life.state() == State::Dead).then_some(())).await;
        ahead.kill();
        world.queue.clear();
        let settled = rows(&world).iter().filter(|row| row.state.learned_at().is_some()).count();
        met += usize::from((1..6).contains(&settled));
        // Its clock is behind by more than the lease that it has to wait for.
        let mut behind = world.process("behind", Character { skew: Duration(-20_000), ..Character::default() });
        behind.start(Some(paying.job.clone()));
        world.until_ended(120).await;
        paying.assert_all_sent(&world).await;
        let at: Vec<_> = rows(&world).iter().map(|row| row.state.learned_at().unwrap()).collect();
        assert!(at.is_sorted(), "write {write}: {at:?}");
    }
    assert!(met >= 5, "{met} crashes came between two effects");
}

/// A target that can be asked gets what it has already no second time.
#[tokio::test(start_paused = true)]
async fn what_an_older_holder_may_have_sent_is_asked_for_first() {
    let paying = Paying::new(3, &json!({ "outcomes": "https://ledger.example/{id}" }));
    let writes = writes_of(&paying.job, &paying.fixture).await;
    let mut asked = 0;
    for write in 1..=writes {
        let world = crash_at(&paying, write, Moment::After).await;
        assert_eq!(world.target.received(), paying.effects(), "write {write}\n{}", world.journal.last(60));
        asked += world.target.asked();
    }
    assert!(asked >= paying.effects(), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_at_any_write_or_send_sends_each_effect_once_in_order() {
    let paying = Paying::comparing(3);
    let writes = writes_of(&paying.job, &paying.fixture).await;
    for moment in [Moment::Before, Moment::After] {
        for write in 1..=writes {
            let world = World::with(&paying.fixture, 1);
            let script = Box::new(AtWrite { write, moment, act: Act::Deny(Verdict::LoseAnswer) });
            let mut process = world.process("a", Character { script, ..Character::default() });
            process.start(Some(paying.job.clone()));
            world.until_ended(120).await;
            paying.assert_all_sent(&world).await;
        }
    }
}

/// The answer of each first sending of an effect is lost.
struct LoseFirst(std::sync::Mutex<std::collections::BTreeSet<String>>);

impl Script for LoseFirst {
    fn after(&self, request: &Request) -> Act {
        let is_new = request.what.starts_with("send ") && self.0.lock().unwrap().insert(request.what.clone());
        if is_new { Act::Deny(Verdict::LoseAnswer) } else { Act::Proceed }
    }
}

#[tokio::test(start_paused = true)]
async fn an_effect_without_an_answer_is_unknown_until_it_is_sent_again() {
    let paying = Paying::new(2, &json!({}));
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(LoseFirst(std::sync::Mutex::default()));
    let mut process = world.process("a", Character { script, ..Character::default() });
    process.start(Some(paying.job.clone()));
    let unknown = world.until(60, "an unknown effect", |world| {
        rows(world).into_iter().find(|row| matches!(row.state, EffectState::Unknown { .. }))
    });
    let EffectState::Unknown { tries, last, .. } = unknown.await.state else { unreachable!() };
    assert_eq!((tries, last.as_str()), (1, "the answer was lost"));
    world.until_ended(120).await;
    paying.assert_all_sent(&world).await;
    assert_eq!(world.target.received(), 2 * paying.effects());
}

#[tokio::test(start_paused = true)]
async fn a_rerun_sends_nothing_new_to_a_target_that_knows_ids_again() {
    let paying = Paying::comparing(3);
    let world = World::with(&paying.fixture, 1);
    let process = world.healthy("a", &paying.job);
    world.until_ended(60).await;
    let accepted = world.target.accepted();
    process.engine.rerun(&shardcron_tests::fixture::instance_id(), None).await.unwrap();
    let instance = world.until_ended(60).await;
    assert_eq!(instance.generation.0, 2);
    assert_eq!(world.target.accepted(), accepted);
    assert_eq!(world.target.received(), 2 * paying.effects());
    assert_eq!(world.target.refused_by_token(), 0, "a rerun's tokens are higher, though its shards' begin anew");
    world.assert_exact(&paying.fixture).await;
}
