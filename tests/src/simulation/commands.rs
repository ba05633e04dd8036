//! What people ask for during a run: each command is tried until it is obeyed or refused, by operators that can crash.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shardcron_domain::backfill::{BackfillRequest, Only, Order as Oldest};
use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, Origin};
use shardcron_domain::time::ScheduledTime;
use shardcron_engine::command::Expect;
use shardcron_engine::{Engine, EngineError};
use shardcron_store::{Item, ItemKey};

use super::chaos::{Chaos, Faults};
use super::scenario::{Command, FIRST, Order, Scenario};
use crate::fixture::job_name;
use crate::life::State;
use crate::ports::SeededRandom;
use crate::process::{Character, Process};
use crate::world::World;

/// How often a command is tried; faults end long before.
const TRIES_MAX: usize = 500;

/// Seconds that an operator waits for an instance to be there.
const PATIENCE: u64 = 400;

/// What was asked for.
#[derive(Debug, Default)]
pub struct Asked {
    /// What was cancelled, and at which generation and attempt.
    pub cancelled: Vec<(InstanceId, Expect)>,
    /// What was retried.
    pub retried: Vec<InstanceId>,
    /// What was begun anew.
    pub rerun: Vec<InstanceId>,
    /// Whether the job was suspended.
    pub suspended: bool,
}

/// Those who ask.
pub struct Operators {
    world: Arc<World>,
    scenario: Scenario,
    faults: Arc<Faults>,
    random: SeededRandom,
    asked: Mutex<Asked>,
    /// The processes that they used: late writes of theirs may be under way.
    used: Mutex<Vec<Process>>,
}

impl Operators {
    /// Those of this scenario.
    #[must_use]
    pub fn new(world: &Arc<World>, scenario: &Scenario, faults: &Arc<Faults>, seed: u64) -> Self {
        Self {
            world: Arc::clone(world),
            scenario: scenario.clone(),
            faults: Arc::clone(faults),
            random: SeededRandom::new(seed),
            asked: Mutex::default(),
            used: Mutex::default(),
        }
    }

    /// What they have asked for so far.
    pub fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Their late writes arrive; whether there were any.
    pub async fn deliver(&self) -> bool {
        let stores: Vec<_> = {
            let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.iter().map(|process| Arc::clone(&process.store)).collect()
        };
        let mut count = 0;
        for store in stores {
            count += store.deliver().await;
        }
        count > 0
    }

    /// Asks for everything, one after another.
    pub async fn ask(&self) {
        for order in &self.scenario.orders {
            tokio::time::sleep(Duration::from_secs(order.after)).await;
            self.world.journal.note("operator", &format!("{order:?}"));
            self.obey(order).await;
        }
    }

    async fn obey(&self, order: &Order) {
        match order.command {
            Command::Cancel { retry, at_split } => {
                if at_split {
                    self.wait_for_split().await;
                }
                let Some(instance) = self.find(|instance| !instance.status.is_terminal()).await else { return };
                let (id, expect) = (instance.id.clone(), Expect::of(&instance));
                self.asked().cancelled.push((id.clone(), expect));
                self.settle(order, async |engine| engine.cancel(&id, Some(expect), "somebody").await.map(drop)).await;
                // Beside what a backfill has at work, a person may begin more: that isn't the backfill's pace.
                let Some(seconds) = retry.filter(|_| !is_backfilled(&instance)) else { return };
                let ended = |found: &Instance| found.id == id && found.status.is_terminal();
                let Some(ended) = self.find(ended).await else { return };
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                self.asked().retried.push(id.clone());
                let expect = Expect::of(&ended);
                self.settle(order, async |engine| engine.retry(&id, Some(expect)).await.map(drop)).await;
            }
            Command::Rerun => {
                let has_ended = |instance: &Instance| instance.status.is_terminal() && !is_backfilled(instance);
                let Some(instance) = self.find(has_ended).await else { return };
                let (id, expect) = (instance.id.clone(), Expect::of(&instance));
                self.asked().rerun.push(id.clone());
                self.settle(order, async |engine| engine.rerun(&id, Some(expect)).await.map(drop)).await;
            }
            Command::Suspend { seconds, catch_up } => {
                self.asked().suspended = true;
                let name = job_name("settle");
                self.settle(order, async |engine| engine.suspend(&name, None).await.map(drop)).await;
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                self.settle(order, async |engine| engine.resume_and_catch_up(&name, catch_up).await.map(drop)).await;
            }
            Command::Edit => {
                let job = self.scenario.job(true);
                self.settle(order, async |engine| engine.apply(&job, "/jobs").await.map(drop)).await;
            }
            Command::Trigger { second } => {
                let minutes = if second { self.scenario.second.unwrap_or_default() } else { 0 };
                let at = moment(FIRST, 60 * minutes as i64);
                self.settle(order, async |engine| engine.trigger(&job_name("settle"), Some(at), None).await.map(drop))
                    .await;
            }
            Command::Backfill { years } => {
                let request = BackfillRequest {
                    from: moment(FIRST, -years * 366 * 86_400),
                    to: moment(FIRST, -86_400),
                    only: Only::Missing,
                    order: Oldest::Oldest,
                    max_active: 1 + self.random.below(2) as u32,
                    per_minute: None,
                };
                self.settle(order, async |engine| {
                    engine.backfill(&job_name("settle"), request.clone()).await.map(drop)
                })
                .await;
            }
        }
    }

    /// Waits for an instance like this.
    async fn find(&self, is_it: impl Fn(&Instance) -> bool) -> Option<Instance> {
        for _ in 0..PATIENCE {
            let found = self.world.store.inspect(|items| {
                let mut instances = items.values().filter_map(|item| match item {
                    Item::Instance(instance) => Some(instance),
                    _ => None,
                });
                instances.find(|instance| is_it(instance)).map(|instance| (**instance).clone())
            });
            if found.is_some() {
                return found;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        None
    }

    /// Waits until a shard was cut and the next may be about to be, or until nothing is at work any more.
    async fn wait_for_split(&self) {
        let is_time = |item: &Item| matches!(item, Item::Shard(shard) if shard.children > 0);
        let is_open = |item: &Item| matches!(item, Item::Instance(instance) if !instance.status.is_terminal());
        for _ in 0..PATIENCE {
            let (is_cut, goes_on) =
                self.world.store.inspect(|items| (items.values().any(is_time), items.values().any(is_open)));
            if is_cut || !goes_on {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(self.random.below(3_000))).await;
    }

    async fn settle(&self, order: &Order, call: impl AsyncFn(&Engine) -> Result<(), EngineError>) {
        // A slow cancel meets cuts of the shards that it fences.
        let is_slow = matches!(order.command, Command::Cancel { at_split: true, .. });
        if order.twice {
            tokio::join!(self.settle_once(&call, is_slow), self.settle_once(&call, is_slow));
        } else {
            self.settle_once(&call, is_slow).await;
        }
    }

    /// Tries a call until it is obeyed or refused.
    async fn settle_once(&self, call: &impl AsyncFn(&Engine) -> Result<(), EngineError>, is_slow: bool) {
        for number in 0..TRIES_MAX {
            let process = self.process(number, is_slow);
            let answer = tokio::select! {
                biased;
                answer = call(&process.engine) => Some(answer),
                () = process.life.wait_for(State::Dead) => None,
            };
            self.used.lock().unwrap_or_else(PoisonError::into_inner).push(process);
            match answer {
                Some(Ok(())) => return,
                Some(Err(error)) if is_refusal(&error) => {
                    self.world.journal.note("operator", &format!("refused: {}", error.full_text()));
                    return;
                }
                Some(Err(error)) => self.world.journal.note("operator", &error.full_text()),
                None => {}
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.world.fail("a command was neither obeyed nor refused");
    }

    fn process(&self, number: usize, is_slow: bool) -> Process {
        let (chaos, seed) = (self.random.draw(), self.random.draw());
        let chaos = Chaos::new(chaos, &self.faults, self.scenario.rarity);
        let script = Box::new(if is_slow { chaos.slow() } else { chaos });
        self.world.process(&format!("operator{number}"), Character { script, seed, ..Character::default() })
    }
}

/// A refusal that the state of things explains; anything else is worth another try.
fn is_refusal(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Overlap { .. }
            | EngineError::QueueFull { .. }
            | EngineError::Superseded { .. }
            | EngineError::Backfill(_)
            | EngineError::Future { .. }
            | EngineError::NotOfCalendar { .. }
            | EngineError::Instance(_)
    )
}

fn moment(text: &str, more: i64) -> ScheduledTime {
    let at: ScheduledTime = text.parse().expect("a good time");
    ScheduledTime::from_second(at.as_second() + more).expect("a good time")
}

/// Whether the job is there.
#[must_use]
pub fn is_applied(world: &World) -> bool {
    world.store.inspect(|items| items.contains_key(&ItemKey::Job(job_name("settle"))))
}

/// Whether a backfill made it.
#[must_use]
pub fn is_backfilled(instance: &Instance) -> bool {
    matches!(instance.origin, Origin::Backfill { .. })
}
