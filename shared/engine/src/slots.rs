//! Slots: how instances come to them, and how they are passed on.

use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, WaitingFor};
use shardcron_domain::job::ConcurrencyPolicy;
use shardcron_domain::limits::SETTLE_PAUSE;
use shardcron_domain::overlap::unslotted_at;
use shardcron_domain::plan::{Admission, Job, Overlap, admit};
use shardcron_domain::slot::{Slot, SlotKey};
use shardcron_store::{Guard, Item, ItemKey, ItemOutcome, Put, Transacted, Written};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::plan::slot_put;
use crate::ports::{fresh_write_id, stamp};
use crate::write::Patience;

/// How an instance comes to its job's slot, and what is to be written for it beside the instance itself.
pub(crate) struct Admitted {
    /// The slot, if the job has one.
    pub(crate) slot: Option<SlotKey>,
    /// Whether the instance waits for it.
    pub(crate) waits: bool,
    /// The writes.
    pub(crate) puts: Vec<Put>,
    /// Instances that are stopped by them.
    pub(crate) replaced: Vec<InstanceId>,
}

impl Engine {
    /// Decides how an instance that somebody asks for comes to its job's slot.
    ///
    /// The job is written too, on condition of the version that this was decided from: so nobody comes to run by a
    /// policy that an edit has ended meanwhile, and one that comes into force here does so for the planner as well. The
    /// slot that an edit leaves is written as it is, so that nobody comes to it meanwhile.
    ///
    /// # Errors
    /// [`EngineError::Overlap`] when the policy doesn't let it, [`EngineError::QueueFull`].
    pub(crate) async fn admission(
        &self,
        job: &Job,
        spec: &LoadedSpec,
        id: &InstanceId,
    ) -> Result<Admitted, EngineError> {
        let (overlap, former) = self.overlap_in_force(job, spec).await?;
        let slot = self.slot_of(&overlap).await?;
        let write_id = fresh_write_id(&*self.random);
        let next = Job {
            overlap: overlap.clone(),
            unslotted_at: unslotted_at(job.unslotted_at, &overlap, true, self.clock.now()),
            version: job.version.next(),
            write_id: write_id.clone(),
            ..job.clone()
        };
        let mut puts = vec![Put { item: next.into(), guard: Guard::Version(job.version) }];
        puts.extend(former.iter().map(|former| slot_put(&former.changed(&write_id), Some(former))));
        let Some(slot) = slot else {
            return Ok(Admitted { slot: None, waits: false, puts, replaced: Vec::new() });
        };
        let (next, waits, replaced) = match admit(&slot, overlap.policy, id, &write_id) {
            Admission::Holds(next) => (next, false, Vec::new()),
            Admission::Waits(next) => (next, true, Vec::new()),
            Admission::Replaces(next, replaced) => (next, true, replaced),
            Admission::Refused => {
                let holder = slot.holder.map_or_else(String::new, |holder| holder.to_string());
                return Err(EngineError::Overlap { instance: id.clone(), holder });
            }
            Admission::Full => return Err(EngineError::QueueFull { instance: id.clone() }),
        };
        puts.push(slot_put(&next, Some(&slot)));
        puts.extend(self.replacing_puts(&replaced, id).await?);
        Ok(Admitted { slot: overlap.slot, waits, puts, replaced })
    }

    /// Writes an instance's end, and passes its slot on in the same transaction: the first that waits for it becomes
    /// its holder, and can start.
    pub(crate) async fn write_end(&self, before: &Instance, next: Instance) -> Result<Written, EngineError> {
        let mut next = match self.announcer {
            Some(_) => next.to_be_announced(self.clock.now().at.plus(self.settings.resend_after)),
            None => next,
        };
        let written = loop {
            let end = Put { item: next.clone().into(), guard: Guard::Version(before.version) };
            let passed = match &next.slot {
                None => None,
                Some(key) => self.passed_on(key, &next.id).await?,
            };
            let Some((puts, holder)) = passed else {
                break self.put(end.item, end.guard, Patience::Tries).await?;
            };
            let mut all = vec![end];
            all.extend(puts);
            match self.transact(all, &next.write_id, Patience::Tries).await? {
                Transacted::Applied => {
                    self.tell_instances(holder.into_iter()).await;
                    break Written::Applied;
                }
                Transacted::Refused(outcomes) => match outcomes.into_iter().next() {
                    // The slot, or who waits for it, changed in between: with another slot it is another request.
                    Some(ItemOutcome::Held) | None => next.write_id = fresh_write_id(&*self.random),
                    Some(ItemOutcome::Lost(found)) => return Ok(Written::Lost(found)),
                    Some(ItemOutcome::Missing) => return Ok(Written::Missing),
                },
            }
        };
        if written == Written::Applied {
            // A shortcut, as the next one is: the sweep would come to it too.
            if let Err(error) = self.announce_end(&next).await {
                self.events.emit(Event::of_instance(events::TROUBLE, &next.id).with("error", error.full_text()));
            }
        }
        if let (Written::Applied, Origin::Backfill { id }) = (&written, &next.origin) {
            // A shortcut: its place is used at once. The sweep would come to it too.
            if let Err(error) = self.advance_backfill(&next.id.job, id).await {
                self.events.emit(Event::new(events::TROUBLE).with("error", error.full_text()));
            }
        }
        Ok(written)
    }

    /// What passing a slot on from `id` writes, and who holds it then; `None` when it isn't `id`'s to pass on.
    async fn passed_on(
        &self,
        key: &SlotKey,
        id: &InstanceId,
    ) -> Result<Option<(Vec<Put>, Option<InstanceId>)>, EngineError> {
        let Some(Item::Slot(slot)) = self.store.get(&ItemKey::Slot(key.clone())).await? else { return Ok(None) };
        self.pass_on(&slot, id).await
    }

    async fn pass_on(
        &self,
        slot: &Slot,
        id: &InstanceId,
    ) -> Result<Option<(Vec<Put>, Option<InstanceId>)>, EngineError> {
        let write_id = fresh_write_id(&*self.random);
        let Some((mut next, mut holder)) = slot.without(id, &write_id) else { return Ok(None) };
        // Whoever waits in the slot and not by its own item any more is passed over.
        while let Some(candidate) = &holder {
            let instance = self.instance(candidate).await?;
            let stamp = stamp(&*self.clock, &*self.random);
            match instance.as_ref().map(|instance| (instance, instance.come(WaitingFor::Slot, &stamp))) {
                Some((before, Ok(planned))) => {
                    next.version = slot.version.next();
                    let started = Put { item: planned.into(), guard: Guard::Version(before.version) };
                    return Ok(Some((vec![slot_put(&next, Some(slot)), started], holder)));
                }
                _ => {
                    let (after, then) = next.without(&candidate.clone(), &write_id).unwrap_or((next.clone(), None));
                    (next, holder) = (after, then);
                }
            }
        }
        next.version = slot.version.next();
        Ok(Some((vec![slot_put(&next, Some(slot))], None)))
    }

    /// Frees a slot whose holder is gone, or has ended without passing it on: somebody took its item away by hand.
    pub(crate) async fn mend_slot(&self, slot: Slot) -> Result<Slot, EngineError> {
        let mut slot = slot;
        while let Some(holder) = slot.holder.clone() {
            if !self.is_gone(&holder).await? {
                return Ok(slot);
            }
            // The items of a transaction become visible one by one: one that is only coming isn't gone.
            self.clock.sleep(SETTLE_PAUSE).await;
            if !self.is_gone(&holder).await? {
                return Ok(slot);
            }
            let Some((puts, started)) = self.pass_on(&slot, &holder).await? else { return Ok(slot) };
            let token = fresh_write_id(&*self.random);
            if self.transact(puts, &token, Patience::Tries).await? == Transacted::Applied {
                let event = Event::of_instance(events::HOLDER_GONE, &holder).with("slot", slot.key.to_string());
                self.events.emit(event);
                self.tell_instances(started.into_iter()).await;
            }
            let Some(Item::Slot(found)) = self.store.get(&ItemKey::Slot(slot.key.clone())).await? else {
                return Ok(slot);
            };
            slot = found;
        }
        Ok(slot)
    }

    async fn is_gone(&self, id: &InstanceId) -> Result<bool, EngineError> {
        Ok(self.instance(id).await?.is_none_or(|instance| instance.status.is_terminal()))
    }

    /// For the sweep: sees to it that one that waits for its slot isn't forgotten there, and that whoever holds it is
    /// there.
    pub(crate) async fn look_at_waiting(&self, instance: &Instance) -> Result<(), EngineError> {
        let (InstanceStatus::Waiting(WaitingFor::Slot), Some(key)) = (&instance.status, &instance.slot) else {
            return Ok(());
        };
        let overlap = Overlap { policy: ConcurrencyPolicy::Queue, slot: Some(key.clone()) };
        let Some(slot) = self.slot_of(&overlap).await? else { return Ok(()) };
        let id = &instance.id;
        if slot.holder.as_ref() == Some(id) || slot.waiting.contains(id) {
            return Ok(());
        }
        // It was passed over before its item could be seen, or the slot's item was taken away by hand: it comes to the
        // slot anew.
        let stamp = stamp(&*self.clock, &*self.random);
        let mut next = slot.changed(&stamp.write_id);
        let mut puts = Vec::new();
        let holds = next.holder.is_none();
        if holds {
            next.holder = Some(id.clone());
            let planned = instance.come(WaitingFor::Slot, &stamp)?;
            puts.push(Put { item: planned.into(), guard: Guard::Version(instance.version) });
        } else {
            next.waiting.push(id.clone());
            // On condition that it still waits: it may have ended since it was read.
            let looked = instance.looked(&stamp, self.settings.resend_after, instance.seen_done, true, None);
            puts.push(Put { item: looked.into(), guard: Guard::Version(instance.version) });
        }
        puts.insert(0, slot_put(&next, Some(&slot)));
        if self.transact(puts, &stamp.write_id, Patience::Tries).await? == Transacted::Applied && holds {
            self.tell_instances(std::iter::once(id.clone())).await;
        }
        Ok(())
    }
}
