//! Backfill: each step of it is one transaction on its version, with the instances that it begins.

use shardcron_domain::backfill::{Backfill, BackfillError, BackfillId, BackfillRequest, BackfillStatus, Only, Order};
use shardcron_domain::digest;
use shardcron_domain::ids::{InstanceId, JobName};
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, SkipReason, Window};
use shardcron_domain::limits::{BACKFILL_LOOK_MAX, BACKFILL_PREVIEW_MAX, RACES_MAX};
use shardcron_domain::plan::Job;
use shardcron_domain::time::{Duration, ScheduledTime};
use shardcron_store::{Guard, Item, ItemKey, Put, Transacted, Written};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::history::History;
use crate::ports::{fresh_write_id, stamp};
use crate::write::Patience;

/// How soon the sweep looks at a backfill again: at its next tick.
const NEXT_TICK: Duration = Duration::from_secs(1);

/// Hex digits of an id that a request gives its backfill: 64 bits, so that no two requests of one job meet in one.
const ID_DIGITS: usize = 16;

/// What a backfill would do, without doing it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillPreview {
    /// Times of the range.
    pub expected: u64,
    /// Instances that would be begun or retried.
    pub would_begin: u64,
    /// Of these, times that were skipped.
    pub were_skipped: u64,
    /// Times whose instance is there already.
    pub already_there: u64,
    /// Times left out by `only`.
    pub left_out: u64,
}

/// What becomes of one time of the range.
enum Fate {
    /// A new instance.
    Begin(Box<Instance>),
    /// Another attempt of the one that is there.
    Retry(Box<Instance>, Box<Instance>),
    /// The one that is there is left alone.
    There,
    /// It wasn't asked for. With why it was skipped, if it was.
    LeftOut(Option<SkipReason>),
}

impl From<BackfillError> for EngineError {
    fn from(error: BackfillError) -> Self {
        Self::Backfill(error)
    }
}

impl Engine {
    /// Asks for a backfill, under an id that its request gives it: so the same request, made twice at once or while one
    /// of it is unfinished, is one backfill. Once that has ended, the request begins another. Times that are still to
    /// come are cut off.
    ///
    /// # Errors
    /// [`EngineError::NoJob`], [`EngineError::Backfill`]; errors of the store.
    pub async fn backfill(&self, name: &JobName, request: BackfillRequest) -> Result<Backfill, EngineError> {
        self.backfill_as(name, None, request).await
    }

    /// The same, under an id of the caller's: it is the same backfill for ever, also once it has ended.
    ///
    /// # Errors
    /// As [`Engine::backfill`]; [`EngineError::BackfillIdTaken`] where the id is another request's.
    pub async fn backfill_as(
        &self,
        name: &JobName,
        id: Option<BackfillId>,
        asked: BackfillRequest,
    ) -> Result<Backfill, EngineError> {
        asked.check()?;
        if let Some(id) = &id
            && let Some(Item::Backfill(found)) = self.store.get(&ItemKey::Backfill(name.clone(), id.clone())).await?
        {
            return same(*found, &asked);
        }
        // Planned first, so that the planner doesn't answer for a time of the range a second time, by a skip.
        self.plan_job_through(name, Some(asked.to)).await?;
        let job = self.live_job(name).await?;
        let request = self.cut_off(asked.clone(), job.next_fire)?;
        let id = match id {
            Some(id) => id,
            None => {
                let known = self.store.backfills(name).await?;
                let unfinished = |backfill: &&Backfill| !backfill.is_over() && backfill.request == request;
                if let Some(same) = known.iter().find(unfinished) {
                    return Ok(same.clone());
                }
                let ended = |id: &BackfillId| known.iter().any(|backfill| backfill.id == *id && backfill.is_over());
                let mut again = 0_u64;
                loop {
                    let id = id_of(&asked, again)?;
                    if !ended(&id) {
                        break id;
                    }
                    again += 1;
                }
            }
        };
        let backfill =
            Backfill::new(name.clone(), id.clone(), request, self.clock.now().at, fresh_write_id(&*self.random));
        match self.put(backfill.into(), Guard::Absent, Patience::Tries).await? {
            Written::Lost(found) => match *found {
                Item::Backfill(found) => return same(*found, &asked),
                other => return Err(inconsistent(format!("{} stands where a backfill should", other.key()))),
            },
            Written::Applied | Written::Missing => {}
        }
        self.advance_backfill(name, &id).await?;
        self.find_backfill(name, &id).await
    }

    /// The part of a request that has passed, up to but without `unplanned`, if that has.
    fn cut_off(
        &self,
        request: BackfillRequest,
        unplanned: Option<ScheduledTime>,
    ) -> Result<BackfillRequest, EngineError> {
        request.check()?;
        let now = ScheduledTime::floor(self.clock.now().earliest()).map_err(inconsistent)?;
        let behind = ScheduledTime::from_second(now.as_second() + 1).map_err(inconsistent)?;
        let to = request.to.min(behind).min(unplanned.unwrap_or(behind));
        let request = BackfillRequest { to, ..request };
        request.check()?;
        Ok(request)
    }

    /// Reads a backfill.
    ///
    /// # Errors
    /// [`EngineError::NoBackfill`]; errors of the store.
    pub async fn find_backfill(&self, name: &JobName, id: &BackfillId) -> Result<Backfill, EngineError> {
        match self.store.get(&ItemKey::Backfill(name.clone(), id.clone())).await? {
            Some(Item::Backfill(backfill)) => Ok(*backfill),
            _ => Err(EngineError::NoBackfill { job: name.clone(), id: id.to_string() }),
        }
    }

    /// Pauses, resumes or cancels a backfill. What it began goes on.
    ///
    /// # Errors
    /// [`EngineError::NoBackfill`], [`EngineError::BackfillOver`]; errors of the store.
    pub async fn set_backfill(
        &self,
        name: &JobName,
        id: &BackfillId,
        status: BackfillStatus,
    ) -> Result<Backfill, EngineError> {
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            let backfill = self.find_backfill(name, id).await?;
            if backfill.status == status {
                return Ok(backfill);
            }
            if backfill.is_over() || backfill.status == BackfillStatus::Cancelled {
                return Err(EngineError::BackfillOver { id: id.to_string(), status: format!("{:?}", backfill.status) });
            }
            let now = self.clock.now().at;
            let mut next = backfill.changed(now, &fresh_write_id(&*self.random));
            next.status = status;
            next.settle(now, NEXT_TICK);
            let put = self.put(next.into(), Guard::Version(backfill.version), Patience::Tries);
            if put.await? == Written::Applied {
                self.advance_backfill(name, id).await?;
                return self.find_backfill(name, id).await;
            }
        }
        Err(EngineError::Unsettled { what: format!("backfill {id}"), last: None })
    }

    /// What a backfill would do now. Nothing is written, and nobody is told.
    ///
    /// # Errors
    /// As [`Engine::backfill`].
    pub async fn preview_backfill(
        &self,
        name: &JobName,
        request: BackfillRequest,
    ) -> Result<BackfillPreview, EngineError> {
        let request = self.cut_off(request, None)?;
        let job = self.live_job(name).await?;
        let (spec, history) = (self.spec(&job, job.spec).await?, self.history(&job).await?);
        let probe: BackfillId = "preview".parse().map_err(inconsistent)?;
        let write_id = fresh_write_id(&*self.random);
        let backfill = Backfill::new(name.clone(), probe, request, self.clock.now().at, write_id);
        let mut preview = BackfillPreview::default();
        let mut cursor = None;
        while let Some(at) = next_time(&backfill, &history, cursor) {
            cursor = Some(at);
            preview.expected += 1;
            if preview.expected > BACKFILL_PREVIEW_MAX {
                return Err(EngineError::TooLong { what: format!("the range has over {BACKFILL_PREVIEW_MAX} times") });
            }
            let id = InstanceId { job: name.clone(), at };
            let found = match self.instance(&id).await? {
                // As it will be once its end is announced: by the backfill, not by a look at what that would do.
                Some(ended) if ended.is_unannounced() => Some(ended.announced(&fresh_write_id(&*self.random))?),
                found => found,
            };
            match self.fate(&backfill, &job, &spec, &history, at, found).await? {
                Fate::Begin(instance) => {
                    preview.would_begin += 1;
                    preview.were_skipped += u64::from(instance.skipped.is_some());
                }
                Fate::Retry(..) => preview.would_begin += 1,
                Fate::There => preview.already_there += 1,
                Fate::LeftOut(_) => preview.left_out += 1,
            }
        }
        Ok(preview)
    }

    /// Goes on with a backfill for as long as its limits let it.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn advance_backfill(&self, name: &JobName, id: &BackfillId) -> Result<(), EngineError> {
        let Some(job) = self.job(name).await? else { return Ok(()) };
        let (spec, history) = (self.newest_spec(&job).await?, self.history(&job).await?);
        loop {
            let backfill = self.find_backfill(name, id).await?;
            if backfill.is_over() || !self.backfill_step(&backfill, &job, &spec, &history).await? {
                return Ok(());
            }
        }
    }

    /// The spec in force; of a deleted job, the last one that was.
    async fn newest_spec(&self, job: &Job) -> Result<LoadedSpec, EngineError> {
        match job.deleted_at {
            None => self.spec(job, job.spec).await,
            Some(_) => self.spec(job, shardcron_domain::ids::SpecVersion(job.spec.0.saturating_sub(1))).await,
        }
    }

    /// One step: notes what has ended, begins what there is room for. Whether there may be more to do at once.
    async fn backfill_step(
        &self,
        backfill: &Backfill,
        job: &Job,
        spec: &LoadedSpec,
        history: &History,
    ) -> Result<bool, EngineError> {
        let now = self.clock.now().at;
        let write_id = fresh_write_id(&*self.random);
        let mut next = backfill.changed(now, &write_id);
        for at in &backfill.active {
            let id = InstanceId { job: job.name.clone(), at: *at };
            match self.instance(&id).await? {
                Some(instance) if !instance.status.is_terminal() => {}
                Some(instance) if instance.status == InstanceStatus::Succeeded => {
                    next.end(*at, Some(instance.counts.unwrap_or_default()));
                }
                _ => next.end(*at, None),
            }
        }
        let mut room = next.room(now);
        let mut puts = Vec::new();
        let mut started = Vec::new();
        let mut looked = 0;
        while room > 0 && looked < BACKFILL_LOOK_MAX && !next.exhausted {
            let Some(at) = next_time(&next, history, next.cursor) else {
                next.exhausted = true;
                break;
            };
            looked += 1;
            next.cursor = Some(at);
            next.account.expected += 1;
            let found = self.announced(&InstanceId { job: job.name.clone(), at }, backfill.request.only).await?;
            let (put, skipped) = match self.fate(backfill, job, spec, history, at, found).await? {
                Fate::There => {
                    next.account.already_there += 1;
                    continue;
                }
                Fate::LeftOut(skipped) => {
                    next.account.left_out += 1;
                    next.account.note_skipped(skipped);
                    continue;
                }
                Fate::Begin(instance) => {
                    let skipped = instance.skipped;
                    (Put { item: (*instance).into(), guard: Guard::Absent }, skipped)
                }
                Fate::Retry(before, after) => {
                    (Put { item: (*after).into(), guard: Guard::Version(before.version) }, None)
                }
            };
            puts.push(put);
            started.push(InstanceId { job: job.name.clone(), at });
            next.begin(at, now, skipped);
            room -= 1;
        }
        next.settle(now, NEXT_TICK);
        let is_over = next.is_over();
        let mut all = vec![Put { item: next.into(), guard: Guard::Version(backfill.version) }];
        all.extend(puts);
        match self.transact(all, &write_id, Patience::Tries).await? {
            Transacted::Applied => {
                for id in &started {
                    self.events.emit(Event::of_instance(events::PLANNED, id).with("backfill", backfill.id.as_str()));
                }
                self.tell_instances(started.into_iter()).await;
                Ok(!is_over && looked == BACKFILL_LOOK_MAX)
            }
            // Somebody else took the step, or an instance came in between: look again.
            Transacted::Refused(_) => Ok(true),
        }
    }

    /// Reads the instance of a time, if there is one; its end is announced first where it may be retried: with another
    /// attempt, what remembers the end of the last one is gone.
    async fn announced(&self, id: &InstanceId, only: Only) -> Result<Option<Instance>, EngineError> {
        match self.instance(id).await? {
            Some(ended) if ended.is_unannounced() && only != Only::Missing => {
                self.announce_end(&ended).await?;
                self.instance(id).await
            }
            found => Ok(found),
        }
    }

    /// Decides what becomes of a time whose instance, if there is one, is `found`. Only reads.
    async fn fate(
        &self,
        backfill: &Backfill,
        job: &Job,
        spec: &LoadedSpec,
        history: &History,
        at: ScheduledTime,
        found: Option<Instance>,
    ) -> Result<Fate, EngineError> {
        let id = InstanceId { job: job.name.clone(), at };
        let only = backfill.request.only;
        let stamp = stamp(&*self.clock, &*self.random);
        if let Some(found) = found {
            let failed = matches!(found.status, InstanceStatus::Failed(_) | InstanceStatus::Cancelled { .. });
            if !failed || only == Only::Missing {
                return Ok(Fate::There);
            }
            let mut next = found.retried(&stamp, None, false)?;
            next.origin = Origin::Backfill { id: backfill.id.clone() };
            return Ok(Fate::Retry(Box::new(found), Box::new(next)));
        }
        let skipped = self.store.skip_at(&job.name, at).await?.map(|skip| skip.reason);
        if only == Only::Failed {
            return Ok(Fate::LeftOut(skipped));
        }
        let window = Window { start: history.before(at, true).unwrap_or(job.start.min(at)), end: at };
        let origin = Origin::Backfill { id: backfill.id.clone() };
        let mut instance = Instance::planned(id, spec.version, origin, window, stamp.now.at, stamp.write_id);
        instance.skipped = skipped;
        Ok(Fate::Begin(Box::new(instance)))
    }
}

/// The id that a request gives its backfill; `again` counts the ended ones of the same request.
fn id_of(asked: &BackfillRequest, again: u64) -> Result<BackfillId, EngineError> {
    let text = serde_json::to_string(&(asked, again)).map_err(inconsistent)?;
    format!("b{}", &digest::of(text)[..ID_DIGITS]).parse().map_err(inconsistent)
}

/// What is there under an id, if it is what is asked for.
fn same(found: Backfill, asked: &BackfillRequest) -> Result<Backfill, EngineError> {
    if found.is_of(asked) {
        Ok(found)
    } else {
        Err(EngineError::BackfillIdTaken { job: found.job, id: found.id.to_string() })
    }
}

/// The time that a backfill comes to after `cursor`, in its order.
fn next_time(backfill: &Backfill, history: &History, cursor: Option<ScheduledTime>) -> Option<ScheduledTime> {
    let request = &backfill.request;
    match request.order {
        Order::Oldest => {
            let after = cursor.or_else(|| ScheduledTime::from_second(request.from.as_second() - 1).ok())?;
            history.after(after, true).filter(|at| *at < request.to)
        }
        Order::Newest => history.before(cursor.unwrap_or(request.to), true).filter(|at| *at >= request.from),
    }
}
