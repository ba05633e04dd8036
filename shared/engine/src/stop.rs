//! Stopping: first the word, then every open shard is fenced, and only then the end.

use shardcron_domain::ids::{Attempt, GroupNo, InstanceId};
use shardcron_domain::instance::{Instance, InstanceStatus, Outcome};
use shardcron_domain::limits::GROUP_SHARDS_MAX;
use shardcron_domain::shard::{FenceReason, Shard};
use shardcron_store::{Guard, Item, Written};

use crate::error::EngineError;
use crate::events::{self, Event};
use crate::ports::{fresh_write_id, stamp};
use crate::write::Patience;
use crate::{Engine, Handled};

impl Engine {
    /// Stops an instance, to end as `outcome` says, unless it has ended or is publishing. With `attempt`, only if it
    /// is still at that attempt.
    pub(crate) async fn stop(
        &self,
        id: &InstanceId,
        outcome: Outcome,
        attempt: Option<Attempt>,
    ) -> Result<(), EngineError> {
        loop {
            let Some(instance) = self.instance(id).await? else { return Ok(()) };
            if attempt.is_some_and(|attempt| attempt != instance.attempt) {
                return Ok(());
            }
            let next = match &instance.status {
                InstanceStatus::Stopping(_) => instance.clone(),
                _ => match instance.stop(outcome.clone(), &stamp(&*self.clock, &*self.random)) {
                    Ok(next) => next,
                    // It has ended, or is past the point of no return.
                    Err(_) => return Ok(()),
                },
            };
            if next.version == instance.version {
                self.finish_stopping(next).await?;
                return Ok(());
            }
            let put =
                self.put(Item::Instance(Box::new(next.clone())), Guard::Version(instance.version), Patience::Tries);
            if let Written::Applied = put.await? {
                self.emit_stopping(&next);
                self.finish_stopping(next).await?;
                return Ok(());
            }
        }
    }

    /// Fences what is open of a stopping instance; when nothing is, writes its end.
    pub(crate) async fn finish_stopping(&self, instance: Instance) -> Result<Handled, EngineError> {
        for no in 0..self.groups_of(&instance).await? {
            for shard in self.store.shards(&instance.run(), GroupNo(no)).await? {
                self.fence(shard, instance.attempt).await?;
            }
        }
        let next = instance.ended(&stamp(&*self.clock, &*self.random))?;
        let put = self.put(Item::Instance(Box::new(next.clone())), Guard::Version(instance.version), Patience::Tries);
        if let Written::Applied = put.await? {
            self.events.emit(
                Event::of_instance(events::ENDED, &next.id)
                    .with("status", next.status.name())
                    .with("reason", format!("{:?}", next.status)),
            );
        }
        Ok(Handled::Done)
    }

    /// How many groups of shards an instance can have by now: also one that was stopped in the middle of fan-out.
    pub(crate) async fn groups_of(&self, instance: &Instance) -> Result<u32, EngineError> {
        if let Some(boundary) = &instance.boundary {
            return Ok(boundary.groups());
        }
        let manifest = self.read_manifest(&instance.run()).await?;
        Ok(manifest.map_or(0, |(manifest, _)| manifest.shards.div_ceil(GROUP_SHARDS_MAX as u32)))
    }

    /// Fences a shard for as long as it is open under this attempt.
    async fn fence(&self, mut shard: Shard, attempt: Attempt) -> Result<(), EngineError> {
        while let Some(next) = shard.fence(FenceReason::Stopping, attempt, &fresh_write_id(&*self.random)) {
            let put = self.put(Item::Shard(Box::new(next)), Guard::Version(shard.version), Patience::Tries);
            match put.await? {
                Written::Lost(found) => match *found {
                    Item::Shard(found) => shard = *found,
                    _ => return Ok(()),
                },
                Written::Applied | Written::Missing => return Ok(()),
            }
        }
        Ok(())
    }
}
