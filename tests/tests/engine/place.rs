//! The place of an output: what somebody else has published there is neither replaced nor taken for ours.

use bytes::Bytes;
use shardcron_domain::certificate::Certificate;
use shardcron_domain::instance::{FailReason, InstanceStatus};
use shardcron_domain::location::Root;
use shardcron_objects::ObjectName;
use shardcron_tests::fixture::{Fixture, INSTANCE, instance_id};
use shardcron_tests::process::Character;
use shardcron_tests::world::World;

fn certificate() -> ObjectName {
    ObjectName {
        root: Root::Bucket("ledger".to_owned()),
        key: format!("out/{}/_certificate.json", INSTANCE.replacen(':', "@", 1)),
    }
}

/// The certificate of a world of its own, changed.
async fn published(change: impl FnOnce(&mut Certificate)) -> Bytes {
    let fixture = Fixture::new(2, 1, 3);
    let world = World::with(&fixture, 1);
    let mut process = world.process("other", Character::default());
    process.start(Some(fixture.job()));
    world.until_ended(60).await;
    let (_, content) = world.objects.snapshot().into_iter().find(|(name, _)| *name == certificate()).unwrap();
    let mut found: Certificate = serde_json::from_slice(&content).unwrap();
    change(&mut found);
    serde_json::to_vec(&found).unwrap().into()
}

#[tokio::test(start_paused = true)]
async fn what_another_installation_has_published_is_left_alone_and_told_of() {
    let same_generation = published(|_| {}).await;
    let higher = published(|found| found.generation = found.generation.next().next()).await;
    let foreign = published(|found| found.instance.0.job = "other".parse().unwrap()).await;
    for there in [same_generation, higher, foreign, Bytes::from_static(b"{ \"instance\":")] {
        let fixture = Fixture::small();
        let world = World::with(&fixture, 1);
        // What stands there is no certificate of this world's, as the checker would say after each write.
        world.checker.go_light();
        world.objects.overwrite(&certificate(), there.clone());
        let mut process = world.process("a", Character::default());
        process.start(Some(fixture.job()));
        let instance = world.until_ended(60).await;
        let InstanceStatus::Failed(FailReason::Step(fault)) = &instance.status else { panic!("{:?}", instance.status) };
        assert!(fault.summary().contains("is taken"), "{}", fault.summary());
        let (_, now) = world.objects.snapshot().into_iter().find(|(name, _)| *name == certificate()).unwrap();
        assert_eq!(now, there);
        // Once the place is free, a rerun publishes.
        world.objects.remove(&certificate());
        process.engine.rerun(&instance_id(), None).await.unwrap();
        world.until_ended(60).await;
        world.assert_exact(&fixture).await;
    }
}
