//! `shardcron results`

use serde_json::json;
use shardcron_domain::certificate::Certificate;
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::job::WorkSpec;
use shardcron_domain::record::Format;
use shardcron_domain::result::OutputTable;

use crate::args::{OutputFormat, ResultsArgs};
use crate::commands::operate::find;
use crate::error::CliError;
use crate::output::{self, LongDocument};
use crate::place::Place;

/// Prints what is published, part by part: no more than one part is held at a time. Nothing is printed of an output that
/// isn't whole.
pub(crate) async fn run(place: &Place, args: &ResultsArgs, json: bool) -> Result<(), CliError> {
    output::one_form(args.format, json)?;
    let instance = find(place, &args.instance).await?;
    let Some(published) = Published::of(place, &instance).await? else { return Err(not_published(&instance)) };
    published.check().await?;
    if json {
        return published.print_document().await;
    }
    let wanted = match args.format {
        Some(OutputFormat::Csv) => Format::Csv,
        Some(OutputFormat::Ndjson) => Format::Ndjson,
        None => published.format,
    };
    let mut columns = published.columns().await?;
    for number in 0..published.certificate.parts.len() {
        let part = published.part(number).await?;
        if wanted == published.format {
            output::write(if number == 0 { &part } else { without_header(&part, wanted) })?;
            continue;
        }
        let table = published.table(&part, columns)?;
        match wanted {
            Format::Csv if number == 0 => output::text(&table.to_csv())?,
            Format::Csv => output::text(&table.to_csv()[table.csv_header().len()..])?,
            Format::Ndjson => output::text(&table.to_ndjson())?,
        }
        columns = table.columns;
    }
    Ok(())
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

/// The published output of an instance.
struct Published<'a> {
    place: &'a Place,
    instance: &'a Instance,
    certificate: Certificate,
    /// The parts' format.
    format: Format,
}

impl<'a> Published<'a> {
    /// What the certificate names; `None` while nothing is published.
    async fn of(place: &'a Place, instance: &'a Instance) -> Result<Option<Self>, CliError> {
        let Some(certificate) = place.runtime.engine.certificate(instance).await? else { return Ok(None) };
        let csv = certificate.parts.first().is_none_or(|part| part.name.ends_with(".csv"));
        let format = if csv { Format::Csv } else { Format::Ndjson };
        Ok(Some(Self { place, instance, certificate, format }))
    }

    /// A part's content, checked against its digest.
    async fn part(&self, number: usize) -> Result<Vec<u8>, CliError> {
        Ok(self.place.runtime.engine.part(self.instance, &self.certificate.parts[number]).await?)
    }

    /// Whether all parts are what the certificate says. A single one is checked when it is read.
    async fn check(&self) -> Result<(), CliError> {
        let parts = self.certificate.parts.len();
        for number in (0..parts).filter(|_| parts > 1) {
            self.part(number).await?;
        }
        Ok(())
    }

    /// The columns that an output of no rows has too; none where only the rows know them.
    async fn columns(&self) -> Result<Vec<String>, CliError> {
        let spec = self.place.runtime.engine.spec_of(self.instance).await?;
        Ok(match &spec.spec.work {
            WorkSpec::Aggregate(aggregate) => aggregate.columns(),
            WorkSpec::Send(send) => send.columns(),
            WorkSpec::Custom(_) => Vec::new(),
        })
    }

    /// A part's rows under these columns, or under the part's own where it has them.
    fn table(&self, part: &[u8], columns: Vec<String>) -> Result<OutputTable, CliError> {
        let damaged = |error: String| CliError::failed("damaged", format!("a published part can't be read: {error}"));
        let mut table = OutputTable { columns, rows: Vec::new() };
        match self.format {
            Format::Csv => {
                let mut reader = csv::Reader::from_reader(part);
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
        Ok(table)
    }

    /// The whole output as one JSON document: an object for each row, each value a text, as in NDJSON.
    async fn print_document(&self) -> Result<(), CliError> {
        let mut columns = self.columns().await?;
        let mut document = None;
        for number in 0..self.certificate.parts.len() {
            let table = self.table(&self.part(number).await?, columns)?;
            if document.is_none() {
                let (instance, generation) = (self.instance.id.to_string(), self.certificate.generation);
                let head = json!({ "instance": instance, "generation": generation, "columns": table.columns });
                document = Some(LongDocument::begin(&head, "rows")?);
            }
            if let Some(document) = &mut document {
                document.push(table.to_ndjson().lines())?;
            }
            columns = table.columns;
        }
        document.map_or(Ok(()), LongDocument::end)
    }
}

/// The first rows of what is published, for people.
pub(crate) async fn preview(place: &Place, instance: &Instance, rows: usize) -> Result<String, CliError> {
    let Some(published) = Published::of(place, instance).await? else { return Ok(String::new()) };
    let mut shown = OutputTable { columns: published.columns().await?, rows: Vec::new() };
    for number in 0..published.certificate.parts.len() {
        let table = published.table(&published.part(number).await?, shown.columns)?;
        let room = rows - shown.rows.len();
        shown.columns = table.columns;
        shown.rows.extend(table.rows.into_iter().take(room));
        if shown.rows.len() == rows {
            break;
        }
    }
    let cells = |row: &Vec<Option<String>>| row.iter().map(|value| value.clone().unwrap_or_default()).collect();
    let header: Vec<&str> = shown.columns.iter().map(String::as_str).collect();
    let mut text = format!("\n{}", output::table(&header, &shown.rows.iter().map(cells).collect::<Vec<_>>()));
    let all: u64 = published.certificate.parts.iter().map(|part| part.rows).sum();
    let more = all.saturating_sub(shown.rows.len() as u64);
    if more > 0 {
        text.push_str(&format!("… and {more} more rows; `shardcron results {}` prints all\n", instance.id));
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
