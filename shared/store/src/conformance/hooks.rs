//! Lost answers.

use std::sync::Mutex;

use async_trait::async_trait;
use shardcron_domain::ids::{Version, WriteId};
use shardcron_domain::plan::Job;
use shardcron_domain::time::Millis;

use super::samples::{Samples, transaction_token, write_id};
use crate::hooked::{Hook, Hooked, Operation, Verdict};
use crate::{Guard, Item, ItemOutcome, Put, Store, StoreError, Transacted, Written};

/// Gives the verdicts it is told, once each.
#[derive(Default)]
struct Script {
    before: Mutex<Option<Verdict>>,
    after: Mutex<Option<Verdict>>,
}

impl Script {
    fn next(&self, before: Verdict, after: Verdict) {
        *self.before.lock().expect("the lock") = Some(before);
        *self.after.lock().expect("the lock") = Some(after);
    }
}

#[async_trait]
impl Hook for Script {
    async fn before(&self, _: &Operation) -> Verdict {
        self.before.lock().expect("the lock").take().unwrap_or(Verdict::Proceed)
    }

    async fn after(&self, _: &Operation) -> Verdict {
        self.after.lock().expect("the lock").take().unwrap_or(Verdict::Proceed)
    }
}

/// A write whose answer was lost is sent again unchanged: it is applied then, or lost to itself, which its write id
/// shows; and one that arrives late changes nothing.
pub async fn lost_answers_are_resolved_by_write_id<S: Store>(store: S) {
    use Verdict::{Conflict, Delay, LoseAnswer, Proceed, Refuse, Throttle};

    let store = Hooked::new(store, Script::default());
    let job = Samples::of("lost").job(None);
    let first = Put { item: job.clone().into(), guard: Guard::Absent };
    let key = first.item.key();

    // It never arrived: the same request again is applied.
    store.hook().next(LoseAnswer, Proceed);
    assert!(matches!(store.put(first.clone()).await, Err(StoreError::Unknown { .. })));
    assert_eq!(store.get(&key).await.expect("a read"), None);
    // It took effect: the same request again loses to it.
    store.hook().next(Proceed, LoseAnswer);
    assert!(matches!(store.put(first.clone()).await, Err(StoreError::Unknown { .. })));
    let Ok(Written::Lost(there)) = store.put(first).await else { panic!("the job is there") };
    assert_eq!(there.write_id(), Some(&job.write_id));

    // It arrives after it was sent again and another write followed.
    let write = |version: u64, id: &WriteId| {
        let next = Job { version: Version(version), write_id: id.clone(), ..job.clone() };
        Put { item: next.into(), guard: Guard::Version(Version(version - 1)) }
    };
    store.hook().next(Delay, Proceed);
    assert!(matches!(store.put(write(2, &write_id(2))).await, Err(StoreError::Unknown { .. })));
    assert_eq!(store.put(write(2, &write_id(2))).await.expect("an outcome"), Written::Applied);
    assert_eq!(store.put(write(3, &write_id(3))).await.expect("an outcome"), Written::Applied);
    assert_eq!(store.deliver().await, 1);
    let there = store.get(&key).await.expect("a read").expect("the job");
    assert_eq!(there.write_id(), Some(&write_id(3)));

    // A transaction is known again by its token, also when its answer was lost.
    let transaction = vec![write(4, &write_id(4))];
    store.hook().next(Proceed, LoseAnswer);
    let lost = store.transact(transaction.clone(), &transaction_token("lost", 4)).await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })));
    assert_eq!(
        store.transact(transaction.clone(), &transaction_token("lost", 4)).await.expect("an outcome"),
        Transacted::Applied
    );
    // And by its write ids where the token is forgotten.
    match store.transact(transaction, &transaction_token("lost", 5)).await.expect("an outcome") {
        Transacted::Refused(outcomes) => match &outcomes[..] {
            [ItemOutcome::Lost(there)] => assert_eq!(there.write_id(), Some(&write_id(4))),
            other => panic!("{other:?}"),
        },
        Transacted::Applied => panic!("applied twice"),
    }

    // Errors before there was an effect.
    let next = write(5, &write_id(5));
    store.hook().next(Conflict, Proceed);
    assert!(matches!(store.put(next.clone()).await, Err(StoreError::Conflict { .. })));
    store.hook().next(Throttle, Proceed);
    assert!(matches!(store.put(next.clone()).await, Err(StoreError::Throttled { .. })));
    store.hook().next(Refuse, Proceed);
    assert!(matches!(store.put(next).await, Err(StoreError::Refused { .. })));
    store.hook().next(Proceed, LoseAnswer);
    assert!(matches!(store.get(&key).await, Err(StoreError::Unavailable { .. })));
    store.hook().next(LoseAnswer, Proceed);
    assert!(matches!(store.skip_at(&job.name, job.start).await, Err(StoreError::Unavailable { .. })));
    store.hook().next(Throttle, Proceed);
    assert!(matches!(store.backfills(&job.name).await, Err(StoreError::Throttled { .. })));
    store.hook().next(Delay, Proceed);
    assert!(matches!(store.open_backfills(Millis(0), 1).await, Err(StoreError::Unavailable { .. })));
    assert_eq!(store.deliver().await, 0);
    let version = |item: Option<Item>| item.and_then(Item::into_job).map(|job| job.version);
    assert_eq!(version(store.get(&key).await.expect("a read")), Some(Version(4)));
}
