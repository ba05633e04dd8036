//! What outlives processes: the store, the objects, the queues and time.

use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::location::{Location, Root};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::Duration;
use shardcron_engine::{Engine, Ports, Settings};
use shardcron_store::holds::Holds;
use shardcron_store::hooked::Hooked;
use shardcron_store::memory::MemoryStore;
use shardcron_store::{Item, ItemKey};
use tokio::task::JoinSet;

use crate::bus::{Bus, GatedBus};
use crate::check::Checker;
use crate::fixture::{BASE, Fixture, input, instance_id};
use crate::gate::{Gate, GateHook};
use crate::life::{Life, State};
use crate::objects::{GatedObjects, MemoryObjects};
use crate::ports::{Journal, ProcessEvents, SeededRandom, Time, VirtualClock};
use crate::process::{Character, Process};
use crate::queue::{GatedQueue, MemoryQueue};
use crate::store::SharedStore;
use crate::target::{GatedTarget, MemoryTarget};
use crate::watch::item;
use crate::work::works;

/// The lease of all processes.
pub const LEASE: Duration = Duration::from_secs(5);

/// After how long the sweep sends messages again.
pub const RESEND_AFTER: Duration = Duration::from_secs(2);

/// Processes that may die in one test.
const DEATHS_MAX: usize = 50;

/// Lines of the journal that a failing test shows.
const LINES_SHOWN: usize = 400;

/// A world.
pub struct World {
    /// Its time.
    pub time: Time,
    /// Its table.
    pub store: Arc<MemoryStore>,
    /// What transactions under way hold of it.
    pub holds: Arc<Holds>,
    /// Its objects.
    pub objects: Arc<MemoryObjects>,
    /// Its queues.
    pub queue: Arc<MemoryQueue>,
    /// Its target of effects.
    pub target: Arc<MemoryTarget>,
    /// Its bus, if ends are announced in it.
    pub bus: Option<Arc<Bus>>,
    /// Who watches over the guarantees.
    pub checker: Arc<Checker>,
    /// What has happened.
    pub journal: Arc<Journal>,
}

impl World {
    /// An empty world, twenty seconds before the scheduled time; `seed` is of the queues' chance.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let time = Time::from(BASE);
        let store = Arc::new(MemoryStore::new().with_page_items(3));
        let objects = Arc::<MemoryObjects>::default();
        Self {
            time,
            checker: Arc::new(Checker::new(Arc::clone(&store), Arc::clone(&objects))),
            store,
            holds: Arc::default(),
            objects,
            queue: Arc::new(MemoryQueue::new(seed)),
            target: Arc::default(),
            bus: None,
            journal: Arc::new(Journal::new(time)),
        }
    }

    /// A world with the input of this fixture.
    #[must_use]
    pub fn with(fixture: &Fixture, seed: u64) -> Self {
        let world = Self::new(seed);
        for (key, content) in &fixture.objects {
            world.objects.overwrite(&input(key), content.clone());
        }
        world
    }

    /// The same, and ends are announced in it.
    #[must_use]
    pub fn announcing(mut self) -> Self {
        self.bus = Some(Arc::default());
        self
    }

    /// A process that hasn't been started.
    #[must_use]
    pub fn process(&self, name: &str, character: Character) -> Process {
        let life = Arc::<Life>::default();
        let journal = Arc::clone(&self.journal);
        let checker = Arc::clone(&self.checker);
        let gate = Arc::new(Gate::new(name, Arc::clone(&life), character.script, checker, Arc::clone(&journal)));
        let queue = Arc::new(GatedQueue { queue: Arc::clone(&self.queue), gate: Arc::clone(&gate) });
        let hook = GateHook { gate: Arc::clone(&gate), holds: Arc::clone(&self.holds) };
        let store = Arc::new(Hooked::new(SharedStore(Arc::clone(&self.store)), hook));
        let way =
            |bus: &Arc<Bus>| GatedBus { bus: Arc::clone(bus), store: Arc::clone(&self.store), gate: Arc::clone(&gate) };
        let engine = Engine::new(Ports {
            announcer: self.bus.as_ref().map(|bus| Arc::new(way(bus)) as _),
            store: Arc::clone(&store) as _,
            objects: Arc::new(GatedObjects { objects: Arc::clone(&self.objects), gate: Arc::clone(&gate) }),
            queue: Arc::clone(&queue) as _,
            effects: Arc::new(GatedTarget { target: Arc::clone(&self.target), gate: Arc::clone(&gate) }),
            clock: Arc::new(VirtualClock::new(self.time, character.skew, Arc::clone(&gate))),
            random: Arc::new(SeededRandom::new(character.seed)),
            events: Arc::new(ProcessEvents { process: name.to_owned(), journal: Arc::clone(&journal) }),
            works: works(character.deeds, Arc::clone(&life)),
            rules: ZoneRules::bundled(),
            settings: Settings {
                lease: LEASE,
                resend_after: RESEND_AFTER,
                ready_poll: Duration::from_secs(1),
                state: Location { root: Root::Bucket("state".to_owned()), prefix: String::new() },
            },
        });
        Process {
            name: name.to_owned(),
            engine,
            life,
            gate,
            store,
            queue,
            journal,
            shard_workers: character.shard_workers,
            budget: character.budget,
            tick: character.tick,
            troubles: Arc::new(Mutex::default()),
            tasks: JoinSet::new(),
        }
    }

    /// A process that works without faults, started with this job to apply.
    #[must_use]
    pub fn healthy(&self, name: &str, job: &str) -> Process {
        let mut process = self.process(name, Character { seed: 99, ..Character::default() });
        process.start(Some(job.to_owned()));
        process
    }

    /// An instance as it stands.
    #[must_use]
    pub fn instance(&self, id: &InstanceId) -> Option<Instance> {
        match item(&self.store, &ItemKey::Instance(id.clone())) {
            Some(Item::Instance(instance)) => Some(*instance),
            _ => None,
        }
    }

    /// All shards, by id.
    #[must_use]
    pub fn shards(&self) -> Vec<Shard> {
        let items = self.store.snapshot().into_iter();
        items.filter_map(|item| if let Item::Shard(shard) = item { Some(*shard) } else { None }).collect()
    }

    /// Keeps one process running until the instance has ended, for at most so many seconds of virtual time: whenever one
    /// has died, `next` makes another, at once. Messages outlive them. Returns also how many have died.
    pub async fn supervise(&self, seconds: i64, mut next: impl FnMut(usize) -> Process) -> (Instance, usize) {
        let mut deaths = 0;
        let mut process = next(deaths);
        loop {
            let life = Arc::clone(&process.life);
            let ended = |world: &Self| world.instance(&instance_id()).filter(|instance| instance.status.is_terminal());
            let found = self.until(seconds, "the instance to end or the process to die", |world| {
                if life.state() == State::Dead { Some(None) } else { ended(world).map(Some) }
            });
            match found.await {
                Some(instance) => return (instance, deaths),
                None => {
                    process.kill();
                    deaths += 1;
                    if deaths > DEATHS_MAX {
                        self.fail(&format!("{deaths} processes have died, and the instance hasn't ended"));
                    }
                    self.journal.note("world", &format!("death {deaths}"));
                    process = next(deaths);
                }
            }
        }
    }

    /// Waits until the instance has ended, for at most so many seconds of virtual time.
    pub async fn until_ended(&self, seconds: i64) -> Instance {
        let id = instance_id();
        let is_over = |world: &Self| world.instance(&id).filter(|instance| instance.status.is_terminal());
        self.until(seconds, "the instance to end", is_over).await
    }

    /// Waits until `ready` gives something, for at most so many seconds of virtual time.
    pub async fn until<T>(&self, seconds: i64, what: &str, ready: impl Fn(&Self) -> Option<T>) -> T {
        let deadline = self.time.now().plus(Duration::from_secs(seconds));
        loop {
            self.assert_sound();
            if let Some(found) = ready(self) {
                return found;
            }
            if self.time.now() > deadline {
                let instance = self.instance(&instance_id());
                self.fail(&format!("waited {seconds} s for {what} in vain\n{instance:#?}\n{:#?}", self.shards()));
            }
            tokio::time::sleep(StdDuration::from_millis(200)).await;
        }
    }

    /// Fails when a guarantee was broken.
    pub fn assert_sound(&self) {
        let found = self.checker.found();
        if !found.is_empty() {
            self.fail(&format!("guarantees were broken:\n{}", found.join("\n")));
        }
    }

    /// Fails the test and shows what happened last.
    pub fn fail(&self, why: &str) -> ! {
        panic!("{}\n\n{why}", self.journal.last(LINES_SHOWN));
    }

    /// Asserts that the instance has succeeded and that what is published is exactly what must be, each record once.
    pub async fn assert_exact(&self, fixture: &Fixture) {
        self.assert_published(&fixture.expected, fixture.records).await;
    }

    /// Asserts that the instance has succeeded, that this is published, and that it is of so many records.
    pub async fn assert_published(&self, expected: &str, records: u64) {
        self.assert_sound();
        let id = instance_id();
        let Some(instance) = self.instance(&id) else { self.fail("there is no instance") };
        if instance.status != InstanceStatus::Succeeded {
            self.fail(&format!("the instance is {:?}", instance.status));
        }
        let observer = self.process("observer", Character::default());
        let certificate = observer.engine.certificate(&instance).await.expect("it can be read");
        let Some(certificate) = certificate else { self.fail("nothing is published") };
        let parts = observer.engine.parts(&instance, &certificate).await.expect("they can be read").concat();
        if String::from_utf8_lossy(&parts) != expected || certificate.totals.records_in != records {
            self.fail(&format!(
                "published is\n{}instead of\n{}, of {} instead of {} records",
                String::from_utf8_lossy(&parts),
                expected,
                certificate.totals.records_in,
                records
            ));
        }
    }
}
