//! What commands print: one JSON document, or text in columns.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde_json::{Value, json};
use shardcron_domain::shard::Counts;

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
