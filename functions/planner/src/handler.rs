//! Turns the timer's event into the planner's use-cases.

use aws_lambda_events::eventbridge::EventBridgeEvent;
use serde::Serialize;
use serde_json::Value;
use shardcron_engine::{EngineError, Sweep};
use shardcron_runtime::Runtime;

/// What `detail-type` the timer's events have (EventBridge rules and Scheduler alike).
pub const TIMER_DETAIL_TYPE: &str = "Scheduled Event";

/// Why an event wasn't handled.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// It isn't one that the planner knows; nothing of it was done.
    #[error("an event of detail-type `{0}` isn't one that the planner knows (`{TIMER_DETAIL_TYPE}`)")]
    Unknown(String),
    /// The table didn't answer, or refused. The timer's next event tries again.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What a tick came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tick {
    /// Instances written down.
    pub planned: usize,
    /// Scheduled times recorded as skipped.
    pub skipped: u64,
    /// Unfinished instances looked at.
    pub looked: usize,
}

/// Plans what is due, then looks at what is unfinished.
///
/// # Errors
/// [`PlannerError`].
pub async fn handle(runtime: &Runtime, event: EventBridgeEvent<Value>, sweep: Sweep) -> Result<Tick, PlannerError> {
    if event.detail_type != TIMER_DETAIL_TYPE {
        return Err(PlannerError::Unknown(event.detail_type));
    }
    runtime.anchor().await?;
    let planned = runtime.engine.plan_due().await?;
    let looked = runtime.engine.sweep(sweep).await?;
    Ok(Tick { planned: planned.instances, skipped: planned.skipped, looked })
}
