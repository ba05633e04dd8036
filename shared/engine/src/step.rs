//! An instance's message: claim the step that is due and do it.

use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, InstanceStatus, Step, StepClaim};
use shardcron_domain::lease::Claimer;
use shardcron_domain::time::Duration;
use shardcron_store::{Guard, Item, Written};

use crate::apply::LoadedSpec;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::held::HeldStep;
use crate::ports::{fresh_owner, fresh_write_id, stamp};
use crate::write::Patience;
use crate::{Engine, Handled};

impl Engine {
    /// Does what there is to do about an instance: fan-out, finalize, publish, or the end of one that is stopping.
    ///
    /// # Errors
    /// An error has been recorded on the instance where that was possible; the message should come again.
    pub async fn advance(&self, id: &InstanceId) -> Result<Handled, EngineError> {
        loop {
            let Some(instance) = self.instance(id).await? else { return Ok(Handled::Done) };
            if let InstanceStatus::Stopping(_) = instance.status {
                return self.finish_stopping(instance).await;
            }
            if instance.status.is_terminal() {
                return Ok(Handled::Done);
            }
            let spec = self.spec_of(&instance).await?;
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
                Err(error) if error.is_lost() => return Err(error),
                Err(error) => return self.step_failed(&mut held, &spec, error).await,
            }
        }
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
            self.events
                .emit(Event::of_instance(events::STOPPING, &instance.id).with("outcome", format!("{outcome:?}")));
        }
    }
}
