//! A process that stands still before each of its writes, past its lease, while another finishes the job.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shardcron_domain::ids::ShardKey;
use shardcron_engine::events;
use shardcron_store::Guard;
use shardcron_store::hooked::Operation;
use shardcron_tests::fixture::Fixture;
use shardcron_tests::gate::{Act, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::World;

use crate::crash::writes_of_the_road;

/// Freezes the process before a write, and keeps the write.
struct FreezeBefore {
    write: usize,
    kept: Arc<Mutex<Option<Request>>>,
}

impl Script for FreezeBefore {
    fn before(&self, request: &Request) -> Act {
        if request.write != Some(self.write) {
            return Act::Proceed;
        }
        *self.kept.lock().unwrap() = Some(request.clone());
        Act::Freeze
    }
}

/// The shard that a write is about, if it is a write of its owner.
fn owner_write(request: &Request) -> Option<ShardKey> {
    let put = match request.operation.as_ref()? {
        Operation::Put(put) => put,
        Operation::Transact(puts, _) => &puts[0],
        _ => return None,
    };
    match (&put.item, put.guard) {
        (shardcron_store::Item::Shard(shard), Guard::Owner { .. }) => Some(shard.key.clone()),
        _ => None,
    }
}

/// apache/shardingsphere-elasticjob#507, apache/dolphinscheduler#8110, apache/dolphinscheduler#16759, WW-Digital/reactive-kinesis#33: a paused owner wakes when all is over, and finds every door shut.
#[tokio::test(start_paused = true)]
async fn a_pause_before_every_write_changes_nothing() {
    let fixture = Fixture::small();
    let mut owner_writes = 0;
    for write in 1..=writes_of_the_road(&fixture).await {
        let world = World::with(&fixture, 1);
        let kept = Arc::default();
        let script = Box::new(FreezeBefore { write, kept: Arc::clone(&kept) });
        let mut paused = world.process("paused", Character { script, ..Character::default() });
        paused.start(Some(fixture.job()));
        world.until(60, "the pause", |_| (paused.life.state() == State::Frozen).then_some(())).await;
        let mut other = world.healthy("other", &fixture.job());
        world.until_ended(120).await;
        world.assert_exact(&fixture).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        other.kill();

        let (items, objects) = (world.checker.snapshot(), world.objects.snapshot());
        let fenced = world.journal.events(events::FENCED).len();
        assert!(paused.troubles().is_empty());
        paused.life.thaw();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(world.checker.snapshot() == items, "write {write} came through\n{}", world.journal.last(60));
        assert!(world.objects.snapshot() == objects, "write {write} came through\n{}", world.journal.last(60));
        world.assert_exact(&fixture).await;
        let request = kept.lock().unwrap().take().expect("the process froze at a write");
        if let Some(shard) = owner_write(&request) {
            owner_writes += 1;
            let troubles = paused.troubles();
            let lost = troubles.iter().find(|trouble| trouble.lost.as_ref() == Some(&shard));
            let lost = lost.unwrap_or_else(|| world.fail(&format!("{shard} wasn't lost: {troubles:?}")));
            assert!(lost.text.contains("it is done, under token"), "who has it now: {}", lost.text);
            let told = world.journal.events(events::FENCED).len() - fenced;
            assert!(told > 0, "a fenced write is told of");
        }
    }
    assert!(owner_writes >= 12, "{owner_writes}");
}

/// apache/shardingsphere-elasticjob#507, apache/dolphinscheduler#8110: a paused owner wakes while another is still at work on the shard: its write is refused by the token,
/// says who owns the shard now, and adds nothing.
#[tokio::test(start_paused = true)]
async fn a_paused_owner_is_refused_while_another_holds_the_shard() {
    let fixture = Fixture::new(1, 3, 3);
    let mut owner_writes = 0;
    for write in 1..=writes_of_the_road(&fixture).await {
        let world = World::with(&fixture, 1);
        let kept = Arc::default();
        let script = Box::new(FreezeBefore { write, kept: Arc::clone(&kept) });
        let mut paused = world.process("paused", Character { script, shard_workers: 1, ..Character::default() });
        paused.start(Some(fixture.job()));
        world.until(60, "the pause", |_| (paused.life.state() == State::Frozen).then_some(())).await;
        let request = kept.lock().unwrap().take().expect("the process froze at a write");
        let Some(shard) = owner_write(&request) else { continue };
        owner_writes += 1;
        // The other one finishes none of the objects that are left before the paused one wakes.
        let deeds: Deeds = Arc::new(|_| Deed::Take(Duration::from_secs(40)));
        let mut other = world.process("other", Character { deeds, seed: 2, ..Character::default() });
        other.start(None);
        let taken = |world: &World| {
            let claims = world.journal.events(events::CLAIMED);
            claims.iter().any(|claim| claim.process == "other").then_some(())
        };
        let before_last = world.shards()[0].checkpoint.is_complete(world.shards()[0].range);
        world.until(60, "the takeover", taken).await;
        let items = (!before_last).then(|| world.checker.snapshot());
        paused.life.thaw();
        tokio::time::sleep(Duration::from_millis(20)).await;
        if let Some(items) = items {
            let after = world.checker.snapshot();
            let changed = items.iter().filter(|(key, item)| after.get(key) != Some(item)).count();
            assert_eq!((changed, after.len()), (0, items.len()), "write {write}\n{}", world.journal.last(30));
            let troubles = paused.troubles();
            let lost = troubles.iter().find(|trouble| trouble.lost.as_ref() == Some(&shard));
            let lost = lost.unwrap_or_else(|| world.fail(&format!("{shard} wasn't lost: {troubles:?}")));
            assert!(lost.text.contains("owns it until") && lost.text.contains("under token 2"), "{}", lost.text);
        }
        world.until_ended(600).await;
        world.assert_exact(&fixture).await;
    }
    assert!(owner_writes >= 3, "{owner_writes}");
}
