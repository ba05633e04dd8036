//! Reading typed fields out of JSON, with errors that a person can act on.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::error::{SpecError, SpecErrorKind, nearest};
use super::json::member;
use super::unsupported;

/// A value in the file together with its path.
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

/// An object in the file, all of whose members are known.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Node<'a> {
    /// The object at this place, which may have these members and no others.
    pub(super) fn fields(&self, known: &[&'static str]) -> Result<Fields<'a>, SpecError> {
        let Value::Object(map) = self.value else { return Err(self.wrong_type("an object")) };
        let fields = Fields { map, path: self.path.clone() };
        match map.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(fields.refuse(name, known)),
            None => Ok(fields),
        }
    }

    pub(super) fn text(&self) -> Result<&'a str, SpecError> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a text"))
    }

    /// A text of at least one and at most `max` bytes.
    pub(super) fn text_within(&self, max: usize) -> Result<&'a str, SpecError> {
        let text = self.text()?;
        if text.is_empty() {
            return Err(self.wrong("it is empty"));
        }
        if text.len() > max {
            return Err(self.wrong(format!("it has {} bytes, and at most {max} are allowed", text.len())));
        }
        Ok(text)
    }

    pub(super) fn boolean(&self) -> Result<bool, SpecError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A whole number within `range`.
    pub(super) fn integer<T>(&self, range: RangeInclusive<T>) -> Result<T, SpecError>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let Value::Number(number) = self.value else { return Err(self.wrong_type(&expected)) };
        if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
            let error = self.wrong_type(&expected);
            // Beyond 2^53 a binary float isn't one whole number any more.
            let whole = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
            return Err(if whole { error.with_hint(format!("write {float:.0}")) } else { error });
        }
        let value = number.as_u64().and_then(|value| T::try_from(value).ok());
        value
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.wrong(format!("{number} is out of range; expected {expected}")))
    }

    /// One of these words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T, SpecError> {
        let all = listed(choices.iter().map(|(name, _)| *name));
        let Some(given) = self.value.as_str() else { return Err(self.wrong_type(&all)) };
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == given) {
            return Ok(*value);
        }
        let error = self.wrong(format!("`{given}` isn't one of its values; expected {all}"));
        Err(match nearest(given, choices.iter().map(|(name, _)| *name)) {
            Some(name) => error.with_hint(format!("did you mean `{name}`?")),
            None => error,
        })
    }

    /// A list of texts of at most `max_bytes` each, none of them twice.
    pub(super) fn texts(&self, max_len: usize, max_bytes: usize) -> Result<Vec<String>, SpecError> {
        let Value::Array(items) = self.value else {
            let error = self.wrong_type("a list of texts");
            return Err(match self.value {
                Value::String(text) => error.with_hint(format!("write [{}]", Value::from(text.as_str()))),
                _ => error,
            });
        };
        if items.len() > max_len {
            return Err(self.wrong(format!("it has {} items, and at most {max_len} are allowed", items.len())));
        }
        let mut texts: Vec<String> = Vec::with_capacity(items.len());
        for (index, value) in items.iter().enumerate() {
            let item = Node { value, path: format!("{}[{index}]", self.path) };
            let text = item.text()?;
            if text.len() > max_bytes {
                let message = format!("it has {} bytes, and at most {max_bytes} are allowed", text.len());
                return Err(item.wrong(message));
            }
            if texts.iter().any(|other| other == text) {
                return Err(item.wrong(format!("`{text}` is in the list twice")).with_hint("leave one of them out"));
            }
            texts.push(text.to_owned());
        }
        Ok(texts)
    }

    /// The error that the value can't be.
    pub(super) fn wrong(&self, message: impl Into<String>) -> SpecError {
        SpecError::value(self.path.as_str(), message)
    }

    fn wrong_type(&self, expected: &str) -> SpecError {
        let found = match self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) => format!("the text `{}`", shortened(text)),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        let message = format!("expected {expected}, found {found}");
        let error = SpecError::new(SpecErrorKind::Type, self.path.as_str(), message);
        let number = self.value.as_str().and_then(|text| text.parse::<u64>().ok());
        match number {
            Some(number) if expected.starts_with("a whole number") => {
                error.with_hint(format!("write {number} without quotes"))
            }
            _ => error,
        }
    }
}

impl<'a> Fields<'a> {
    /// The member of this name, if it is there.
    pub(super) fn optional(&self, name: &'static str) -> Result<Option<Node<'a>>, SpecError> {
        let Some(value) = self.map.get(name) else { return Ok(None) };
        let node = Node { value, path: self.path_of(name) };
        if value.is_null() {
            let error = SpecError::new(SpecErrorKind::Type, node.path, "it is null, which isn't a value of it");
            return Err(error.with_hint("leave the field out to take its default"));
        }
        Ok(Some(node))
    }

    /// The member of this name, which must be there. `example` shows how it is written.
    pub(super) fn required(&self, name: &'static str, example: &str) -> Result<Node<'a>, SpecError> {
        self.optional(name)?.ok_or_else(|| {
            SpecError::new(SpecErrorKind::Missing, self.path_of(name), "it is missing")
                .with_hint(format!("write \"{name}\": {example}"))
        })
    }

    /// What `read` makes of the member of this name, or `default` where there is none.
    pub(super) fn or<T>(
        &self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Node<'a>) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        self.optional(name)?.map_or(Ok(default), |node| read(&node))
    }

    /// The names of the members that are there.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.map.keys().map(String::as_str)
    }

    pub(super) fn path_of(&self, name: &str) -> String {
        member(&self.path, name)
    }

    fn refuse(&self, name: &str, known: &[&'static str]) -> SpecError {
        let path = self.path_of(name);
        if let Some(error) = unsupported::field(&path) {
            return error;
        }
        let error = SpecError::new(SpecErrorKind::UnknownField, path, "there is no such field");
        match nearest(name, known.iter().copied()) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint(format!("the fields here are {}", listed(known.iter().copied()))),
        }
    }
}

/// `a`, `b` or `c`.
pub(super) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let last = names.len().saturating_sub(1);
    let mut text = String::new();
    for (index, name) in names.enumerate() {
        text.push_str(match index {
            0 => "",
            index if index == last => " or ",
            _ => ", ",
        });
        text.push('`');
        text.push_str(name);
        text.push('`');
    }
    text
}

/// A text short enough for an error's line.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
