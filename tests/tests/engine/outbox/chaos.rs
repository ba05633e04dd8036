//! A job run to its end under drawn faults: crashes, pauses, lost and late answers, lost, doubled and reordered messages,
//! and a clock that is an hour off.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use shardcron_domain::time::Duration as Span;
use shardcron_store::hooked::Verdict;
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::gate::{Act, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::ports::SeededRandom;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::queue::Mail;
use shardcron_tests::work::{Deed, Deeds};
use shardcron_tests::world::World;

/// Faults of all processes of one seed together; after them there is peace, so that there is an end.
const FAULTS: i64 = 60;

/// Draws what becomes of each request.
struct Chaos {
    random: SeededRandom,
    left: Arc<AtomicI64>,
}

impl Chaos {
    fn fault(&self, once_in: u64) -> bool {
        self.random.once_in(once_in) && self.left.fetch_sub(1, Ordering::Relaxed) > 0
    }
}

impl Script for Chaos {
    fn latency(&self, _request: &Request) -> Duration {
        Duration::from_millis(self.random.below(25))
    }

    fn before(&self, request: &Request) -> Act {
        if self.fault(80) {
            return match self.random.below(3) {
                0 => Act::Crash,
                1 => Act::FreezeFor(Duration::from_millis(self.random.below(20_000))),
                _ => Act::Deny(Verdict::LoseAnswer),
            };
        }
        if request.write.is_none() || !self.fault(12) {
            return Act::Proceed;
        }
        Act::Deny(match self.random.below(4) {
            0 => Verdict::LoseAnswer,
            1 => Verdict::Delay,
            2 => Verdict::Conflict,
            _ => Verdict::Throttle,
        })
    }

    fn after(&self, request: &Request) -> Act {
        if request.write.is_none() || !self.fault(20) {
            return Act::Proceed;
        }
        match self.random.below(3) {
            0 => Act::Crash,
            1 => Act::FreezeFor(Duration::from_millis(self.random.below(20_000))),
            _ => Act::Deny(Verdict::LoseAnswer),
        }
    }
}

/// Works that fail now and then, or take a while.
fn moody(seed: u64, left: &Arc<AtomicI64>) -> Deeds {
    let (random, left) = (SeededRandom::new(seed), Arc::clone(left));
    Arc::new(move |_| {
        if !random.once_in(6) || left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Deed::Count;
        }
        match random.below(4) {
            0 => Deed::Fail,
            1 => Deed::CountAndFail,
            2 => Deed::Kill,
            _ => Deed::Take(Duration::from_millis(random.below(12_000))),
        }
    })
}

struct Simulation {
    world: World,
    random: SeededRandom,
    faults: Arc<AtomicI64>,
    job: String,
    /// The processes that run, and how wrong the clock of each machine is.
    processes: Vec<(Process, Span)>,
    /// Those that are dead: their last writes may still be under way.
    dead: Vec<Process>,
}

impl Simulation {
    fn start(&mut self, skew: Span) {
        let number = self.processes.len() + self.dead.len();
        let character = Character {
            script: Box::new(Chaos { random: SeededRandom::new(self.random.draw()), left: Arc::clone(&self.faults) }),
            skew,
            deeds: moody(self.random.draw(), &self.faults),
            seed: self.random.draw(),
            shard_workers: 1 + self.random.below(2) as usize,
            budget: self.random.once_in(3).then_some(Span(9_000)),
            tick: Some(Duration::from_millis(1_000 + self.random.below(9_000))),
        };
        let mut process = self.world.process(&format!("p{number}"), character);
        // A job counts from when it is applied, by the clock of whoever applies it: that has to be a right one.
        process.start((skew == Span::ZERO).then(|| self.job.clone()));
        self.processes.push((process, skew));
    }

    /// The dead are replaced, and late writes land.
    async fn step(&mut self) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.world.assert_sound();
        while let Some(place) = self.processes.iter().position(|(process, _)| process.life.state() == State::Dead) {
            let (mut process, skew) = self.processes.swap_remove(place);
            process.kill();
            self.dead.push(process);
            self.start(skew);
        }
        if self.random.once_in(8) {
            self.deliver().await;
        }
    }

    async fn deliver(&self) {
        let stores = self.dead.iter().chain(self.processes.iter().map(|(process, _)| process));
        for process in stores {
            if process.store.deliver().await > 0 {
                self.world.checker.check("late deliveries");
            }
        }
    }
}

/// Runs a job under drawn faults until its instance has ended and all that was under way has landed.
pub(super) async fn run_to_the_end(seed: u64, random: SeededRandom, fixture: &Fixture, job: &str) -> World {
    let world = World::with(fixture, random.draw());
    world.journal.note("world", &format!("seed {seed}"));
    world.queue.treat(Mail { lost: random.below(40), doubled: random.below(40), shuffled: random.once_in(2) });
    let mut job: serde_json::Value = serde_json::from_str(job).unwrap();
    job["backoffLimit"] = 100_000.into();
    let skews = match random.below(3) {
        0 => [0, 0, 3600],
        1 => [0, 0, -3600],
        _ => [0, 0, 0],
    };
    let faults = Arc::new(AtomicI64::new(FAULTS));
    let job = job.to_string();
    let mut simulation = Simulation { world, random, faults, job, processes: Vec::new(), dead: Vec::new() };
    for skew in skews {
        simulation.start(Span::from_secs(skew));
    }
    let mut steps = 0;
    while simulation.world.instance(&instance_id()).is_none_or(|instance| !instance.status.is_terminal()) {
        simulation.step().await;
        steps += 1;
        if steps > 6 * 3600 * 3 {
            let instance = simulation.world.instance(&instance_id());
            let shards = simulation.world.shards();
            simulation.world.fail(&format!("seed {seed}: no end in six hours\n{instance:#?}\n{shards:#?}"));
        }
    }
    // What is still under way lands after the end, and those that stood still wake.
    simulation.deliver().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    simulation.deliver().await;
    simulation.world
}
