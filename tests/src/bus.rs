//! Who takes the announcements of ends: they are kept, and held against the store when they come.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use shardcron_engine::announce::{AnnounceError, Announcement, Announcer};
use shardcron_store::memory::MemoryStore;
use shardcron_store::{Item, ItemKey};

use crate::gate::Gate;

/// A bus. It outlives the processes.
#[derive(Debug, Default)]
pub struct Bus(Mutex<Vec<Announcement>>);

impl Bus {
    /// What has come, in order.
    #[must_use]
    pub fn taken(&self) -> Vec<Announcement> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A process's way to the bus.
#[derive(Debug)]
pub struct GatedBus {
    /// The bus.
    pub bus: Arc<Bus>,
    /// What an announcement is held against: it must never come before its outcome.
    pub store: Arc<MemoryStore>,
    /// The process's gate.
    pub gate: Arc<Gate>,
}

#[async_trait]
impl Announcer for GatedBus {
    async fn announce(&self, end: &Announcement) -> Result<(), AnnounceError> {
        let refused = |denied| AnnounceError { instance: end.instance.0.to_string(), source: Box::new(denied) };
        let request = self.gate.write(format!("announce {}", end.instance.0), None);
        self.gate.enter(&request).await.map_err(refused)?;
        let key = ItemKey::Instance(end.instance.0.clone());
        let stored = self.store.snapshot().into_iter().find(|item| item.key() == key);
        let Some(Item::Instance(instance)) = stored else { panic!("{} is announced and isn't there", end.instance.0) };
        let same_run = instance.generation == end.generation && instance.attempt == end.attempt;
        if same_run {
            assert_eq!(instance.status.name(), end.outcome, "an end is announced that isn't written");
        }
        self.bus.0.lock().unwrap_or_else(PoisonError::into_inner).push(end.clone());
        self.gate.leave(&request).await.map_err(refused)
    }
}
