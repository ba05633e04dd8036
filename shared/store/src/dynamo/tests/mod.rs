//! The adapter on a DynamoDB in process, and on a server that answers by a script.

mod items;
mod scripted;

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use shardcron_domain::ids::GroupNo;
use shardcron_embedded::EmbeddedTable;

use super::{CapacityObserver, DynamoStore};
use crate::conformance::{Samples, transaction_token};
use crate::table::SK;
use crate::{Guard, Put, Store, StoreError, Written};

/// Names another endpoint to run the same checks on, such as MiniStack's or LocalStack's. Each check makes a table.
const ENDPOINT: &str = "SHARDCRON_TEST_DYNAMODB_ENDPOINT";

fn config(endpoint: &str) -> Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
}

async fn dynamo(check: &str) -> (DynamoStore, Option<EmbeddedTable>) {
    #[expect(clippy::disallowed_methods, reason = "a test's own switch, which no library reads")]
    let given = std::env::var(ENDPOINT).ok();
    let embedded = given.is_none().then(|| EmbeddedTable::in_memory().unwrap());
    let endpoint = given.unwrap_or_else(|| embedded.as_ref().unwrap().endpoint().to_owned());
    let table = format!("shardcron-test-{}-{check}", std::process::id());
    let store = DynamoStore::new(Client::from_conf(config(&endpoint).build()), table);
    store.create_table().await.unwrap();
    (store, embedded)
}

crate::conformance_tests!(dynamo);

#[tokio::test]
async fn a_table_is_created_once() {
    let (store, _kept) = dynamo("created_once").await;
    store.put(Put { item: Samples::of("a").job(None).into(), guard: Guard::Absent }).await.unwrap();
    let (first, second) = tokio::join!(store.create_table(), store.create_table());
    first.and(second).unwrap();
    assert_eq!(store.jobs(None).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn another_table_of_that_name_is_refused() {
    use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};

    let (store, _kept) = dynamo("other_keys").await;
    let other = DynamoStore::new(store.client.clone(), format!("{}-2", store.table()));
    let key = KeySchemaElement::builder().attribute_name(SK).key_type(KeyType::Hash).build().unwrap();
    let text = ScalarAttributeType::S;
    let definition = AttributeDefinition::builder().attribute_name(SK).attribute_type(text).build().unwrap();
    let request = store.client.create_table().table_name(other.table()).billing_mode(BillingMode::PayPerRequest);
    request.key_schema(key).attribute_definitions(definition).send().await.unwrap();
    let refused = other.create_table().await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("other than PK, SK"), "{refused}");
}

#[tokio::test]
async fn a_table_that_is_not_there_is_named() {
    let (store, _kept) = dynamo("not_there").await;
    let elsewhere = DynamoStore::new(store.client.clone(), "elsewhere");
    let job = Samples::of("a").job(None);
    let refused = elsewhere.put(Put { item: job.into(), guard: Guard::Absent }).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("the write of job a"), "{refused}");
    assert!(refused.to_string().contains("`elsewhere`: it isn't there"), "{refused}");
    let refused = elsewhere.shards(&Samples::of("a").run(1), GroupNo(0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
}

#[derive(Default)]
struct Consumed(Mutex<Vec<(&'static str, f64, f64)>>);

impl CapacityObserver for Consumed {
    fn consumed(&self, operation: &'static str, read_units: f64, write_units: f64) {
        self.0.lock().unwrap().push((operation, read_units, write_units));
    }
}

#[tokio::test]
async fn what_requests_consume_is_observed() {
    let (store, _kept) = dynamo("consumed").await;
    let observer = Arc::new(Consumed::default());
    let store = store.with_capacity_observer(observer.clone());
    let samples = Samples::of("a");
    let put = Put { item: samples.result("k", "v"), guard: Guard::Rides };
    assert_eq!(store.put(put.clone()).await.unwrap(), Written::Applied);
    store.transact(vec![put.clone()], &transaction_token("consumed", 1)).await.unwrap();
    store.get(&put.item.key()).await.unwrap();
    store.results(&samples.shard(0).key, None).await.unwrap();
    let consumed = observer.0.lock().unwrap().clone();
    // A consistent read of up to 4 KB is a unit, a write of up to 1 KB is one, and two in a transaction.
    let expected =
        [("PutItem", 0.0, 1.0), ("TransactWriteItems", 0.0, 2.0), ("GetItem", 1.0, 0.0), ("Query", 1.0, 0.0)];
    assert_eq!(consumed, expected);
}
