//! What people and programs ask: where things stand, and what was published.

use serde::Serialize;
use shardcron_domain::certificate::{CERTIFICATE_NAME, Certificate, EffectCounts, Part};
use shardcron_domain::digest;
use shardcron_domain::group::has_all_children;
use shardcron_domain::ids::{GroupNo, JobName, RunId};
use shardcron_domain::instance::Instance;
use shardcron_domain::limits::{SETTLE_PAUSE, SETTLE_READS_MAX};
use shardcron_domain::outbox::{EffectState, OutboxRow};
use shardcron_domain::plan::{Job, Suspension};
use shardcron_domain::shard::{Counts, Shard, ShardStatus};
use shardcron_domain::time::ScheduledTime;
use shardcron_objects::read_whole;
use shardcron_store::{Item, ItemKey};

use crate::Engine;
use crate::error::EngineError;
use crate::place::in_output;

/// A job's suspension, as documents show it: the table's names aren't theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspended {
    /// Times after this one are skipped.
    pub since: ScheduledTime,
    /// Why, in the words of whoever did it.
    pub note: Option<String>,
    /// Whether the job's file says so, rather than a command.
    pub by_spec: bool,
}

impl From<Suspension> for Suspended {
    fn from(suspension: Suspension) -> Self {
        Self { since: suspension.since, note: suspension.note, by_spec: suspension.by_spec }
    }
}

/// How far a running instance has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Shards in all.
    pub shards: u64,
    /// Those that are done.
    pub done: u64,
    /// Those that somebody works on.
    pub leased: u64,
    /// Takeovers so far.
    pub takeovers: u64,
    /// Of the committed records.
    pub counts: Counts,
    /// Effects that are settled.
    pub effects: EffectCounts,
    /// Effects that wait in outboxes, also one that its target has refused and that a retry sends again.
    pub effects_waiting: u64,
}

impl Progress {
    fn of(shards: &[Shard]) -> Self {
        let mut progress = Self::default();
        for shard in shards {
            progress.shards += 1;
            progress.takeovers += u64::from(shard.takeovers);
            progress.counts = progress.counts.plus(shard.counts);
            progress.effects = progress.effects.plus(shard.outbox.into());
            progress.effects_waiting += u64::from(shard.outbox.rows.saturating_sub(shard.outbox.settled));
            match shard.status {
                ShardStatus::Done => progress.done += 1,
                ShardStatus::Leased(_) => progress.leased += 1,
                _ => {}
            }
        }
        progress
    }
}

impl Engine {
    /// All jobs, by name.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn all_jobs(&self) -> Result<Vec<Job>, EngineError> {
        let mut jobs = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.jobs(after).await?;
            jobs.extend(page.items);
            after = page.next;
            if after.is_none() {
                jobs.sort_by(|a, b| a.name.cmp(&b.name));
                return Ok(jobs);
            }
        }
    }

    /// The instances of a job at times in `[from, to)`, in order.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn instances_between(
        &self,
        job: &JobName,
        from: ScheduledTime,
        to: ScheduledTime,
    ) -> Result<Vec<Instance>, EngineError> {
        let mut instances = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.instances(job, from, to, after).await?;
            instances.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(instances);
            }
        }
    }

    /// All shards of an instance, by id.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn shards_of(&self, instance: &Instance) -> Result<Vec<Shard>, EngineError> {
        let mut shards = Vec::new();
        for no in 0..self.groups_of(instance).await? {
            shards.extend(self.group_shards(&instance.run(), GroupNo(no)).await?);
        }
        Ok(shards)
    }

    /// The shards of a group, each with the children that it says it has.
    pub(crate) async fn group_shards(&self, run: &RunId, no: GroupNo) -> Result<Vec<Shard>, EngineError> {
        for _ in 0..SETTLE_READS_MAX {
            let shards = self.store.shards(run, no).await?;
            if has_all_children(&shards) {
                return Ok(shards);
            }
            self.clock.sleep(SETTLE_PAUSE).await;
        }
        Err(EngineError::Unseen(format!("a shard that was cut from another of {run} isn't there")))
    }

    /// How far an instance has come.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn progress(&self, instance: &Instance) -> Result<Progress, EngineError> {
        Ok(Progress::of(&self.shards_of(instance).await?))
    }

    /// As [`Engine::progress`], with what targets have refused told from what waits: an effect whose refusal has stopped
    /// its shard counts as refused. Reads one row more for each shard that has something in its outbox.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn progress_in_full(&self, instance: &Instance) -> Result<Progress, EngineError> {
        let shards = self.shards_of(instance).await?;
        let mut progress = Progress::of(&shards);
        for shard in shards.iter().filter(|shard| !shard.outbox.is_drained()) {
            // They go out in order, so that nothing behind the first one that waits has been refused.
            let first = self.store.get(&ItemKey::Effect(shard.key.clone(), shard.outbox.settled)).await?;
            if matches!(first, Some(Item::Effect(first)) if matches!(first.row.state, EffectState::Refused { .. })) {
                progress.effects.refused += 1;
                progress.effects_waiting -= 1;
            }
        }
        Ok(progress)
    }

    /// Hands over each effect of an instance's present generation, by shard and in the order in which they go out.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn each_effect(
        &self,
        instance: &Instance,
        mut take: impl FnMut(&Shard, OutboxRow),
    ) -> Result<(), EngineError> {
        for shard in self.shards_of(instance).await?.iter().filter(|shard| !shard.outbox.is_empty()) {
            let mut after = None;
            loop {
                let page = self.store.effects(&shard.key, 0, after).await?;
                page.items.into_iter().for_each(|row| take(shard, row));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The certificate of what is published of an instance; `None` while nothing is.
    ///
    /// # Errors
    /// Errors of the objects; a certificate that can't be read.
    pub async fn certificate(&self, instance: &Instance) -> Result<Option<Certificate>, EngineError> {
        let name = in_output(&self.spec_of(instance).await?.output()?, &instance.run(), CERTIFICATE_NAME);
        let Some((content, _)) = read_whole(&*self.objects, &name).await? else { return Ok(None) };
        let certificate: Certificate = serde_json::from_slice(&content)
            .map_err(|error| EngineError::Inconsistent(format!("{name} isn't a certificate: {error}")))?;
        if certificate.instance.0 != instance.id {
            let other = &certificate.instance.0;
            return Err(EngineError::Inconsistent(format!(
                "{name} is the certificate of {other}, not of {}",
                instance.id
            )));
        }
        Ok(Some(certificate))
    }

    /// The content of the published parts, in the order of the certificate, each checked against its digest.
    ///
    /// # Errors
    /// Errors of the objects; a part that isn't what the certificate says.
    pub async fn parts(&self, instance: &Instance, certificate: &Certificate) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut parts = Vec::new();
        for part in &certificate.parts {
            parts.push(self.part(instance, part).await?);
        }
        Ok(parts)
    }

    /// The content of one published part, checked against its digest: about
    /// [`PART_BYTES_MAX`](shardcron_domain::limits::PART_BYTES_MAX), whatever the output's size.
    ///
    /// # Errors
    /// As [`Engine::parts`].
    pub async fn part(&self, instance: &Instance, part: &Part) -> Result<Vec<u8>, EngineError> {
        let name = in_output(&self.spec_of(instance).await?.output()?, &instance.run(), &part.name);
        let Some((content, _)) = read_whole(&*self.objects, &name).await? else {
            return Err(EngineError::Inconsistent(format!("{name} is missing, and the certificate names it")));
        };
        if digest::of(&content) != part.sha256 {
            return Err(EngineError::Inconsistent(format!(
                "{name} isn't what the certificate says: its digest differs"
            )));
        }
        Ok(content)
    }

    /// Where an instance's output stands, for people.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn output_place(&self, instance: &Instance) -> Result<String, EngineError> {
        Ok(in_output(&self.spec_of(instance).await?.output()?, &instance.run(), "").to_string())
    }
}
