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
