//! `shardcron verify`

use serde_json::json;
use shardcron_engine::verify::Verified;

use crate::commands::operate::instance_id;
use crate::error::CliError;
use crate::output;
use crate::place::Place;

pub(crate) async fn run(place: &Place, instance: &str, as_json: bool) -> Result<(), CliError> {
    let verified = place.runtime.engine.verify(&instance_id(instance)?).await?;
    let proven = verified.is_proven();
    if as_json {
        let mut document = json!(verified);
        document["proven"] = json!(proven);
        document["records"] = output::counts(verified.records);
        output::json(&document)?;
    } else {
        output::text(&text(&verified))?;
    }
    if proven {
        return Ok(());
    }
    let message = match verified.found.count() {
        1 => format!("1 thing doesn't hold of what is published of {}", verified.instance),
        count => format!("{count} things don't hold of what is published of {}", verified.instance),
    };
    Err(CliError::failed("not_proven", message).hint(
        "`shardcron rerun` begins the instance from scratch, on the input as it is now; the published output stays until then",
    ))
}

fn text(verified: &Verified) -> String {
    let proven = if verified.is_proven() { "proven" } else { "not proven" };
    let mut text = format!("{}  {proven}\n", verified.instance);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<9} {value}\n"));
    line("output", format!("{} (generation {})", verified.output, verified.generation));
    line("input", format!("{} objects looked at", verified.objects));
    line("shards", format!("{} of {} read again", verified.shards_read, verified.shards));
    let records = verified.records;
    line("records", format!("{} in, {} out, {} rejected", records.input, records.output, records.rejected));
    let rows = match verified.rows {
        Some(rows) => format!("the input gives {rows} rows"),
        None => "not held against the input, which can't be read again as a whole".to_owned(),
    };
    line("parts", format!("{}; {rows}", verified.parts));
    if !verified.found.is_empty() {
        text.push('\n');
    }
    for finding in &verified.found.findings {
        let check = json!(finding.check);
        let check = check.as_str().unwrap_or_default();
        let place = if finding.place.is_empty() { String::new() } else { format!("{}: ", finding.place) };
        text.push_str(&format!("  {check:<11}  {place}{}\n", finding.message));
    }
    if verified.found.more > 0 {
        text.push_str(&format!("… and {} more\n", verified.found.more));
    }
    text
}
