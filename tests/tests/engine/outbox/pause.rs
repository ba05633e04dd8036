//! A holder that stands still before each of its writes and sends, past its lease, while another goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use shardcron_tests::gate::{Act, Moment, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

use super::Paying;

/// Freezes the process at a write, before or after it takes effect, and keeps what it was.
struct FreezeAt {
    write: usize,
    moment: Moment,
    kept: Arc<Mutex<String>>,
}

impl FreezeAt {
    fn act(&self, moment: Moment, request: &Request) -> Act {
        if request.write != Some(self.write) || moment != self.moment {
            return Act::Proceed;
        }
        request.what.clone_into(&mut self.kept.lock().unwrap());
        Act::Freeze
    }
}

impl Script for FreezeAt {
    fn before(&self, request: &Request) -> Act {
        self.act(Moment::Before, request)
    }

    fn after(&self, request: &Request) -> Act {
        self.act(Moment::After, request)
    }
}

/// How many writes and sends the whole road has where one shard is worked on after the other.
async fn writes_of_one_worker(paying: &Paying) -> usize {
    let world = World::with(&paying.fixture, 1);
    let mut process = world.process("a", Character { shard_workers: 1, ..Character::default() });
    process.start(Some(paying.job.clone()));
    world.until_ended(60).await;
    process.gate.writes()
}

/// Pauses a process at each write; how many of these were sends that arrived late.
async fn pause_everywhere(paying: &Paying, moment: Moment, compares: bool) -> usize {
    let mut sends = 0;
    for write in 1..=writes_of_one_worker(paying).await {
        let world = World::with(&paying.fixture, 1);
        let kept = Arc::default();
        let script = Box::new(FreezeAt { write, moment, kept: Arc::clone(&kept) });
        let mut paused = world.process("paused", Character { script, shard_workers: 1, ..Character::default() });
        paused.start(Some(paying.job.clone()));
        world.until(60, "the pause", |_| (paused.life.state() == State::Frozen).then_some(())).await;
        let mut other = world.healthy("other", &paying.job);
        world.until_ended(120).await;
        paying.assert_all_sent(&world).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        other.kill();

        let (items, accepted, received) = (world.checker.snapshot(), world.target.accepted(), world.target.received());
        paused.life.thaw();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(world.checker.snapshot() == items, "write {write} came through\n{}", world.journal.last(60));
        assert_eq!(world.target.accepted(), accepted, "write {write}\n{}", world.journal.last(60));
        let what = kept.lock().unwrap().clone();
        let is_late = moment == Moment::Before && what.starts_with("send ");
        sends += usize::from(is_late);
        // The one that had left when it froze, and nothing after it.
        let late = world.target.received() - received;
        assert_eq!(late, usize::from(is_late), "write {write}, {what}\n{}", world.journal.last(60));
        assert_eq!(world.target.refused_by_token(), usize::from(is_late && compares), "write {write}, {what}");
        if is_late {
            let lost = paused.troubles().iter().any(|trouble| trouble.lost.is_some());
            assert!(lost, "{what}: {:?}", paused.troubles());
        }
    }
    sends
}

#[tokio::test(start_paused = true)]
async fn the_effect_of_a_holder_that_lost_its_shard_is_refused_by_its_token() {
    let paying = Paying::comparing(2);
    assert_eq!(pause_everywhere(&paying, Moment::Before, true).await, paying.effects());
}

#[tokio::test(start_paused = true)]
async fn the_effect_of_a_holder_that_lost_its_shard_is_known_again_by_its_id() {
    let paying = Paying::new(2, &json!({}));
    assert_eq!(pause_everywhere(&paying, Moment::Before, false).await, paying.effects());
}

/// Whoever wakes with its lease over sends nothing any more, token or not.
#[tokio::test(start_paused = true)]
async fn a_holder_that_wakes_after_its_lease_sends_nothing_more() {
    let paying = Paying::new(2, &json!({}));
    assert_eq!(pause_everywhere(&paying, Moment::After, false).await, 0);
}

/// While another holds the shard and hasn't come to the effect yet: only the token tells.
#[tokio::test(start_paused = true)]
async fn the_token_is_installed_before_the_first_effect_of_its_holder() {
    /// The second holder stands still right after the target has its token.
    struct FreezeAfterInstall;
    impl Script for FreezeAfterInstall {
        fn after(&self, request: &Request) -> Act {
            if request.what.starts_with("install ") { Act::Freeze } else { Act::Proceed }
        }
    }
    /// The first one stands still before its second effect leaves.
    struct FreezeAtSend;
    impl Script for FreezeAtSend {
        fn before(&self, request: &Request) -> Act {
            if request.what.starts_with("send 1 ") { Act::Freeze } else { Act::Proceed }
        }
    }
    let paying = Paying::of(1, 2, &json!({ "comparesTokens": true }));
    let world = World::with(&paying.fixture, 1);
    let script = Box::new(FreezeAtSend);
    let mut first = world.process("first", Character { script, shard_workers: 1, ..Character::default() });
    first.start(Some(paying.job.clone()));
    world.until(60, "the first pause", |_| (first.life.state() == State::Frozen).then_some(())).await;
    let script = Box::new(FreezeAfterInstall);
    let mut second = world.process("second", Character { script, shard_workers: 1, seed: 2, ..Character::default() });
    second.start(None);
    world.until(60, "the second pause", |_| (second.life.state() == State::Frozen).then_some(())).await;
    assert_eq!((world.shards()[0].token.0, world.target.accepted().len()), (2, 1));
    first.life.thaw();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.target.accepted().len(), 1, "{}", world.journal.last(40));
    assert_eq!(world.target.refused_by_token(), 1, "{}", world.journal.last(40));
    assert!(first.troubles()[0].lost.is_some(), "{:?}", first.troubles());
    first.kill();
    second.life.thaw();
    world.until_ended(120).await;
    paying.assert_all_sent(&world).await;
}
