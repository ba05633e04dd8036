//! An instance's message: claim the step that is due and do it.

use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{FailReason, Instance, InstanceStatus, Outcome, Step, StepClaim, WaitingFor};
use shardcron_domain::lease::Claimer;
use shardcron_domain::time::{Duration, Millis};
use shardcron_objects::ObjectName;
use shardcron_store::{Guard, Item, Written};

use crate::apply::LoadedSpec;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::held::HeldStep;
use crate::ports::{fresh_owner, fresh_write_id, stamp};
use crate::write::Patience;
use crate::{Engine, Handled};

/// What a look at an instance's marker comes to, unless fan-out can go on.
enum Ready {
    /// Its state has changed: look at it anew.
    Again,
    /// The marker isn't there yet.
    Later(Millis),
}

impl Engine {
    /// Does what there is to do about an instance: fan-out, finalize, publish, or the end of one that is stopping.
    ///
    /// # Errors
    /// An error has been recorded on the instance where that was possible; the message should come again.
    pub async fn advance(&self, id: &InstanceId) -> Result<Handled, EngineError> {
        let mut is_first_look = true;
        loop {
            let Some(instance) = self.instance(id).await? else { return Ok(Handled::Done) };
            if let InstanceStatus::Stopping(_) = instance.status {
                return self.finish_stopping(instance).await;
            }
            if instance.status.is_terminal() {
                if is_first_look {
                    self.events.emit(Event::of_instance(events::DUPLICATE, id).with("met", "an end"));
                }
                return Ok(Handled::Done);
            }
            is_first_look = false;
            if self.stop_past_deadline(&instance).await? {
                continue;
            }
            let spec = self.spec_of(&instance).await?;
            if let Some(handled) = self.wait_until_ready(&instance, &spec).await? {
                match handled {
                    Ready::Again => continue,
                    Ready::Later(at) => return Ok(Handled::Later(at)),
                }
            }
            let claimer = Claimer {
                owner: fresh_owner(&*self.random),
                write_id: fresh_write_id(&*self.random),
                now: self.clock.now(),
                lease: self.settings.lease,
                backoff_limit: spec.spec.backoff_limit,
            };
            let active = spec.spec.active_deadline_seconds.map(|seconds| Duration::from_secs(i64::from(seconds)));
            let (step, next) = match instance.claim(&claimer, active) {
                StepClaim::Claimed(step, next) => (Some(step), next),
                StepClaim::Stopped(next) => (None, next),
                StepClaim::Held { until } => return Ok(Handled::Later(until)),
                StepClaim::NotBefore(at) => return Ok(Handled::Later(at)),
                StepClaim::Nothing => return Ok(Handled::Done),
            };
            let guard = Guard::Version(instance.version);
            match self.put(Item::Instance(next.clone()), guard, Patience::Tries).await? {
                Written::Applied => {}
                Written::Lost(_) => continue,
                Written::Missing => return Ok(Handled::Done),
            }
            let Some(step) = step else {
                self.emit_stopping(&next);
                continue;
            };
            let mut held = HeldStep { instance: *next };
            match self.do_step(step, &mut held, &spec).await {
                // The next step, if one is due already, is done in the same go.
                Ok(()) if held.instance.status.is_terminal() => return Ok(Handled::Done),
                Ok(()) => {}
                Err(error) if error.is_lost() => {
                    // A fan-out that stood still while its instance was stopped may have put shards since.
                    if step == Step::FanOut {
                        self.fence_leftovers(&held.instance).await?;
                    }
                    return Err(error);
                }
                Err(error) => return self.step_failed(&mut held, &spec, error).await,
            }
        }
    }

    /// Before fan-out, for a job with `input.ready`: whether its marker is there. `None` when there is nothing to wait
    /// for (any more).
    async fn wait_until_ready(&self, instance: &Instance, spec: &LoadedSpec) -> Result<Option<Ready>, EngineError> {
        let waits = match instance.status {
            InstanceStatus::Planned => false,
            InstanceStatus::Waiting(WaitingFor::Ready) => true,
            // A retry of one that failed or was cancelled before its input was there.
            InstanceStatus::Sharding if instance.boundary.is_none() && instance.lease.is_none() => false,
            _ => return Ok(None),
        };
        let Some(ready) = &spec.spec.input.ready else { return Ok(None) };
        let marker = self.located(&ready.object, instance, spec)?;
        let object = ObjectName { root: marker.root.clone(), key: marker.prefix.clone() };
        let stamp = stamp(&*self.clock, &*self.random);
        let is_there = self.objects.head(&object).await?.is_some();
        let next = if is_there && !waits {
            return Ok(None);
        } else if is_there {
            instance.come(WaitingFor::Ready, &stamp)?
        } else {
            // A backfill or a trigger may be about a time long past: it waits from when it was planned.
            let since = instance.id.at.millis().max(instance.planned_at);
            let end = since.plus(Duration::from_secs(i64::from(ready.within_seconds)));
            if stamp.now.at < end {
                let again = self.settings.ready_poll;
                if instance.status != InstanceStatus::Sharding {
                    let next = instance.wait_for_input(&stamp, again)?;
                    self.put(next.into(), Guard::Version(instance.version), Patience::Tries).await?;
                }
                return Ok(Some(Ready::Later(stamp.now.at.plus(again))));
            }
            let outcome = Outcome::Failed(FailReason::NotReady { object: object.to_string() });
            let next = instance.stop(outcome, &stamp)?;
            self.emit_stopping(&next);
            next
        };
        self.put(next.into(), Guard::Version(instance.version), Patience::Tries).await?;
        Ok(Some(Ready::Again))
    }

    async fn do_step(&self, step: Step, held: &mut HeldStep, spec: &LoadedSpec) -> Result<(), EngineError> {
        match step {
            Step::FanOut => self.fan_out(held, spec).await,
            Step::Finalize => self.finalize(held, spec).await,
            Step::Publish => self.publish(held, spec).await,
        }
    }

    async fn step_failed(
        &self,
        held: &mut HeldStep,
        spec: &LoadedSpec,
        error: EngineError,
    ) -> Result<Handled, EngineError> {
        self.events.emit(
            Event::of_instance(events::STEP_FAILED, &held.instance.id)
                .with("step", held.instance.status.name())
                .with("error", error.full_text()),
        );
        let stamp = stamp(&*self.clock, &*self.random);
        let next = held.instance.step_failed(&stamp, error.fault(), spec.spec.backoff_limit, self.random.next())?;
        held.write(self, next).await?;
        match held.instance.not_before {
            Some(at) => Ok(Handled::Later(at)),
            None => {
                self.emit_stopping(&held.instance);
                self.finish_stopping(held.instance.clone()).await
            }
        }
    }

    pub(crate) fn emit_stopping(&self, instance: &Instance) {
        if let InstanceStatus::Stopping(outcome) = &instance.status {
            self.events.emit(Event::of_instance(events::STOPPING, &instance.id).with("outcome", outcome.describe()));
        }
    }
}
