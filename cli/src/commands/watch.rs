//! `shardcron watch`

use serde_json::json;
use shardcron_domain::time::Duration;
use shardcron_engine::EngineError;

use crate::commands::operate::instance_id;
use crate::commands::summary::Summary;
use crate::error::CliError;
use crate::output;
use crate::place::Place;

/// How often the instance is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Prints a line each time that something has moved, until the instance has ended; exit 1 unless it succeeded.
pub(crate) async fn run(place: &Place, instance: &str, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let id = instance_id(instance)?;
    let mut last = None;
    loop {
        let instance = engine.instance(&id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()))?;
        let progress = engine.progress(&instance).await?;
        let state = (instance.status.clone(), progress);
        if last.as_ref() != Some(&state) {
            let records = progress.counts.input;
            if as_json {
                output::json(&json!({
                    "instance": id.to_string(), "status": instance.status.name(), "shards": progress.shards,
                    "done": progress.done, "records": records, "takeovers": progress.takeovers,
                }))?;
            } else {
                output::text(&format!(
                    "{}  {}/{} shards  {records} records  {} takeovers\n",
                    instance.status.name(),
                    progress.done,
                    progress.shards,
                    progress.takeovers
                ))?;
            }
            last = Some(state);
        }
        if instance.status.is_terminal() {
            let summary = Summary::of(&place.runtime, instance.clone()).await?;
            return match summary.reason() {
                None => Ok(()),
                Some(reason) => Err(CliError::failed("failed", format!("{id} {}: {reason}", instance.status.name()))),
            };
        }
        engine.clock.sleep(LOOK).await;
    }
}
