//! The JSON Schema of a job's file, generated from the types of this module.
//!
//! It says what can be said about a field by itself: its name, type, range and words. What [`JobSpec::parse`] refuses
//! beyond that (a schedule that can't fire, fields that don't go together) it lets pass.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::JobSpec;
use crate::limits;

impl JobSpec {
    /// The schema (draft 2020-12) of a job's file, as it stands in `docs/job.schema.json`.
    #[must_use]
    pub fn schema_text() -> String {
        let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(tidy));
        let mut schema = settings.into_generator().into_root_schema_for::<Self>();
        schema.insert("title".to_owned(), "A shardcron job".into());
        #[expect(clippy::expect_used, reason = "a schema is a JSON value")]
        let mut text = serde_json::to_string_pretty(&schema).expect("a schema can be written as JSON");
        text.push('\n');
        text
    }
}

/// A field that isn't given is left out: `null` isn't a value of any. Nor does a `format` such as `uint32` say more than
/// the range beside it; and where a comment's lines were broken says nothing.
fn tidy(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [only] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only.as_object().into_iter().flatten() {
                schema.insert(key.clone(), value.clone());
            }
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

fn texts_of(min: usize) -> Schema {
    json_schema!({
        "type": "array", "uniqueItems": true, "maxItems": limits::COLUMNS_MAX,
        "items": { "type": "string", "minLength": min, "maxLength": limits::COLUMN_BYTES_MAX },
    })
}

/// Texts, none of them twice.
pub(super) fn texts(_: &mut SchemaGenerator) -> Schema {
    texts_of(0)
}

/// Names of columns, none of them twice.
pub(super) fn columns(_: &mut SchemaGenerator) -> Schema {
    texts_of(1)
}

/// One of the alternatives, and not several.
pub(super) fn exactly_one(schema: &mut Schema) {
    if let Some(choices) = schema.remove("anyOf") {
        schema.insert("oneOf".to_owned(), choices);
    }
}

/// A key of a range.
pub(super) fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX })
}

/// The last key of a range.
pub(super) fn last_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX - 1 },
        { "const": super::input::MAX_ID },
    ] })
}

/// A list of items, or what makes one.
pub(super) fn list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        {
            "type": "array", "uniqueItems": true, "minItems": 1, "maxItems": limits::LIST_ITEMS_MAX,
            "items": { "type": "string", "minLength": 1, "maxLength": limits::LIST_ITEM_BYTES_MAX },
        },
        {
            "type": "object", "additionalProperties": false, "required": ["buckets"],
            "properties": { "buckets": { "type": "integer", "minimum": 1, "maximum": limits::LIST_ITEMS_MAX } },
        },
        {
            "type": "object", "additionalProperties": false, "required": ["days"],
            "properties": { "days": { "const": "window" } },
        },
    ] })
}

/// What a work of one's own is given: anything but null.
pub(super) fn with(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "not": { "type": "null" } })
}

/// An aggregate computes something.
pub(super) fn computes_something(schema: &mut Schema) {
    let list = |name: &str| serde_json::json!({ "required": [name], "properties": { name: { "minItems": 1 } } });
    let count = serde_json::json!({ "required": ["count"], "properties": { "count": { "const": true } } });
    schema.insert("anyOf".to_owned(), Value::Array(vec![count, list("sum"), list("min"), list("max")]));
}

#[cfg(test)]
mod tests;
