//! Writes: each one request, its outcome definite or an error that says what is known.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Put as PutRequest, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem,
};
use shardcron_domain::digest;
use shardcron_domain::ids::WriteId;
use shardcron_domain::limits::CLIENT_TOKEN_MAX;

use super::record::{Attributes, bytes, decode, encode, key_attributes};
use super::transmissions::Transmissions;
use super::{DynamoStore, expressions, failure};
use crate::{Item, ItemOutcome, Put, SetAdd, StoreError, Transacted, Written, bounds};

impl DynamoStore {
    pub(super) async fn put_item(&self, put: &Put) -> Result<Written, StoreError> {
        let key = put.item.key();
        let what = format!("the write of {key}");
        let attributes = encode(&put.item)?;
        bounds::item(&(key, bytes(&attributes))).map_err(|error| error.refusing(&what))?;
        let condition = expressions::guard(&put.guard);
        let sent = Transmissions::default();
        let answer = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(attributes))
            .set_condition_expression(condition.as_ref().map(|condition| condition.text.to_owned()))
            .set_expression_attribute_names(condition.as_ref().map(expressions::Expression::names))
            .set_expression_attribute_values(condition.as_ref().and_then(expressions::Expression::values))
            .return_values_on_condition_check_failure(AllOld)
            .set_return_consumed_capacity(self.capacity_wanted())
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(output) => {
                self.write_units("PutItem", output.consumed_capacity());
                Ok(Written::Applied)
            }
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => lost(failed.item()),
                _ => Err(failure::of_write(what, &self.table, error, &sent)),
            },
        }
    }

    pub(super) async fn update_item(&self, add: &SetAdd) -> Result<Written, StoreError> {
        let update = expressions::add(add);
        let what = format!("the addition to {}", update.key);
        let sent = Transmissions::default();
        let answer = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key_attributes(&update.key)))
            .update_expression(update.text)
            .condition_expression(update.condition.text)
            .set_expression_attribute_names(Some(update.condition.names()))
            .set_expression_attribute_values(update.condition.values())
            .return_values_on_condition_check_failure(AllOld)
            .set_return_consumed_capacity(self.capacity_wanted())
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(output) => {
                self.write_units("UpdateItem", output.consumed_capacity());
                Ok(Written::Applied)
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => Ok(match lost(failed.item())? {
                    Written::Lost(item) if add.is_in(&item) => Written::Applied,
                    outcome => outcome,
                }),
                _ => Err(failure::of_write(what, &self.table, error, &sent)),
            },
        }
    }

    pub(super) async fn transact_write_items(&self, puts: &[Put], token: &WriteId) -> Result<Transacted, StoreError> {
        let what = match puts {
            [first, rest @ ..] => format!("the transaction of {} and {} others", first.item.key(), rest.len()),
            [] => "the transaction of nothing".to_owned(),
        };
        let mut requests = Vec::with_capacity(puts.len());
        let mut sized = Vec::with_capacity(puts.len());
        for put in puts {
            let attributes = encode(&put.item)?;
            sized.push((put.item.key(), bytes(&attributes)));
            requests.push(self.transaction_item(put, attributes, &what)?);
        }
        bounds::transaction(&sized, &token.0).map_err(|error| error.refusing(&what))?;
        let sent = Transmissions::default();
        let answer = self
            .client
            .transact_write_items()
            .set_transact_items(Some(requests))
            .client_request_token(client_token(token))
            .set_return_consumed_capacity(self.capacity_wanted())
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(output) => {
                self.write_units("TransactWriteItems", output.consumed_capacity());
                Ok(Transacted::Applied)
            }
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
                    match cancellation(canceled.cancellation_reasons(), puts.len())? {
                        Cancellation::Refused(outcomes) => Ok(Transacted::Refused(outcomes)),
                        // An earlier attempt of the SDK may be the very transaction that this one met.
                        _ if !sent.all_answered() => Err(failure::of_write(what, &self.table, error, &sent)),
                        Cancellation::Conflict => Err(StoreError::Conflict { what }),
                        Cancellation::Throttled => Err(StoreError::Throttled { what }),
                        Cancellation::Other => Err(failure::of_write(what, &self.table, error, &sent)),
                    }
                }
                _ => Err(failure::of_write(what, &self.table, error, &sent)),
            },
        }
    }

    fn transaction_item(&self, put: &Put, attributes: Attributes, what: &str) -> Result<TransactWriteItem, StoreError> {
        let condition = expressions::guard(&put.guard);
        let request = PutRequest::builder()
            .table_name(&self.table)
            .set_item(Some(attributes))
            .set_condition_expression(condition.as_ref().map(|condition| condition.text.to_owned()))
            .set_expression_attribute_names(condition.as_ref().map(expressions::Expression::names))
            .set_expression_attribute_values(condition.as_ref().and_then(expressions::Expression::values))
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .map_err(|source| StoreError::Refused { what: what.to_owned(), source: Box::new(source) })?;
        Ok(TransactWriteItem::builder().put(request).build())
    }
}

/// A failed condition, by the item that DynamoDB sends along when there is one.
fn lost(item: Option<&Attributes>) -> Result<Written, StoreError> {
    match there(item)? {
        Some(item) => Ok(Written::Lost(item)),
        None => Ok(Written::Missing),
    }
}

fn there(item: Option<&Attributes>) -> Result<Option<Box<Item>>, StoreError> {
    item.filter(|attributes| !attributes.is_empty())
        .map(|attributes| decode(attributes.clone()).map(Box::new))
        .transpose()
}

/// What a canceled transaction comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Cancellation {
    Refused(Vec<ItemOutcome>),
    Conflict,
    Throttled,
    /// For good: the exception itself says what.
    Other,
}

/// Sorts the reasons of a canceled transaction (DynamoDB API reference, `TransactWriteItems`), one for each item and in
/// their order.
///
/// A condition that failed decides, even when other items met another transaction or were throttled: the condition
/// names a version that won't come back (or an absence that is over), so sending the same request again would be in
/// vain, and the caller needs the item that is there. The other items then count as held: nothing is known against
/// them, and the caller's next request will tell. Only what no request can mend goes before that.
pub(super) fn cancellation(reasons: &[CancellationReason], items: usize) -> Result<Cancellation, StoreError> {
    let has = |codes: &[&str]| reasons.iter().any(|r| r.code().is_some_and(|code| codes.contains(&code)));
    if reasons.len() != items || has(&["ValidationError", "ItemCollectionSizeLimitExceeded"]) {
        return Ok(Cancellation::Other);
    }
    if has(&["ConditionalCheckFailed"]) {
        let outcome = |reason: &CancellationReason| match reason.code() {
            Some("ConditionalCheckFailed") => Ok(match there(reason.item())? {
                Some(item) => ItemOutcome::Lost(item),
                None => ItemOutcome::Missing,
            }),
            _ => Ok(ItemOutcome::Held),
        };
        return reasons.iter().map(outcome).collect::<Result<_, _>>().map(Cancellation::Refused);
    }
    // Throttling asks for the longer pause of the two.
    if has(&["ThrottlingError", "ProvisionedThroughputExceeded"]) {
        return Ok(Cancellation::Throttled);
    }
    if has(&["TransactionConflict"]) {
        return Ok(Cancellation::Conflict);
    }
    Ok(Cancellation::Other)
}

/// The client token of a transaction: the write id itself where it fits, its SHA-256 (the first half, in hex) where
/// it doesn't.
pub(super) fn client_token(id: &WriteId) -> String {
    if id.0.len() <= CLIENT_TOKEN_MAX {
        return id.0.clone();
    }
    digest::half_of(&id.0)
}
