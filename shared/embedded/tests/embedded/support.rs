//! A client of the embedded table, and the table that the tests write to.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};

/// The table's name.
pub(crate) const TABLE: &str = "test";

/// A client that tries once only.
pub(crate) fn client(endpoint: &str) -> Client {
    client_with(endpoint, RetryConfig::disabled())
}

/// A client with this policy of retries.
pub(crate) fn client_with(endpoint: &str, retries: RetryConfig) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(endpoint)
        .retry_config(retries)
        .build();
    Client::from_conf(config)
}

/// Creates the table, whose key is the string `PK`.
pub(crate) async fn create_table(client: &Client) {
    let key = AttributeDefinition::builder().attribute_name("PK").attribute_type(ScalarAttributeType::S);
    let schema = KeySchemaElement::builder().attribute_name("PK").key_type(KeyType::Hash);
    client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(key.build().unwrap())
        .key_schema(schema.build().unwrap())
        .send()
        .await
        .unwrap();
}

/// A string attribute.
pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// A number attribute.
pub(crate) fn number(value: u32) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Whether an item with this key is there.
pub(crate) async fn is_there(client: &Client, key: &str) -> bool {
    let got = client.get_item().table_name(TABLE).key("PK", text(key)).consistent_read(true).send().await.unwrap();
    got.item.is_some()
}
