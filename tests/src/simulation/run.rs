//! One run of a scenario, from the first process to the end of everything that was begun.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shardcron_domain::certificate::Certificate;
use shardcron_domain::ids::InstanceId;
use shardcron_domain::time::{Duration as Span, ScheduledTime};
use shardcron_store::{Item, ItemKey};

use super::chaos::{Chaos, Faults, moody};
use super::commands::{Operators, is_applied};
use super::scenario::{FIRST, Machine, Scenario};
use super::verdict;
use crate::fixture::{BASE, input, job_name};
use crate::life::State;
use crate::ports::SeededRandom;
use crate::process::{Character, Process};
use crate::queue::Mail;
use crate::world::World;

/// Seconds of virtual time after which there are no more faults, and all clocks are right. Two machines whose clocks are
/// further apart than a lease take each other's leases for over, and can go on so as long as both have work: what is
/// promised under them is that nothing is wrong, not that it ends.
const PEACE: i64 = 400;

/// Seconds of virtual time within which everything has ended: a clock that is an hour ahead can make others wait for as
/// long, and each look after that comes up to two minutes later than the one before.
const DEADLINE: i64 = 2 * 3600;

/// How often the world is looked at.
const STEP: Duration = Duration::from_millis(300);

/// What came of a run.
#[derive(Debug, Default)]
pub struct Ran {
    /// Everything that happened, line by line.
    pub journal: String,
    /// Everything that is stored in the end.
    pub stored: String,
    /// What is published, by instance and by whether its job was edited.
    pub published: BTreeMap<(InstanceId, bool), Certificate>,
    /// How often what happened: so that a run can be told from one in which nothing did.
    pub tally: BTreeMap<String, u64>,
}

struct Simulation {
    world: Arc<World>,
    scenario: Scenario,
    random: SeededRandom,
    faults: Arc<Faults>,
    operators: Arc<Operators>,
    /// The processes that run, and on which machine.
    processes: Vec<(Process, Machine)>,
    /// Those that are dead: their last writes may still be under way.
    dead: Vec<Process>,
    is_peace: bool,
}

/// Runs a scenario and judges it.
///
/// # Panics
/// With the last lines of the journal, where anything doesn't hold.
pub async fn run(scenario: &Scenario) -> Ran {
    let random = SeededRandom::new(scenario.chance);
    let world = Arc::new(World::new(random.draw()));
    for (key, content) in &scenario.input.objects {
        world.objects.overwrite(&input(key), content.clone());
    }
    world.queue.treat(scenario.mail);
    if scenario.lag {
        world.store.let_indexes_lag();
    }
    if scenario.halves {
        world.store.let_queries_see_halves();
    }
    world.checker.tolerate_late_shards();
    if scenario.policy != "Allow" {
        world.checker.watch_exclusion();
    }
    let faults = Arc::new(Faults::new(scenario.faults));
    let operators = Arc::new(Operators::new(&world, scenario, &faults, random.draw()));
    let mut simulation = Simulation {
        world,
        scenario: scenario.clone(),
        random,
        faults,
        operators,
        processes: Vec::new(),
        dead: Vec::new(),
        is_peace: false,
    };
    for machine in &scenario.machines {
        simulation.start(*machine);
    }
    let (asking, is_asked) = (Arc::clone(&simulation.operators), AtomicBool::new(false));
    let ask = async {
        asking.ask().await;
        is_asked.store(true, Ordering::Relaxed);
    };
    tokio::join!(ask, simulation.go_on(&is_asked));
    verdict::judge(&simulation.world, scenario, &simulation.operators).await
}

impl Simulation {
    fn start(&mut self, machine: Machine) {
        let number = self.processes.len() + self.dead.len();
        let script = Box::new(Chaos::new(self.random.draw(), &self.faults, self.scenario.rarity));
        let character = Character {
            script,
            skew: Span::from_secs(machine.skew),
            deeds: moody(self.random.draw(), &self.faults),
            seed: self.random.draw(),
            shard_workers: machine.workers,
            budget: machine.budget.map(Span::from_secs),
            tick: Some(Duration::from_millis(machine.tick)),
        };
        let mut process = self.world.process(&format!("p{number}"), character);
        // A job counts from when it is applied, by the clock of whoever applies it: that has to be a right one.
        let applies = machine.skew == 0 && !is_applied(&self.world);
        process.start(applies.then(|| self.scenario.job(false)));
        self.processes.push((process, machine));
    }

    /// Until everything that was begun has ended, and what was under way has arrived.
    async fn go_on(&mut self, is_asked: &AtomicBool) {
        while !(is_asked.load(Ordering::Relaxed) && self.is_over()) {
            self.step().await;
        }
        // What is still under way lands after the end, and those that stood still wake.
        self.faults.end();
        for _ in 0..2 {
            self.deliver().await;
            tokio::time::sleep(Duration::from_secs(90)).await;
        }
        // A late write can be one that begins something: a command whose answer was lost.
        while !self.is_over() {
            self.step().await;
        }
        self.deliver().await;
        self.world.assert_sound();
        for process in self.dead.iter().chain(self.processes.iter().map(|(process, _)| process)) {
            if let Some(fault) = process.troubles().into_iter().find(|trouble| trouble.is_own_fault) {
                self.world.fail(&format!("{} is at fault: {}", process.name, fault.text));
            }
        }
    }

    /// The dead are replaced, and late writes land.
    async fn step(&mut self) {
        tokio::time::sleep(STEP).await;
        self.world.assert_sound();
        for (process, _) in &mut self.processes {
            if let Some(panic) = process.panicked() {
                self.world.fail(&format!("{} has panicked: {panic}", process.name));
            }
        }
        while let Some(place) = self.processes.iter().position(|(process, _)| process.life.state() == State::Dead) {
            let (mut process, machine) = self.processes.swap_remove(place);
            process.kill();
            self.dead.push(process);
            self.start(machine);
        }
        if self.random.once_in(8) {
            self.deliver().await;
        }
        self.look_at_the_time();
    }

    /// At some time there is peace, and some time after that everything must have ended.
    fn look_at_the_time(&mut self) {
        let passed = self.world.time.now().since(BASE);
        if !self.is_peace && passed > Span::from_secs(PEACE) {
            self.is_peace = true;
            self.faults.end();
            self.world.queue.treat(Mail::default());
            self.world.journal.note("world", "there is peace");
            self.mend_clocks();
        }
        if passed > Span::from_secs(DEADLINE) {
            let is_telling = |item: &Item| matches!(item, Item::Instance(_) | Item::Shard(_) | Item::Slot(_));
            let items: Vec<Item> = self.world.store.snapshot().into_iter().filter(is_telling).collect();
            self.world.fail(&format!("not everything has ended after {passed}\n{items:#?}"));
        }
    }

    /// Processes whose clocks are wrong end, and others with right ones take their places.
    fn mend_clocks(&mut self) {
        while let Some(place) = self.processes.iter().position(|(_, machine)| machine.skew != 0) {
            let (mut process, machine) = self.processes.swap_remove(place);
            process.kill();
            self.dead.push(process);
            self.start(Machine { skew: 0, ..machine });
        }
    }

    async fn deliver(&self) {
        for process in self.dead.iter().chain(self.processes.iter().map(|(process, _)| process)) {
            if process.store.deliver().await > 0 {
                self.world.checker.check_late(self.world.time.now());
            }
        }
        if self.operators.deliver().await {
            self.world.checker.check_late(self.world.time.now());
        }
    }

    /// Whether all times are planned and everything that was begun has ended.
    fn is_over(&self) -> bool {
        let first: ScheduledTime = FIRST.parse().expect("a good time");
        let last = first.as_second() + 60 * self.scenario.second.unwrap_or_default() as i64;
        self.world.store.inspect(|items| {
            let is_planned = matches!(items.get(&ItemKey::Job(job_name("settle"))), Some(Item::Job(job))
                if job.planned_through.as_second() >= last);
            is_planned
                && items.values().all(|item| match item {
                    Item::Instance(instance) => instance.status.is_terminal(),
                    Item::Backfill(backfill) => backfill.is_over(),
                    _ => true,
                })
        })
    }
}
