//! The outbox: effects outside of the results, such as a payment or a message, which can't join a commit.
//!
//! A work asks for [`Effect`]s. The commit of the batch writes each as an [`OutboxRow`] of its shard, numbered in commit
//! order. The shard's present holder sends them one by one in that order, under its token, and records what became of each
//! in an owner's write of the shard. So only one holder moves on at a time, and a shard that isn't its own any more
//! shows at the latest with the outcome of the effect in flight.
//!
//! Delivery is at least once. The receiver knows an effect again by its [`RequestId`], which a redo, a takeover, a retry
//! and a rerun all leave as it is, and a holder that is no longer the present one by its [`FenceToken`].

mod answer;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::ids::{Generation, InstanceId, Token};
use crate::job::OnRefused;
use crate::limits;
use crate::shard::{OwnerError, Shard, ShardStatus, Stamp};
use crate::time::{Millis, Reading};

use self::answer::summary;
pub use self::answer::{Answer, Meaning};

/// What a work asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What it is about, unique in the instance's input and the same in every run of it: a record's own id, or the object
    /// and the place that it stands in. Never a shard's number, which another cut of the input changes. At most
    /// [`limits::EFFECT_KEY_BYTES_MAX`].
    pub key: String,
    /// What the receiver gets; at most [`limits::EFFECT_BODY_BYTES_MAX`].
    pub body: String,
    /// The body's media type; `application/json` where there is none.
    pub content_type: Option<String>,
}

/// Why an effect can't be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectError {
    /// The key is empty or too long.
    #[error("an effect's key has 1 to {max} bytes, and this one has {0}", max = limits::EFFECT_KEY_BYTES_MAX)]
    Key(usize),
    /// The body is too long.
    #[error("an effect's body has at most {max} bytes, and that of `{key}` has {bytes}", max = limits::EFFECT_BODY_BYTES_MAX)]
    Body {
        /// The effect's key.
        key: String,
        /// Bytes of its body.
        bytes: usize,
    },
    /// The media type can't stand in a header.
    #[error("the content type `{0}` isn't one: 1 to 127 visible ASCII characters and spaces")]
    ContentType(String),
}

impl Effect {
    /// Bytes of key and body: what a commit's size is counted by.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.body.len()
    }

    /// Whether it can be stored and sent.
    ///
    /// # Errors
    /// [`EffectError`].
    pub fn check(&self) -> Result<(), EffectError> {
        if self.key.is_empty() || self.key.len() > limits::EFFECT_KEY_BYTES_MAX {
            return Err(EffectError::Key(self.key.len()));
        }
        if self.body.len() > limits::EFFECT_BODY_BYTES_MAX {
            return Err(EffectError::Body { key: self.key.clone(), bytes: self.body.len() });
        }
        let legal = |text: &str| (1..=127).contains(&text.len()) && text.bytes().all(|b| (0x20..0x7f).contains(&b));
        match &self.content_type {
            Some(text) if !legal(text) => Err(EffectError::ContentType(text.clone())),
            _ => Ok(()),
        }
    }
}

/// What a receiver knows an effect again by: 32 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(String);

impl RequestId {
    /// The id of the effect with this key, of this instance: the first half of the SHA-256 of job, scheduled time and key.
    ///
    /// Neither generation nor attempt, token or shard is in it, so that whoever sends the effect again, for whatever
    /// reason, sends the same one.
    #[must_use]
    pub fn of(instance: &InstanceId, key: &str) -> Self {
        // No job's name and no time has a line break, so that no two triples make one text.
        Self(digest::half_of(format!("{}\n{}\n{key}", instance.job, instance.at)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A holder's token as targets see it: one number that rises with each claim of the shard, and with each rerun of the
/// instance, whose shards' own tokens begin anew. `2000000007` is token 7 of generation 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FenceToken(pub u64);

impl FenceToken {
    /// That of a token in a generation.
    #[must_use]
    pub fn of(generation: Generation, token: Token) -> Self {
        let base = u64::from(generation.0) * limits::EFFECT_TOKENS_OF_A_GENERATION;
        Self(base + token.0.min(limits::EFFECT_TOKENS_OF_A_GENERATION - 1))
    }
}

impl fmt::Display for FenceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What is known of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EffectState {
    /// Nothing has been heard of it. It may be under way, or its sender may have died before it heard.
    Pending,
    /// The target has it.
    Sent {
        /// When that was heard.
        at: Millis,
        /// The sender's token.
        token: Token,
        /// The target's status.
        status: u16,
    },
    /// The target refuses it for good.
    Refused {
        /// When that was heard.
        at: Millis,
        /// The sender's token.
        token: Token,
        /// The target's status.
        status: u16,
        /// What it says, at most [`limits::ERROR_SUMMARY_MAX`] characters.
        text: String,
    },
    /// It was sent and nobody knows what became of it. It is sent again under the same id.
    Unknown {
        /// How often it was sent so far.
        tries: u32,
        /// When that was known.
        at: Millis,
        /// The last sender's token.
        token: Token,
        /// What happened last, at most [`limits::ERROR_SUMMARY_MAX`] characters.
        last: String,
    },
}

impl EffectState {
    /// Its name, as the command shows it and takes it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent { .. } => "sent",
            Self::Refused { .. } => "refused",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// When it was learned; `None` while nothing is.
    #[must_use]
    pub fn learned_at(&self) -> Option<Millis> {
        match self {
            Self::Pending => None,
            Self::Sent { at, .. } | Self::Refused { at, .. } | Self::Unknown { at, .. } => Some(*at),
        }
    }
}

/// An effect as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxRow {
    /// Its number in the shard, from 0, in the order of commits.
    pub no: u32,
    /// What the receiver knows it again by.
    pub request_id: RequestId,
    /// The work's key of it.
    pub key: String,
    /// Where it goes, as the job has it.
    pub target: String,
    /// What the receiver gets.
    pub body: String,
    /// The body's media type, unless it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// What is known of it.
    pub state: EffectState,
}

/// How far a shard's outbox is, as the shard's item has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Hash)]
pub struct Outbox {
    /// Rows that were committed.
    #[serde(rename = "n")]
    pub rows: u32,
    /// Of these, how many are settled: a prefix, since they go out in order.
    pub settled: u32,
    /// Settled ones that the target refused.
    #[serde(rename = "ref", default)]
    pub refused: u32,
}

impl Outbox {
    /// Whether nothing was ever in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether nothing waits in it.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.settled == self.rows
    }
}

impl OutboxRow {
    /// The row after a holder with this token learned at `at` what became of it; as it is where nothing was learned.
    #[must_use]
    pub fn after(&self, meaning: &Meaning, token: Token, at: Millis) -> Self {
        let state = match meaning {
            Meaning::Sent { status } => EffectState::Sent { at, token, status: *status },
            Meaning::Refused { status, text } => {
                EffectState::Refused { at, token, status: *status, text: summary(text) }
            }
            Meaning::Unknown { why, .. } => {
                let before = if let EffectState::Unknown { tries, .. } = self.state { tries } else { 0 };
                EffectState::Unknown { tries: before.saturating_add(1), at, token, last: summary(why) }
            }
            Meaning::Fenced(_) | Meaning::Later { .. } | Meaning::Unusable(_) => self.state.clone(),
        };
        Self { state, ..self.clone() }
    }
}

impl Shard {
    /// Whether its owner may still act outside of the store at this reading: its lease surely hasn't ended.
    #[must_use]
    pub fn may_act(&self, now: Reading) -> bool {
        matches!(&self.status, ShardStatus::Leased(lease) if lease.is_valid(now))
    }

    /// The shard of a commit, with the effects that the commit's batch asks for, as rows to `target` that join it.
    ///
    /// # Errors
    /// [`OwnerError::Undrained`] when the commit ends the shard.
    pub fn with_effects(mut self, effects: Vec<Effect>, target: &str) -> Result<(Self, Vec<OutboxRow>), OwnerError> {
        if effects.is_empty() {
            return Ok((self, Vec::new()));
        }
        if self.status == ShardStatus::Done {
            return Err(OwnerError::Undrained(self.key.clone()));
        }
        let instance = self.key.run.instance.clone();
        let first = self.outbox.rows;
        let row = |(no, effect): (u32, Effect)| OutboxRow {
            no,
            request_id: RequestId::of(&instance, &effect.key),
            key: effect.key,
            target: target.to_owned(),
            body: effect.body,
            content_type: effect.content_type,
            state: EffectState::Pending,
        };
        let rows: Vec<OutboxRow> = (first..).zip(effects).map(row).collect();
        self.outbox.rows = rows.last().map_or(first, |last| last.no + 1);
        Ok((self, rows))
    }

    /// The owner has learned what became of the next row. It is settled when the target has it, or has refused it and the
    /// job only records that; then that is progress, as a commit is. Renews the lease in any case.
    ///
    /// # Errors
    /// [`OwnerError::NotOwner`], [`OwnerError::LeaseOver`].
    pub fn settle(&self, stamp: &Stamp, row: &OutboxRow, on_refused: OnRefused) -> Result<Self, OwnerError> {
        let mut next = self.heartbeat(stamp)?;
        let refused = matches!(row.state, EffectState::Refused { .. });
        let settled = matches!(row.state, EffectState::Sent { .. }) || (refused && on_refused == OnRefused::Record);
        if settled && row.no == self.outbox.settled {
            next.outbox.settled += 1;
            next.outbox.refused += u32::from(refused);
            next.progressed = true;
            next.failures = 0;
            next.last_fault = None;
        }
        Ok(next)
    }
}

/// A shard that is done has nothing left in its outbox.
#[must_use]
pub fn done_is_drained(shard: &Shard) -> bool {
    shard.outbox.settled <= shard.outbox.rows && (shard.status != ShardStatus::Done || shard.outbox.is_drained())
}

#[cfg(test)]
mod tests;
