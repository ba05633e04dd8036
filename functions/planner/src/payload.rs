//! What the planner takes: the timer's event, or an operator's command as JSON.
//!
//! A payload that isn't whole is refused whole: an unknown command, an unknown or missing field, a time that isn't
//! one. Commands about an instance name the generation and attempt that they are about, a trigger names its time, and a
//! backfill has an id, its own or its request's: so that one delivered twice acts once. `docs/planner-payloads.schema.json` is their schema.

use serde::Deserialize;
use serde_json::Value;
use shardcron_domain::backfill::{BackfillId, Only, Order};
use shardcron_domain::certificate::InstanceName;
use shardcron_domain::ids::{Attempt, Generation, JobName};
use shardcron_domain::instance::Window;
use shardcron_domain::job::CatchUp;
use shardcron_domain::limits::BACKFILL_ACTIVE_DEFAULT;
use shardcron_domain::time::ScheduledTime;

/// What `detail-type` the timer's events have (EventBridge rules and Scheduler alike).
pub const TIMER_DETAIL_TYPE: &str = "Scheduled Event";

/// A payload of the planner.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// The timer's event.
    Timer,
    /// An operator's command.
    Command(Command),
}

/// An operator's command.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "command", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Command {
    /// Make a spec the job's, from now on. Its locations must be `s3://`.
    Apply {
        /// The spec, as a job file has it.
        spec: Value,
    },
    /// Make an instance at a time. The time is its identity: one that meant "now" would make another when it is
    /// delivered again.
    Trigger {
        /// The job.
        job: JobName,
        /// The scheduled time.
        at: ScheduledTime,
        /// The window; needed off the calendar.
        window: Option<Window>,
    },
    /// Plan a past range.
    Backfill {
        /// The job.
        job: JobName,
        /// The first time that belongs to the range.
        from: ScheduledTime,
        /// The first that no longer does.
        to: ScheduledTime,
        /// Which times.
        #[serde(default)]
        only: Only,
        /// In which order.
        #[serde(default)]
        order: Order,
        /// Instances at work at the same time.
        #[serde(default = "default_max_active")]
        max_active: u32,
        /// Instances begun in any minute.
        per_minute: Option<u32>,
        /// Its id: a later delivery under it is the same backfill. From the request if absent.
        id: Option<BackfillId>,
        /// Whether only to say what would be done.
        #[serde(default)]
        dry_run: bool,
    },
    /// Pause a backfill.
    PauseBackfill {
        /// The job.
        job: JobName,
        /// The backfill.
        id: BackfillId,
    },
    /// Resume a paused backfill.
    ResumeBackfill {
        /// The job.
        job: JobName,
        /// The backfill.
        id: BackfillId,
    },
    /// Cancel a backfill; what it began goes on.
    CancelBackfill {
        /// The job.
        job: JobName,
        /// The backfill.
        id: BackfillId,
    },
    /// Cancel an instance.
    Cancel {
        /// The instance.
        instance: InstanceName,
        /// The generation that it is at.
        generation: Generation,
        /// The attempt that it is at.
        attempt: Attempt,
        /// Who cancels it.
        by: Option<String>,
    },
    /// Begin another attempt of a failed or cancelled instance.
    Retry {
        /// The instance.
        instance: InstanceName,
        /// The generation that it is at.
        generation: Generation,
        /// The attempt that it is at.
        attempt: Attempt,
    },
    /// Begin an ended instance from scratch.
    Rerun {
        /// The instance.
        instance: InstanceName,
        /// The generation that it is at.
        generation: Generation,
        /// The attempt that it is at.
        attempt: Attempt,
    },
    /// Suspend a job.
    Suspend {
        /// The job.
        job: JobName,
        /// Why.
        note: Option<String>,
    },
    /// Resume a job.
    Resume {
        /// The job.
        job: JobName,
        /// What becomes of the times of its suspension; `none` by default.
        #[serde(default = "default_catch_up")]
        catch_up: CatchUp,
    },
    /// Delete a job; its instances stay.
    Delete {
        /// The job.
        job: JobName,
    },
}

fn default_max_active() -> u32 {
    BACKFILL_ACTIVE_DEFAULT
}

fn default_catch_up() -> CatchUp {
    CatchUp::None
}

/// Why a payload was refused. Nothing of it was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It is neither the timer's event nor a command.
    #[error("neither an event of detail-type `{TIMER_DETAIL_TYPE}` nor a command: {0}")]
    Unknown(String),
    /// It is a command, and not a whole one.
    #[error("the command is refused: {0}")]
    Command(String),
}

impl Payload {
    /// Reads a payload.
    ///
    /// # Errors
    /// [`PayloadError`].
    pub fn read(value: Value) -> Result<Self, PayloadError> {
        if value.get("command").is_some() {
            return serde_json::from_value(value)
                .map(Self::Command)
                .map_err(|error| PayloadError::Command(error.to_string()));
        }
        match value.get("detail-type").and_then(Value::as_str) {
            Some(TIMER_DETAIL_TYPE) => Ok(Self::Timer),
            Some(other) => Err(PayloadError::Unknown(format!("its detail-type is `{other}`"))),
            None => Err(PayloadError::Unknown("it has neither `command` nor `detail-type`".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SCHEMA: &str = include_str!("../../../docs/planner-payloads.schema.json");

    /// A value for a property of the schema.
    fn example(property: &str) -> Value {
        match property {
            "instance" => json!("daily:2026-08-30T00:00:00Z"),
            "job" => json!("daily"),
            "from" | "at" => json!("2026-08-01T00:00:00+08:00"),
            "to" => json!("2026-08-30T00:00:00Z"),
            "window" => json!({ "start": "2026-08-01T00:00:00Z", "end": "2026-08-02T00:00:00Z" }),
            "generation" | "attempt" | "maxActive" | "perMinute" => json!(1),
            "only" => json!("failed"),
            "order" => json!("newest"),
            "catchUp" => json!("latest"),
            "dryRun" => json!(true),
            "id" => json!("b0123abcd"),
            "spec" => json!({}),
            _ => json!("text"),
        }
    }

    #[test]
    fn the_schema_and_the_types_agree_on_every_field_of_every_command() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let commands = schema["oneOf"].as_array().unwrap();
        assert_eq!(commands.len(), 13, "twelve commands and the timer's event");
        for command in commands.iter().filter(|command| command["properties"]["command"].is_object()) {
            let name = command["properties"]["command"]["const"].as_str().unwrap();
            let properties: Vec<&str> = command["properties"]
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .filter(|key| *key != "command")
                .collect();
            let required: Vec<&str> =
                command["required"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
            let mut whole = json!({ "command": name });
            for property in &properties {
                whole[*property] = example(property);
            }
            assert!(Payload::read(whole.clone()).is_ok(), "{name}: {:?}", Payload::read(whole));
            for property in &properties {
                let mut less = whole.clone();
                less.as_object_mut().unwrap().shift_remove(*property);
                assert_eq!(Payload::read(less).is_err(), required.contains(property), "{name} without {property}");
            }
            let mut more = whole.clone();
            more["also"] = json!(1);
            assert!(Payload::read(more).is_err(), "{name} with an unknown field");
        }
    }

    #[test]
    fn half_valid_and_unknown_payloads_are_refused_whole() {
        for bad in [
            json!({}),
            json!({ "command": "explode" }),
            json!({ "detail-type": "Something Else" }),
            json!({ "command": "backfill", "job": "daily", "from": "yesterday", "to": "2026-08-30T00:00:00Z" }),
            json!({ "command": "cancel", "instance": "daily", "generation": 1, "attempt": 1 }),
            json!({ "command": "retry", "instance": "daily:2026-08-30T00:00:00Z" }),
            json!([1]),
        ] {
            assert!(Payload::read(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(Payload::read(json!({ "detail-type": "Scheduled Event", "detail": {} })), Ok(Payload::Timer));
    }
}
