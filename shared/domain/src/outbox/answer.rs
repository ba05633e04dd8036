//! Answers of targets, and what they mean.

use crate::limits;
use crate::time::Duration;

/// What came back from a target, or didn't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An answer, with its status as in HTTP.
    Status {
        /// The status.
        status: u16,
        /// The beginning of what it says.
        text: String,
        /// How long the target asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// The request didn't leave: no connection.
    NotSent(String),
    /// The request may have arrived, and there was no answer.
    Lost(String),
    /// The target as the job names it can't be used by anybody: a secret that isn't set, a queue that isn't there.
    Unusable(String),
}

/// What an answer means for the effect that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The target has it.
    Sent {
        /// Its status.
        status: u16,
    },
    /// The target has seen a higher token: the sender isn't the holder. It stops at once.
    Fenced(String),
    /// The target hasn't taken it, and may later.
    Later {
        /// Why.
        why: String,
        /// How long it asks to be left alone.
        after: Option<Duration>,
    },
    /// It may have been taken, or not. The same again, later.
    Unknown {
        /// Why.
        why: String,
        /// How long the target asks to be left alone.
        after: Option<Duration>,
    },
    /// The target refuses this effect for good.
    Refused {
        /// Its status.
        status: u16,
        /// What it says.
        text: String,
    },
    /// The target can't be used at all; no effect is to blame.
    Unusable(String),
}

impl Answer {
    /// What it means. `compares_tokens` says that the target does; `again` that the effect may have been sent before.
    ///
    /// Status codes are RFC 9110's, with 425 (RFC 8470) and 429 (RFC 6585). A 409 to a repeated request says that the
    /// first one is still being worked on (IETF draft "The Idempotency-Key HTTP Header Field").
    #[must_use]
    pub fn meaning(self, compares_tokens: bool, again: bool) -> Meaning {
        let (status, text, after) = match self {
            Self::Status { status, text, retry_after } => (status, text, retry_after),
            Self::NotSent(why) => return Meaning::Later { why, after: None },
            Self::Lost(why) => return Meaning::Unknown { why, after: None },
            Self::Unusable(why) => return Meaning::Unusable(why),
        };
        let said = said(status, &text);
        match status {
            200..=299 => Meaning::Sent { status },
            409 | 412 if compares_tokens => Meaning::Fenced(said),
            425 | 429 => Meaning::Later { why: said, after },
            408 | 500..=599 => Meaning::Unknown { why: said, after },
            409 if again => Meaning::Unknown { why: said, after },
            401 | 407 => {
                Meaning::Unusable(format!("{said}; check the credentials that effects.authorizationEnv names"))
            }
            300..=399 => Meaning::Unusable(format!("{said}; name the place that it redirects to")),
            _ => Meaning::Refused { status, text: summary(&text) },
        }
    }
}

/// A status and what was said with it, in short.
fn said(status: u16, text: &str) -> String {
    match text.trim() {
        "" => format!("it answers {status}"),
        text => summary(&format!("it answers {status}: {text}")),
    }
}

/// A text within the bound of what is kept of errors, on one line.
pub(super) fn summary(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limits::ERROR_SUMMARY_MAX - 1) {
        Some((end, _)) if line[end..].chars().nth(1).is_some() => format!("{}…", &line[..end]),
        _ => line,
    }
}
