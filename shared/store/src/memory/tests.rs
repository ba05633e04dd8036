use shardcron_domain::ids::WriteId;
use shardcron_domain::time::Millis;

use super::MemoryStore;
use crate::conformance::Samples;
use crate::{Guard, Item, Put, Store, Written};

async fn memory(_: &str) -> (MemoryStore, ()) {
    (MemoryStore::new(), ())
}

crate::conformance_tests!(memory);

#[tokio::test]
async fn an_index_that_lags_shows_what_there_was_at_the_read_before() {
    let samples = Samples::of("a");
    let store = MemoryStore::new();
    let open = async || store.open_instances(Millis(i64::MAX), 10).await.unwrap().len();
    let put = async |minute| {
        let item = samples.instance(minute).into();
        assert_eq!(store.put(Put { item, guard: Guard::Absent }).await.unwrap(), Written::Applied);
    };
    put(1).await;
    assert_eq!(open().await, 1);
    store.let_indexes_lag();
    put(2).await;
    assert_eq!((open().await, open().await), (1, 2), "what there was when it began to lag, then what came since");
    put(3).await;
    put(4).await;
    assert_eq!((open().await, open().await, open().await), (2, 4, 4));
    assert!(store.due_jobs(Samples::at(1_000), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_first_query_to_meet_a_transaction_sees_half_of_it_and_the_next_one_all() {
    let samples = Samples::of("a");
    let (from, to) = (Samples::at(0), Samples::at(100));
    for pages in [1, 10] {
        let store = MemoryStore::new().with_page_items(pages);
        store.let_queries_see_halves();
        let query = async || {
            let (mut count, mut after) = (0, None);
            loop {
                let page = store.instances(&samples.job, from, to, after).await.unwrap();
                count += page.items.len();
                after = page.next;
                if after.is_none() {
                    return count;
                }
            }
        };
        let puts: Vec<Put> =
            (1..5).map(|minute| Put { item: samples.instance(minute).into(), guard: Guard::Absent }).collect();
        store.transact(puts.clone(), &WriteId("1".repeat(32))).await.unwrap();
        for put in &puts {
            assert_eq!(store.get(&put.item.key()).await.unwrap(), Some(put.item.clone()), "a read of one is whole");
        }
        let seen = query().await;
        assert!((1..4).contains(&seen), "{seen}");
        assert_eq!((query().await, store.halves_seen()), (4, 1));
    }
}

#[tokio::test]
async fn a_removed_item_is_gone() {
    let store = MemoryStore::new();
    let item = Item::from(Samples::of("a").slot());
    let put = Put { item: item.clone(), guard: Guard::Absent };
    assert!(!store.remove(&item.key()));
    for _ in 0..2 {
        assert_eq!(store.put(put.clone()).await.unwrap(), Written::Applied);
        assert!(store.remove(&item.key()));
        assert_eq!(store.snapshot(), []);
    }
}
