//! Answers that are lost, requests that arrive late, and a store that asks for patience, at every write of the road.

use shardcron_store::hooked::Verdict;
use shardcron_tests::fixture::{Fixture, job_name};
use shardcron_tests::gate::{Act, AtWrite, Moment};
use shardcron_tests::planning::assert_planned;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

use crate::crash::writes_of_the_road;

async fn at_every_write(moment: Moment, verdict: Verdict) {
    let fixture = Fixture::small();
    for write in 1..=writes_of_the_road(&fixture).await {
        let world = World::with(&fixture, 1);
        let script = Box::new(AtWrite { write, moment, act: Act::Deny(verdict) });
        let mut process = world.process("a", Character { script, ..Character::default() });
        process.start(Some(fixture.job()));
        world.until_ended(120).await;
        world.assert_exact(&fixture).await;
        // A write that is still under way lands when all is over.
        process.store.deliver().await;
        world.checker.check("the late delivery");
        world.assert_exact(&fixture).await;
        assert_planned(&world, &job_name("settle")).await;
        let takeovers: u32 = world.shards().iter().map(|shard| shard.takeovers).sum();
        assert_eq!(takeovers, 0, "write {write}: nothing was taken over\n{}", world.journal.last(100));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_lost_after_the_effect_of_every_write() {
    at_every_write(Moment::After, Verdict::LoseAnswer).await;
}

#[tokio::test(start_paused = true)]
async fn no_answer_and_no_effect_of_every_write() {
    at_every_write(Moment::Before, Verdict::LoseAnswer).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_is_sent_again_and_the_first_lands_late() {
    at_every_write(Moment::Before, Verdict::Delay).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_meets_another_transaction() {
    at_every_write(Moment::Before, Verdict::Conflict).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_is_throttled() {
    at_every_write(Moment::Before, Verdict::Throttle).await;
}
