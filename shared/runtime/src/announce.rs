//! The ends of instances on an EventBridge bus.

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use shardcron_engine::announce::{AnnounceError, Announcement, Announcer};

/// The `source` of the events.
pub const SOURCE: &str = "shardcron";

/// Their `detail-type`.
pub const DETAIL_TYPE: &str = "Instance Ended";

/// A bus.
#[derive(Clone, Debug)]
pub struct EventBus {
    client: Client,
    name: String,
}

/// Why the bus took no event, though it answered.
#[derive(Debug, thiserror::Error)]
#[error("the bus {bus} didn't take it: {code} ({message})")]
struct NotTaken {
    bus: String,
    code: String,
    message: String,
}

impl EventBus {
    /// The bus of this name or ARN.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { client, name: name.into() }
    }

    async fn put(&self, end: &Announcement) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let entry = PutEventsRequestEntry::builder()
            .event_bus_name(&self.name)
            .source(SOURCE)
            .detail_type(DETAIL_TYPE)
            .detail(serde_json::to_string(end)?)
            .build();
        let answer = self.client.put_events().entries(entry).send().await?;
        // An answer of 200 can still say that an entry wasn't taken.
        match answer.entries().iter().find(|entry| entry.error_code().is_some()) {
            None if answer.failed_entry_count() == 0 => Ok(()),
            refused => {
                let text = |part: Option<&str>| part.unwrap_or("no reason given").to_owned();
                Err(Box::new(NotTaken {
                    bus: self.name.clone(),
                    code: text(refused.and_then(|entry| entry.error_code())),
                    message: text(refused.and_then(|entry| entry.error_message())),
                }))
            }
        }
    }
}

#[async_trait]
impl Announcer for EventBus {
    async fn announce(&self, end: &Announcement) -> Result<(), AnnounceError> {
        let instance = || end.instance.0.to_string();
        self.put(end).await.map_err(|source| AnnounceError { instance: instance(), source })
    }
}
