//! The Queue port of shardcron and its adapters.
//!
//! Messages are hints; the table is the truth. So a queue may lose, repeat and reorder: that changes only latency.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use shardcron_domain::time::Duration;

pub mod sqs;

/// The queues of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QueueName {
    /// Instances for the fan-out function.
    Instances,
    /// Shards of scheduled and triggered instances.
    Shards,
    /// Shards of backfilled instances: apart, so that they never starve the schedule.
    BackfillShards,
}

impl QueueName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Instances, Self::Shards, Self::BackfillShards];
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The text, at most [`shardcron_domain::limits::MESSAGE_BYTES_MAX`].
    pub body: String,
    /// How long until it can be received; at most [`shardcron_domain::limits::MESSAGE_DELAY_MAX`], longer is cut to that.
    pub delay: Duration,
}

/// A message received and not yet deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The queue's id of the message.
    pub id: String,
    /// What deletes it or changes its visibility.
    pub receipt: String,
    /// The text.
    pub body: String,
    /// How often it has been received, this time included.
    pub receive_count: u32,
}

/// What went wrong, by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue doesn't answer or asks for patience. Worth another try; the sweep sends again in any case.
    #[error("{what}: {source}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The message is no longer ours (deleted, or visible again). Nothing to do.
    #[error("{what}: the message is no longer ours")]
    Gone {
        /// What was tried.
        what: String,
    },
    /// The queue refuses for good: it isn't there, no permission, the message is too long.
    #[error("{what}: {source}")]
    Refused {
        /// What was tried.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The port.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends messages, in as few requests as the service's batches allow. An error may leave some sent.
    async fn send(&self, queue: QueueName, messages: Vec<Outgoing>) -> Result<(), QueueError>;

    /// Receives up to `max` (1 to 10) messages, waiting up to `wait` (0 to 20 s) for the first.
    async fn receive(&self, queue: QueueName, max: usize, wait: Duration) -> Result<Vec<Received>, QueueError>;

    /// Deletes a received message.
    async fn delete(&self, queue: QueueName, receipt: &str) -> Result<(), QueueError>;

    /// Makes a received message visible again in `after` from now (0 to 12 hours; longer is cut to that).
    async fn set_visibility(&self, queue: QueueName, receipt: &str, after: Duration) -> Result<(), QueueError>;
}
