//! `shardcron rejects`

use serde_json::{Value, json};
use shardcron_domain::boundary::Position;
use shardcron_domain::result::{OutputTable, RejectRow};
use shardcron_domain::shard::Shard;

use crate::args::{OutputFormat, RejectsArgs};
use crate::commands::operate::find;
use crate::error::CliError;
use crate::output::{self, LongDocument};
use crate::place::Place;

/// The columns of a reject, in CSV and NDJSON.
const COLUMNS: [&str; 5] = ["file", "line", "byte", "shard", "reason"];

/// How rejects are printed without `--json`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines,
    Csv,
    Ndjson,
}

pub(crate) async fn run(place: &Place, args: &RejectsArgs, as_json: bool) -> Result<(), CliError> {
    output::one_form(args.format, as_json)?;
    let instance = find(place, &args.instance).await?;
    let engine = &place.runtime.engine;
    let form = match args.format {
        Some(OutputFormat::Csv) => Form::Csv,
        Some(OutputFormat::Ndjson) => Form::Ndjson,
        None => Form::Lines,
    };
    let head = json!({ "instance": instance.id.to_string(), "generation": instance.generation });
    let mut document = if as_json { Some(LongDocument::begin(&head, "rejects")?) } else { None };
    if form == Form::Csv {
        output::text(&table(Vec::new()).csv_header())?;
    }
    let mut count = 0;
    let shards = engine.shards_of(&instance).await?;
    for shard in shards.iter().filter(|shard| shard.counts.rejected > 0) {
        let mut after = None;
        loop {
            let page = engine.store.rejects(&shard.key, after).await.map_err(shardcron_engine::EngineError::from)?;
            count += page.items.len();
            match &mut document {
                Some(document) => document.push(page.items.iter().map(|row| object(shard, row)))?,
                None => output::text(&page.items.iter().map(|row| line(form, shard, row)).collect::<String>())?,
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    match document {
        Some(document) => document.end(),
        None if form == Form::Lines && count == 0 => output::text("no record is rejected\n"),
        None => Ok(()),
    }
}

fn line(form: Form, shard: &Shard, row: &RejectRow) -> String {
    match form {
        // Behind a cut nobody has counted lines: then the byte says where.
        Form::Lines => match (row.line, byte(row)) {
            (0, Some(byte)) => format!("{}: byte {byte}: {}\n", row.source, row.why),
            (0, None) => format!("{}: {}: {}\n", row.source, row.position, row.why),
            (line, _) => format!("{}:{line}: {}\n", row.source, row.why),
        },
        Form::Ndjson => format!("{}\n", object(shard, row)),
        Form::Csv => {
            let byte = byte(row).map(|byte| byte.to_string());
            let row = vec![
                Some(row.source.clone()),
                (row.line > 0).then(|| row.line.to_string()),
                byte,
                Some(shard.key.shard.to_string()),
                Some(row.why.clone()),
            ];
            let table = table(vec![row]);
            table.to_csv().split_off(table.csv_header().len())
        }
    }
}

fn table(rows: Vec<Vec<Option<String>>>) -> OutputTable {
    OutputTable { columns: COLUMNS.map(str::to_owned).to_vec(), rows }
}

fn object(shard: &Shard, row: &RejectRow) -> Value {
    let [file, line, at, id, reason] = COLUMNS;
    let known = (row.line > 0).then_some(row.line);
    json!({ file: row.source, line: known, at: byte(row), id: shard.key.shard, reason: row.why })
}

/// Bytes of the file's content before the record, where the input is files.
fn byte(row: &RejectRow) -> Option<u64> {
    match row.position {
        Position::Object(at) => Some(at.offset),
        _ => None,
    }
}
