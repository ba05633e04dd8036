//! Why a work couldn't go on, by what can be done about it.

use std::error::Error;
use std::fmt;

use shardcron_domain::boundary::Position;

/// Why a work couldn't go on.
#[derive(Debug)]
pub enum WorkError {
    /// Only other input or another job mends it; it isn't retried.
    Input {
        /// The object, as a person knows it; empty where the error is about no single one.
        source: String,
        /// The line on which the record begins, from 1; 0 where it isn't about a line.
        line: u64,
        /// Where the record begins, where it is about one.
        position: Option<Position>,
        /// What is wrong.
        why: String,
        /// What to do about it, where that is known.
        hint: Option<String>,
    },
    /// It may go well next time.
    Retryable(Box<dyn Error + Send + Sync>),
    /// A committed row isn't one that this work has written: it was written by another, or shardcron is wrong. It
    /// isn't retried.
    State {
        /// The row's key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

impl WorkError {
    /// Whether trying again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Retryable(_))
    }
}

impl fmt::Display for WorkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { source, line, why, hint, position } => {
                match (source.as_str(), line) {
                    ("", _) => {}
                    (source, 0) => match position {
                        Some(Position::Object(at)) => write!(f, "{source}, byte {}: ", at.offset)?,
                        Some(position) => write!(f, "{source}, {position}: ")?,
                        None => write!(f, "{source}: ")?,
                    },
                    (source, line) => match position {
                        Some(Position::Object(at)) => write!(f, "{source}, line {line}, byte {}: ", at.offset)?,
                        _ => write!(f, "{source}, line {line}: ")?,
                    },
                }
                f.write_str(why)?;
                match hint {
                    Some(hint) => write!(f, "; {hint}"),
                    None => Ok(()),
                }
            }
            Self::Retryable(error) => write!(f, "{error}"),
            Self::State { key, why } => write!(f, "the committed row `{key}` can't be read: {why}"),
        }
    }
}

// By hand: thiserror takes a field named `source` for the error's cause, and here it is the object.
impl Error for WorkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // It is shown as this error itself, so its cause comes next.
            Self::Retryable(error) => error.source(),
            Self::Input { .. } | Self::State { .. } => None,
        }
    }
}
