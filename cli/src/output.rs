//! What commands print: one JSON document, or text in columns.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde_json::{Value, json};
use shardcron_domain::shard::Counts;

use crate::args::OutputFormat;
use crate::error::CliError;

/// Writes to standard output. A reader that has gone (`| head`) isn't an error.
pub(crate) fn write(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::failed("output", format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub(crate) fn json(document: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string(document).map_err(|error| CliError::failed("output", error.to_string()))?;
    text.push('\n');
    write(text.as_bytes())
}

/// Records as every document of the command names them; the table's own names are shorter.
pub(crate) fn counts(counts: Counts) -> Value {
    json!({ "in": counts.input, "out": counts.output, "rejected": counts.rejected })
}

/// A JSON document that ends with an array of any length, printed as it comes and never held.
pub(crate) struct LongDocument {
    is_empty: bool,
}

impl LongDocument {
    /// Prints the members of `head`, an object that has some, and the beginning of the array.
    pub(crate) fn begin(head: &Value, array: &str) -> Result<Self, CliError> {
        let head = head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        write(format!("{head},{}:[", Value::from(array)).as_bytes())?;
        Ok(Self { is_empty: true })
    }

    /// Prints some elements, each JSON already.
    pub(crate) fn push(&mut self, elements: impl IntoIterator<Item = impl std::fmt::Display>) -> Result<(), CliError> {
        let mut text = String::new();
        for element in elements {
            let comma = if self.is_empty { "" } else { "," };
            text.push_str(&format!("{comma}{element}"));
            self.is_empty = false;
        }
        write(text.as_bytes())
    }

    /// Prints the end.
    pub(crate) fn end(self) -> Result<(), CliError> {
        write(b"]}\n")
    }
}

/// Refuses `--format` beside `--json`, which is a form of its own.
pub(crate) fn one_form(format: Option<OutputFormat>, json: bool) -> Result<(), CliError> {
    match format {
        Some(_) if json => Err(CliError::wrong("usage", "--format and --json are two forms of one output")
            .hint("leave out one of them: --json prints one document, --format csv or ndjson a line for each row")),
        _ => Ok(()),
    }
}

/// Prints text.
pub(crate) fn text(text: &str) -> Result<(), CliError> {
    write(text.as_bytes())
}

/// Whether people are looking at standard error: then a progress bar is drawn there.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Rows under a header, in columns two spaces apart.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&header).chain(rows) {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}
