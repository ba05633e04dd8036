//! The certificate: what was published, and the account of every shard behind it.

use serde::{Deserialize, Serialize};

use crate::boundary::Range;
use crate::ids::{Generation, InstanceId, ShardId, Token};
use crate::outbox::Outbox;
use crate::shard::{Counts, Shard};

/// The name of the certificate among an instance's output. Put last: readers follow it and nothing else.
pub const CERTIFICATE_NAME: &str = "_certificate.json";

/// What was published, as `_certificate.json` says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// The instance.
    pub instance: InstanceName,
    /// The generation that was published.
    pub generation: Generation,
    /// SHA-256 of the manifest, in hex.
    pub manifest_digest: String,
    /// The parts, in order, as keys relative to the certificate's place.
    pub parts: Vec<Part>,
    /// The account of each leaf shard, in the order of the boundary.
    pub shards: Vec<ShardAccount>,
    /// The sum of the shards'.
    pub totals: Totals,
}

/// An instance's name as text, `job:2026-08-29T16:00:00Z`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceName(pub InstanceId);

impl TryFrom<String> for InstanceName {
    type Error = crate::ids::InstanceIdError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<InstanceName> for String {
    fn from(name: InstanceName) -> Self {
        name.0.to_string()
    }
}

/// One part of the output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Its key, relative to the certificate's place.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Rows, without the header.
    pub rows: u64,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
}

/// What one shard did.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardAccount {
    /// Its id.
    pub id: ShardId,
    /// Its part of the boundary.
    pub range: Range,
    /// The token of the owner that finished it.
    pub token: Token,
    /// Claims of it while a former owner hadn't released it.
    pub takeovers: u32,
    /// Records read.
    pub records_in: u64,
    /// Records in the results.
    pub records_out: u64,
    /// Records in the rejects.
    pub rejected: u64,
    /// Its effects outside of the results, if it had any.
    #[serde(default, skip_serializing_if = "EffectCounts::is_empty")]
    pub effects: EffectCounts,
}

/// What became of effects. Of a shard that is done, each is one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectCounts {
    /// Effects that the target has.
    pub sent: u64,
    /// Effects that it has refused, in a job that records that.
    pub refused: u64,
}

impl EffectCounts {
    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The sum of two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { sent: self.sent + other.sent, refused: self.refused + other.refused }
    }
}

impl From<Outbox> for EffectCounts {
    fn from(outbox: Outbox) -> Self {
        let (settled, refused) = (u64::from(outbox.settled), u64::from(outbox.refused));
        Self { sent: settled.saturating_sub(refused), refused }
    }
}

impl ShardAccount {
    /// The account of a shard that is done.
    #[must_use]
    pub fn of(shard: &Shard) -> Self {
        Self {
            id: shard.key.shard.clone(),
            range: shard.range,
            token: shard.token,
            takeovers: shard.takeovers,
            records_in: shard.counts.input,
            records_out: shard.counts.output,
            rejected: shard.counts.rejected,
            effects: shard.outbox.into(),
        }
    }
}

/// The sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Shards.
    pub shards: u64,
    /// Takeovers of shards.
    pub takeovers: u64,
    /// Records read.
    pub records_in: u64,
    /// Records in the results.
    pub records_out: u64,
    /// Records in the rejects.
    pub rejected: u64,
    /// Effects outside of the results, if there were any.
    #[serde(default, skip_serializing_if = "EffectCounts::is_empty")]
    pub effects: EffectCounts,
}

impl Totals {
    /// The sums of these accounts.
    #[must_use]
    pub fn of(shards: &[ShardAccount]) -> Self {
        let mut totals = Self { shards: shards.len() as u64, ..Self::default() };
        for shard in shards {
            totals.takeovers += u64::from(shard.takeovers);
            totals.records_in += shard.records_in;
            totals.records_out += shard.records_out;
            totals.rejected += shard.rejected;
            totals.effects = totals.effects.plus(shard.effects);
        }
        totals
    }

    /// The same, as counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { input: self.records_in, output: self.records_out, rejected: self.rejected }
    }
}

/// What a writer of a certificate does about the one that it finds in the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is of a lower generation of the instance: take its place, on condition that it is still that one.
    Replace,
    /// It is this very one: that counts as published. A takeover of a generation writes the same, since done shards
    /// don't change.
    Published,
    /// It is of a higher generation, of another instance, or of the same generation and says something else: somebody
    /// else publishes there, such as an installation with another table.
    Taken,
}

impl Certificate {
    /// Compares with the one that is found in the place (G11).
    #[must_use]
    pub fn standing_of(&self, found: &Self) -> Standing {
        if found == self {
            return Standing::Published;
        }
        if found.instance == self.instance && found.generation < self.generation {
            Standing::Replace
        } else {
            Standing::Taken
        }
    }
}
