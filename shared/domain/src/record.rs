//! Records as a reader hands them to a work: in chunks, each with its place in the input.

use std::sync::Arc;

use crate::boundary::Position;
use crate::job::nearest;

/// What an object of input or output is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Comma-separated values with a header (RFC 4180).
    Csv,
    /// One JSON object a line.
    Ndjson,
}

/// The one field of a key's record, for a work that knows nothing of what stands behind the key.
pub const KEY_FIELD: &str = "key";

/// The one field of a list item's record.
pub const ITEM_FIELD: &str = "item";

/// Where the records of a chunk come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The object's name as a person knows it, such as `s3://ledger/2026/08/30/a.csv`.
    pub name: String,
    /// The columns, for a format whose header gives them (CSV); empty where each record names its own fields.
    pub columns: Option<Vec<String>>,
}

/// A run of records of one source, in order.
///
/// The fields' text stands in one buffer, so that a chunk costs a few allocations and not a few per record.
#[derive(Debug, Clone)]
pub struct Chunk {
    source: Arc<Source>,
    text: String,
    /// Where each field ends in `text`; a field begins where the one before it ends.
    ends: Vec<u32>,
    records: Vec<Record>,
}

/// One record of a chunk, without its text.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it begins.
    pub from: Position,
    /// Where it ends, which is where the next one begins.
    pub to: Position,
    /// The line of the source on which it begins, from 1; 0 where the input has no lines.
    pub line: u64,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    /// Fields in the order of the source's columns: the first one's place in `ends`.
    Row { first: u32 },
    /// Fields with names of their own.
    Named(Vec<(String, Option<String>)>),
    /// It can't be read as a record, and why.
    Malformed(String),
}

/// What a record holds under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// Text, as it stands in the input (a number keeps its digits).
    Text(&'a str),
    /// Nothing: a JSON null or absent key, or one of the input's `nulls`.
    Null,
    /// The source has no such column.
    NoColumn,
}

/// A column found in a source: by place where the source has a header, by name elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// The place in the header, from 0.
    At(usize),
    /// Looked up in each record.
    Named(String),
    /// The source's header doesn't have it.
    Absent(String),
}

impl Source {
    /// Finds a column by its name.
    #[must_use]
    pub fn column(&self, name: &str) -> Column {
        match &self.columns {
            None => Column::Named(name.to_owned()),
            Some(columns) => match columns.iter().position(|column| column == name) {
                Some(place) => Column::At(place),
                None => Column::Absent(name.to_owned()),
            },
        }
    }
}

/// Columns of a header that are listed where one isn't among them.
const LISTED_COLUMNS_MAX: usize = 20;

/// A source's header doesn't have a column that the job names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its header has no column `{name}`; {hint}")]
pub struct NoColumn {
    /// The column's name.
    pub name: String,
    /// What the header has.
    pub hint: String,
}

impl Source {
    /// The first of these columns that its header doesn't have, if there is one; without a header it lacks none.
    #[must_use]
    pub fn lacks<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<NoColumn> {
        let there = self.columns.as_deref()?;
        let name = names.into_iter().find(|name| !there.iter().any(|column| column == name))?;
        let mut list = there.iter().take(LISTED_COLUMNS_MAX).map(|column| format!("`{column}`")).collect::<Vec<_>>();
        if let Some(more) = there.len().checked_sub(LISTED_COLUMNS_MAX).filter(|more| *more > 0) {
            list.push(format!("and {more} more"));
        }
        let list = list.join(", ");
        let hint = match nearest(name, there.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`? Its columns are {list}"),
            None => format!("its columns are {list}"),
        };
        Some(NoColumn { name: name.to_owned(), hint })
    }
}

impl Chunk {
    /// An empty chunk of this source.
    #[must_use]
    pub fn new(source: Arc<Source>) -> Self {
        Self { source, text: String::new(), ends: Vec::new(), records: Vec::new() }
    }

    /// Where its records come from.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// How many records it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of text it holds: what a reader bounds a chunk by.
    #[must_use]
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Adds a record whose fields stand in the order of the source's columns.
    pub fn push_row<'f>(&mut self, from: Position, to: Position, line: u64, fields: impl Iterator<Item = &'f str>) {
        let first = self.ends.len() as u32;
        for field in fields {
            self.text.push_str(field);
            self.ends.push(self.text.len() as u32);
        }
        self.records.push(Record { from, to, line, body: Body::Row { first } });
    }

    /// Adds a record that names its own fields; `None` is a null.
    pub fn push_named(&mut self, from: Position, to: Position, line: u64, fields: Vec<(String, Option<String>)>) {
        self.records.push(Record { from, to, line, body: Body::Named(fields) });
    }

    /// Adds a record that can't be read, and why.
    pub fn push_malformed(&mut self, from: Position, to: Position, line: u64, why: String) {
        self.records.push(Record { from, to, line, body: Body::Malformed(why) });
    }

    /// The record at this place of the chunk.
    ///
    /// # Panics
    /// When `index` isn't below [`Chunk::len`].
    #[must_use]
    pub fn record(&self, index: usize) -> RecordRef<'_> {
        RecordRef { chunk: self, record: &self.records[index] }
    }

    /// All its records, in order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> {
        self.records.iter().map(|record| RecordRef { chunk: self, record })
    }
}

/// A record together with the chunk that holds its text.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    chunk: &'a Chunk,
    record: &'a Record,
}

impl<'a> RecordRef<'a> {
    /// Where it begins.
    #[must_use]
    pub fn from(&self) -> Position {
        self.record.from
    }

    /// Where it ends.
    #[must_use]
    pub fn to(&self) -> Position {
        self.record.to
    }

    /// The line on which it begins, from 1; 0 where the input has no lines.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.record.line
    }

    /// Why it can't be read as a record, if it can't.
    #[must_use]
    pub fn malformed(&self) -> Option<&'a str> {
        match &self.record.body {
            Body::Malformed(why) => Some(why),
            _ => None,
        }
    }

    /// What it holds in this column of its source. The input's `nulls` are for the caller to tell from text.
    #[must_use]
    pub fn field(&self, column: &Column) -> Field<'a> {
        match (&self.record.body, column) {
            (Body::Row { first }, Column::At(place)) => {
                let index = *first as usize + place;
                let start = if index == 0 { 0 } else { self.chunk.ends[index - 1] as usize };
                Field::Text(&self.chunk.text[start..self.chunk.ends[index] as usize])
            }
            (Body::Named(fields), Column::Named(name)) => match fields.iter().find(|(own, _)| own == name) {
                Some((_, Some(text))) => Field::Text(text),
                _ => Field::Null,
            },
            (Body::Malformed(_), _) => Field::Null,
            _ => Field::NoColumn,
        }
    }

    /// All that it holds, by name and in its own order; nothing of one that can't be read. The input's `nulls` are for
    /// the caller to tell from text.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> + use<'a> {
        let (record, columns) = (*self, self.chunk.source.columns.as_deref().unwrap_or_default());
        let (columns, named) = match &record.record.body {
            Body::Row { .. } => (columns, &[][..]),
            Body::Named(fields) => (&[][..], fields.as_slice()),
            Body::Malformed(_) => (&[][..], &[][..]),
        };
        let row = columns.iter().enumerate();
        let row = row.map(move |(place, name)| (name.as_str(), record.field(&Column::At(place))));
        let named = named.iter().map(|(name, text)| (name.as_str(), text.as_deref().map_or(Field::Null, Field::Text)));
        row.chain(named)
    }
}
