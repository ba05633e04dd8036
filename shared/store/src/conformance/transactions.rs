//! Transactions.

use shardcron_domain::ids::{Token, Version, WriteId};
use shardcron_domain::limits::{ITEM_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use shardcron_domain::plan::Job;
use shardcron_domain::time::Millis;

use super::samples::{Samples, transaction_token};
use super::writes::{put, put_new};
use crate::{Guard, Item, ItemOutcome, Put, Store, StoreError, Transacted, Written};

fn new(item: impl Into<Item>) -> Put {
    Put { item: item.into(), guard: Guard::Absent }
}

async fn is_there(store: &dyn Store, item: &Item) -> bool {
    store.get(&item.key()).await.expect("a read").is_some()
}

/// A hundred items are applied at once, and none when the condition of one doesn't hold.
pub async fn a_transaction_is_all_or_nothing(store: &dyn Store) {
    let samples = Samples::of("all");
    let puts: Vec<Put> = (0..TRANSACTION_ITEMS_MAX as i64).map(|minute| new(samples.instance(minute))).collect();
    let last = puts[TRANSACTION_ITEMS_MAX - 1].item.clone();
    put_new(store, last.clone()).await;
    let Ok(Transacted::Refused(outcomes)) = store.transact(puts.clone(), &transaction_token("all", 1)).await else {
        panic!("the last item is there already");
    };
    assert_eq!(outcomes.len(), TRANSACTION_ITEMS_MAX);
    assert_eq!(outcomes[TRANSACTION_ITEMS_MAX - 1], ItemOutcome::Lost(Box::new(last)));
    assert!(!is_there(store, &puts[0].item).await);

    let puts = puts[..TRANSACTION_ITEMS_MAX - 1].to_vec();
    assert_eq!(
        store.transact(puts.clone(), &transaction_token("all", 2)).await.expect("an outcome"),
        Transacted::Applied
    );
    for put in &puts {
        assert!(is_there(store, &put.item).await, "{}", put.item.key());
    }
}

/// The outcomes of a refused transaction stand in the order of its items, each with what is there.
pub async fn a_refused_transaction_says_how_each_item_stood(store: &dyn Store) {
    let samples = Samples::of("reasons");
    let job = samples.job(Some(1));
    put_new(store, job.clone()).await;
    let at = |version| Guard::Version(Version(version));
    let moved = Item::from(Job { version: Version(2), ..job.clone() });
    let owner = Guard::Owner { token: Token(1), version: Version(1), at: Millis(0) };
    let puts = vec![
        new(samples.instance(1)),
        Put { item: moved, guard: at(7) },
        Put { item: samples.result("k", "v"), guard: Guard::Rides },
        Put { item: samples.instance(2).into(), guard: at(1) },
        Put { item: samples.leased(0, 1_000).into(), guard: owner },
    ];
    let outcome = store.transact(puts, &transaction_token("reasons", 1)).await.expect("an outcome");
    let there = ItemOutcome::Lost(Box::new(job.into()));
    let expected = vec![ItemOutcome::Held, there, ItemOutcome::Held, ItemOutcome::Missing, ItemOutcome::Missing];
    assert_eq!(outcome, Transacted::Refused(expected));
    assert!(!is_there(store, &samples.result("k", "v")).await);
}

/// A transaction sent again under its token is applied once; other items under the same token are refused.
pub async fn a_token_applies_once(store: &dyn Store) {
    let samples = Samples::of("token");
    // Longer than the 36 characters that DynamoDB takes.
    for token in [transaction_token("token", 1), transaction_token(&"long".repeat(20), 1)] {
        let first = samples.result(&token.0, "first");
        let puts = vec![Put { item: first.clone(), guard: Guard::Rides }];
        let sent = || store.transact(puts.clone(), &token);
        assert_eq!(sent().await.expect("an outcome"), Transacted::Applied);
        let second = samples.result(&token.0, "second");
        assert_eq!(put(store, second.clone(), Guard::Rides).await, Written::Applied);
        assert_eq!(sent().await.expect("an outcome"), Transacted::Applied);
        assert_eq!(store.get(&first.key()).await.expect("a read"), Some(second.clone()));

        let other = vec![Put { item: samples.result("other", ""), guard: Guard::Rides }];
        assert!(matches!(store.transact(other, &token).await, Err(StoreError::Refused { .. })));
    }
    // A refused one is no application: sent again, it is decided again.
    let job = samples.job(None);
    let puts = vec![Put { item: Job { version: Version(2), ..job.clone() }.into(), guard: Guard::Version(Version(1)) }];
    let refused = store.transact(puts.clone(), &transaction_token("token", 2)).await.expect("an outcome");
    assert_eq!(refused, Transacted::Refused(vec![ItemOutcome::Missing]));
    put_new(store, job).await;
    assert_eq!(store.transact(puts, &transaction_token("token", 2)).await.expect("an outcome"), Transacted::Applied);
}

/// What DynamoDB wouldn't take as one transaction is refused.
pub async fn a_transaction_within_its_bounds(store: &dyn Store) {
    let samples = Samples::of("bounds-of-all");
    let rows = |count: usize, value: usize| -> Vec<Put> {
        let row = |number| samples.result(&format!("{number:05}"), &"v".repeat(value));
        (0..count).map(|number| Put { item: row(number), guard: Guard::Rides }).collect()
    };
    let twice = [rows(1, 1), rows(1, 2)].concat();
    let large = ITEM_BYTES_MAX - 1024;
    for (puts, why) in [
        (rows(0, 1), "nothing"),
        (rows(TRANSACTION_ITEMS_MAX + 1, 1), "too many items"),
        (rows(11, large), "too many bytes"),
        (rows(1, ITEM_BYTES_MAX), "too large an item"),
        (twice, "one item twice"),
    ] {
        let answer = store.transact(puts, &transaction_token("bounds", 1)).await;
        assert!(matches!(answer, Err(StoreError::Refused { .. })), "{why}: {answer:?}");
    }
    let unnamed = store.transact(rows(1, 1), &WriteId(String::new())).await;
    assert!(matches!(unnamed, Err(StoreError::Refused { .. })), "{unnamed:?}");
    assert!(!is_there(store, &samples.result("00000", "")).await);
    assert_eq!(
        store.transact(rows(10, large), &transaction_token("bounds", 2)).await.expect("an outcome"),
        Transacted::Applied
    );
}
