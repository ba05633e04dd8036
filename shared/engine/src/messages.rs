//! The messages: hints that something may be to do. They carry identities only; what is true is in the table.

use serde::{Deserialize, Serialize};
use shardcron_domain::certificate::InstanceName;
use shardcron_domain::ids::{Generation, RunId, ShardId, ShardKey};

/// Look at this instance: a step of it may be due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceMessage {
    /// The instance.
    pub instance: InstanceName,
}

/// Look at this shard: it may be claimable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardMessage {
    /// The instance.
    pub instance: InstanceName,
    /// Which generation of it.
    pub generation: Generation,
    /// The shard.
    pub shard: ShardId,
}

impl ShardMessage {
    /// The message about this shard.
    #[must_use]
    pub fn about(key: &ShardKey) -> Self {
        Self {
            instance: InstanceName(key.run.instance.clone()),
            generation: key.run.generation,
            shard: key.shard.clone(),
        }
    }

    /// The shard that it is about.
    #[must_use]
    pub fn key(&self) -> ShardKey {
        let run = RunId { instance: self.instance.0.clone(), generation: self.generation };
        ShardKey { run, shard: self.shard.clone() }
    }
}
