//! The end of a shard: to its group's set, a full group to the instance's, and the next shard's message.

use shardcron_domain::group::DoneShard;
use shardcron_domain::ids::{ShardId, ShardKey};
use shardcron_domain::instance::Instance;
use shardcron_domain::shard::Shard;
use shardcron_store::{Item, ItemKey, SetAdd};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::EngineError;

impl Engine {
    /// Reports a shard that this executor has just done, and sends the message of the next: a shortcut that needs no
    /// state, since whoever ends a shard sends the one that comes `parallelism` later. The sweep mends what this misses.
    pub(crate) async fn report_done(&self, shard: &Shard, spec: &LoadedSpec) -> Result<(), EngineError> {
        let Some(instance) = self.repeat_done(shard).await? else { return Ok(()) };
        let Some(boundary) = &instance.boundary else { return Ok(()) };
        let next = shard.key.shard.number().saturating_add(spec.spec.parallelism);
        if next < boundary.shards && !shard.key.shard.is_child() {
            let key = ShardKey { run: shard.key.run.clone(), shard: ShardId::numbered(next) };
            self.tell_shards(&instance, std::iter::once(key)).await;
        }
        Ok(())
    }

    /// Reports a done shard to the sets. All of it can be repeated, and is, at each message about such a shard; that
    /// sends no next one, or one message that came twice would run through all shards that are done. Gives the instance
    /// where it isn't full and goes on.
    pub(crate) async fn repeat_done(&self, shard: &Shard) -> Result<Option<Instance>, EngineError> {
        let Some(done) = DoneShard::of(shard) else { return Ok(None) };
        let run = &shard.key.run;
        let no = shard.key.shard.group();
        self.add(SetAdd::ShardDone(run.clone(), no, done)).await?;
        let Some(Item::Group(group)) = self.store.get(&ItemKey::Group(run.clone(), no)).await? else { return Ok(None) };
        if group.is_full() {
            self.add(SetAdd::GroupFull(run.clone(), no)).await?;
        }
        let Some(instance) = self.instance(&run.instance).await? else { return Ok(None) };
        if instance.generation != run.generation || instance.status.is_terminal() {
            return Ok(None);
        }
        if instance.is_full() {
            self.tell_instances(std::iter::once(instance.id.clone())).await;
            return Ok(None);
        }
        Ok(Some(instance))
    }
}
