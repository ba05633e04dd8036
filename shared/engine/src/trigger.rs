//! Trigger: an instance that somebody asks for, which comes to its job's slot as a scheduled one would.

use shardcron_domain::ids::{InstanceId, JobName, SpecVersion};
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, WaitingFor, Window};
use shardcron_domain::limits::RACES_MAX;
use shardcron_domain::plan::calendar_window;
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Guard, Item, ItemOutcome, Put, Transacted, Written};

use crate::Engine;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::plan::not_of_calendar;
use crate::ports::{fresh_write_id, stamp};
use crate::slots::Admitted;
use crate::write::Patience;

impl Engine {
    /// The instance of a job at a calendar time that has come: the one that is there, or a new one. The flag tells
    /// whether it is new.
    ///
    /// # Errors
    /// As [`Engine::trigger`].
    pub async fn ensure_instance(&self, name: &JobName, at: ScheduledTime) -> Result<(Instance, bool), EngineError> {
        self.trigger(name, Some(at), None).await
    }

    /// Makes an instance at a time, now if none is given: the one that is there, or a new one, which comes to the
    /// job's slot as a scheduled one would. A time off the calendar must name its window.
    ///
    /// # Errors
    /// [`EngineError::NoJob`], [`EngineError::NotOfCalendar`], [`EngineError::Future`], [`EngineError::Window`],
    /// [`EngineError::Overlap`], [`EngineError::QueueFull`]; errors of the store.
    pub async fn trigger(
        &self,
        name: &JobName,
        at: Option<ScheduledTime>,
        window: Option<Window>,
    ) -> Result<(Instance, bool), EngineError> {
        let now = self.clock.now();
        let passed = ScheduledTime::floor(now.earliest()).map_err(inconsistent)?;
        let at = at.unwrap_or(passed);
        let id = InstanceId { job: name.clone(), at };
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            // Read anew in each round: an edit in between may have brought another policy.
            let mut job = self.live_job(name).await?;
            if job.planned_through < at && at <= passed {
                // Planned first, so that the planner doesn't answer for the time a second time, by a skip.
                self.plan_job_through(name, Some(at)).await?;
                job = self.live_job(name).await?;
            }
            let spec = self.spec(&job, job.spec).await?;
            if let Some(found) = self.instance(&id).await? {
                self.events.emit(Event::of_instance(events::DUPLICATE, &id).with("met", found.status.name()));
                return Ok((self.under_the_spec_in_force(found, job.spec).await?, false));
            }
            let window = match window {
                Some(window) if window.end <= window.start => return Err(EngineError::Window(window)),
                Some(window) => window,
                None if spec.calendar.contains(at) => calendar_window(&job, &spec.calendar, at),
                None => return Err(not_of_calendar(&job, &spec, at)),
            };
            if at > passed {
                return Err(EngineError::Future { job: name.clone(), at });
            }
            let admitted = self.admission(&job, &spec, &id).await?;
            let write_id = fresh_write_id(&*self.random);
            let mut instance = Instance::planned(id.clone(), job.spec, Origin::Trigger, window, now.at, write_id);
            instance.slot = admitted.slot.clone();
            instance.skipped = self.store.skip_at(name, at).await?.map(|skip| skip.reason);
            if admitted.waits {
                instance.status = InstanceStatus::Waiting(WaitingFor::Slot);
            }
            match self.write_admitted(&instance, Guard::Absent, admitted).await? {
                Some(Written::Applied) => {
                    self.events.emit(Event::of_instance(events::PLANNED, &id).with("trigger", true));
                    return Ok((instance, true));
                }
                Some(Written::Lost(found)) => match *found {
                    Item::Instance(found) => return Ok((*found, false)),
                    other => return Err(inconsistent(format!("{} stands where an instance should", other.key()))),
                },
                Some(Written::Missing) | None => {}
            }
        }
        Err(EngineError::Unsettled { what: id.to_string(), last: None })
    }

    /// An instance of the schedule that nobody has started yet, and that somebody asks for now, runs under the spec in
    /// force now: who edits a job's file and runs it means the edited one.
    async fn under_the_spec_in_force(&self, found: Instance, spec: SpecVersion) -> Result<Instance, EngineError> {
        let stamp = stamp(&*self.clock, &*self.random);
        let Some(next) = found.respecified(&stamp, spec) else { return Ok(found) };
        let put = self.put(next.clone().into(), Guard::Version(found.version), Patience::Races);
        match put.await? {
            Written::Applied => Ok(next),
            Written::Lost(_) | Written::Missing => Ok(self.instance(&found.id).await?.unwrap_or(found)),
        }
    }

    /// Writes an instance together with how it comes to its slot. `None` when the job or the slot changed in between:
    /// decide anew.
    pub(crate) async fn write_admitted(
        &self,
        instance: &Instance,
        guard: Guard,
        admitted: Admitted,
    ) -> Result<Option<Written>, EngineError> {
        let Admitted { puts, replaced, .. } = admitted;
        let written = if puts.is_empty() {
            self.put(instance.clone().into(), guard, Patience::Races).await?
        } else {
            let mut all = vec![Put { item: instance.clone().into(), guard }];
            all.extend(puts);
            match self.transact(all, &instance.write_id, Patience::Races).await? {
                Transacted::Applied => Written::Applied,
                Transacted::Refused(outcomes) => match outcomes.into_iter().next() {
                    Some(ItemOutcome::Lost(found)) => Written::Lost(found),
                    Some(ItemOutcome::Missing) => Written::Missing,
                    Some(ItemOutcome::Held) | None => return Ok(None),
                },
            }
        };
        if written == Written::Applied {
            let told = replaced.into_iter().chain(std::iter::once(instance.id.clone()));
            self.tell_instances(told).await;
        }
        Ok(Some(written))
    }
}
