//! Items as DynamoDB's attributes, and back.
//!
//! An item has its key, its [`KIND`], its two index attributes where it stands in one, and the fields of its domain
//! record as serde writes them. Fields that only repeat the key (a shard's `key`, a result's shard) aren't stored
//! twice: each write of a shard is paid per KB of the whole item. Sets are DynamoDB's own, so that `ADD` works on
//! them; it has no empty ones, so an empty set is no attribute.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_dynamo::aws_sdk_dynamodb_1::{from_item, to_attribute_value, to_item};

use super::expressions::{number, text};
use crate::table::{self, DUE_INDEX, IndexEntry, KIND, Keys, OPEN_INDEX, PK, SK};
use crate::{Item, ItemKey, StoreError, StoredEffect, StoredReject, StoredResult};

/// An item's attributes by name.
pub(super) type Attributes = HashMap<String, AttributeValue>;

/// The key's attributes.
pub(super) fn key_attributes(key: &ItemKey) -> Attributes {
    let Keys { pk, sk } = table::keys(key);
    place(pk, sk)
}

/// The key's attributes, for a key that needn't be an item's.
pub(super) fn place(pk: String, sk: String) -> Attributes {
    HashMap::from([(PK.to_owned(), text(pk)), (SK.to_owned(), text(sk))])
}

/// Writes an item.
pub(super) fn encode(item: &Item) -> Result<Attributes, StoreError> {
    let key = item.key();
    let fields = match item {
        Item::Job(job) => fields(job, &["name"]),
        Item::Spec(spec) => fields(spec, &["job", "version"]),
        Item::Instance(instance) => fields(instance, &["id"]),
        Item::Skip(skip) => fields(skip, &["job", "from"]),
        Item::Slot(slot) => fields(slot, &["key"]),
        Item::Backfill(backfill) => fields(backfill, &["job", "id"]),
        Item::Group(group) => fields(group, &["run", "no"]),
        Item::Shard(shard) => fields(shard, &["key"]),
        Item::Attempt(attempt) => fields(attempt, &["shard", "token"]),
        Item::Result(result) => fields(&result.row, &["key"]),
        Item::Reject(reject) => fields(&reject.row, &[]),
        Item::Effect(effect) => fields(&effect.row, &["no"]),
    };
    let mut attributes = fields.map_err(|source| StoreError::Refused {
        what: format!("writing {key} as an item"),
        source: Box::new(source),
    })?;
    for set in ["done", "groups_done"] {
        make_set(&mut attributes, set);
    }
    attributes.extend(key_attributes(&key));
    attributes.insert(KIND.to_owned(), text(table::kind(&key)));
    match table::index_entry(item) {
        Some(IndexEntry::Due { bucket, at }) => {
            attributes.insert(DUE_INDEX.partition.to_owned(), text(bucket));
            attributes.insert(DUE_INDEX.sort.to_owned(), text(at.to_string()));
        }
        Some(IndexEntry::Open { bucket, at }) => {
            attributes.insert(OPEN_INDEX.partition.to_owned(), text(bucket));
            attributes.insert(OPEN_INDEX.sort.to_owned(), number(at.0));
        }
        None => {}
    }
    Ok(attributes)
}

fn fields<T: Serialize>(record: &T, in_key: &[&str]) -> Result<Attributes, serde_dynamo::Error> {
    let mut fields: Attributes = to_item(record)?;
    for name in in_key {
        fields.remove(*name);
    }
    Ok(fields)
}

/// Makes a set of a list, as serde writes sets.
fn make_set(attributes: &mut Attributes, name: &str) {
    let Some(AttributeValue::L(list)) = attributes.get(name) else { return };
    let texts: Option<Vec<String>> = list.iter().map(|member| member.as_s().ok().cloned()).collect();
    let numbers: Option<Vec<String>> = list.iter().map(|member| member.as_n().ok().cloned()).collect();
    let set = match (list.is_empty(), texts, numbers) {
        (true, ..) => None,
        (false, Some(texts), _) => Some(AttributeValue::Ss(texts)),
        (false, None, Some(numbers)) => Some(AttributeValue::Ns(numbers)),
        (false, None, None) => return,
    };
    match set {
        Some(set) => attributes.insert(name.to_owned(), set),
        None => attributes.remove(name),
    };
}

/// Whose item these attributes are: all that an index's entry has to say.
pub(super) fn key_of(attributes: &Attributes) -> Result<ItemKey, StoreError> {
    let part = |name| attributes.get(name).and_then(|value: &AttributeValue| value.as_s().ok());
    let (pk, sk) = (part(PK).map_or("", String::as_str), part(SK).map_or("", String::as_str));
    table::parse(pk, sk).ok_or_else(|| StoreError::Corrupt {
        key: format!("the item at {PK} `{pk}`, {SK} `{sk}`"),
        why: "no item of this version of shardcron has that key".to_owned(),
    })
}

/// Reads an item.
pub(super) fn decode(mut attributes: Attributes) -> Result<Item, StoreError> {
    let key = key_of(&attributes)?;
    let corrupt = |why: String| StoreError::Corrupt { key: key.to_string(), why };
    match attributes.get(KIND) {
        Some(AttributeValue::S(kind)) if kind == table::kind(&key) => {}
        other => return Err(corrupt(format!("its {KIND} isn't {} but {other:?}", table::kind(&key)))),
    }
    for own in [PK, SK, KIND, DUE_INDEX.partition, DUE_INDEX.sort, OPEN_INDEX.partition, OPEN_INDEX.sort] {
        attributes.remove(own);
    }
    let read = match &key {
        ItemKey::Job(job) => record(attributes, &[("name", attribute(job))]).map(Item::Job),
        ItemKey::Spec(job, version) => {
            record(attributes, &[("job", attribute(job)), ("version", attribute(version))]).map(Item::Spec)
        }
        ItemKey::Instance(id) => record(attributes, &[("id", attribute(id))]).map(Box::new).map(Item::Instance),
        ItemKey::Skip(job, from) => {
            record(attributes, &[("job", attribute(job)), ("from", attribute(from))]).map(Item::Skip)
        }
        ItemKey::Slot(slot) => record(attributes, &[("key", attribute(slot))]).map(Item::Slot),
        ItemKey::Backfill(job, id) => {
            record(attributes, &[("job", attribute(job)), ("id", attribute(id))]).map(Box::new).map(Item::Backfill)
        }
        ItemKey::Group(run, no) => {
            record(attributes, &[("run", attribute(run)), ("no", attribute(no))]).map(Item::Group)
        }
        ItemKey::Shard(shard) => record(attributes, &[("key", attribute(shard))]).map(Box::new).map(Item::Shard),
        ItemKey::Attempt(shard, token) => {
            record(attributes, &[("shard", attribute(shard)), ("token", attribute(token))]).map(Item::Attempt)
        }
        ItemKey::Result(shard, row) => record(attributes, &[("key", attribute(row))])
            .map(|row| Item::Result(StoredResult { shard: shard.clone(), row })),
        ItemKey::Reject(shard, _) => {
            record(attributes, &[]).map(|row| Item::Reject(StoredReject { shard: shard.clone(), row }))
        }
        ItemKey::Effect(shard, no) => record(attributes, &[("no", attribute(no))])
            .map(|row| Item::Effect(StoredEffect { shard: shard.clone(), row })),
    };
    let item = read.map_err(|error| corrupt(error.to_string()))?;
    // Only a reject's record names its own place; the others got theirs from the key.
    if item.key() != key {
        return Err(corrupt(format!("it calls itself {}", item.key())));
    }
    Ok(item)
}

type Field<'a> = (&'a str, Result<AttributeValue, serde_dynamo::Error>);

fn attribute<T: Serialize>(value: &T) -> Result<AttributeValue, serde_dynamo::Error> {
    to_attribute_value(value)
}

fn record<T: DeserializeOwned>(mut attributes: Attributes, from_key: &[Field<'_>]) -> Result<T, serde_dynamo::Error> {
    for (name, value) in from_key {
        match value {
            Ok(value) => attributes.insert((*name).to_owned(), value.clone()),
            Err(error) => return Err(serde::de::Error::custom(error)),
        };
    }
    from_item(attributes)
}

/// Bytes of an item as DynamoDB counts them for its quotas and prices (AWS, "DynamoDB item sizes and formats"): names
/// and texts by their UTF-8, a number by its digits, three bytes for a map or list and one for each of its members.
///
/// Numbers are counted with the zeros that DynamoDB leaves out, so the count may be a little over.
pub(super) fn bytes(attributes: &Attributes) -> usize {
    attributes.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number_bytes(number),
        AttributeValue::B(blob) => blob.as_ref().len(),
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => numbers.iter().map(|number| number_bytes(number)).sum(),
        AttributeValue::Bs(blobs) => blobs.iter().map(|blob| blob.as_ref().len()).sum(),
        AttributeValue::M(map) => {
            3 + map.iter().map(|(name, value)| 1 + name.len() + value_bytes(value)).sum::<usize>()
        }
        AttributeValue::L(list) => 3 + list.iter().map(|value| 1 + value_bytes(value)).sum::<usize>(),
        _ => 1,
    }
}

fn number_bytes(number: &str) -> usize {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    digits.div_ceil(2) + 1 + usize::from(number.starts_with('-'))
}
