//! Single writes.

use futures::future::join_all;
use shardcron_domain::group::Group;
use shardcron_domain::ids::{Token, Version};
use shardcron_domain::instance::Instance;
use shardcron_domain::limits::ITEM_BYTES_MAX;
use shardcron_domain::plan::Job;
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::Millis;

use super::samples::{Samples, every_kind, write_id};
use crate::{Guard, Item, Put, Store, StoreError, Written};

pub(super) async fn put(store: &dyn Store, item: Item, guard: Guard) -> Written {
    store.put(Put { item, guard }).await.expect("an outcome")
}

pub(super) async fn put_new(store: &dyn Store, item: impl Into<Item>) {
    let item = item.into();
    let key = item.key();
    assert_eq!(put(store, item, Guard::Absent).await, Written::Applied, "{key}");
}

/// [`Guard::Absent`] lets the first writer in, and tells the others who it was.
pub async fn absence_is_guarded(store: &dyn Store) {
    let job = Samples::of("absence").job(None);
    let key = Item::from(job.clone()).key();
    assert_eq!(store.get(&key).await.expect("a read"), None);
    put_new(store, job.clone()).await;
    let second = Job { spec_digest: "other".to_owned(), ..job.clone() };
    let outcome = put(store, second.into(), Guard::Absent).await;
    assert_eq!(outcome, Written::Lost(Box::new(job.clone().into())));
    assert_eq!(store.get(&key).await.expect("a read"), Some(job.into()));
}

/// [`Guard::Version`] lets the writer in who read the newest version.
pub async fn versions_are_guarded(store: &dyn Store) {
    let samples = Samples::of("versions");
    let first = samples.job(Some(5));
    let second = Job { version: Version(2), next_fire: None, ..first.clone() };
    let at = |version| Guard::Version(Version(version));
    assert_eq!(put(store, second.clone().into(), at(1)).await, Written::Missing);
    put_new(store, first).await;
    assert_eq!(put(store, second.clone().into(), at(1)).await, Written::Applied);
    for wrong in [0, 1, 3] {
        let outcome = put(store, second.clone().into(), at(wrong)).await;
        assert_eq!(outcome, Written::Lost(Box::new(second.clone().into())), "at {wrong}");
    }
    // What is written once has no version to name.
    let spec = Item::Spec(samples.spec(1));
    put_new(store, spec.clone()).await;
    assert_eq!(put(store, spec.clone(), at(1)).await, Written::Lost(Box::new(spec)));
}

/// [`Guard::Version`] works for every kind of item that has a version.
pub async fn every_kind_with_versions_is_guarded(store: &dyn Store) {
    let samples = Samples::of("each-version");
    let (second, id) = (Version(2), write_id(2));
    let (slot, backfill) = (samples.slot(), samples.backfill("b"));
    let pairs: [(Item, Item); 6] = [
        (samples.job(None).into(), Job { version: second, write_id: id.clone(), ..samples.job(None) }.into()),
        (samples.instance(1).into(), Instance { version: second, write_id: id.clone(), ..samples.instance(1) }.into()),
        (
            Item::Group(samples.group(0)),
            Item::Group(Group { version: second, write_id: id.clone(), ..samples.group(0) }),
        ),
        (samples.shard(0).into(), Shard { version: second, write_id: id.clone(), ..samples.shard(0) }.into()),
        (slot.clone().into(), slot.changed(&id).into()),
        (backfill.clone().into(), backfill.changed(backfill.created_at, &id).into()),
    ];
    for (first, next) in pairs {
        let key = first.key();
        let at_first = Guard::Version(Version::FIRST);
        assert_eq!(put(store, next.clone(), at_first).await, Written::Missing, "{key}");
        put_new(store, first).await;
        assert_eq!(put(store, next.clone(), at_first).await, Written::Applied, "{key}");
        assert_eq!(next.write_id(), Some(&id), "{key}");
        assert_eq!(put(store, next.clone(), at_first).await, Written::Lost(Box::new(next)), "{key}");
    }
}

/// [`Guard::Owner`] lets the owner in while its token, its version and its lease are good.
pub async fn an_owner_is_guarded_by_token_version_and_lease(store: &dyn Store) {
    let samples = Samples::of("owner");
    let owner = |token, version, at| Guard::Owner { token: Token(token), version: Version(version), at: Millis(at) };
    let leased = samples.leased(0, 10_000);
    let next = Shard { version: Version(2), write_id: write_id(2), ..leased.clone() };
    assert_eq!(put(store, next.clone().into(), owner(1, 1, 0)).await, Written::Missing);
    put_new(store, leased.clone()).await;
    for (wrong, why) in [
        (owner(0, 1, 0), "an older token"),
        (owner(2, 1, 0), "a newer token"),
        (owner(1, 0, 0), "an older version"),
        (owner(1, 1, 10_000), "a lease that has just ended"),
        (owner(1, 1, i64::MAX), "a lease that ended long ago"),
    ] {
        let outcome = put(store, next.clone().into(), wrong).await;
        assert_eq!(outcome, Written::Lost(Box::new(leased.clone().into())), "{why}");
    }
    assert_eq!(put(store, next.clone().into(), owner(1, 1, 9_999)).await, Written::Applied);

    let pending = Shard { version: Version(3), status: ShardStatus::Pending, ..next };
    assert_eq!(put(store, pending.clone().into(), owner(1, 2, 0)).await, Written::Applied);
    let outcome = put(store, pending.clone().into(), owner(1, 3, i64::MIN)).await;
    assert_eq!(outcome, Written::Lost(Box::new(pending.into())), "nobody's shard");

    let job = samples.job(None);
    put_new(store, job.clone()).await;
    let outcome = put(store, job.clone().into(), owner(1, 1, 0)).await;
    assert_eq!(outcome, Written::Lost(Box::new(job.into())), "no shard");
}

/// [`Guard::Rides`] asks for nothing.
pub async fn a_row_rides_whatever_is_there(store: &dyn Store) {
    let samples = Samples::of("rides");
    for value in ["1", "2"] {
        let row = samples.result("k", value);
        assert_eq!(put(store, row.clone(), Guard::Rides).await, Written::Applied);
        assert_eq!(store.get(&row.key()).await.expect("a read"), Some(row));
    }
}

/// Of a hundred writers that read the same version one is applied, and the others learn which.
pub async fn a_race_has_one_winner(store: &dyn Store) {
    let job = Samples::of("race").job(Some(1));
    put_new(store, job.clone()).await;
    let write = |number| {
        let next = Job { version: Version(2), write_id: write_id(number), ..job.clone() };
        put(store, next.into(), Guard::Version(Version(1)))
    };
    let outcomes = join_all((1..=100).map(write)).await;
    let there = store.get(&Item::from(job.clone()).key()).await.expect("a read").expect("the job");
    let mut winners = 0;
    for (number, outcome) in (1..).zip(outcomes) {
        match outcome {
            Written::Applied => {
                winners += 1;
                assert_eq!(there.write_id(), Some(&write_id(number)));
            }
            outcome => assert_eq!(outcome, Written::Lost(Box::new(there.clone()))),
        }
    }
    assert_eq!(winners, 1);
}

/// What DynamoDB wouldn't take is refused, and what it takes isn't.
pub async fn an_item_within_its_bounds(store: &dyn Store) {
    let samples = Samples::of("bounds");
    for (key, value, taken) in
        [(1022, 1, true), (1023, 1, false), (1, ITEM_BYTES_MAX - 1024, true), (2, ITEM_BYTES_MAX, false)]
    {
        let item = samples.result(&"k".repeat(key), &"v".repeat(value));
        match store.put(Put { item: item.clone(), guard: Guard::Absent }).await {
            Ok(outcome) => assert!(taken && outcome == Written::Applied, "{key} {value}: {outcome:?}"),
            Err(StoreError::Refused { .. }) => assert!(!taken, "{key} {value}"),
            Err(error) => panic!("{key} {value}: {error}"),
        }
        assert_eq!(store.get(&item.key()).await.ok().flatten().is_some(), taken, "{key} {value}");
    }
}

/// Every kind of item survives, with each of its fields at an extreme.
pub async fn every_kind_is_read_back_as_it_was_written(store: &dyn Store) {
    for item in every_kind() {
        put_new(store, item.clone()).await;
        let read = store.get(&item.key()).await.expect("a read").expect("the item");
        // Debug, since a position's line takes no part in its equality.
        assert_eq!(format!("{read:?}"), format!("{item:?}"));
    }
}
