//! The slot: the right to be the running instance of a job, or of all jobs with one `concurrencyKey`.
//!
//! Whoever takes, waits for or passes on a slot writes it in the same transaction as the instances that it is about,
//! on condition of its version; so an overlap policy is decided by the store, not by a look (G7).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{ConcurrencyKey, InstanceId, JobName, Version, WriteId};
use crate::limits::QUEUE_MAX;

/// Which slot: a job's own, or the one that a `concurrencyKey` names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SlotKey {
    /// The job's own.
    Job(JobName),
    /// Shared by all jobs with this key.
    Shared(ConcurrencyKey),
}

impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "job/{job}"),
            Self::Shared(key) => write!(f, "key/{key}"),
        }
    }
}

/// A slot as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// Which one.
    pub key: SlotKey,
    /// The instance that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<InstanceId>,
    /// Those that wait for it, the next first; at most [`QUEUE_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<InstanceId>,
    /// +1 at each write.
    pub version: Version,
    /// Of the last write.
    pub write_id: WriteId,
}

impl Slot {
    /// A slot that nobody holds.
    #[must_use]
    pub fn free(key: SlotKey, write_id: WriteId) -> Self {
        Self { key, holder: None, waiting: Vec::new(), version: Version::FIRST, write_id }
    }

    /// The slot after a write.
    #[must_use]
    pub fn changed(&self, write_id: &WriteId) -> Self {
        Self { version: self.version.next(), write_id: write_id.clone(), ..self.clone() }
    }

    /// Whether one more can wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.waiting.len() < QUEUE_MAX
    }

    /// The slot once `id` has ended: passed on to the first that waits, which is returned. `None` when `id` neither
    /// holds it nor waits: it isn't its to pass on.
    #[must_use]
    pub fn without(&self, id: &InstanceId, write_id: &WriteId) -> Option<(Self, Option<InstanceId>)> {
        let mut next = self.changed(write_id);
        if self.holder.as_ref() == Some(id) {
            next.holder = (!next.waiting.is_empty()).then(|| next.waiting.remove(0));
            let holder = next.holder.clone();
            return Some((next, holder));
        }
        let place = self.waiting.iter().position(|waiting| waiting == id)?;
        next.waiting.remove(place);
        Some((next, None))
    }
}
