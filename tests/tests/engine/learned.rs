//! What a job's past runs say about its pace decides how large the shards of the next are.

use shardcron_domain::ids::InstanceId;
use shardcron_domain::shard::Shard;
use shardcron_tests::keyed::Keyed;
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

/// 400 keys as one shard, at half a second each.
const SLOW: Keyed = Keyed { from: 1, through: 400, shard: 400, page: 5, cost: 500, skew: 1, stage: 0, at_once: 1 };

fn shards_of(world: &World, instance: &str) -> Vec<Shard> {
    let id: InstanceId = instance.parse().unwrap();
    let mut shards = world.shards();
    shards.retain(|shard| shard.key.run.instance == id && !shard.key.shard.is_child());
    shards
}

#[tokio::test(start_paused = true)]
async fn the_run_after_a_slow_one_has_more_shards_and_the_same_result() {
    let world = World::new(1);
    let job = SLOW.job_with(|job| {
        job["schedule"] = "*/10 * * * *".into();
        job["shards"]["split"] = false.into();
    });
    let mut process = world.process("p", Character { shard_workers: 4, ..Character::default() });
    process.start(Some(job));
    for at in ["settle:2026-08-30T00:00:00Z", "settle:2026-08-30T00:10:00Z"] {
        let id: InstanceId = at.parse().unwrap();
        world
            .until(1_800, "the instance to end", |world| {
                world.instance(&id).filter(|instance| instance.status.is_terminal())
            })
            .await;
    }
    let (first, second) =
        (shards_of(&world, "settle:2026-08-30T00:00:00Z"), shards_of(&world, "settle:2026-08-30T00:10:00Z"));
    assert_eq!(first.len(), 1);
    // 343 records of half a second took 171.5 s, so that 60 s are 140 keys.
    assert_eq!(second.len(), 3, "{second:#?}");
    world.assert_published(&SLOW.expected(), SLOW.records()).await;
}
