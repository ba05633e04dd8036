//! Why a job's file was refused.

use std::fmt;

/// What is wrong with a job's file, in which field, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// What kind of mistake it is.
    pub kind: SpecErrorKind,
    /// The field's path, such as `input.format` or `work.aggregate.sum[1]`; empty for the file as a whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// What to write instead, where that is known.
    pub hint: Option<String>,
    /// The line of the file, from 1, where the JSON itself is wrong.
    pub line: Option<usize>,
    /// The column in that line, from 1.
    pub column: Option<usize>,
}

/// The kinds of mistakes in a job's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecErrorKind {
    /// It isn't JSON, or has a key twice in one object.
    Syntax,
    /// There is no such field.
    UnknownField,
    /// The field or its value is part of the design and isn't built yet.
    NotSupported,
    /// A field that must be there isn't.
    Missing,
    /// The field's value is of another type than the field.
    Type,
    /// The value's type is right and the value isn't.
    Value,
}

impl SpecErrorKind {
    /// The kind as programs read it, such as `unknown_field`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownField => "unknown_field",
            Self::NotSupported => "not_supported",
            Self::Missing => "missing_field",
            Self::Type => "type",
            Self::Value => "value",
        }
    }
}

impl SpecError {
    /// An error of this kind about the field at this path, without a hint.
    #[must_use]
    pub fn new(kind: SpecErrorKind, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, field: field.into(), message: message.into(), hint: None, line: None, column: None }
    }

    /// A value that can't be, in the field at this path.
    #[must_use]
    pub fn value(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(SpecErrorKind::Value, field, message)
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same error with its field taken to be inside the one at `parent`.
    #[must_use]
    pub fn inside(self, parent: &str) -> Self {
        let field = match self.field.as_str() {
            "" => parent.to_owned(),
            index if index.starts_with('[') => format!("{parent}{index}"),
            name => format!("{parent}.{name}"),
        };
        Self { field, ..self }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpecError {}

/// The one of `known` that `given` is most probably a slip of: nearest by edits, letter case aside, and near enough.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let (distance, name) = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)?;
    // A third of the letters may be wrong; beyond that a guess misleads.
    (distance * 3 <= given.chars().count().max(name.chars().count())).then_some(name)
}
