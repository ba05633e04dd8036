//! Errors as a person or a script reads them, and the exit codes: 1 the work failed, 2 the request was wrong.

use std::process::ExitCode;

use serde::Serialize;
use shardcron_domain::instance::InstanceError;
use shardcron_domain::job::SpecError;
use shardcron_engine::EngineError;

/// The work failed, or something is missing.
pub(crate) const FAILED: u8 = 1;
/// The request was wrong.
pub(crate) const WRONG: u8 = 2;

/// An error for the user.
#[derive(Debug, Serialize)]
pub(crate) struct CliError {
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip)]
    code: u8,
}

impl CliError {
    /// The request was wrong.
    pub(crate) fn wrong(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, field: None, message: message.into(), hint: None, code: WRONG }
    }

    /// The work failed, or something is missing.
    pub(crate) fn failed(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, field: None, message: message.into(), hint: None, code: FAILED }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// The error, with the file that it is about before its message.
    pub(crate) fn in_file(self, file: &std::path::Path) -> Self {
        Self { message: format!("{}: {}", file.display(), self.message), ..self }
    }

    /// Prints it to standard error, and gives the exit code.
    #[expect(clippy::print_stderr, reason = "this is where errors reach the user")]
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        #[derive(Serialize)]
        struct Document<'a> {
            error: &'a CliError,
        }
        if json {
            match serde_json::to_string(&Document { error: self }) {
                Ok(text) => eprintln!("{text}"),
                Err(error) => eprintln!("{error}"),
            }
        } else {
            eprintln!("error: {}", escaped(&self.message));
            if let Some(hint) = &self.hint {
                eprintln!("  hint: {}", escaped(hint));
            }
        }
        ExitCode::from(self.code)
    }
}

/// A text for a terminal: what the user gave may have control characters in it, which the terminal would obey.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

impl From<SpecError> for CliError {
    fn from(error: SpecError) -> Self {
        let mut own = Self::wrong(error.kind.as_str(), error.to_string());
        own.field = Some(error.field.clone()).filter(|field| !field.is_empty());
        own.hint = error.hint;
        own
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let text = error.full_text();
        match error {
            EngineError::Spec(error) => error.into(),
            EngineError::Calendar(error) => {
                // Its text as a line ends with the hint, which is told on its own here.
                let message = format!("{}: {}", error.field, error.reason);
                let mut own = Self::wrong("value", message).field(error.field);
                own.hint = error.hint;
                own
            }
            EngineError::NoJob(_) => Self::wrong("no_job", text).hint("`shardcron list` shows the jobs there are"),
            EngineError::NoInstance(_) => Self::wrong("no_instance", text),
            EngineError::NotPublished { .. } => Self::wrong("not_published", text)
                .hint("`shardcron describe` shows how far it has come, or why it failed"),
            EngineError::PublishedEarlier { .. } => {
                Self::wrong("not_published", text).hint("verify it when the present generation is published")
            }
            EngineError::NotOfCalendar { .. } => Self::wrong("not_of_calendar", text)
                .field("at")
                .hint("`shardcron trigger JOB --at TIME --window FROM/TO` runs a time off the calendar"),
            EngineError::Future { .. } | EngineError::NothingDue { .. } => Self::wrong("not_yet", text).field("at"),
            EngineError::Overlap { .. } => {
                Self::failed("overlap", text).hint("wait for its end, or cancel it: `shardcron cancel INSTANCE`")
            }
            EngineError::QueueFull { .. } => Self::failed("queue_full", text),
            EngineError::Superseded { .. } => Self::wrong("superseded", text),
            EngineError::Instance(error) => {
                let own = Self::wrong("illegal", text);
                match way_out(&error) {
                    Some(hint) => own.hint(hint),
                    None => own,
                }
            }
            EngineError::Window(_) => Self::wrong("value", text).field("window"),
            EngineError::Backfill(_) | EngineError::TooLong { .. } => Self::wrong("value", text),
            EngineError::NoBackfill { .. } => {
                Self::wrong("no_backfill", text).hint("`shardcron backfill list JOB` shows those there are")
            }
            EngineError::BackfillOver { .. } | EngineError::BackfillIdTaken { .. } => Self::wrong("illegal", text),
            EngineError::Store(_) => Self::failed("store", text),
            EngineError::Unsettled { .. } => Self::failed("store", text)
                .hint("what was acknowledged is kept; make sure that the table can be written (room on the disk, rights), then run the same command again"),
            EngineError::Objects(_) => Self::failed("objects", text),
            EngineError::Queue(_) => Self::failed("queue", text),
            _ => Self::failed("internal", text),
        }
    }
}

/// What to do about a command that an instance's state refuses.
fn way_out(error: &InstanceError) -> Option<&'static str> {
    match error {
        InstanceError::Illegal { status, .. } => match *status {
            "Succeeded" => Some("it has ended; `shardcron rerun INSTANCE` begins it from scratch"),
            "Failed" | "Cancelled" => Some(
                "it has ended; `shardcron retry INSTANCE` goes on from what it has, `shardcron rerun` from scratch",
            ),
            "Replaced" => Some("a later instance took its place; `shardcron rerun INSTANCE` begins it from scratch"),
            "Publishing" => {
                Some("its output is being published, which can't be taken back; `shardcron watch INSTANCE`")
            }
            "Stopping" => Some("it is being stopped; when it has ended (`shardcron watch INSTANCE`), try again"),
            _ => Some("it hasn't ended; `shardcron watch INSTANCE` follows it, `shardcron cancel` stops it"),
        },
        InstanceError::Unannounced { .. } => {
            Some("the sweep announces it when the event bus takes it; look at the bus, or try again in a minute")
        }
        InstanceError::LeaseOver { .. } => None,
    }
}
