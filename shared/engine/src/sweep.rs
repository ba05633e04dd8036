//! The sweep: what messages would have done, for when they were lost.

use shardcron_domain::group::DoneShard;
use shardcron_domain::ids::{GroupNo, InstanceId, ShardKey};
use shardcron_domain::instance::{Instance, InstanceStatus, WaitingFor};
use shardcron_domain::limits::{GROUP_SHARDS_MAX, SWEEP_BACKFILLS_MAX, SWEEP_INSTANCES_MAX};
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::Millis;
use shardcron_store::{Guard, Item, ItemKey, SetAdd};

use crate::Engine;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::ports::stamp;
use crate::write::Patience;

/// Which unfinished instances a sweep looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Those that are due for a look.
    Due,
    /// All: for a start after which no message can be relied on.
    All,
}

/// The state of a running instance's shards, as far as a look goes.
#[derive(Default)]
struct Look {
    done: u32,
    failed: Option<Shard>,
    /// Shards that a message is to be sent about.
    tell: Vec<ShardKey>,
    /// Whether some of these only wait for somebody.
    resent: bool,
    /// When the first of the leases ends.
    held_until: Option<Millis>,
}

impl Engine {
    /// Looks at unfinished instances and sends what messages may have been lost. One that can't be looked at is told
    /// of, and keeps no other from being looked at.
    ///
    /// # Errors
    /// Errors of the store on reading the open index.
    pub async fn sweep(&self, which: Sweep) -> Result<usize, EngineError> {
        let until = match which {
            Sweep::Due => self.clock.now().at,
            Sweep::All => Millis(i64::MAX),
        };
        let due = self.store.open_instances(until, SWEEP_INSTANCES_MAX).await?;
        let looked = due.len();
        for (_, id) in due {
            if let Err(error) = self.look_at(&id, which).await {
                self.events.emit(Event::of_instance(events::TROUBLE, &id).with("error", error.full_text()));
            }
        }
        for (_, job, id) in self.store.open_backfills(until, SWEEP_BACKFILLS_MAX).await? {
            if let Err(error) = self.advance_backfill(&job, &id).await {
                let event = Event::new(events::TROUBLE).with("job", job.as_str()).with("backfill", id.as_str());
                self.events.emit(event.with("error", error.full_text()));
            }
        }
        Ok(looked)
    }

    /// Looks at one instance: ends what must end, mends the done sets, sends messages again when they are due.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn look_at(&self, id: &InstanceId, which: Sweep) -> Result<(), EngineError> {
        // Decided from a consistent read: the index that led here may be stale.
        let Some(instance) = self.instance(id).await? else { return Ok(()) };
        let now = self.clock.now();
        let Some(next_look) = instance.next_look else { return Ok(()) };
        if which == Sweep::Due && next_look > now.at {
            return Ok(());
        }
        if self.stop_past_deadline(&instance).await? {
            return Ok(());
        }
        match instance.status {
            InstanceStatus::Stopping(_) => {
                self.finish_stopping(instance).await?;
            }
            InstanceStatus::Running => self.look_at_running(&instance, which).await?,
            InstanceStatus::Waiting(WaitingFor::Slot) => {
                self.look_at_waiting(&instance).await?;
                self.note_look(&instance, &Look::nothing_moved(&instance)).await?;
            }
            _ => {
                self.tell_instances(std::iter::once(id.clone())).await;
                // A step that somebody is in is left alone: a write of ours would take it away from its holder.
                if instance.lease.as_ref().is_none_or(|lease| lease.is_over(now)) {
                    self.note_look(&instance, &Look::nothing_moved(&instance)).await?;
                }
            }
        }
        Ok(())
    }

    async fn look_at_running(&self, instance: &Instance, which: Sweep) -> Result<(), EngineError> {
        let spec = self.spec_of(instance).await?;
        let look = self.look_at_shards(instance, spec.spec.parallelism as usize, which).await?;
        if let Some(failed) = &look.failed {
            return self.stop_for_failed_shard(failed).await;
        }
        let Some(current) = self.instance(&instance.id).await? else { return Ok(()) };
        if current.is_full() {
            self.tell_instances(std::iter::once(current.id.clone())).await;
        } else if !look.tell.is_empty() {
            self.events.emit(Event::of_instance(events::RESENT, &instance.id).with("shards", look.tell.len()));
            self.tell_shards(&current, look.tell.iter().cloned()).await;
        }
        self.note_look(&current, &look).await
    }

    /// Reads the shards of groups that aren't full, lowest first, until `window` open ones are found.
    async fn look_at_shards(&self, instance: &Instance, window: usize, which: Sweep) -> Result<Look, EngineError> {
        let now = self.clock.now();
        let may_resend = which == Sweep::All || instance.may_resend(now);
        let mut look = Look::default();
        let mut open = 0;
        let groups = instance.boundary.as_ref().map_or(0, |boundary| boundary.groups());
        for no in (0..groups).map(GroupNo) {
            if instance.groups_done.contains(&no) {
                look.done += GROUP_SHARDS_MAX as u32;
                continue;
            }
            if open >= window || look.failed.is_some() {
                break;
            }
            let shards = self.group_shards(&instance.run(), no).await?;
            let done: Vec<DoneShard> = shards.iter().filter_map(DoneShard::of).collect();
            look.done += done.len() as u32;
            if self.mend_group(instance, no, &done).await? {
                continue;
            }
            for shard in shards.into_iter().filter(|shard| shard.status.is_open() || is_failed(shard)) {
                let held = match &shard.status {
                    ShardStatus::Failed(_) => {
                        look.failed = Some(shard);
                        continue;
                    }
                    ShardStatus::Leased(lease) if !lease.is_over(now) => Some(lease.until),
                    _ => None,
                };
                if open == window {
                    break;
                }
                open += 1;
                if let Some(until) = held {
                    look.held_until = Some(look.held_until.map_or(until, |first| first.min(until)));
                }
                let expired = held.is_none() && matches!(shard.status, ShardStatus::Leased(_));
                // Whoever works on a shard keeps its message near. After a start no message can be relied on.
                let tell = if held.is_some() { which == Sweep::All } else { expired || may_resend };
                if tell {
                    look.resent |= !expired;
                    look.tell.push(shard.key);
                }
            }
        }
        Ok(look)
    }

    /// Reports the shards of a group that are done where its set doesn't say so yet; whether the group is full.
    async fn mend_group(&self, instance: &Instance, no: GroupNo, done: &[DoneShard]) -> Result<bool, EngineError> {
        let key = ItemKey::Group(instance.run(), no);
        let Some(Item::Group(group)) = self.store.get(&key).await? else { return Ok(false) };
        for done in done.iter().filter(|done| !group.done.contains(done)) {
            self.add(SetAdd::ShardDone(instance.run(), no, done.clone())).await?;
        }
        let is_full = group.is_full_with(done);
        if is_full {
            self.add(SetAdd::GroupFull(instance.run(), no)).await?;
        }
        Ok(is_full)
    }

    /// Writes when to look again. Losing this write to another is of no consequence: that one sets a look too.
    async fn note_look(&self, instance: &Instance, look: &Look) -> Result<(), EngineError> {
        if instance.next_look.is_none() {
            return Ok(());
        }
        let stamp = stamp(&*self.clock, &*self.random);
        let next = instance.looked(&stamp, self.settings.resend_after, look.done, look.resent, look.held_until);
        self.put(Item::Instance(Box::new(next)), Guard::Version(instance.version), Patience::Tries).await?;
        Ok(())
    }
}

impl Look {
    /// A look at an instance that messages are sent about as a whole.
    fn nothing_moved(instance: &Instance) -> Self {
        Self { done: instance.seen_done, resent: true, ..Self::default() }
    }
}

fn is_failed(shard: &Shard) -> bool {
    matches!(shard.status, ShardStatus::Failed(_))
}
