//! `shardcron describe`

use serde_json::json;
use shardcron_domain::ids::{InstanceId, JobName};
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::{Duration, ScheduledTime};
use shardcron_engine::EngineError;
use shardcron_engine::view::Suspended;

use crate::commands::summary::Summary;
use crate::error::CliError;
use crate::output;
use crate::place::Place;
use crate::times;

/// Instances of a job that are shown: the latest ones.
const INSTANCES_SHOWN: usize = 10;

/// How far back they are looked for.
const LOOK_BACK: Duration = Duration::from_secs(366 * 86_400);

/// Shards that are shown as text; `--json` shows all.
const SHARDS_SHOWN: usize = 20;

pub(crate) async fn run(place: &Place, what: &str, as_json: bool) -> Result<(), CliError> {
    if what.contains(':') {
        let id = what.parse().map_err(|error: shardcron_domain::ids::InstanceIdError| {
            CliError::wrong("value", error.to_string()).field("instance")
        })?;
        return instance(place, &id, as_json).await;
    }
    let name = what
        .parse()
        .map_err(|error: shardcron_domain::ids::NameError| CliError::wrong("value", error.to_string()).field("job"))?;
    job(place, &name, as_json).await
}

async fn job(place: &Place, name: &JobName, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let job = engine.live_job(name).await?;
    let spec = engine.spec(&job, job.spec).await?;
    let now = engine.clock.now().at;
    let since = ScheduledTime::floor(now.plus(Duration(-LOOK_BACK.0)))
        .map_err(|error| CliError::failed("internal", error.to_string()))?;
    let until = ScheduledTime::floor(now).map_err(|error| CliError::failed("internal", error.to_string()))?;
    let mut instances = engine.instances_between(name, since, until).await?;
    let latest = instances.split_off(instances.len().saturating_sub(INSTANCES_SHOWN));
    let spec_json: serde_json::Value =
        serde_json::from_str(&spec.spec.to_json()).map_err(|error| CliError::failed("internal", error.to_string()))?;
    if as_json {
        let instances: Vec<_> = latest
            .iter()
            .map(|instance| json!({ "instance": instance.id.to_string(), "status": instance.status.name() }))
            .collect();
        return output::json(&json!({
            "job": job.name, "specVersion": job.spec, "spec": spec_json, "next": job.next_fire,
            "plannedThrough": job.planned_through, "suspended": job.suspended.clone().map(Suspended::from),
            "instances": instances,
        }));
    }
    let zone = spec.zone().time_zone().clone();
    let local = |at: ScheduledTime| times::local(at, &zone);
    let next = job.next_fire.map_or_else(|| "never".to_owned(), local);
    let mut text = format!("job {}\n", job.name);
    text.push_str(&format!("  schedule  {} in {}\n", spec.spec.schedule, spec.spec.time_zone));
    text.push_str(&format!("  next      {next}\n  planned   through {}\n", local(job.planned_through)));
    if let Some(suspension) = &job.suspended {
        let note = suspension.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        text.push_str(&format!("  suspended since {}{note}\n", local(suspension.since)));
    }
    text.push_str(&format!("  spec      version {}: {}\n", job.spec, spec_json));
    let rows: Vec<Vec<String>> = latest
        .iter()
        .rev()
        .map(|instance| vec![instance.id.to_string(), local(instance.id.at), instance.status.name().to_owned()])
        .collect();
    if rows.is_empty() {
        text.push_str("no instances in the past year\n");
    } else {
        text.push('\n');
        text.push_str(&output::table(&["INSTANCE", "LOCAL TIME", "STATUS"], &rows));
    }
    output::text(&text)
}

async fn instance(place: &Place, id: &InstanceId, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let instance = engine.instance(id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()))?;
    let shards = engine.shards_of(&instance).await?;
    let summary = Summary::of(&place.runtime, instance).await?;
    let now = engine.clock.now();
    let expired = |shard: &Shard| matches!(&shard.status, ShardStatus::Leased(lease) if lease.is_over(now));
    if as_json {
        let mut document = summary.json();
        document["shardList"] = shards
            .iter()
            .map(|shard| {
                json!({
                    "id": shard.key.shard, "range": shard.range, "status": shard.status, "expired": expired(shard),
                    "token": shard.token, "takeovers": shard.takeovers, "failures": shard.failures,
                    "checkpoint": shard.checkpoint, "counts": output::counts(shard.counts), "lastFault": shard.last_fault,
                    "outbox": (!shard.outbox.is_empty()).then_some(shard.outbox),
                })
            })
            .collect();
        return output::json(&document);
    }
    let mut text = summary.text();
    let rows: Vec<Vec<String>> = shards
        .iter()
        .take(SHARDS_SHOWN)
        .map(|shard| {
            let late = if expired(shard) { " (the lease is over: the next claim takes it over)" } else { "" };
            vec![
                shard.key.shard.to_string(),
                shard.counts.input.to_string(),
                shard.takeovers.to_string(),
                format!("{}{late}", engine.holder_of(shard)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&output::table(&["SHARD", "RECORDS", "TAKEOVERS", "STATE"], &rows));
    }
    if shards.len() > SHARDS_SHOWN {
        text.push_str(&format!("… and {} more shards; --json shows all\n", shards.len() - SHARDS_SHOWN));
    }
    output::text(&text)
}
