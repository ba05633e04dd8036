//! Serves an embedded table, in memory, until standard input ends: for what wants a DynamoDB as a process. Prints where
//! it listens.

use std::io::{self, Read, Write};

use shardcron_embedded::EmbeddedTable;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = EmbeddedTable::in_memory()?;
    let mut out = io::stdout();
    writeln!(out, "{}", table.endpoint())?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
