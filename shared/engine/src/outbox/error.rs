//! What can go wrong with a target, by what can be done about it.

use shardcron_domain::ids::{ShardKey, Token};

use crate::error::EngineError;

/// What went wrong with the target of a job's effects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It has refused an effect for good, and the job doesn't only record that.
    #[error("{target} refuses the effect {key} with status {status}: {text}")]
    Refused {
        /// The target.
        target: String,
        /// The effect's key.
        key: String,
        /// The target's status.
        status: u16,
        /// What it says.
        text: String,
    },
    /// It doesn't take an effect now, or doesn't say whether it has. Worth another try.
    #[error("{target} hasn't settled an effect: {why}")]
    Unsettled {
        /// The target.
        target: String,
        /// What happened last.
        why: String,
    },
    /// It can't be used as the job names it, whatever the effect.
    #[error("{target} can't be used: {why}")]
    Unusable {
        /// The target.
        target: String,
        /// Why.
        why: String,
    },
    /// It has seen a higher token than the shard's present holder has. The next claim's is higher.
    #[error(
        "{target} has seen a higher token of {shard} than our {token}, which is its present one: another installation sends there, or the table was made anew ({why})"
    )]
    Ahead {
        /// The target.
        target: String,
        /// Which shard.
        shard: ShardKey,
        /// The present token.
        token: Token,
        /// What the target says.
        why: String,
    },
}

impl TargetError {
    /// Whether trying again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unsettled { .. } | Self::Ahead { .. })
    }
}

impl From<TargetError> for EngineError {
    fn from(error: TargetError) -> Self {
        Self::Target(Box::new(error))
    }
}
