//! JSON as it stands in the file: a value, or where it goes wrong.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::{SpecError, SpecErrorKind};
use crate::limits;

/// Reads a JSON text in which no object has a key twice.
pub(super) fn read(text: &str) -> Result<Value, SpecError> {
    if text.len() > limits::SPEC_BYTES_MAX {
        let message = format!("it has {} bytes, and a job has at most {}", text.len(), limits::SPEC_BYTES_MAX);
        return Err(SpecError::value("", message));
    }
    // Some editors put a byte order mark before the text; RFC 8259, section 8.1 lets a reader pass over it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(SpecError::new(SpecErrorKind::Syntax, "", "there is nothing in it"));
    }
    let repeated = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    let seed = Unique { path: String::new(), repeated: &repeated };
    let value = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let place = (Some(error.line()), Some(error.column()));
        let syntax = match repeated.take() {
            Some(path) => SpecError::new(SpecErrorKind::Syntax, path, "it is there twice")
                .with_hint("keep one of the two; which of them counts would depend on the reader"),
            None => SpecError::new(SpecErrorKind::Syntax, "", reason(&error)),
        };
        SpecError { line: place.0, column: place.1, ..syntax }
    })
}

/// What serde_json says, without the place that it puts at the end.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    format!("it isn't JSON: {}", text.strip_suffix(&place).unwrap_or(&text))
}

/// Reads the value at `path`. serde_json's own reading of a [`Value`] keeps the last of two equal keys, so that one of
/// two lines of a file would be ignored without a word.
struct Unique<'r> {
    path: String,
    repeated: &'r RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(Unique { path, repeated: self.repeated })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = member(&self.path, &key);
            if map.contains_key(&key) {
                self.repeated.replace(Some(path));
                return Err(A::Error::custom("a key is there twice"));
            }
            let value = entries.next_value_seed(Unique { path, repeated: self.repeated })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The path of a member of the object at `path`.
pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
