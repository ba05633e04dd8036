//! `shardcron list`

use std::path::Path;

use serde_json::json;
use shardcron_engine::view::Suspended;

use crate::error::CliError;
use crate::output;
use crate::place::Place;
use crate::times;

/// A place with nothing in it is an empty listing, and says so.
pub(crate) fn nothing(dir: &Path, as_json: bool) -> Result<(), CliError> {
    if as_json {
        return output::json(&json!({ "jobs": [] }));
    }
    output::text(&format!(
        "no jobs: there is no installation in {}; `shardcron --local apply FILE` makes one\n",
        dir.display()
    ))
}

pub(crate) async fn run(place: &Place, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for job in engine.all_jobs().await?.into_iter().filter(|job| job.deleted_at.is_none()) {
        let spec = engine.spec(&job, job.spec).await?;
        let zone = spec.zone().time_zone().clone();
        let next = job.next_fire.map_or_else(|| "never".to_owned(), |next| times::local(next, &zone));
        let next = if job.suspended.is_some() { "suspended".to_owned() } else { next };
        rows.push(vec![job.name.to_string(), spec.spec.schedule.clone(), spec.spec.time_zone.clone(), next]);
        documents.push(json!({
            "job": job.name, "schedule": spec.spec.schedule, "timeZone": spec.spec.time_zone,
            "next": job.next_fire, "plannedThrough": job.planned_through, "specVersion": job.spec,
            "suspended": job.suspended.clone().map(Suspended::from),
        }));
    }
    if as_json {
        return output::json(&json!({ "jobs": documents }));
    }
    if rows.is_empty() {
        return output::text("no jobs yet; `shardcron apply FILE` makes one\n");
    }
    output::text(&output::table(&["JOB", "SCHEDULE", "ZONE", "NEXT"], &rows))
}
