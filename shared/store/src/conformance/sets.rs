//! Additions to sets.

use futures::future::join_all;
use shardcron_domain::group::{DoneShard, Group};
use shardcron_domain::ids::{Generation, GroupNo, ShardId, Version};
use shardcron_domain::instance::Instance;

use super::samples::Samples;
use super::writes::{put, put_new};
use crate::{Guard, Item, ItemKey, SetAdd, Store, Written};

fn entry(number: u32) -> DoneShard {
    DoneShard { shard: ShardId::numbered(number), children: 0 }
}

async fn add(store: &dyn Store, add: SetAdd) -> Written {
    store.add(add).await.expect("an outcome")
}

async fn group(store: &dyn Store, group: &Group) -> Group {
    let key = ItemKey::Group(group.run.clone(), group.no);
    match store.get(&key).await.expect("a read") {
        Some(Item::Group(group)) => group,
        other => panic!("no group: {other:?}"),
    }
}

/// Shards report in any order, at once and more than once, and each counts once; each addition raises the version.
pub async fn additions_commute_and_repeat(store: &dyn Store) {
    let new = Samples::of("commute").group(3);
    put_new(store, Item::Group(new.clone())).await;
    let done = |number| SetAdd::ShardDone(new.run.clone(), new.no, entry(number));
    let outcomes = join_all((300..350).rev().map(|number| add(store, done(number)))).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Written::Applied), "{outcomes:?}");
    let all = Group { done: (300..350).map(entry).collect(), version: Version(51), ..new.clone() };
    assert_eq!(group(store, &new).await, all);
    for number in [349, 300] {
        assert_eq!(add(store, done(number)).await, Written::Applied);
    }
    assert_eq!(group(store, &new).await, all, "nothing was added");
}

/// Who read the item before an addition can't undo it.
pub async fn an_addition_makes_an_older_reader_lose(store: &dyn Store) {
    let read = Samples::of("older").group(0);
    put_new(store, Item::Group(read.clone())).await;
    let child = DoneShard { shard: ShardId::numbered(7).child(1), children: 3 };
    let done = SetAdd::ShardDone(read.run.clone(), read.no, child);
    assert_eq!(add(store, done).await, Written::Applied);
    let there = group(store, &read).await;
    let grown = Item::Group(Group { size: 101, version: Version(2), ..read });
    let outcome = put(store, grown, Guard::Version(Version(1))).await;
    assert_eq!(outcome, Written::Lost(Box::new(Item::Group(there))));
}

/// An addition makes no item.
pub async fn an_addition_without_an_item_is_missing(store: &dyn Store) {
    let samples = Samples::of("no-item");
    let run = samples.run(1);
    let done = SetAdd::ShardDone(run.clone(), GroupNo(0), entry(0));
    let full = SetAdd::GroupFull(run.clone(), GroupNo(0));
    for (addition, key) in
        [(done, ItemKey::Group(run.clone(), GroupNo(0))), (full, ItemKey::Instance(run.instance.clone()))]
    {
        assert_eq!(add(store, addition).await, Written::Missing);
        assert_eq!(store.get(&key).await.expect("a read"), None);
    }
}

/// A full group counts for the generation that it belongs to.
pub async fn a_full_group_is_added_to_its_generation_only(store: &dyn Store) {
    let samples = Samples::of("generation");
    let new = Instance { generation: Generation(2), ..samples.instance(1) };
    put_new(store, new.clone()).await;
    for no in [4, 0, 4, u32::MAX] {
        assert_eq!(add(store, SetAdd::GroupFull(samples.run(2), GroupNo(no))).await, Written::Applied);
    }
    let there =
        Item::from(Instance { groups_done: [0, 4, u32::MAX].map(GroupNo).into(), version: Version(4), ..new.clone() });
    // Also when the number is in the set of the present generation.
    for (generation, no) in [(1, 4), (1, 5), (3, 4), (3, 5)] {
        let outcome = add(store, SetAdd::GroupFull(samples.run(generation), GroupNo(no))).await;
        assert_eq!(outcome, Written::Lost(Box::new(there.clone())), "group {no} of generation {generation}");
    }
    assert_eq!(store.get(&there.key()).await.expect("a read"), Some(there));
}
