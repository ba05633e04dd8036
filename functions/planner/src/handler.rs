//! Turns the planner's payloads into use-cases.

use serde::Serialize;
use serde_json::{Value, json};
use shardcron_domain::backfill::{BackfillRequest, BackfillStatus};
use shardcron_domain::instance::Instance;
use shardcron_engine::command::Expect;
use shardcron_engine::plan::Planned;
use shardcron_engine::view::Suspended;
use shardcron_engine::{EngineError, Sweep, Ticked};
use shardcron_runtime::Runtime;

use crate::payload::{Command, Payload, PayloadError};

/// Who cancels where a command doesn't say.
const OPERATOR: &str = "an operator";

/// Why a payload wasn't handled.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// It isn't one that the planner takes; nothing of it was done.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The table didn't answer, or the command was refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The answer can't be written.
    #[error(transparent)]
    Answer(#[from] serde_json::Error),
}

/// What a tick came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tick {
    /// Instances written down.
    pub planned: usize,
    /// Scheduled times recorded as skipped.
    pub skipped: u64,
    /// Scheduled times of the recent past that nothing answers for.
    pub missed: u64,
    /// Unfinished instances looked at.
    pub looked: usize,
    /// Whether there was more to plan than one tick does: the next goes on.
    pub more: bool,
}

/// Handles a payload: the timer's event, or an operator's command.
///
/// # Errors
/// [`PlannerError`].
pub async fn handle(runtime: &Runtime, payload: Value) -> Result<Value, PlannerError> {
    match Payload::read(payload)? {
        Payload::Timer => Ok(serde_json::to_value(tick(runtime, Sweep::Due).await?)?),
        Payload::Command(command) => {
            runtime.anchor().await?;
            obey(runtime, command).await
        }
    }
}

/// Plans what is due and looks at what is unfinished, within a tick's bounds.
///
/// # Errors
/// Errors of the store.
pub async fn tick(runtime: &Runtime, sweep: Sweep) -> Result<Tick, EngineError> {
    runtime.anchor().await?;
    let Ticked { planned, looked } = runtime.engine.tick(sweep).await?;
    let Planned { instances, skipped, missed, more } = planned;
    Ok(Tick { planned: instances, skipped, missed, looked, more })
}

async fn obey(runtime: &Runtime, command: Command) -> Result<Value, PlannerError> {
    let engine = &runtime.engine;
    let instance = |instance: Instance| {
        json!({
            "instance": instance.id.to_string(), "status": instance.status.name(),
            "generation": instance.generation, "attempt": instance.attempt,
        })
    };
    Ok(match command {
        Command::Apply { spec } => {
            // There is no directory that a path in it could be relative to.
            let (spec, applied) = engine.apply(&spec.to_string(), "/").await?;
            json!({ "job": spec.name, "applied": applied })
        }
        Command::Trigger { job, at, window } => {
            let (made, is_new) = engine.trigger(&job, Some(at), window).await?;
            let mut answer = instance(made);
            answer["created"] = json!(is_new);
            answer
        }
        Command::Backfill { job, from, to, only, order, max_active, per_minute, id, dry_run } => {
            let request = BackfillRequest { from, to, only, order, max_active, per_minute };
            if dry_run {
                serde_json::to_value(engine.preview_backfill(&job, request).await?)?
            } else {
                serde_json::to_value(engine.backfill_as(&job, id, request).await?)?
            }
        }
        Command::PauseBackfill { job, id } => {
            serde_json::to_value(engine.set_backfill(&job, &id, BackfillStatus::Paused).await?)?
        }
        Command::ResumeBackfill { job, id } => {
            serde_json::to_value(engine.set_backfill(&job, &id, BackfillStatus::Running).await?)?
        }
        Command::CancelBackfill { job, id } => {
            serde_json::to_value(engine.set_backfill(&job, &id, BackfillStatus::Cancelled).await?)?
        }
        Command::Cancel { instance: name, generation, attempt, by } => {
            let by = by.unwrap_or_else(|| OPERATOR.to_owned());
            instance(engine.cancel(&name.0, Some(Expect { generation, attempt }), &by).await?)
        }
        Command::Retry { instance: name, generation, attempt } => {
            instance(engine.retry(&name.0, Some(Expect { generation, attempt })).await?)
        }
        Command::Rerun { instance: name, generation, attempt } => {
            instance(engine.rerun(&name.0, Some(Expect { generation, attempt })).await?)
        }
        Command::Suspend { job, note } => {
            let job = engine.suspend(&job, note).await?;
            json!({ "job": job.name, "suspended": job.suspended.map(Suspended::from) })
        }
        Command::Resume { job, catch_up } => {
            let (suspension, backfill) = engine.resume_and_catch_up(&job, catch_up).await?;
            json!({ "job": job, "wasSuspended": suspension.map(Suspended::from), "backfill": backfill })
        }
        Command::Delete { job } => {
            engine.delete(&job).await?;
            json!({ "job": job, "deleted": true })
        }
    })
}
