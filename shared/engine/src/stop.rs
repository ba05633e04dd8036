//! Stopping: first the word, then every open shard is fenced, and only then the end.

use shardcron_domain::ids::{Attempt, GroupNo, InstanceId};
use shardcron_domain::instance::{FailReason, Instance, InstanceStatus, Outcome};
use shardcron_domain::limits::GROUP_SHARDS_MAX;
use shardcron_domain::shard::{FenceReason, Shard};
use shardcron_store::{Guard, Item, Written};

use crate::command::Expect;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::ports::{fresh_write_id, stamp};
use crate::write::Patience;
use crate::{Engine, Handled};

impl Engine {
    /// Stops an instance, to end as `outcome` says, unless it has ended, is publishing, or is no longer at that
    /// generation and attempt: whoever has stood still since must not stop what was begun meanwhile.
    pub(crate) async fn stop(&self, id: &InstanceId, outcome: Outcome, expect: Expect) -> Result<(), EngineError> {
        loop {
            let Some(instance) = self.instance(id).await? else { return Ok(()) };
            if expect != Expect::of(&instance) {
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

    /// Stops an instance whose `activeDeadlineSeconds` are over, unless it is too late for that; whether they are.
    pub(crate) async fn stop_past_deadline(&self, instance: &Instance) -> Result<bool, EngineError> {
        let may_be_stopped = !matches!(instance.status, InstanceStatus::Publishing | InstanceStatus::Stopping(_))
            && !instance.status.is_terminal();
        if !may_be_stopped || !instance.is_past_deadline(self.clock.now()) {
            return Ok(false);
        }
        let outcome = Outcome::Failed(FailReason::DeadlineExceeded);
        self.stop(&instance.id, outcome, Expect::of(instance)).await?;
        Ok(true)
    }

    /// Fences what is open of a stopping instance; when nothing is, writes its end.
    pub(crate) async fn finish_stopping(&self, instance: Instance) -> Result<Handled, EngineError> {
        self.fence_all(&instance).await?;
        let next = instance.ended(&stamp(&*self.clock, &*self.random))?;
        if let Written::Applied = self.write_end(&instance, next.clone()).await? {
            self.events.emit(
                Event::of_instance(events::ENDED, &next.id)
                    .with("status", next.status.name())
                    .with("reason", next.status.outcome().map_or_else(String::new, |outcome| outcome.describe())),
            );
        }
        Ok(Handled::Done)
    }

    /// Fences what a step of ours put after its instance had ended, or gone on to another generation.
    pub(crate) async fn fence_leftovers(&self, ours: &Instance) -> Result<(), EngineError> {
        let Some(now) = self.instance(&ours.id).await? else { return Ok(()) };
        let goes_on = now.generation == ours.generation && !now.status.is_terminal();
        if goes_on {
            return Ok(());
        }
        self.fence_all(ours).await
    }

    /// Fences the shards of an instance's attempt until a look finds none open: while one is being fenced, its owner may
    /// still cut another from it.
    async fn fence_all(&self, instance: &Instance) -> Result<(), EngineError> {
        for no in (0..self.groups_of(instance).await?).map(GroupNo) {
            loop {
                let shards = self.group_shards(&instance.run(), no).await?;
                let mut open = shards.into_iter().filter(|shard| shard.is_open_for(instance.attempt)).peekable();
                if open.peek().is_none() {
                    break;
                }
                for shard in open {
                    self.fence(shard, instance.attempt).await?;
                }
            }
        }
        Ok(())
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
