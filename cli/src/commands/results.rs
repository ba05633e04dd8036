//! `shardcron results`

use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::job::WorkSpec;
use shardcron_domain::record::Format;
use shardcron_domain::result::OutputTable;
use shardcron_engine::EngineError;

use crate::args::{OutputFormat, ResultsArgs};
use crate::error::CliError;
use crate::output;
use crate::place::Place;

pub(crate) async fn run(place: &Place, args: &ResultsArgs, json: bool) -> Result<(), CliError> {
    let id: InstanceId = args.instance.parse().map_err(|error: shardcron_domain::ids::InstanceIdError| {
        CliError::wrong("value", error.to_string()).field("instance")
    })?;
    let engine = &place.runtime.engine;
    let instance = engine.instance(&id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()))?;
    let Some((format, parts)) = published(place, &instance).await? else { return Err(not_published(&instance)) };
    let wanted = match args.format {
        Some(OutputFormat::Csv) => Format::Csv,
        Some(OutputFormat::Ndjson) => Format::Ndjson,
        None if json => Format::Ndjson,
        None => format,
    };
    if wanted == format {
        for (number, part) in parts.iter().enumerate() {
            output::write(if number == 0 { part } else { without_header(part, format) })?;
        }
        return Ok(());
    }
    let table = read_table(place, &instance, &parts, format).await?;
    output::text(&if wanted == Format::Csv { table.to_csv() } else { table.to_ndjson() })
}

/// The error for an instance of which nothing is published: it isn't done, or its certificate was taken away.
pub(crate) fn not_published(instance: &Instance) -> CliError {
    let (id, status) = (&instance.id, &instance.status);
    let hint = match status {
        InstanceStatus::Succeeded => {
            "its certificate was there and is gone: bring it back, or `shardcron rerun` the instance"
        }
        _ => "`shardcron describe` shows how far it has come, or why it failed",
    };
    let message = format!("nothing is published of {id}, which is {}", status.name());
    CliError::failed("not_published", message).hint(hint)
}

/// The published parts and their format; `None` while nothing is published.
async fn published(place: &Place, instance: &Instance) -> Result<Option<(Format, Vec<Vec<u8>>)>, CliError> {
    let engine = &place.runtime.engine;
    let Some(certificate) = engine.certificate(instance).await? else { return Ok(None) };
    let csv = certificate.parts.first().is_none_or(|part| part.name.ends_with(".csv"));
    let parts = engine.parts(instance, &certificate).await?;
    Ok(Some((if csv { Format::Csv } else { Format::Ndjson }, parts)))
}

/// The first rows of what is published, for people.
pub(crate) async fn preview(place: &Place, instance: &Instance, rows: usize) -> Result<String, CliError> {
    let Some((format, parts)) = published(place, instance).await? else { return Ok(String::new()) };
    let table = read_table(place, instance, &parts, format).await?;
    let shown: Vec<Vec<String>> = table
        .rows
        .iter()
        .take(rows)
        .map(|row| row.iter().map(|value| value.clone().unwrap_or_default()).collect())
        .collect();
    let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let mut text = format!("\n{}", output::table(&header, &shown));
    if table.rows.len() > rows {
        text.push_str(&format!(
            "… and {} more rows; `shardcron results {}` prints all\n",
            table.rows.len() - rows,
            instance.id
        ));
    }
    Ok(text)
}

/// A CSV part without its header, which may have line breaks in quotes.
fn without_header(part: &[u8], format: Format) -> &[u8] {
    if format != Format::Csv {
        return part;
    }
    let mut reader = csv::Reader::from_reader(part);
    let end = reader.headers().is_ok().then(|| reader.position().byte() as usize);
    end.and_then(|end| part.get(end..)).unwrap_or(part)
}

async fn read_table(
    place: &Place,
    instance: &Instance,
    parts: &[Vec<u8>],
    format: Format,
) -> Result<OutputTable, CliError> {
    let damaged = |error: String| CliError::failed("damaged", format!("a published part can't be read: {error}"));
    let mut table = OutputTable { columns: columns(place, instance).await?, rows: Vec::new() };
    for part in parts {
        match format {
            Format::Csv => {
                let mut reader = csv::Reader::from_reader(part.as_slice());
                let header = reader.headers().map_err(|error| damaged(error.to_string()))?;
                table.columns = header.iter().map(str::to_owned).collect();
                for row in reader.records() {
                    let row = row.map_err(|error| damaged(error.to_string()))?;
                    let value = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
                    table.rows.push(row.iter().map(value).collect());
                }
            }
            Format::Ndjson => {
                for line in part.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let row: serde_json::Map<String, serde_json::Value> =
                        serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
                    if table.columns.is_empty() {
                        table.columns = row.keys().cloned().collect();
                    }
                    table.rows.push(row.values().map(|value| value.as_str().map(str::to_owned)).collect());
                }
            }
        }
    }
    Ok(table)
}

/// The columns that an output of no rows has too; none where only the rows know them.
async fn columns(place: &Place, instance: &Instance) -> Result<Vec<String>, CliError> {
    let spec = place.runtime.engine.spec_of(instance).await?;
    Ok(match &spec.spec.work {
        WorkSpec::Aggregate(aggregate) => aggregate.columns(),
        WorkSpec::Send(send) => send.columns(),
        WorkSpec::Custom(_) => Vec::new(),
    })
}
