//! A tick: bounded work, regular times first.
//!
//! Each due job gets one planning step, those that are the least behind first. Then the sweep looks at what is
//! unfinished. Then the jobs that are further behind go on, one step each in turn, within [`TICK_STEPS_MAX`] and
//! [`TICK_TIME_MAX`]. What is left stays in the due index, for the next tick. So no job's catching up keeps another's
//! time, or the sweep, waiting for longer than the steps that everybody gets.

use std::collections::VecDeque;

use serde_json::Value;
use shardcron_domain::ids::JobName;
use shardcron_domain::limits::{MISSED_LOOK_BACK, TICK_DUE_MAX, TICK_JOBS_MAX, TICK_STEPS_MAX, TICK_TIME_MAX};
use shardcron_domain::tick::taken_on;
use shardcron_domain::time::{Millis, ScheduledTime};

use crate::Engine;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::plan::{Planned, Stepped};
use crate::sweep::Sweep;

/// What a tick came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// What was planned.
    pub planned: Planned,
    /// Unfinished instances looked at.
    pub looked: usize,
}

/// Where the planning of a tick stands after the first steps.
struct Begun {
    now: ScheduledTime,
    /// From then on no step is begun.
    until: Millis,
    /// The jobs that have had their first step.
    due: Vec<JobName>,
    /// Jobs with more to plan, in the order of their next steps.
    behind: VecDeque<JobName>,
    total: Planned,
}

impl Engine {
    /// One tick: the first planning step of each due job, the sweep, then further steps. Work that is left is told of
    /// by [`Planned::more`]. What is wrong with one job or instance is told of and keeps no other waiting.
    ///
    /// # Errors
    /// Errors of the store on reading the due index (after the sweep) or the open one.
    pub async fn tick(&self, which: Sweep) -> Result<Ticked, EngineError> {
        let begun = self.plan_first_steps().await;
        let looked = self.sweep(which).await?;
        let planned = self.plan_further_steps(begun?).await;
        Ok(Ticked { planned, looked })
    }

    /// The planning of a tick, without the sweep.
    ///
    /// # Errors
    /// Errors of the store on reading the due index.
    pub async fn plan_due(&self) -> Result<Planned, EngineError> {
        let begun = self.plan_first_steps().await?;
        Ok(self.plan_further_steps(begun).await)
    }

    async fn plan_first_steps(&self) -> Result<Begun, EngineError> {
        let reading = self.clock.now();
        let now = ScheduledTime::floor(reading.earliest()).map_err(inconsistent)?;
        let found = self.store.due_jobs(now, TICK_DUE_MAX).await?;
        let total = Planned { more: found.len() > TICK_JOBS_MAX, ..Planned::default() };
        let due = taken_on(found, TICK_JOBS_MAX);
        let mut begun = Begun { now, until: reading.at.plus(TICK_TIME_MAX), due, behind: VecDeque::new(), total };
        for place in 0..begun.due.len() {
            if self.clock.now().at >= begun.until {
                begun.total.more = true;
                begun.due.truncate(place);
                break;
            }
            let name = begun.due[place].clone();
            self.step_of_tick(name, &mut begun).await;
        }
        Ok(begun)
    }

    async fn plan_further_steps(&self, mut begun: Begun) -> Planned {
        for _ in 0..TICK_STEPS_MAX {
            if self.clock.now().at >= begun.until {
                break;
            }
            let Some(name) = begun.behind.pop_front() else { break };
            self.step_of_tick(name, &mut begun).await;
        }
        begun.total.more |= !begun.behind.is_empty();
        begun.total.missed = self.look_for_missed(&begun).await;
        begun.total
    }

    /// One planning step of a job, which stands behind the others afterwards if there is more of it.
    async fn step_of_tick(&self, name: JobName, begun: &mut Begun) {
        let has_more = match self.plan_step_of(&name, None, None).await {
            Ok(Stepped::Applied { more, planned }) => {
                begun.total.add(planned);
                more
            }
            Ok(Stepped::UpToDate) => false,
            Ok(Stepped::Raced) => true,
            Err(error) => {
                self.tell_trouble_with(&name, &error);
                false
            }
        };
        if has_more {
            begun.behind.push_back(name);
        }
    }

    /// Tells of what went wrong with a job.
    pub(crate) fn tell_trouble_with(&self, job: &JobName, error: &EngineError) {
        self.events.emit(Event::new(events::TROUBLE).with("job", job.as_str()).with("error", error.full_text()));
    }

    /// Audits the recent past of one of the due jobs, by chance, so that a tick's cost stays what is due and every job
    /// comes round. Tells of what it finds at each tick: 0 is a figure too, also where nothing was due.
    async fn look_for_missed(&self, begun: &Begun) -> u64 {
        let due = &begun.due;
        let mut told = Event::new(events::MISSED);
        let mut missing = Vec::new();
        if !due.is_empty() {
            let name = &due[(self.random.next() % due.len() as u64) as usize];
            match self.missed_of(name, begun).await {
                Ok(found) => missing = found,
                Err(error) => {
                    // Nothing is known, which isn't 0.
                    self.tell_trouble_with(name, &error);
                    return 0;
                }
            }
            told = told.with("job", name.as_str());
        }
        let first = missing.first().map_or(Value::Null, |first| first.to_string().into());
        self.events.emit(told.with("missed", missing.len()).with("first", first));
        missing.len() as u64
    }

    /// The times of a job's recent past that nothing answers for. Where the next tick goes on with it, those that it
    /// hasn't come to yet aren't missed.
    async fn missed_of(&self, name: &JobName, begun: &Begun) -> Result<Vec<ScheduledTime>, EngineError> {
        let now = begun.now;
        let Some(job) = self.job(name).await? else { return Ok(Vec::new()) };
        let from = ScheduledTime::from_second(now.as_second() - MISSED_LOOK_BACK.0 / 1000).map_err(inconsistent)?;
        let mut missing = self.audit_of(&job, from, now).await?.missing;
        if begun.behind.contains(name) {
            missing.retain(|at| *at <= job.planned_through);
        }
        Ok(missing)
    }
}
