//! What a seed stands for: the job, the machines, the mail, and what people ask for meanwhile.

use std::fmt;

use serde_json::Value;
use shardcron_domain::job::CatchUp;

use super::input::Input;
use crate::ports::SeededRandom;
use crate::queue::Mail;

/// The job's first scheduled time: eighty seconds after the beginning, so that it is applied before.
pub const FIRST: &str = "2026-08-30T00:01:00Z";

/// A limit of failures that no run comes to.
const NO_LIMIT: u32 = 100_000;

/// A machine, on which a process runs, and the next one when that has died.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// By how many seconds its clock is wrong.
    pub skew: i64,
    /// Seconds of each invocation, if it is like a Lambda.
    pub budget: Option<i64>,
    /// Shards at once.
    pub workers: usize,
    /// Milliseconds between its ticks.
    pub tick: u64,
}

/// Something that a person asks for.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// The instance at work is cancelled; so many seconds after its end it is retried, if at all.
    Cancel {
        /// After how many seconds.
        retry: Option<u64>,
        /// Whether it comes soon after a shard was cut, when the next cuts are under way.
        at_split: bool,
    },
    /// An ended instance is begun from scratch.
    Rerun,
    /// The job is suspended, and resumed so many seconds later.
    Suspend {
        /// Seconds.
        seconds: u64,
        /// What becomes of the times between.
        catch_up: CatchUp,
    },
    /// The job's file is edited and applied.
    Edit,
    /// One of the job's times is asked for.
    Trigger {
        /// The second one.
        second: bool,
    },
    /// The times of earlier years are asked for.
    Backfill {
        /// How many years.
        years: i64,
    },
}

/// A command and when it comes.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Seconds after the one before.
    pub after: u64,
    /// What.
    pub command: Command,
    /// Whether it is delivered twice, at the same time.
    pub twice: bool,
}

/// A scenario.
#[derive(Clone)]
pub struct Scenario {
    /// Its seed.
    pub seed: u64,
    /// What the job reads.
    pub input: Input,
    /// The job's `concurrencyPolicy`.
    pub policy: &'static str,
    /// The job's `catchUp`.
    pub catch_up: &'static str,
    /// Minutes from the first scheduled time to the second, if there is one.
    pub second: Option<u64>,
    /// The job's `backoffLimit`, where runs can come to it.
    pub backoff_limit: Option<u32>,
    /// The job's `activeDeadlineSeconds`.
    pub deadline: Option<u64>,
    /// The job's `rejects.max`.
    pub rejects_max: u64,
    /// The job's `parallelism`.
    pub parallelism: u64,
    /// The machines. The first's clock is right.
    pub machines: Vec<Machine>,
    /// How messages are treated.
    pub mail: Mail,
    /// How many faults there are at most; after them there is peace.
    pub faults: i64,
    /// How many times rarer faults are than at their densest.
    pub rarity: u64,
    /// Whether the indexes lag behind the table.
    pub lag: bool,
    /// Whether queries see halves of transactions.
    pub halves: bool,
    /// What is asked for.
    pub orders: Vec<Order>,
    /// Of everything that is drawn during the run.
    pub chance: u64,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.input.what)?;
        writeln!(f, "  job {}", self.job(false))?;
        for machine in &self.machines {
            writeln!(f, "  {machine:?}")?;
        }
        for order in &self.orders {
            writeln!(f, "  {order:?}")?;
        }
        let indexes = if self.lag { "indexes lag" } else { "indexes are fresh" };
        let queries = if self.halves { "see halves" } else { "see all" };
        write!(
            f,
            "  {:?}, {indexes}, queries {queries}, at most {} faults, rarity {}",
            self.mail, self.faults, self.rarity
        )
    }
}

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let bad = match random.below(8) {
            0..=4 => 0,
            5..=6 => 1 + random.below(4),
            _ => 12 + random.below(8),
        };
        // Exactly as many as are allowed, a few less, or one too many.
        let rejects_max = match random.below(5) {
            0..=2 => bad,
            3 => bad + random.below(3),
            _ => bad.saturating_sub(1 + random.below(2)),
        };
        let policy = ["Allow", "Allow", "Forbid", "Queue", "Replace"][random.below(5) as usize];
        let all = matches!(policy, "Allow" | "Queue") && random.once_in(3);
        let skewed = match random.below(4) {
            0 => Some(3600),
            1 => Some(-3600),
            _ => None,
        };
        let machines = [Some(0), random.once_in(2).then_some(0), skewed, random.once_in(3).then_some(0)];
        let machine = |skew| Machine {
            skew,
            // Seven seconds beside the margin, so that a slow machine commits something in each.
            budget: random.once_in(3).then(|| 12 + random.below(8) as i64),
            workers: 1 + random.below(2) as usize,
            tick: 1_000 + random.below(9_000),
        };
        Self {
            seed,
            input: Input::draw(&random, bad),
            policy,
            catch_up: if all { "all" } else { "latest" },
            second: random.once_in(2).then(|| 1 + random.below(4)),
            backoff_limit: random.once_in(8).then(|| random.below(4) as u32),
            deadline: random.once_in(7).then(|| 5 + random.below(60)),
            rejects_max,
            parallelism: 1 + random.below(8),
            machines: machines.into_iter().flatten().map(machine).collect(),
            mail: Mail { lost: random.below(40), doubled: random.below(40), shuffled: random.once_in(2) },
            faults: [20, 60, 120][random.below(3) as usize],
            rarity: [1, 2, 5][random.below(3) as usize],
            orders: (0..[0, 0, 1, 1, 2, 3][random.below(6) as usize]).map(|_| Order::draw(&random)).collect(),
            chance: random.draw(),
            lag: random.once_in(2),
            halves: random.once_in(2),
        }
    }

    /// The same job on the same input, where nothing goes wrong and nobody asks for anything.
    #[must_use]
    pub fn in_peace(&self) -> Self {
        let machine = Machine { skew: 0, budget: None, workers: 2, tick: 2_000 };
        let (machines, mail) = (vec![machine], Mail::default());
        Self {
            machines,
            mail,
            faults: 0,
            orders: Vec::new(),
            deadline: None,
            lag: false,
            chance: !self.chance,
            ..self.clone()
        }
    }

    /// The job's file, before or after its edit.
    #[must_use]
    pub fn job(&self, edited: bool) -> String {
        let mut job = self.input.job(edited);
        let minutes = self.second.map_or_else(|| "1".to_owned(), |more| format!("1,{}", 1 + more));
        job["schedule"] = format!("{minutes} 0 30 8 *").into();
        job["concurrencyPolicy"] = self.policy.into();
        job["catchUp"] = self.catch_up.into();
        job["backoffLimit"] = self.backoff_limit.unwrap_or(NO_LIMIT).into();
        job["parallelism"] = self.parallelism.into();
        job["rejects"] = serde_json::json!({ "max": self.rejects_max });
        if let Some(seconds) = self.deadline {
            job["activeDeadlineSeconds"] = seconds.into();
        }
        job.to_string()
    }

    /// Whether what must come out under this spec is a failure: more rejects than the job allows.
    #[must_use]
    pub fn must_fail(&self, spec: &Value) -> bool {
        self.input.expected(spec).rejected > self.rejects_max
    }
}

impl Order {
    fn draw(random: &SeededRandom) -> Self {
        let command = match random.below(10) {
            0..=3 => {
                Command::Cancel { retry: (!random.once_in(4)).then(|| random.below(30)), at_split: random.once_in(2) }
            }
            4 => Command::Rerun,
            5 => Command::Suspend {
                seconds: 1 + random.below(150),
                catch_up: [CatchUp::None, CatchUp::Latest, CatchUp::All][random.below(3) as usize],
            },
            6 => Command::Edit,
            7 => Command::Trigger { second: random.once_in(2) },
            _ => Command::Backfill { years: 1 + random.below(2) as i64 },
        };
        // Often just after the first scheduled time, when there is something to meet.
        let after = match command {
            Command::Cancel { at_split: true, .. } => 60 + random.below(25),
            _ if random.once_in(3) => 5 + random.below(200),
            _ => 80 + random.below(40),
        };
        Self { after, command, twice: random.once_in(3) }
    }
}
