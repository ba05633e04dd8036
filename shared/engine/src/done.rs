//! The end of a shard: to its group's set, a full group to the instance's, and the next shard's message.

use shardcron_domain::group::DoneShard;
use shardcron_domain::ids::{ShardId, ShardKey};
use shardcron_domain::shard::Shard;
use shardcron_store::{Item, ItemKey, SetAdd};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::EngineError;

impl Engine {
    /// Reports a done shard. Every part of it can be repeated, and is, by redelivered messages and by the sweep.
    pub(crate) async fn report_done(&self, shard: &Shard, spec: &LoadedSpec) -> Result<(), EngineError> {
        let Some(done) = DoneShard::of(shard) else { return Ok(()) };
        let run = &shard.key.run;
        let no = shard.key.shard.group();
        self.add(SetAdd::ShardDone(run.clone(), no, done)).await?;
        let Some(Item::Group(group)) = self.store.get(&ItemKey::Group(run.clone(), no)).await? else { return Ok(()) };
        if group.is_full() {
            self.add(SetAdd::GroupFull(run.clone(), no)).await?;
        }
        let Some(instance) = self.instance(&run.instance).await? else { return Ok(()) };
        if instance.generation != run.generation || instance.status.is_terminal() {
            return Ok(());
        }
        if instance.is_full() {
            self.tell_instances(std::iter::once(instance.id.clone())).await;
        } else if let Some(boundary) = &instance.boundary {
            // A shortcut that needs no state: whoever ends a shard sends the one that comes `parallelism` later. The
            // sweep mends what this misses.
            let next = shard.key.shard.number().saturating_add(spec.spec.parallelism);
            if next < boundary.shards && !shard.key.shard.is_child() {
                let key = ShardKey { run: run.clone(), shard: ShardId::numbered(next) };
                self.tell_shards(&instance, std::iter::once(key)).await;
            }
        }
        Ok(())
    }
}
