//! The guarantees, checked on the whole store after each write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shardcron_domain::backfill::BackfillId;
use shardcron_domain::boundary::Range;
use shardcron_domain::certificate::{CERTIFICATE_NAME, Certificate};
use shardcron_domain::ids::{JobName, RunId, ShardId, ShardKey, SpecVersion};
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, WaitingFor};
use shardcron_domain::invariants::{
    g3_cover, g5_exact_effect, g7_one_at_work, g8_limits, g9_stopped_is_fenced, g11_accounts_for, g11_goes_forward,
    g11_published_is_whole,
};
use shardcron_domain::job::JobSpec;
use shardcron_domain::outbox::done_is_drained;
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::Millis;
use shardcron_store::dynamo::item_bytes;
use shardcron_store::hooked::Operation;
use shardcron_store::memory::MemoryStore;
use shardcron_store::{Item, ItemKey};

use crate::changes::{changed, changes, note_late, shard_of};
use crate::each::each_record;
use crate::objects::MemoryObjects;
use crate::watch::Watch;

/// The items of a store at one moment.
pub type Snapshot = BTreeMap<ItemKey, Item>;

/// Watches one store and its objects.
#[derive(Debug)]
pub struct Checker {
    store: Arc<MemoryStore>,
    objects: Arc<MemoryObjects>,
    state: Mutex<State>,
    watch: Mutex<Watch>,
    light: AtomicBool,
    tolerant: AtomicBool,
    exclusive: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    before: Snapshot,
    specs: BTreeMap<(JobName, SpecVersion), JobSpec>,
    /// The certificates that were seen last, by their places.
    certificates: BTreeMap<String, Certificate>,
    found: Vec<String>,
    most_ranges: usize,
    largest_shard: usize,
    /// Shards that were put or reopened when their instance was being stopped, or had ended.
    late: BTreeSet<ShardKey>,
    /// How often the objects had been changed at the last look.
    objects: u64,
}

impl Checker {
    /// Watches these.
    #[must_use]
    pub fn new(store: Arc<MemoryStore>, objects: Arc<MemoryObjects>) -> Self {
        Self {
            store,
            objects,
            state: Mutex::default(),
            watch: Mutex::default(),
            light: AtomicBool::new(false),
            tolerant: AtomicBool::new(false),
            exclusive: AtomicBool::new(false),
        }
    }

    /// The store as it is.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.store.snapshot().into_iter().map(|item| (item.key(), item)).collect()
    }

    /// What was found broken so far.
    #[must_use]
    pub fn found(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
    }

    /// Takes the store as it is for good: for items that a test writes by hand.
    pub fn accept(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).before = self.snapshot();
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).reset(self.store.snapshot().into_iter());
    }

    /// From now on only slots and backfills are watched: for stores of thousands of items, where a look at all of them
    /// after each write would take too long.
    pub fn go_light(&self) {
        self.light.store(true, Ordering::Relaxed);
    }

    /// From now on a fan-out that stood still may put or reopen shards after its instance was stopped: whoever claims one
    /// finds out. That none of them is worked on is watched in any case.
    pub fn tolerate_late_shards(&self) {
        self.tolerant.store(true, Ordering::Relaxed);
    }

    /// All instances but those of backfills are of one slot: at most one is at work at a time (G7).
    pub fn watch_exclusion(&self) {
        self.exclusive.store(true, Ordering::Relaxed);
    }

    /// The most instances that each backfill has had at work at once.
    #[must_use]
    pub fn most_active(&self) -> BTreeMap<BackfillId, usize> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).most_active.clone()
    }

    /// The most finished ranges that a shard has had beyond the first gap of its checkpoint.
    #[must_use]
    pub fn most_ranges(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).most_ranges
    }

    /// Bytes of the largest item that a shard has been.
    #[must_use]
    pub fn largest_shard(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).largest_shard
    }

    /// Checks the slots and backfills that an operation was about.
    pub fn watch(&self, what: &str, operation: &Operation, now: Millis) {
        let broken = self.watch.lock().unwrap_or_else(PoisonError::into_inner).note(&self.store, operation, now);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.found.extend(broken.into_iter().map(|text| format!("{text} (after {what})")));
    }

    /// Checks all after writes that arrived late.
    pub fn check_late(&self, now: Millis) {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).catch_up(self.store.snapshot().into_iter(), now);
        self.check("late deliveries");
    }

    /// Checks all after a write; `what` says which.
    pub fn check(&self, what: &str) {
        if self.light.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let broken = self.store.inspect(|after| self.compare(&mut state, after));
        state.found.extend(broken.into_iter().map(|text| format!("{text} (after {what})")));
    }

    /// Compares all items with what they were, and looks at whatever a change can have broken.
    fn compare(&self, state: &mut State, after: &Snapshot) -> Vec<String> {
        let mut broken = Vec::new();
        let changed = changed(&state.before, after, &mut broken);
        changes(&changed, &state.before, after, &mut broken);
        note_late(&mut state.late, &changed, &state.before, after);
        let (mut instances, mut shards) = (BTreeSet::new(), BTreeSet::new());
        for key in &changed {
            match key {
                ItemKey::Instance(id) => drop(instances.insert(id)),
                ItemKey::Shard(key) | ItemKey::Result(key, _) | ItemKey::Reject(key, _) | ItemKey::Effect(key, _) => {
                    instances.insert(&key.run.instance);
                    shards.insert(key);
                }
                _ => {}
            }
        }
        let objects = self.objects.changes();
        if std::mem::replace(&mut state.objects, objects) != objects {
            instances.extend(after.keys().filter_map(|key| match key {
                ItemKey::Instance(id) => Some(id),
                _ => None,
            }));
        }
        if self.exclusive.load(Ordering::Relaxed) && changed.iter().any(|key| matches!(key, ItemKey::Instance(_))) {
            let at_work: Vec<Instance> = after.values().filter_map(in_slot).cloned().collect();
            if !g7_one_at_work(&at_work) {
                broken.push(format!("G7: at work are {at_work:?}"));
            }
        }
        for id in instances {
            if let Some(Item::Instance(instance)) = after.get(&ItemKey::Instance(id.clone())) {
                self.instance(instance, after, state, &mut broken);
            }
        }
        for key in shards {
            if let Some(shard) = shard_of(after, key) {
                let bytes = item_bytes(&Item::Shard(Box::new(shard.clone()))).expect("a shard can be written");
                state.largest_shard = state.largest_shard.max(bytes);
                state.most_ranges = state.most_ranges.max(shard.checkpoint.ranges.len());
                self::shard(shard, after, &self.objects, &mut state.specs, &mut broken);
            }
        }
        for key in changed {
            if let Some(item) = after.get(&key) {
                state.before.insert(key, item.clone());
            }
        }
        broken
    }

    /// G3, G9, G11: what is to hold of an instance as it stands.
    fn instance(&self, instance: &Instance, items: &Snapshot, state: &mut State, broken: &mut Vec<String>) {
        let shards = shards_of(items, &instance.run());
        let may_be_open = |shard: &Shard| self.tolerant.load(Ordering::Relaxed) && state.late.contains(&shard.key);
        let watched: Vec<Shard> = shards.iter().filter(|shard| !may_be_open(shard)).cloned().collect();
        if !g9_stopped_is_fenced(instance, &watched) {
            broken.push(format!("G9: {} is {:?}, and a shard is open", instance.id, instance.status));
        }
        let Some(boundary) = &instance.boundary else { return };
        let whole = boundary.whole;
        let leaves: Vec<Range> = shards.iter().map(|shard| shard.range).collect();
        if !g3_cover(whole, &leaves) {
            broken.push(format!("G3: {} shards of {} don't tile {whole}", leaves.len(), instance.id));
        }
        let certificates = self.certificates(instance);
        if instance.status == InstanceStatus::Succeeded && certificates.len() != 1 {
            broken.push(format!("G11: {} has succeeded with {} certificates", instance.id, certificates.len()));
        }
        for (place, certificate, complete) in certificates {
            if !complete || !g11_published_is_whole(&certificate, instance, whole) {
                broken.push(format!("G11: the certificate of {} isn't whole: {certificate:?}", instance.id));
            }
            if certificate.generation == instance.generation && !g11_accounts_for(&certificate, &shards) {
                broken.push(format!("G11: the certificate of {} says other than its shards", instance.id));
            }
            let former = state.certificates.insert(place, certificate.clone());
            if former.is_some_and(|former| !g11_goes_forward(&former, &certificate)) {
                broken.push(format!("G11: {certificate:?} has taken the place of one as high"));
            }
        }
    }

    /// The certificates of an instance by their places, each with whether all its parts are there.
    fn certificates(&self, instance: &Instance) -> Vec<(String, Certificate, bool)> {
        let place = format!("{}@{}/", instance.id.job, instance.id.at);
        let found = self.objects.find(|key| key.ends_with(CERTIFICATE_NAME) && key.contains(&place));
        found
            .iter()
            .map(|(name, content)| {
                let certificate: Certificate = serde_json::from_slice(content).expect("a certificate can be read");
                let stem = name.key.trim_end_matches(CERTIFICATE_NAME);
                let complete = certificate.parts.iter().all(|part| {
                    let found = self.objects.find(|key| key.strip_prefix(stem) == Some(&part.name));
                    found.iter().any(|(_, content)| content.len() as u64 == part.bytes)
                });
                (name.to_string(), certificate, complete)
            })
            .collect()
    }
}

/// An instance that works in the slot of its job: not one that waits for it or is stopped, which can be one that waited,
/// nor one of a backfill.
fn in_slot(item: &Item) -> Option<&Instance> {
    let Item::Instance(instance) = item else { return None };
    let waits = matches!(instance.status, InstanceStatus::Waiting(WaitingFor::Slot) | InstanceStatus::Stopping(_));
    let is_backfilled = matches!(instance.origin, Origin::Backfill { .. });
    (!waits && !is_backfilled && !instance.status.is_terminal()).then_some(&**instance)
}

/// The items of a run's shards.
fn shards_of(items: &Snapshot, run: &RunId) -> Vec<Shard> {
    let first = ShardKey { run: run.clone(), shard: ShardId::numbered(0) };
    let from_there = items.range(ItemKey::Shard(first)..).map_while(|(_, item)| match item {
        Item::Shard(shard) if shard.key.run == *run => Some((**shard).clone()),
        _ => None,
    });
    from_there.collect()
}

/// G5, G8: what is to hold of a shard as it stands.
fn shard(
    shard: &Shard,
    items: &Snapshot,
    objects: &MemoryObjects,
    specs: &mut BTreeMap<(JobName, SpecVersion), JobSpec>,
    broken: &mut Vec<String>,
) {
    let (mut rows, rejects) = rows_of(&shard.key, items);
    if let Some(snapshot) = &shard.snapshot {
        rows = rows_in(objects, shard, &snapshot.name);
    }
    let (records, rejected) = (rows.iter().map(|row| row.records).sum(), rejects.len() as u64);
    if !g5_exact_effect(shard, records, rejected) {
        broken.push(format!("G5: {} counts {:?}, and has {records} and {rejected}", shard.key, shard.counts));
    }
    if !done_is_drained(shard) {
        broken.push(format!("{} is {:?} with the outbox {:?}", shard.key, shard.status, shard.outbox));
    }
    let effects = items.range(ItemKey::Effect(shard.key.clone(), 0)..);
    let is_ours = |item: &&Item| matches!(item, Item::Effect(effect) if effect.shard == shard.key);
    let effects = effects.map(|(_, item)| item).take_while(is_ours).count();
    if effects != shard.outbox.rows as usize {
        broken.push(format!("{} says {:?}, and has {effects} effects", shard.key, shard.outbox));
    }
    let Some(Item::Instance(instance)) = items.get(&ItemKey::Instance(shard.key.run.instance.clone())) else {
        broken.push(format!("{} has no instance", shard.key));
        return;
    };
    let job = &instance.id.job;
    let spec = specs.entry((job.clone(), instance.spec)).or_insert_with(|| spec_of(items, job, instance.spec));
    let limit = spec.backoff_limit;
    if !g8_limits(shard, limit) {
        broken.push(format!("G8: {} is at work after {} failures, and {limit} are allowed", shard.key, shard.failures));
    }
    broken.extend(each_record(spec, shard, &rows, &rejects));
}

/// The rows of a shard's snapshot.
fn rows_in(objects: &MemoryObjects, shard: &Shard, name: &str) -> Vec<ResultRow> {
    let ending = format!("/{}/{name}.ndjson", shard.key.shard);
    let is_it = |key: &str| key.starts_with("results/") && key.ends_with(&ending);
    let (_, content) = objects.find(is_it).pop().expect("a shard's rows are there");
    let rows = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    rows.map(|row| serde_json::from_slice(row).expect("a row can be read")).collect()
}

fn spec_of(items: &Snapshot, job: &JobName, version: SpecVersion) -> JobSpec {
    let Some(Item::Spec(record)) = items.get(&ItemKey::Spec(job.clone(), version)) else {
        panic!("spec {version} of {job} isn't there");
    };
    JobSpec::parse(&record.spec).expect("a stored spec can be read")
}

fn rows_of(shard: &ShardKey, items: &Snapshot) -> (Vec<ResultRow>, Vec<RejectRow>) {
    let results = items.range(ItemKey::Result(shard.clone(), String::new())..);
    let rows = results.map_while(|(_, item)| match item {
        Item::Result(result) if result.shard == *shard => Some(result.row.clone()),
        _ => None,
    });
    let rejects = items.range(ItemKey::Reject(shard.clone(), String::new())..);
    let rejects = rejects.map_while(|(_, item)| match item {
        Item::Reject(reject) if reject.shard == *shard => Some(reject.row.clone()),
        _ => None,
    });
    (rows.collect(), rejects.collect())
}
