//! Newer rules of the zones: a stored next time that the rules no longer say.

use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Guard, Item, Put, Store, Written};
use shardcron_tests::fixture::{Fixture, instance_id, job_name};
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

/// A job whose stored next time is an hour off either way, as an older set of rules had said, runs at its time, once.
#[tokio::test(start_paused = true)]
async fn a_next_time_by_older_rules_is_mended_at_a_start_and_no_time_is_lost_or_doubled() {
    for off in [3600, -3600] {
        let fixture = Fixture::small();
        let world = World::with(&fixture, 1);
        let start = world.process("start", Character::default());
        start.engine.apply(&fixture.job(), "/jobs").await.unwrap();
        let mut job = start.engine.job(&job_name("settle")).await.unwrap().unwrap();
        let right = job.next_fire.unwrap();
        let before = job.version;
        job.next_fire = Some(ScheduledTime::from_second(right.as_second() + off).unwrap());
        job.version = before.next();
        let put = Put { item: Item::Job(job), guard: Guard::Version(before) };
        assert_eq!(world.store.put(put).await.unwrap(), Written::Applied);
        start.engine.mend_all_next_fires().await.unwrap();
        let mended = start.engine.job(&job_name("settle")).await.unwrap().unwrap();
        assert_eq!(mended.next_fire, Some(right), "{off}");
        let _process = world.healthy("a", &fixture.job());
        let instance = world.until_ended(120).await;
        assert_eq!(instance.id, instance_id());
        world.assert_exact(&fixture).await;
    }
}
