//! Creates the table, where the adapter may: embedded, in tests, on a developer's stand-in.

use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, IndexStatus, KeySchemaElement, KeyType as Role, Projection,
    ProjectionType, ScalarAttributeType, TableDescription, TableStatus,
};

use shardcron_domain::limits::TABLE_ACTIVE_WITHIN;
use shardcron_domain::time::Duration;

use super::{DynamoStore, failure};
use crate::StoreError;
use crate::table::{DUE_INDEX, Index, KeyType, OPEN_INDEX, PK, SK};

/// The pause between two looks at a table that isn't active yet.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Why a table can't be used.
#[derive(Debug, thiserror::Error)]
enum TableError {
    #[error("there is a table of that name whose keys or indexes are other than {PK}, {SK} and the indexes {due} and {open}", due = DUE_INDEX.name, open = OPEN_INDEX.name)]
    Other,
    #[error("it hasn't become active within {} s; look at its state and try again", TABLE_ACTIVE_WITHIN.0 / 1000)]
    Inactive,
    #[error("the SDK doesn't take the definition: {0}")]
    Definition(#[from] aws_sdk_dynamodb::error::BuildError),
}

impl DynamoStore {
    /// Creates the table if it isn't there (on demand: no capacity to plan), and waits until it and its indexes are
    /// active, for at most [`TABLE_ACTIVE_WITHIN`]. May be called again, and by several at once.
    ///
    /// # Errors
    /// [`StoreError::Refused`] when there is a table of that name with other keys or indexes, or it doesn't become
    /// active; otherwise as for any request.
    #[expect(
        clippy::disallowed_methods,
        reason = "a table is made at the start of a process, before there is an engine"
    )]
    pub async fn create_table(&self) -> Result<(), StoreError> {
        let what = || format!("creating the table {}", self.table);
        let refuse = |error: TableError| StoreError::Refused { what: what(), source: Box::new(error) };
        let index_on = |index: Index| {
            GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .set_key_schema(Some(schema(index.partition, index.sort)?))
                .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
                .build()
        };
        let created = self
            .client
            .create_table()
            .table_name(&self.table)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(schema(PK, SK).map_err(|error| refuse(error.into()))?))
            .set_attribute_definitions(Some(definitions().map_err(|error| refuse(error.into()))?))
            .global_secondary_indexes(index_on(DUE_INDEX).map_err(|error| refuse(error.into()))?)
            .global_secondary_indexes(index_on(OPEN_INDEX).map_err(|error| refuse(error.into()))?)
            .send()
            .await;
        if let Err(error) = created
            && !matches!(error.as_service_error(), Some(CreateTableError::ResourceInUseException(_)))
        {
            return Err(failure::of_read(what(), &self.table, error));
        }
        for _ in 0..TABLE_ACTIVE_WITHIN.0 / LOOK_EVERY.0 {
            let described = self.client.describe_table().table_name(&self.table).send().await;
            match described {
                Ok(output) => {
                    let Some(table) = output.table() else { return Err(refuse(TableError::Inactive)) };
                    if !is_ours(table) {
                        return Err(refuse(TableError::Other));
                    }
                    if is_active(table) {
                        return Ok(());
                    }
                }
                // DescribeTable is eventually consistent: a table that was just created may not be there yet.
                Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => {}
                Err(error) => return Err(failure::of_read(what(), &self.table, error)),
            }
            tokio::time::sleep(LOOK_EVERY.to_std()).await;
        }
        Err(refuse(TableError::Inactive))
    }
}

type Built<T> = Result<T, aws_sdk_dynamodb::error::BuildError>;

fn schema(partition: &str, sort: &str) -> Built<Vec<KeySchemaElement>> {
    let element = |name: &str, role| KeySchemaElement::builder().attribute_name(name).key_type(role).build();
    Ok(vec![element(partition, Role::Hash)?, element(sort, Role::Range)?])
}

fn definitions() -> Built<Vec<AttributeDefinition>> {
    let keys = [(PK, KeyType::Text), (SK, KeyType::Text)];
    let indexes = [DUE_INDEX, OPEN_INDEX].into_iter();
    keys.into_iter()
        .chain(indexes.flat_map(|index| [(index.partition, KeyType::Text), (index.sort, index.sort_type)]))
        .map(|(name, key_type)| {
            let scalar = match key_type {
                KeyType::Text => ScalarAttributeType::S,
                KeyType::Number => ScalarAttributeType::N,
            };
            AttributeDefinition::builder().attribute_name(name).attribute_type(scalar).build()
        })
        .collect()
}

fn is_ours(table: &TableDescription) -> bool {
    let has_index = |index: Index| {
        table.global_secondary_indexes().iter().any(|there| {
            there.index_name() == Some(index.name) && is_schema(there.key_schema(), index.partition, index.sort)
        })
    };
    let typed = |definitions: Vec<AttributeDefinition>| {
        definitions.iter().all(|definition| table.attribute_definitions().contains(definition))
    };
    is_schema(table.key_schema(), PK, SK)
        && has_index(DUE_INDEX)
        && has_index(OPEN_INDEX)
        && definitions().is_ok_and(typed)
}

fn is_schema(schema: &[KeySchemaElement], partition: &str, sort: &str) -> bool {
    let has = |name, role| schema.iter().any(|key| key.attribute_name() == name && *key.key_type() == role);
    schema.len() == 2 && has(partition, Role::Hash) && has(sort, Role::Range)
}

fn is_active(table: &TableDescription) -> bool {
    // A table being updated serves requests as well; its indexes are there once they are active.
    let serves = matches!(table.table_status(), Some(TableStatus::Active | TableStatus::Updating));
    serves && table.global_secondary_indexes().iter().all(|index| index.index_status() == Some(&IndexStatus::Active))
}
