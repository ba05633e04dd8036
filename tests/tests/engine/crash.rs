//! A crash at every write of the whole road, enumerated: whoever comes next goes on from what is stored.

use shardcron_tests::fixture::{Fixture, job_name};
use shardcron_tests::gate::{Act, AtWrite, Moment};
use shardcron_tests::life::State;
use shardcron_tests::planning::assert_planned;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

/// How many writes the whole road has, from the apply to the end, when nothing goes wrong.
pub(crate) async fn writes_of_the_road(fixture: &Fixture) -> usize {
    writes_of(&fixture.job(), fixture).await
}

/// The same for this form of its job.
pub(crate) async fn writes_of(job: &str, fixture: &Fixture) -> usize {
    let world = World::with(fixture, 1);
    let mut process = world.process("a", Character::default());
    process.start(Some(job.to_owned()));
    world.until_ended(60).await;
    process.gate.writes()
}

/// The process dies at its `write`-th write and its memory with it, the queue too; a fresh one comes.
async fn crash_at(fixture: &Fixture, write: usize, moment: Moment) {
    let world = World::with(fixture, 1);
    let script = Box::new(AtWrite { write, moment, act: Act::Crash });
    let mut first = world.process("first", Character { script, ..Character::default() });
    first.start(Some(fixture.job()));
    world.until(60, "the crash", |_| (first.life.state() == State::Dead).then_some(())).await;
    first.kill();
    world.queue.clear();
    world.journal.note("world", &format!("write {write} was the last of the first process"));
    let _second = world.healthy("second", &fixture.job());
    world.until_ended(120).await;
    world.assert_exact(fixture).await;
    assert_planned(&world, &job_name("settle")).await;
}

/// kagkarlsson/db-scheduler#565, kubernetes/kubernetes#108023, kubernetes/kubernetes#69774, quartz-scheduler/quartz#93, PowerJob/PowerJob#304.
#[tokio::test(start_paused = true)]
async fn a_crash_after_every_write_loses_and_doubles_nothing() {
    let fixture = Fixture::small();
    for write in 1..=writes_of_the_road(&fixture).await {
        crash_at(&fixture, write, Moment::After).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_every_write_loses_and_doubles_nothing() {
    let fixture = Fixture::small();
    for write in 1..=writes_of_the_road(&fixture).await {
        crash_at(&fixture, write, Moment::Before).await;
    }
}
