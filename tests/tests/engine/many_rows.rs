//! More result rows than a transaction holds: they are committed as one object, and are as exact.

use shardcron_store::Item;
use shardcron_tests::fixture::Fixture;
use shardcron_tests::gate::{Act, AtWrite, Moment};
use shardcron_tests::life::State;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

use crate::crash::writes_of;

/// Records of each shard: two commits' worth of 150 records, all of them rows of their own.
const RECORDS: usize = 300;

fn job(fixture: &Fixture) -> String {
    fixture.job_with(|job| job["shards"]["batchRecords"] = 150.into())
}

#[tokio::test(start_paused = true)]
async fn rows_over_a_transaction_are_one_object_and_few_commits() {
    let fixture = Fixture::many_rows(RECORDS);
    let world = World::with(&fixture, 1);
    let mut process = world.process("a", Character::default());
    process.start(Some(job(&fixture)));
    world.until_ended(60).await;
    world.assert_exact(&fixture).await;
    assert!(world.shards().iter().all(|shard| shard.snapshot.is_some()));
    let rows = world.store.snapshot().into_iter().filter(|item| matches!(item, Item::Result(_))).count();
    assert_eq!(rows, 0, "no row is an item too");
    assert_eq!(world.journal.events(shardcron_engine::events::COMMITTED).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_crash_around_every_write_of_them_loses_and_doubles_nothing() {
    let fixture = Fixture::many_rows(RECORDS);
    let writes = writes_of(&job(&fixture), &fixture).await;
    for moment in [Moment::Before, Moment::After] {
        for write in 1..=writes {
            let world = World::with(&fixture, 1);
            let script = Box::new(AtWrite { write, moment, act: Act::Crash });
            let mut first = world.process("first", Character { script, ..Character::default() });
            first.start(Some(job(&fixture)));
            world.until(60, "the crash", |_| (first.life.state() == State::Dead).then_some(())).await;
            first.kill();
            world.queue.clear();
            let _second = world.healthy("second", &job(&fixture));
            world.until_ended(120).await;
            world.assert_exact(&fixture).await;
        }
    }
}

/// An owner that stands still beyond its lease with its object put, and commits when it wakes: refused, and what it put
/// is nowhere.
#[tokio::test(start_paused = true)]
async fn the_object_of_an_owner_that_was_refused_counts_for_nothing() {
    let fixture = Fixture::many_rows(RECORDS);
    let writes = writes_of(&job(&fixture), &fixture).await;
    for write in 1..=writes {
        let world = World::with(&fixture, 1);
        let script = Box::new(AtWrite { write, moment: Moment::Before, act: Act::Freeze });
        let mut first = world.process("first", Character { script, ..Character::default() });
        first.start(Some(job(&fixture)));
        world.until(60, "the freeze", |_| (first.life.state() == State::Frozen).then_some(())).await;
        let _second = world.healthy("second", &job(&fixture));
        world.until_ended(120).await;
        first.life.thaw();
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        world.assert_exact(&fixture).await;
    }
}
