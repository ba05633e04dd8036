//! What the tests of the planner share: jobs, moments of virtual time, and whether each time has exactly one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, Origin, Outcome, SkipReason};
use shardcron_domain::job::JobSpec;
use shardcron_domain::plan::SkippedRange;
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Item, ItemKey};
use shardcron_tests::fixture::{Fixture, job_name};
use shardcron_tests::gate::{FreezeAtRequest, Script};
use shardcron_tests::life::State;
use shardcron_tests::planning::answers;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::World;

/// One shard of one object of two records: the cheapest instance that does something.
pub(crate) fn tiny() -> Fixture {
    Fixture::new(1, 1, 2)
}

/// A world with the cheapest input.
pub(crate) fn world() -> World {
    World::with(&tiny(), 1)
}

/// A job `settle` with this schedule, over the cheapest input.
pub(crate) fn job(schedule: &str, change: impl FnOnce(&mut Value)) -> String {
    tiny().job_with(|job| {
        job["schedule"] = schedule.into();
        change(job);
    })
}

/// The same, with a policy.
pub(crate) fn with_policy(schedule: &str, policy: &str) -> String {
    job(schedule, |job| job["concurrencyPolicy"] = policy.into())
}

pub(crate) fn at(text: &str) -> ScheduledTime {
    text.parse().unwrap()
}

/// `settle`'s instance of a time.
pub(crate) fn id(text: &str) -> InstanceId {
    InstanceId { job: job_name("settle"), at: at(text) }
}

pub(crate) async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

pub(crate) async fn minutes(count: u64) {
    seconds(60 * count).await;
}

/// Sleeps until a moment of the world's time.
pub(crate) async fn until(world: &World, moment: &str) {
    let left = at(moment).millis().since(world.time.now());
    assert!(left.0 >= 0, "{moment} has passed");
    tokio::time::sleep(left.to_std()).await;
}

/// A process that has been started, with work that takes so long.
pub(crate) fn worker(world: &World, name: &str, work: Duration) -> Process {
    with_deeds(world, name, Arc::new(move |_| if work.is_zero() { Deed::Count } else { Deed::Take(work) }))
}

pub(crate) fn with_deeds(world: &World, name: &str, deeds: Deeds) -> Process {
    let seed = name.bytes().map(u64::from).sum();
    let mut process = world.process(name, Character { deeds, seed, shard_workers: 8, ..Character::default() });
    process.start(None);
    process
}

/// A process whose engine is called by hand.
pub(crate) fn by_hand(world: &World, name: &str) -> Process {
    let seed = name.bytes().map(u64::from).sum();
    world.process(name, Character { seed, ..Character::default() })
}

pub(crate) fn instance(world: &World, id: &InstanceId) -> Instance {
    match shardcron_tests::watch::item(&world.store, &ItemKey::Instance(id.clone())) {
        Some(Item::Instance(instance)) => *instance,
        _ => world.fail(&format!("{id} isn't there")),
    }
}

/// The name of an instance's state; `-` where there is none.
pub(crate) fn state(world: &World, id: &InstanceId) -> &'static str {
    match shardcron_tests::watch::item(&world.store, &ItemKey::Instance(id.clone())) {
        Some(Item::Instance(instance)) => instance.status.name(),
        _ => "-",
    }
}

/// Waits until an instance is in this state.
pub(crate) async fn until_state(world: &World, id: &InstanceId, wanted: &str, within: u64) {
    for _ in 0..within * 5 {
        if state(world, id) == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    world.fail(&format!("{id} is {} and not {wanted} after {within} s", state(world, id)));
}

/// How an instance ended.
pub(crate) fn outcome(world: &World, id: &InstanceId) -> Option<Outcome> {
    instance(world, id).status.outcome()
}

/// Each time's answer: an instance, or a skip; and windows.
pub(crate) struct Account {
    pub(crate) instances: Vec<Instance>,
    pub(crate) skips: Vec<SkippedRange>,
    /// All times that the calendar said, as far as planning has come.
    pub(crate) expected: Vec<ScheduledTime>,
}

impl Account {
    pub(crate) fn skipped(&self, reason: SkipReason) -> u64 {
        self.skips.iter().filter(|skip| skip.reason == reason).map(|skip| skip.count).sum()
    }

    pub(crate) fn by_state(&self) -> BTreeMap<&'static str, usize> {
        let mut states = BTreeMap::new();
        for instance in &self.instances {
            *states.entry(instance.status.name()).or_default() += 1;
        }
        states
    }

    pub(crate) fn times(&self) -> Vec<ScheduledTime> {
        self.instances.iter().map(|instance| instance.id.at).collect()
    }
}

/// The times that the stored specs of a job say, each from when it counted to when the next did, computed here from
/// the calendar alone; and that each of them has exactly one answer: an instance of the planner or of a command, or one
/// skip, or a skip and an instance that says for which reason its time was skipped at first.
pub(crate) fn answered_once(world: &World, name: &str) -> Account {
    world.assert_sound();
    let name = job_name(name);
    let Some(Item::Job(stored)) = shardcron_tests::watch::item(&world.store, &ItemKey::Job(name.clone())) else {
        world.fail("the job isn't there")
    };
    let mut specs = Vec::new();
    for item in world.store.snapshot() {
        match item {
            Item::Spec(record) if record.job == name => specs.push(record),
            _ => {}
        }
    }
    specs.sort_by_key(|record| record.version);
    let mut expected = Vec::new();
    for (place, record) in specs.iter().enumerate().filter(|(_, record)| !record.spec.is_empty()) {
        let through = specs.get(place + 1).map_or(stored.planned_through, |next| next.since);
        let calendar = JobSpec::parse(&record.spec).unwrap().calendar(&ZoneRules::bundled(), stored.start).unwrap();
        let mut time = record.since;
        while let Some(next) = calendar.after(time).filter(|next| *next <= through) {
            expected.push((next, record.version));
            time = next;
        }
    }
    let found = answers(world, &name);
    let by_time: BTreeMap<ScheduledTime, &Instance> =
        found.instances.iter().map(|instance| (instance.id.at, instance)).collect();
    for (time, version) in &expected {
        let skips: Vec<_> = found.skips.iter().filter(|skip| skip.from <= *time && *time <= skip.to).collect();
        let instance = by_time.get(time);
        let right = match (skips.as_slice(), instance) {
            ([skip], None) => skip.spec == *version,
            ([], Some(instance)) => instance.skipped.is_none(),
            ([skip], Some(instance)) => instance.skipped == Some(skip.reason) && instance.origin != Origin::Schedule,
            _ => false,
        };
        if !right {
            world.fail(&format!("{time} has the answers {skips:?} and {instance:?}"));
        }
    }
    let total: u64 = found.skips.iter().map(|skip| skip.count).sum();
    let in_skips =
        expected.iter().filter(|(time, _)| found.skips.iter().any(|skip| skip.from <= *time && *time <= skip.to));
    assert_eq!(total, in_skips.count() as u64, "skips count what they cover: {:?}", found.skips);
    let said: BTreeSet<_> = expected.iter().copied().collect();
    for instance in found.instances.iter().filter(|instance| instance.origin == Origin::Schedule) {
        if !said.contains(&(instance.id.at, instance.spec)) {
            world.fail(&format!("{} under spec {} isn't of the calendar", instance.id, instance.spec));
        }
    }
    let expected = expected.into_iter().map(|(time, _)| time).collect();
    Account { instances: found.instances, skips: found.skips, expected }
}

/// Windows tile time: each begins where the calendar time before it was, which the window before it ends with.
pub(crate) fn assert_windows_tile(account: &Account) {
    let by_time: BTreeMap<_, _> = account.instances.iter().map(|instance| (instance.id.at, instance)).collect();
    for pair in account.expected.windows(2) {
        if let Some(instance) = by_time.get(&pair[1]) {
            assert_eq!((instance.window.start, instance.window.end), (pair[0], pair[1]), "{}", instance.id);
        }
    }
}

/// Runs `run` in a process of its own that stops at its request of this number, whichever that is, while `meanwhile`
/// happens; then it goes on. Whether it came that far.
pub(crate) async fn stopped_at(
    world: &World,
    number: usize,
    run: impl AsyncFnOnce(&Process),
    meanwhile: impl AsyncFnOnce(),
) -> bool {
    let script = Box::new(FreezeAtRequest::new(number));
    let process = world.process("stopped", Character { script, seed: 5, ..Character::default() });
    let go_on = async {
        seconds(2).await;
        let stopped = process.life.state() == State::Frozen;
        if stopped {
            meanwhile().await;
            process.life.thaw();
        }
        stopped
    };
    tokio::join!(run(&process), go_on).1
}

/// A process with a script, started, that plans and sweeps each five seconds: cheaper where many worlds are made.
pub(crate) fn calm(world: &World, name: &str, script: Box<dyn Script>) -> Process {
    let tick = Some(Duration::from_secs(5));
    let seed = name.bytes().map(u64::from).sum();
    let mut process = world.process(name, Character { script, seed, tick, ..Character::default() });
    process.start(None);
    process
}

/// All of the job's instances have ended.
pub(crate) async fn until_all_ended(world: &World, name: &str, within: u64) {
    let name = job_name(name);
    for _ in 0..within {
        let open: Vec<_> =
            answers(world, &name).instances.into_iter().filter(|instance| !instance.status.is_terminal()).collect();
        if open.is_empty() {
            return;
        }
        seconds(1).await;
    }
    let slots: Vec<_> = world.store.snapshot().into_iter().filter(|item| matches!(item, Item::Slot(_))).collect();
    let open = answers(world, &name).instances.into_iter().filter(|instance| !instance.status.is_terminal());
    let open: Vec<_> = open.map(|instance| (instance.id, instance.status, instance.next_look)).collect();
    world.fail(&format!("{open:#?} haven't ended after {within} s\n{slots:#?}"));
}
