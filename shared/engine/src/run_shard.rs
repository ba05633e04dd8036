//! A shard's message: claim it, work on it from its checkpoint, and commit batch by batch.

use shardcron_domain::ids::ShardKey;
use shardcron_domain::instance::{FailReason, Instance, InstanceStatus, Origin, Outcome};
use shardcron_domain::lease::Claimer;
use shardcron_domain::limits::{BATCH_PART_OF_LEASE, CLAIM_RACES_MAX};
use shardcron_domain::shard::{Claim, FaultKind, FenceReason, OwnerError, Shard, ShardStatus};
use shardcron_domain::time::Duration;
use shardcron_queue::{Outgoing, QueueName};
use shardcron_store::{AttemptLog, Guard, Item, ItemKey, Written};

use crate::apply::LoadedSpec;
use crate::batch::{Progress, Until};
use crate::command::Expect;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::held::{HeldShard, holder};
use crate::messages::ShardMessage;
use crate::outbox::HeldOutbox;
use crate::pieces::Pieces;
use crate::ports::{fresh_owner, fresh_write_id, stamp};
use crate::split::Pace;
use crate::write::Patience;
use crate::{Budget, Delivery, Engine, Handled};

/// What a claim came to.
enum Claimed {
    Ours(Box<Shard>),
    Handled(Handled),
}

impl Engine {
    /// Does what there is to do about a shard: claims it and works on it until it is done or the time is over.
    ///
    /// # Errors
    /// An error has been recorded on the shard where that was possible; the message should come again.
    pub async fn run_shard(
        &self,
        key: &ShardKey,
        delivery: Option<Delivery>,
        budget: &Budget,
    ) -> Result<Handled, EngineError> {
        let Some(instance) = self.instance(&key.run.instance).await? else { return Ok(Handled::Done) };
        if instance.status.is_terminal() || instance.generation != key.run.generation {
            return Ok(Handled::Done);
        }
        let spec = self.spec_of(&instance).await?;
        let shard = match self.claim_shard(key, &spec).await? {
            Claimed::Ours(shard) => shard,
            Claimed::Handled(handled) => return Ok(handled),
        };
        let mut held = HeldShard { shard: *shard, delivery };
        held.keep_message_near(self).await;
        // Read after the claim: a cancel, or a fan-out that was paused through one, may have come between.
        let Some(instance) = self.instance(&key.run.instance).await? else { return Ok(Handled::Done) };
        if let Some(handled) = self.let_go_unless_running(&mut held, &instance).await? {
            return Ok(handled);
        }
        self.events.emit(
            Event::of_shard(events::CLAIMED, key)
                .with("token", held.shard.token.0)
                .with("takeovers", held.shard.takeovers)
                .with("queueMs", self.clock.now().at.since(instance.planned_at).0.max(0)),
        );
        match self.work_on_shard(&mut held, &instance, &spec, budget).await {
            Ok(handled) => Ok(handled),
            // Our own clock says that our lease is over, before any write was refused: who has the shard by now?
            Err(EngineError::Owner(OwnerError::LeaseOver { .. } | OwnerError::NotOwner { .. })) => {
                let found = self.store.get(&ItemKey::Shard(key.clone())).await?;
                Err(held.lost(self, found))
            }
            Err(error) if error.is_lost() => Err(error),
            Err(error) => self.shard_failed(&mut held, &spec, error).await,
        }
    }

    async fn claim_shard(&self, key: &ShardKey, spec: &LoadedSpec) -> Result<Claimed, EngineError> {
        let Some(Item::Shard(mut shard)) = self.store.get(&ItemKey::Shard(key.clone())).await? else {
            return Ok(Claimed::Handled(Handled::Done));
        };
        for _ in 0..CLAIM_RACES_MAX {
            let claimer = Claimer {
                owner: fresh_owner(&*self.random),
                write_id: fresh_write_id(&*self.random),
                now: self.clock.now(),
                lease: self.settings.lease,
                backoff_limit: spec.spec.backoff_limit,
            };
            let (next, ours) = match shard.claim(&claimer) {
                Claim::Claimed(next) => (next, true),
                Claim::Exhausted(next) => (next, false),
                Claim::Held { until, .. } => return Ok(Claimed::Handled(Handled::Later(until))),
                Claim::NotBefore(at) => return Ok(Claimed::Handled(Handled::Later(at))),
                Claim::PastDeadline => {
                    self.tell_instances(std::iter::once(key.run.instance.clone())).await;
                    return Ok(Claimed::Handled(Handled::Done));
                }
                Claim::Closed => {
                    if shard.status == ShardStatus::Done {
                        self.repeat_done(&shard).await?;
                    }
                    return Ok(Claimed::Handled(Handled::Done));
                }
            };
            let version = shard.version;
            match self.put(Item::Shard(next.clone()), Guard::Version(version), Patience::Tries).await? {
                Written::Applied if ours => return Ok(Claimed::Ours(next)),
                Written::Applied => {
                    self.stop_for_failed_shard(&next).await?;
                    return Ok(Claimed::Handled(Handled::Done));
                }
                Written::Missing => return Ok(Claimed::Handled(Handled::Done)),
                Written::Lost(found) => match *found {
                    Item::Shard(found) => shard = found,
                    other => {
                        return Err(EngineError::Inconsistent(format!("{} stands where {key} should", other.key())));
                    }
                },
            }
        }
        Ok(Claimed::Handled(Handled::Later(self.clock.now().at.plus(Duration::from_secs(1)))))
    }

    /// After the claim: unless the instance is running this attempt, the shard is given back or fenced.
    async fn let_go_unless_running(
        &self,
        held: &mut HeldShard,
        instance: &Instance,
    ) -> Result<Option<Handled>, EngineError> {
        let stamp = stamp(&*self.clock, &*self.random);
        let current = (instance.generation, instance.attempt) == (held.shard.key.run.generation, held.shard.attempt);
        match &instance.status {
            InstanceStatus::Running if current => Ok(None),
            // Not yet, or not any more by done sets that say too much: finalize finds out, and goes back to its shards.
            InstanceStatus::Sharding | InstanceStatus::Finalizing if current => {
                let next = held.shard.release(&stamp)?;
                held.write(self, next, Vec::new()).await?;
                Ok(Some(Handled::Later(stamp.now.at.plus(Duration::from_secs(1)))))
            }
            status => {
                let why = if matches!(status, InstanceStatus::Stopping(_)) {
                    FenceReason::Stopping
                } else {
                    FenceReason::Superseded
                };
                if let Some(next) = held.shard.fence(why, held.shard.attempt, &stamp.write_id) {
                    held.write(self, next, Vec::new()).await?;
                }
                Ok(Some(Handled::Done))
            }
        }
    }

    async fn work_on_shard(
        &self,
        held: &mut HeldShard,
        instance: &Instance,
        spec: &LoadedSpec,
        budget: &Budget,
    ) -> Result<Handled, EngineError> {
        let mut outbox = HeldOutbox::of(&held.shard);
        if let Some(handled) = self.drain(held, &mut outbox, instance, spec, budget).await? {
            return Ok(handled);
        }
        let shard = held.shard.clone();
        let open = self.open_shard(&shard, instance, spec);
        let mut progress = self.keeping(held, open).await??;
        let mut pace = Pace::begin(self.clock.now().at);
        loop {
            let now = self.clock.now();
            if instance.is_past_deadline(now) {
                self.stop_past_deadline(instance).await?;
                return Ok(Handled::Done);
            }
            if budget.is_over(now) {
                return self.give_back(held, instance).await;
            }
            let until = Until {
                records: u64::from(spec.spec.shards.batch_records),
                time: now.at.plus(Duration(self.settings.lease.0 / BATCH_PART_OF_LEASE)),
                budget: budget.clone(),
                rejects_max: spec.spec.rejects.max,
            };
            let shard = held.shard.clone();
            let ready = self.keeping(held, progress.next(self, &shard, &until)).await??;
            // Done only when nothing waits in the outbox: what this batch asks to be sent goes out first.
            let (last, done) = (ready.last && ready.effects.is_empty(), ready.done);
            let (items, records) = (ready.items.len(), ready.counts.input);
            let mut stamp = stamp(&*self.clock, &*self.random);
            let snapshot = match ready.snapshot {
                None => None,
                Some(rows) => {
                    // Under this write's own id, so that no other writes there.
                    let put = self.put_snapshot(&shard, &stamp.write_id, rows);
                    Some(self.keeping(held, put).await??)
                }
            };
            stamp.now = self.clock.now();
            let next = held.shard.commit(&stamp, done, ready.counts, snapshot, last)?;
            let (next, effects) = outbox.take(next, ready.effects, spec)?;
            held.write(self, next, ready.items.into_iter().chain(effects).collect()).await?;
            progress.committed();
            self.events.emit(
                Event::of_shard(events::COMMITTED, &held.shard.key).with("records", records).with("items", items),
            );
            if let Some(handled) = self.drain(held, &mut outbox, instance, spec, budget).await? {
                return Ok(handled);
            }
            if ready.last && !last {
                self.finish_drained(held).await?;
            }
            if ready.last {
                self.events.emit(
                    Event::of_shard(events::SHARD_DONE, &held.shard.key)
                        .with("records", held.shard.counts.input)
                        .with("rejected", held.shard.counts.rejected),
                );
                self.report_done(&held.shard, spec).await?;
                return Ok(Handled::Done);
            }
            held.keep_message_near(self).await;
            self.split_if_slow(held, instance, spec, &mut progress, (&mut pace, done)).await?;
        }
    }

    /// Reads the shard's committed rows and its page of the manifest, and begins to read what isn't done of its input.
    async fn open_shard(&self, shard: &Shard, instance: &Instance, spec: &LoadedSpec) -> Result<Progress, EngineError> {
        let rows = self.settled_rows(shard).await?;
        let work = self.works.for_instance(&spec.spec, &instance.id)?;
        let input = self.input_of(shard, instance, spec, &*work).await?;
        let stage = work.stage().map(|stage| (stage, spec.spec.shards.parallel_batches as usize));
        let pieces = Pieces::new(input, stage, shard);
        Ok(Progress::new(pieces, work.open(rows)?, shard, work.emits_effects()))
    }

    /// The executor's time is over: the shard goes back, and a message goes out for whoever goes on.
    pub(crate) async fn give_back(&self, held: &mut HeldShard, instance: &Instance) -> Result<Handled, EngineError> {
        let next = held.shard.release(&stamp(&*self.clock, &*self.random))?;
        held.write(self, next, Vec::new()).await?;
        self.events.emit(Event::of_shard(events::RELEASED, &held.shard.key).with("records", held.shard.counts.input));
        self.tell_shards(instance, std::iter::once(held.shard.key.clone())).await;
        Ok(Handled::Done)
    }

    /// Records a failed attempt: a pause and another one, or the shard has failed, and its instance is stopped.
    async fn shard_failed(
        &self,
        held: &mut HeldShard,
        spec: &LoadedSpec,
        error: EngineError,
    ) -> Result<Handled, EngineError> {
        let fault = error.fault();
        let text = error.full_text();
        let stamp = stamp(&*self.clock, &*self.random);
        self.events.emit(
            Event::of_shard(events::ATTEMPT_FAILED, &held.shard.key)
                .with("error", text.clone())
                .with("retryable", fault.kind != FaultKind::Input)
                .with("failures", held.shard.failures + 1),
        );
        let owner = match &held.shard.status {
            ShardStatus::Leased(lease) => lease.owner.to_string(),
            _ => String::new(),
        };
        let log = AttemptLog {
            shard: held.shard.key.clone(),
            token: held.shard.token,
            owner,
            ended_at: stamp.now.at,
            fault: fault.clone(),
            text: bounded(text),
        };
        let next = held.shard.fail(&stamp, fault, spec.spec.backoff_limit, self.random.next())?;
        held.write(self, next, vec![Item::Attempt(log)]).await?;
        match held.shard.not_before {
            Some(at) => Ok(Handled::Later(at)),
            None => {
                self.stop_for_failed_shard(&held.shard).await?;
                Ok(Handled::Done)
            }
        }
    }

    /// A shard has failed: its instance, if it is still running, is stopped.
    pub(crate) async fn stop_for_failed_shard(&self, shard: &Shard) -> Result<(), EngineError> {
        let ShardStatus::Failed(fault) = &shard.status else { return Ok(()) };
        let reason = FailReason::Shard { shard: shard.key.shard.to_string(), fault: fault.clone() };
        let expect = Expect { generation: shard.key.run.generation, attempt: shard.attempt };
        self.stop(&shard.key.run.instance, Outcome::Failed(reason), expect).await
    }

    /// Sends a message for each of these shards. A message is a hint: one that can't be sent is only told of.
    pub(crate) async fn tell_shards(&self, instance: &Instance, keys: impl Iterator<Item = ShardKey>) {
        let messages: Vec<Outgoing> = keys
            .filter_map(|key| serde_json::to_string(&ShardMessage::about(&key)).ok())
            .map(|body| Outgoing { body, delay: Duration::ZERO })
            .collect();
        if messages.is_empty() {
            return;
        }
        let queue = match instance.origin {
            Origin::Backfill { .. } => QueueName::BackfillShards,
            Origin::Schedule | Origin::Trigger => QueueName::Shards,
        };
        if let Err(error) = self.queue.send(queue, messages).await {
            self.events.emit(Event::new(events::TROUBLE).with("error", error.to_string()));
        }
    }

    /// Who has a shard, in words: for people.
    #[must_use]
    pub fn holder_of(&self, shard: &Shard) -> String {
        holder(shard)
    }
}

/// A text up to the attempt log's bound; one that is longer says so.
fn bounded(text: String) -> String {
    let max = shardcron_domain::limits::ERROR_TEXT_MAX;
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}
