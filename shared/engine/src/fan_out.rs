//! Fan-out: fix the boundary, once, and write its shards.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use shardcron_domain::ids::{GroupNo, JobName, RunId, ShardId, ShardKey, Version};
use shardcron_domain::instance::{Boundary, FailReason, Instance, Outcome};
use shardcron_domain::job::{IfEmpty, InputSource, LastKey};
use shardcron_domain::limits::{FAN_OUT_WRITES_AT_ONCE, PAST_RUNS_LOOKED_AT_MAX};
use shardcron_domain::location::Location;
use shardcron_domain::shard::Shard;
use shardcron_domain::split::{PastRun, shard_size};
use shardcron_domain::template::{Template, TemplateTimes};
use shardcron_input::{
    Cut, InputFormat, Manifest, ManifestHead, ManifestPage, ShardPlan, cut_items, cut_keys, cut_objects, cuts_of,
    list_objects,
};
use shardcron_objects::{ObjectMeta, Put, read_whole};
use shardcron_store::{Guard, Item, Written};
use shardcron_work::every_key;

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::held::HeldStep;
use crate::place::{in_state, is_published_by, manifest_stem};
use crate::ports::{fresh_write_id, stamp};
use crate::write::Patience;
use shardcron_domain::group::Group;

impl Engine {
    /// A location with the times of an instance in it.
    pub(crate) fn located(
        &self,
        template: &str,
        instance: &Instance,
        spec: &LoadedSpec,
    ) -> Result<Location, EngineError> {
        let template = Template::parse(template).map_err(inconsistent)?;
        let text = template.render(&TemplateTimes {
            window_start: instance.window.start,
            window_end: instance.window.end,
            time: instance.id.at,
            zone: spec.zone().time_zone(),
        });
        Location::parse(&text, &spec.base).map_err(inconsistent)
    }

    pub(crate) async fn fan_out(&self, held: &mut HeldStep, spec: &LoadedSpec) -> Result<(), EngineError> {
        let instance = held.instance.clone();
        let fixed = self.keeping(held, self.fix_boundary(&instance, spec)).await??;
        let Some((manifest, digest)) = fixed else {
            let place = self.input_in_words(&instance, spec)?;
            let outcome = Outcome::Failed(FailReason::EmptyInput { place });
            let next = held.instance.stop(outcome, &stamp(&*self.clock, &*self.random))?;
            held.write(self, next).await?;
            self.emit_stopping(&held.instance);
            return Ok(());
        };
        // Fixed at the first claim, so the same for every attempt at this step.
        let started = held.instance.clone();
        for (no, page) in manifest.pages.iter().enumerate() {
            let write = self.write_group(&started, GroupNo(no as u32), &page.key, &page.digest);
            self.keeping(held, write).await??;
        }
        let (objects, bytes) = manifest.boundary.size();
        let boundary = Boundary {
            manifest: manifest_key(&instance.run()),
            digest,
            shards: manifest.shards,
            whole: manifest.boundary.range(),
            objects,
            bytes,
        };
        let next = held.instance.sharded(&stamp(&*self.clock, &*self.random), boundary, self.settings.resend_after)?;
        held.write(self, next).await?;
        self.events.emit(
            Event::of_instance(events::FANNED_OUT, &instance.id)
                .with("shards", manifest.shards)
                .with("objects", objects)
                .with("bytes", bytes),
        );
        let first = manifest.shards.min(spec.spec.parallelism);
        let run = instance.run();
        self.tell_shards(
            &held.instance,
            (0..first).map(|number| ShardKey { run: run.clone(), shard: ShardId::numbered(number) }),
        )
        .await;
        Ok(())
    }

    /// The manifest: the one that is there, or one made of a listing, whichever is put first. `None` when the listing
    /// is empty and the job doesn't allow that; then nothing is put, so that a retry lists again.
    async fn fix_boundary(
        &self,
        instance: &Instance,
        spec: &LoadedSpec,
    ) -> Result<Option<(Manifest, String)>, EngineError> {
        let run = instance.run();
        let found = self.read_manifest(&run).await?;
        if let Some(boundary) = &instance.boundary
            && found.as_ref().is_none_or(|(_, digest)| *digest != boundary.digest)
        {
            // An earlier attempt's shards are cut by it: another one would put old results under a new boundary.
            return Err(EngineError::ManifestLost { instance: instance.id.clone() });
        }
        if let Some(found) = found {
            return Ok(Some(found));
        }
        let cut = self.cut_input(instance, spec).await?;
        if cut.plans.is_empty() && spec.spec.if_empty == IfEmpty::Fail {
            return Ok(None);
        }
        let head = ManifestHead { job: run.instance.job.clone(), at: run.instance.at, generation: run.generation };
        let stem = manifest_stem(&run);
        let page_key = |number: u32, digest: &str| format!("{stem}/page-{number:05}-{}.json", &digest[..16]);
        let built = Manifest::build(head, cut, page_key)?;
        for page in built.pages {
            // Named by their content: one that is there is the same.
            self.objects.put_if_absent(&in_state(&self.settings.state, &page.key), page.bytes.into()).await?;
        }
        let name = in_state(&self.settings.state, &manifest_key(&run));
        let content = Bytes::from(built.manifest.encode()?);
        let digest = Manifest::digest(&content);
        match self.objects.put_if_absent(&name, content).await? {
            Put::Written(_) => Ok(Some((built.manifest, digest))),
            Put::Refused => {
                let first = self.read_manifest(&run).await?;
                first.map(Some).ok_or_else(|| inconsistent(format!("{name} came and went")))
            }
        }
    }

    /// Looks at the input and cuts it: what there is now is the boundary, if it is put first.
    async fn cut_input(&self, instance: &Instance, spec: &LoadedSpec) -> Result<Cut, EngineError> {
        let shards = &spec.spec.shards;
        let past = self.past_run(instance).await?;
        match &spec.spec.input.source {
            InputSource::Objects { objects, format } => {
                let place = self.located(objects, instance, spec)?;
                let format = InputFormat::new(*format);
                let listed = list_objects(&*self.objects, &place).await?;
                refuse_own_output(&place, &spec.output()?, &listed, &instance.id.job)?;
                let target = shard_size(shards.target_bytes, past);
                let cuts =
                    listed.into_iter().map(|object| cuts_of(&*self.objects, &place.root, object, &format, target));
                let cuttable = stream::iter(cuts).buffered(FAN_OUT_WRITES_AT_ONCE).try_collect().await?;
                Ok(cut_objects(place.root.clone(), cuttable, target))
            }
            InputSource::Keys { keys } => {
                let last = match keys.through {
                    LastKey::Key(key) => Some(key),
                    LastKey::MaxId => {
                        self.works.for_job(&spec.spec)?.keys().unwrap_or_else(every_key).max_key().await?
                    }
                };
                let end = last.map_or(keys.from, |last| last.saturating_add(1));
                Ok(cut_keys(keys.from, end, shard_size(shards.target_keys(), past)))
            }
            InputSource::List { list } => {
                let items = list.items(instance.window, spec.zone().time_zone()).map_err(EngineError::Days)?;
                Ok(cut_items(&items, shard_size(shards.target_items(), past)))
            }
        }
    }

    /// What the last run of the job that has succeeded says about its pace. Each window begins at the scheduled time before
    /// it, so that a few reads lead back through those that failed or still run. Only the first to put the manifest counts, so
    /// that what a later attempt would learn changes nothing.
    async fn past_run(&self, instance: &Instance) -> Result<Option<PastRun>, EngineError> {
        let mut id = instance.id.clone();
        let mut before = instance.window.start;
        for _ in 0..PAST_RUNS_LOOKED_AT_MAX {
            if before >= id.at {
                break;
            }
            id.at = before;
            let Some(earlier) = self.instance(&id).await? else { break };
            if let Some(past) = earlier.past_run() {
                return Ok(Some(past));
            }
            before = earlier.window.start;
        }
        Ok(None)
    }

    /// What an instance reads, for people.
    fn input_in_words(&self, instance: &Instance, spec: &LoadedSpec) -> Result<String, EngineError> {
        match &spec.spec.input.source {
            InputSource::Objects { objects, .. } => Ok(self.located(objects, instance, spec)?.to_string()),
            InputSource::Keys { keys } => Ok(format!("the range of keys from {}", keys.from)),
            InputSource::List { .. } => {
                Ok(format!("the list of days from {} to {}", instance.window.start, instance.window.end))
            }
        }
    }

    pub(crate) async fn read_manifest(&self, run: &RunId) -> Result<Option<(Manifest, String)>, EngineError> {
        let name = in_state(&self.settings.state, &manifest_key(run));
        let Some((content, _)) = read_whole(&*self.objects, &name).await? else { return Ok(None) };
        Ok(Some((Manifest::decode(&content)?, Manifest::digest(&content))))
    }

    pub(crate) async fn read_page(&self, key: &str, digest: &str) -> Result<ManifestPage, EngineError> {
        let name = in_state(&self.settings.state, key);
        let Some((content, _)) = read_whole(&*self.objects, &name).await? else {
            return Err(EngineError::Inconsistent(format!("{name} is missing: it is a page of the manifest")));
        };
        Ok(ManifestPage::decode_verified(&content, digest)?)
    }

    /// Writes a group and its shards; those that are there stay, but for ones that an earlier attempt left open or
    /// failed: these are opened anew.
    async fn write_group(&self, instance: &Instance, no: GroupNo, page: &str, digest: &str) -> Result<(), EngineError> {
        let content = self.read_page(page, digest).await?;
        let group = Group {
            run: instance.run(),
            no,
            size: content.shards.len() as u32,
            done: std::collections::BTreeSet::new(),
            page: page.to_owned(),
            page_digest: digest.to_owned(),
            version: Version::FIRST,
            write_id: fresh_write_id(&*self.random),
        };
        self.put(Item::Group(group), Guard::Absent, Patience::Tries).await?;
        stream::iter(content.shards)
            .map(|plan| self.write_shard(instance, plan))
            .buffer_unordered(FAN_OUT_WRITES_AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        if instance.attempt > shardcron_domain::ids::Attempt::FIRST {
            // Children of splits aren't in the manifest.
            for shard in self.group_shards(&instance.run(), no).await? {
                self.reopen(instance, shard).await?;
            }
        }
        Ok(())
    }

    async fn write_shard(&self, instance: &Instance, plan: ShardPlan) -> Result<(), EngineError> {
        let key = ShardKey { run: instance.run(), shard: plan.id };
        let write_id = fresh_write_id(&*self.random);
        let shard = Shard::new(key, plan.range, instance.attempt, instance.deadline, write_id);
        self.put(Item::Shard(Box::new(shard)), Guard::Absent, Patience::Tries).await?;
        Ok(())
    }

    async fn reopen(&self, instance: &Instance, mut shard: Shard) -> Result<(), EngineError> {
        while let Some(next) = shard.reopen(instance.attempt, instance.deadline, &fresh_write_id(&*self.random)) {
            let put = self.put(Item::Shard(Box::new(next)), Guard::Version(shard.version), Patience::Tries);
            match put.await? {
                Written::Lost(found) => match *found {
                    Item::Shard(found) => shard = *found,
                    _ => return Ok(()),
                },
                Written::Applied | Written::Missing => return Ok(()),
            }
        }
        Ok(())
    }
}

pub(crate) fn manifest_key(run: &RunId) -> String {
    format!("{}/manifest.json", manifest_stem(run))
}

/// Refuses an input that the job's own output is in: by its place's name, which may lie in the input at some times only,
/// or, where a link or an earlier `output.objects` leads there, by what it has published.
fn refuse_own_output(
    input: &Location,
    output: &Location,
    listed: &[ObjectMeta],
    job: &JobName,
) -> Result<(), EngineError> {
    if input.holds(output) {
        return Err(EngineError::OwnOutput { place: output.to_string() });
    }
    let published = listed.iter().find(|object| {
        let below = object.key.strip_prefix(&input.prefix).unwrap_or(&object.key);
        is_published_by(job, below.trim_start_matches('/'))
    });
    match published {
        Some(object) => Err(EngineError::OwnOutput { place: input.root.join(&object.key) }),
        None => Ok(()),
    }
}
