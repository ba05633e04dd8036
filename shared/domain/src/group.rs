//! The group: at most a hundred shards, and which of them are done.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::{GroupNo, RunId, ShardId, Version, WriteId};

/// A group as the store holds it. Shards report to their group and full groups to the instance, so that the end of a
/// shard is never a write to an item that all shards write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// The generation that it belongs to.
    pub run: RunId,
    /// Its number.
    pub no: GroupNo,
    /// How many shards it has, children of splits included.
    pub size: u32,
    /// Those that are done.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub done: BTreeSet<ShardId>,
    /// The key of its page of the manifest, and the SHA-256 of that in hex.
    pub page: String,
    /// The digest.
    pub page_digest: String,
    /// +1 at each write.
    pub version: Version,
    /// Of the last conditional write (additions to the set don't change it).
    pub write_id: WriteId,
}

impl Group {
    /// Whether all its shards are done.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.done.len() as u32 >= self.size
    }
}
