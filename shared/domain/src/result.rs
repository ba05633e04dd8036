//! What a work leaves behind: result rows and rejects, committed with the checkpoint, and the table made of them.

use serde::{Deserialize, Serialize};

use crate::boundary::Position;
use crate::limits;

/// One row of a shard's results: the value under a key, absolute, so that writing it twice is writing it once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultRow {
    /// The row's key, unique in the shard; at most [`limits::RESULT_KEY_BYTES_MAX`].
    pub key: String,
    /// The row's value as JSON, of the form that the work chose.
    pub value: String,
    /// How many input records are in it; rows of a shard add up to the records it has taken and not rejected.
    pub records: u64,
}

/// Why a result row can't be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultRowError {
    /// The key is too long for a sort key.
    #[error("a result's key has at most {max} bytes, and this one has {0}", max = limits::RESULT_KEY_BYTES_MAX)]
    Key(usize),
    /// The value is too long for an item.
    #[error("a result's value has at most {max} bytes, and this one has {0}", max = limits::RESULT_VALUE_BYTES_MAX)]
    Value(usize),
}

impl ResultRow {
    /// Bytes of key and value: what a commit's size is counted by.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// Whether it can be stored.
    ///
    /// # Errors
    /// [`ResultRowError`] when the key or the value is over its bound.
    pub fn check(&self) -> Result<(), ResultRowError> {
        if self.key.len() > limits::RESULT_KEY_BYTES_MAX {
            return Err(ResultRowError::Key(self.key.len()));
        }
        if self.value.len() > limits::RESULT_VALUE_BYTES_MAX {
            return Err(ResultRowError::Value(self.value.len()));
        }
        Ok(())
    }
}

/// A record that isn't in the results, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectRow {
    /// Where the record begins.
    pub position: Position,
    /// The line on which it begins, from 1; 0 where the input has no lines.
    pub line: u64,
    /// The object that it stands in, as a person knows it.
    pub source: String,
    /// What is wrong with it.
    pub why: String,
}

/// An instance's output: a header and rows of text, `None` where there is no value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputTable {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows, each with a value for each column.
    pub rows: Vec<Vec<Option<String>>>,
}

impl OutputTable {
    /// The table as CSV (RFC 4180, with `\n` at the end of each line): the header, always, and the rows.
    ///
    /// A value is quoted only where it must be, and no value is written as an empty one.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = self.csv_header();
        for row in &self.rows {
            push_csv_row(&mut text, row.iter().map(Option::as_deref));
        }
        text
    }

    /// The header line of [`to_csv`](Self::to_csv).
    #[must_use]
    pub fn csv_header(&self) -> String {
        let mut text = String::new();
        push_csv_row(&mut text, self.columns.iter().map(|name| Some(name.as_str())));
        text
    }

    /// The table as NDJSON: an object for each row, its keys in the order of the columns; nothing for no rows.
    ///
    /// Every value is a JSON string, numbers too: most readers make binary floats of JSON numbers, and 38 digits don't
    /// survive that. No value is `null`.
    #[must_use]
    pub fn to_ndjson(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|name| json_string(name)).collect();
        let mut text = String::new();
        for row in &self.rows {
            for (index, (name, value)) in names.iter().zip(row).enumerate() {
                text.push(if index == 0 { '{' } else { ',' });
                text.push_str(name);
                text.push(':');
                match value {
                    Some(value) => text.push_str(&json_string(value)),
                    None => text.push_str("null"),
                }
            }
            text.push_str(if row.is_empty() { "{}\n" } else { "}\n" });
        }
        text
    }
}

fn push_csv_row<'a>(text: &mut String, values: impl ExactSizeIterator<Item = Option<&'a str>>) {
    // A line with nothing on it is no record to most readers.
    let alone = values.len() == 1;
    for (index, value) in values.enumerate() {
        if index > 0 {
            text.push(',');
        }
        let value = value.unwrap_or("");
        if value.contains(['"', ',', '\n', '\r']) || (alone && value.is_empty()) {
            text.push('"');
            for part in value.split_inclusive('"') {
                text.push_str(part);
                if part.ends_with('"') {
                    text.push('"');
                }
            }
            text.push('"');
        } else {
            text.push_str(value);
        }
    }
    text.push('\n');
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[&str], rows: &[&[Option<&str>]]) -> OutputTable {
        let owned = |value: &Option<&str>| value.map(str::to_owned);
        OutputTable {
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: rows.iter().map(|row| row.iter().map(owned).collect()).collect(),
        }
    }

    #[test]
    fn csv_is_quoted_only_where_it_must_be() {
        let table = table(
            &["name", "a,b"],
            &[
                &[Some("plain text"), Some("12.5")],
                &[Some("say \"hi\""), None],
                &[Some("two\nlines"), Some("\r")],
                &[Some("\""), Some("")],
            ],
        );
        let expected = "name,\"a,b\"\nplain text,12.5\n\"say \"\"hi\"\"\",\n\"two\nlines\",\"\r\"\n\"\"\"\",\n";
        assert_eq!(table.to_csv(), expected);
    }

    #[test]
    fn a_row_of_one_empty_value_isnt_a_blank_line() {
        assert_eq!(table(&["sum_x"], &[&[None]]).to_csv(), "sum_x\n\"\"\n");
    }

    #[test]
    fn an_empty_table_is_its_header_in_csv_and_nothing_in_ndjson() {
        let empty = table(&["a", "b"], &[]);
        assert_eq!(empty.to_csv(), "a,b\n");
        assert_eq!(empty.to_ndjson(), "");
    }

    #[test]
    fn ndjson_keeps_the_order_of_the_columns_and_the_digits_of_numbers() {
        let table = table(&["z", "a"], &[&[Some("x\"\n"), Some("12345678901234567890.5")], &[None, Some("")]]);
        let expected = "{\"z\":\"x\\\"\\n\",\"a\":\"12345678901234567890.5\"}\n{\"z\":null,\"a\":\"\"}\n";
        assert_eq!(table.to_ndjson(), expected);
    }

    #[test]
    fn a_row_over_a_bound_is_refused() {
        let row = |key: usize, value: usize| ResultRow { key: "k".repeat(key), value: "v".repeat(value), records: 1 };
        let (key, value) = (limits::RESULT_KEY_BYTES_MAX, limits::RESULT_VALUE_BYTES_MAX);
        assert_eq!(row(key, value).check(), Ok(()));
        assert_eq!(row(key + 1, value).check(), Err(ResultRowError::Key(key + 1)));
        assert_eq!(row(key, value + 1).check(), Err(ResultRowError::Value(value + 1)));
    }
}
