//! `shardcron trigger`, `cancel`, `retry`, `rerun`, `suspend`, `resume` and `delete`

use serde_json::{Value, json};
use shardcron_domain::ids::{InstanceId, InstanceIdError, JobName, NameError};
use shardcron_domain::instance::{Instance, Window};
use shardcron_domain::job::CatchUp;
use shardcron_engine::EngineError;
use shardcron_engine::command::Expect;
use shardcron_engine::view::Suspended;

use crate::args::{CatchUpArg, TriggerArgs};
use crate::commands::backfill;
use crate::error::CliError;
use crate::output;
use crate::place::Place;
use crate::times;

/// Who a command of this program cancels for.
const OPERATOR: &str = "an operator";

pub(crate) fn job_name(text: &str) -> Result<JobName, CliError> {
    text.parse().map_err(|error: NameError| CliError::wrong("value", error.to_string()).field("job"))
}

pub(crate) fn instance_id(text: &str) -> Result<InstanceId, CliError> {
    text.parse().map_err(|error: InstanceIdError| CliError::wrong("value", error.to_string()).field("instance"))
}

pub(crate) async fn find(place: &Place, text: &str) -> Result<Instance, CliError> {
    let id = instance_id(text)?;
    let found = place.runtime.engine.instance(&id).await?;
    found.ok_or_else(|| EngineError::NoInstance(id).into())
}

fn shown(instance: &Instance) -> Value {
    json!({
        "instance": instance.id.to_string(), "status": instance.status.name(),
        "generation": instance.generation, "attempt": instance.attempt,
    })
}

fn report(instance: &Instance, as_json: bool) -> Result<(), CliError> {
    if as_json {
        return output::json(&shown(instance));
    }
    let (status, generation, attempt) = (instance.status.name(), instance.generation, instance.attempt);
    output::text(&format!("{}  {status} (generation {generation}, attempt {attempt})\n", instance.id))
}

pub(crate) async fn trigger(place: &Place, args: &TriggerArgs, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let name = job_name(&args.job)?;
    let job = engine.live_job(&name).await?;
    let zone = engine.spec(&job, job.spec).await?.zone().time_zone().clone();
    let at = args.at.as_deref().map(|text| times::parse("at", text, &zone)).transpose()?;
    let window = match &args.window {
        None => None,
        Some(text) => {
            let Some((start, end)) = text.split_once('/') else {
                return Err(CliError::wrong("value", format!("`{text}` isn't a window"))
                    .field("window")
                    .hint("write its start and its end, such as 2026-08-29/2026-08-30"));
            };
            Some(Window { start: times::parse("window", start, &zone)?, end: times::parse("window", end, &zone)? })
        }
    };
    let triggered = engine.trigger(&name, at, window).await;
    let (instance, is_new) = triggered.map_err(|error| match error {
        EngineError::NotOfCalendar { .. } if at.is_none() => CliError::from(error).hint(
            "without --at the time is now, off the calendar: add --window FROM/TO, or --at with a time of the calendar",
        ),
        error => error.into(),
    })?;
    if as_json {
        let mut document = shown(&instance);
        document["created"] = json!(is_new);
        return output::json(&document);
    }
    let word = if is_new { "is written down" } else { "was there already" };
    output::text(&format!("{} {word}: {}\n", instance.id, instance.status.name()))
}

pub(crate) async fn cancel(place: &Place, instance: &str, as_json: bool) -> Result<(), CliError> {
    let found = find(place, instance).await?;
    let cancelled = place.runtime.engine.cancel(&found.id, Some(Expect::of(&found)), OPERATOR).await?;
    report(&cancelled, as_json)
}

pub(crate) async fn retry(place: &Place, instance: &str, as_json: bool) -> Result<(), CliError> {
    let found = find(place, instance).await?;
    report(&place.runtime.engine.retry(&found.id, Some(Expect::of(&found))).await?, as_json)
}

pub(crate) async fn rerun(place: &Place, instance: &str, as_json: bool) -> Result<(), CliError> {
    let found = find(place, instance).await?;
    report(&place.runtime.engine.rerun(&found.id, Some(Expect::of(&found))).await?, as_json)
}

pub(crate) async fn suspend(place: &Place, job: &str, note: Option<String>, as_json: bool) -> Result<(), CliError> {
    let job = place.runtime.engine.suspend(&job_name(job)?, note).await?;
    let suspended = job.suspended.map(Suspended::from);
    if as_json {
        return output::json(&json!({ "job": job.name, "suspended": suspended }));
    }
    let since = suspended.as_ref().map_or_else(String::new, |suspension| format!(" since {}", suspension.since));
    output::text(&format!("job {} is suspended{since}\n", job.name))
}

pub(crate) async fn resume(place: &Place, job: &str, catch_up: CatchUpArg, as_json: bool) -> Result<(), CliError> {
    let catch_up = match catch_up {
        CatchUpArg::All => CatchUp::All,
        CatchUpArg::Latest => CatchUp::Latest,
        CatchUpArg::None => CatchUp::None,
    };
    let name = job_name(job)?;
    let (suspension, backfill) = place.runtime.engine.resume_and_catch_up(&name, catch_up).await?;
    let suspension = suspension.map(Suspended::from);
    if as_json {
        return output::json(
            &json!({ "job": name, "wasSuspended": suspension, "backfill": backfill.as_ref().map(backfill::document) }),
        );
    }
    let was = match suspension {
        Some(suspension) => format!("job {name} runs again; it was suspended since {}\n", suspension.since),
        None => format!("job {name} wasn't suspended\n"),
    };
    let caught_up = match backfill {
        Some(backfill) => format!(
            "backfill {} catches up, {} at a time, beside the schedule and its slot\n",
            backfill.id, backfill.request.max_active
        ),
        None => String::new(),
    };
    output::text(&format!("{was}{caught_up}"))
}

pub(crate) async fn delete(place: &Place, job: &str, as_json: bool) -> Result<(), CliError> {
    let name = job_name(job)?;
    place.runtime.engine.delete(&name).await?;
    if as_json {
        return output::json(&json!({ "job": name, "deleted": true }));
    }
    output::text(&format!("job {name} is deleted; its instances and their results stay\n"))
}
