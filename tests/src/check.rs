//! The guarantees, checked on the whole store after each write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shardcron_domain::backfill::BackfillId;
use shardcron_domain::boundary::Range;
use shardcron_domain::certificate::{CERTIFICATE_NAME, Certificate};
use shardcron_domain::ids::{JobName, RunId, ShardKey, SpecVersion};
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::invariants::{
    g3_cover, g4_one_owner, g5_exact_effect, g6_checkpoint, g8_limits, g9_stopped_is_fenced, g10_finished_is_final,
    g11_published_is_whole,
};
use shardcron_domain::job::JobSpec;
use shardcron_domain::result::ResultRow;
use shardcron_domain::shard::Shard;
use shardcron_domain::time::Millis;
use shardcron_store::dynamo::item_bytes;
use shardcron_store::hooked::Operation;
use shardcron_store::memory::MemoryStore;
use shardcron_store::{Item, ItemKey};

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
}

#[derive(Debug, Default)]
struct State {
    before: Snapshot,
    backoff_limits: BTreeMap<(JobName, SpecVersion), u32>,
    found: Vec<String>,
    most_ranges: usize,
    largest_shard: usize,
}

impl Checker {
    /// Watches these.
    #[must_use]
    pub fn new(store: Arc<MemoryStore>, objects: Arc<MemoryObjects>) -> Self {
        Self { store, objects, state: Mutex::default(), watch: Mutex::default(), light: AtomicBool::new(false) }
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

    /// Checks all after a write; `what` says which.
    pub fn check(&self, what: &str) {
        if self.light.load(Ordering::Relaxed) {
            return;
        }
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let after = self.snapshot();
        let mut broken = Vec::new();
        let before = &state.before;
        changes(before, &after, &mut broken);
        let ranges = after.values().filter_map(as_shard).map(|shard| shard.checkpoint.ranges.len()).max();
        let changed =
            after.iter().filter(|(key, item)| matches!(item, Item::Shard(_)) && before.get(key) != Some(item));
        let sizes = changed.map(|(_, item)| item_bytes(item).expect("a shard can be written"));
        state.largest_shard = sizes.fold(state.largest_shard, usize::max);
        state.most_ranges = state.most_ranges.max(ranges.unwrap_or_default());
        let limits = &mut state.backoff_limits;
        let by_run = by_run(&after);
        for item in after.values() {
            match item {
                Item::Instance(instance) => self.instance(instance, &by_run, &mut broken),
                Item::Shard(shard) => self::shard(shard, &after, &self.objects, limits, &mut broken),
                _ => {}
            }
        }
        state.before = after;
        state.found.extend(broken.into_iter().map(|text| format!("{text} (after {what})")));
    }

    /// G3, G9, G11: what is to hold of an instance as it stands.
    fn instance(&self, instance: &Instance, by_run: &BTreeMap<RunId, Vec<Shard>>, broken: &mut Vec<String>) {
        let shards = by_run.get(&instance.run()).map_or(&[][..], Vec::as_slice);
        if !g9_stopped_is_fenced(instance, shards) {
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
        for (certificate, complete) in certificates {
            if !complete || !g11_published_is_whole(&certificate, instance, whole) {
                broken.push(format!("G11: the certificate of {} isn't whole: {certificate:?}", instance.id));
            }
        }
    }

    /// The certificates in an instance's place, each with whether all its parts are there.
    fn certificates(&self, instance: &Instance) -> Vec<(Certificate, bool)> {
        let place = format!("{}@{}/", instance.id.job, instance.id.at);
        let objects = self.objects.snapshot();
        let is_certificate = |key: &str| key.contains(&place) && key.ends_with(CERTIFICATE_NAME);
        let found = objects.iter().filter(|(name, _)| is_certificate(&name.key));
        found
            .map(|(name, content)| {
                let certificate: Certificate = serde_json::from_slice(content).expect("a certificate can be read");
                let stem = name.key.trim_end_matches(CERTIFICATE_NAME);
                let complete = certificate.parts.iter().all(|part| {
                    let key = format!("{stem}{}", part.name);
                    objects.iter().any(|(name, content)| name.key == key && content.len() as u64 == part.bytes)
                });
                (certificate, complete)
            })
            .collect()
    }
}

fn by_run(items: &Snapshot) -> BTreeMap<RunId, Vec<Shard>> {
    let mut by_run: BTreeMap<RunId, Vec<Shard>> = BTreeMap::new();
    for item in items.values() {
        if let Item::Shard(shard) = item {
            by_run.entry(shard.key.run.clone()).or_default().push((**shard).clone());
        }
    }
    by_run
}

/// G4, G6, G10 and the rest that is about one write: what may change, and how.
fn changes(before: &Snapshot, after: &Snapshot, broken: &mut Vec<String>) {
    for (key, old) in before {
        let Some(new) = after.get(key) else {
            broken.push(format!("{key} is gone"));
            continue;
        };
        if old == new {
            continue;
        }
        match (old, new) {
            (Item::Shard(old), Item::Shard(new)) => shard_change(old, new, broken),
            (Item::Instance(old), Item::Instance(new)) => {
                if !g10_finished_is_final(old, new) {
                    broken.push(format!("G10: {} was {:?} and is {:?}", old.id, old.status, new.status));
                }
                if new.version != old.version.next() || new.token < old.token {
                    broken.push(format!("{}: version or token went wrong: {old:?} became {new:?}", old.id));
                }
            }
            (Item::Spec(_) | Item::Skip(_) | Item::Attempt(_) | Item::Reject(_), _) => {
                broken.push(format!("{key} is written once, and has changed"));
            }
            _ => {}
        }
    }
    // Rows change only together with their shard's checkpoint, in its owner's write (G4, G5).
    for (key, new) in after {
        let (ItemKey::Result(of, _) | ItemKey::Reject(of, _)) = key else { continue };
        let shard = |items: &Snapshot| items.get(&ItemKey::Shard(of.clone())).and_then(as_shard);
        if before.get(key) != Some(new) && shard(before).map(|s| s.checkpoint) == shard(after).map(|s| s.checkpoint) {
            broken.push(format!("G4: {key} was written and the checkpoint of its shard hasn't moved"));
        }
    }
}

fn as_shard(item: &Item) -> Option<Shard> {
    match item {
        Item::Shard(shard) => Some((**shard).clone()),
        _ => None,
    }
}

fn shard_change(old: &Shard, new: &Shard, broken: &mut Vec<String>) {
    if !g4_one_owner(old, new) {
        broken.push(format!("G4: {old:?} became {new:?}"));
    }
    if !g6_checkpoint(&old.checkpoint, &new.checkpoint, new.range) {
        broken.push(format!("G6: {:?} became {:?}", old.checkpoint, new.checkpoint));
    }
    if !old.status.is_open() && new.attempt == old.attempt {
        broken.push(format!("G10: {} was {:?} and is {:?}", old.key, old.status, new.status));
    }
}

/// G5, G8: what is to hold of a shard as it stands.
fn shard(
    shard: &Shard,
    items: &Snapshot,
    objects: &MemoryObjects,
    limits: &mut BTreeMap<(JobName, SpecVersion), u32>,
    broken: &mut Vec<String>,
) {
    let (mut rows, rejects) = rows_of(&shard.key, items);
    if let Some(snapshot) = &shard.snapshot {
        rows = records_in(objects, shard, &snapshot.name);
    }
    if !g5_exact_effect(shard, rows, rejects) {
        broken.push(format!("G5: {} counts {:?}, and has {rows} and {rejects}", shard.key, shard.counts));
    }
    let Some(Item::Instance(instance)) = items.get(&ItemKey::Instance(shard.key.run.instance.clone())) else {
        broken.push(format!("{} has no instance", shard.key));
        return;
    };
    let job = &instance.id.job;
    let limit = limits.entry((job.clone(), instance.spec)).or_insert_with(|| backoff_limit(items, job, instance.spec));
    if !g8_limits(shard, *limit) {
        broken.push(format!("G8: {} is at work after {} failures, and {limit} are allowed", shard.key, shard.failures));
    }
}

/// How many records the rows of a shard's snapshot say they hold.
fn records_in(objects: &MemoryObjects, shard: &Shard, name: &str) -> u64 {
    let ending = format!("/{}/{name}.ndjson", shard.key.shard);
    let is_it = |key: &str| key.starts_with("results/") && key.ends_with(&ending);
    let (_, content) =
        objects.snapshot().into_iter().find(|(object, _)| is_it(&object.key)).expect("a shard's rows are there");
    let rows = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    rows.map(|row| serde_json::from_slice::<ResultRow>(row).expect("a row can be read").records).sum()
}

fn backoff_limit(items: &Snapshot, job: &JobName, version: SpecVersion) -> u32 {
    let Some(Item::Spec(record)) = items.get(&ItemKey::Spec(job.clone(), version)) else {
        panic!("spec {version} of {job} isn't there");
    };
    JobSpec::parse(&record.spec).expect("a stored spec can be read").backoff_limit
}

fn rows_of(shard: &ShardKey, items: &Snapshot) -> (u64, u64) {
    let results = items.range(ItemKey::Result(shard.clone(), String::new())..);
    let rows = results.map_while(|(_, item)| match item {
        Item::Result(result) if result.shard == *shard => Some(result.row.records),
        _ => None,
    });
    let rejects = items.range(ItemKey::Reject(shard.clone(), String::new())..);
    let is_ours = |item: &Item| matches!(item, Item::Reject(reject) if reject.shard == *shard);
    (rows.sum(), rejects.take_while(|(_, item)| is_ours(item)).count() as u64)
}
