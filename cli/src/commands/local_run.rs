//! `shardcron local run`

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::Instance;
use shardcron_domain::time::Duration;
use shardcron_engine::{EngineError, Sweep};
use shardcron_runtime::clock::Stopwatch;

use crate::args::LocalRunArgs;
use crate::commands::host::interrupted;
use crate::commands::summary::Summary;
use crate::commands::{files, results};
use crate::error::CliError;
use crate::output;
use crate::place::Place;
use crate::times;
use crate::workers::Workers;

/// How often the instance is looked at for its progress.
const LOOK: Duration = Duration::from_millis(100);

/// How many of these looks go by between two sweeps: one a second.
const LOOKS_A_SWEEP: u32 = 10;

/// Rows of the result that are shown; the rest is in the output.
const ROWS_SHOWN: usize = 10;

pub(crate) async fn run(place: &Place, args: &LocalRunArgs, json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let (content, base) = files::read(&args.file)?;
    let (spec, _) = engine.apply(&content, &base).await.map_err(|error| CliError::from(error).in_file(&args.file))?;
    let at = match &args.at {
        None => engine.latest_due(&spec.name).await?,
        Some(text) => {
            let zone = engine.rules.zone(&spec.time_zone).map_err(EngineError::from)?;
            times::parse("at", text, zone.time_zone())?
        }
    };
    let (instance, _) = engine.ensure_instance(&spec.name, at).await?;
    let executes = !instance.status.is_terminal();
    let watch = Stopwatch::start();
    let instance = if executes { drive(place, &instance.id, args.workers.count, json).await? } else { instance };
    let summary = Summary::of(&place.runtime, instance.clone()).await?;
    if json {
        let mut document = summary.json();
        document["executed"] = Value::Bool(executes);
        document["elapsedSeconds"] = Value::from(watch.seconds());
        output::json(&document)?;
    } else {
        let mut text = summary.text();
        if executes {
            text.push_str(&format!("  took      {:.2} s in this command\n", watch.seconds()));
        } else {
            text.push_str("  nothing was executed: this instance had ended already\n");
            let job = engine.job(&spec.name).await?;
            if job.is_some_and(|job| job.spec > instance.spec) {
                text.push_str("  it ran under an earlier version of the job's file; `shardcron rerun` runs this one\n");
            }
        }
        output::text(&text)?;
        if summary.reason().is_none() {
            output::text(&results::preview(place, &instance, ROWS_SHOWN).await?)?;
        }
    }
    match summary.reason() {
        None if summary.is_published() => Ok(()),
        None => Err(results::not_published(&instance)),
        Some(reason) => {
            Err(CliError::failed("failed", format!("{} {}: {reason}", instance.id, instance.status.name())))
        }
    }
}

/// Runs workers until the instance has ended.
async fn drive(place: &Place, id: &InstanceId, workers: u16, json: bool) -> Result<Instance, CliError> {
    let mut stopped = Box::pin(interrupted()?);
    let workers = Workers::start(&place.runtime, workers);
    let bar = if json || !output::is_watched() { ProgressBar::hidden() } else { bar() };
    let watched = tokio::select! {
        watched = watch(place, id, &bar) => watched,
        () = &mut stopped => Err(CliError::failed("interrupted", format!("{id} was interrupted; what is done is kept"))
            .hint("the same command goes on from there")),
    };
    bar.finish_and_clear();
    workers.finish().await;
    watched
}

async fn watch(place: &Place, id: &InstanceId, bar: &ProgressBar) -> Result<Instance, CliError> {
    let engine = &place.runtime.engine;
    // The queues begin empty, whatever an earlier process had in them.
    let mut which = Sweep::All;
    let mut looks: u32 = 0;
    loop {
        if looks.is_multiple_of(LOOKS_A_SWEEP) {
            engine.look_at(id, which).await?;
            which = Sweep::Due;
        }
        let instance = engine.instance(id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()))?;
        if instance.status.is_terminal() {
            return Ok(instance);
        }
        if !bar.is_hidden() {
            let progress = engine.progress(&instance).await?;
            bar.set_length(progress.shards);
            bar.set_position(progress.done);
            let records = progress.counts.input;
            bar.set_message(format!(
                "{} · {records} records · {} takeovers",
                instance.status.name(),
                progress.takeovers
            ));
        }
        looks = looks.wrapping_add(1);
        engine.clock.sleep(LOOK).await;
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} shards · {msg} · {elapsed}") {
        bar.set_style(style);
    }
    bar
}
