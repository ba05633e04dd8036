//! A process: an engine of its own, with loops that plan, sweep and handle messages as the functions do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use shardcron_domain::ids::ShardKey;
use shardcron_domain::shard::OwnerError;
use shardcron_domain::time::Duration;
use shardcron_engine::messages::{InstanceMessage, ShardMessage};
use shardcron_engine::{Budget, Delivery, Engine, EngineError, Handled, Sweep};
use shardcron_queue::{Queue, QueueName, Received};
use shardcron_store::hooked::Hooked;
use tokio::task::{JoinError, JoinSet};

use crate::gate::{Gate, GateHook, Peace, Script};
use crate::life::Life;
use crate::ports::Journal;
use crate::queue::GatedQueue;
use crate::store::SharedStore;
use crate::work::{Deed, Deeds};

/// What a process is like.
pub struct Character {
    /// What becomes of its requests.
    pub script: Box<dyn Script>,
    /// How wrong its clock is.
    pub skew: Duration,
    /// What its work does.
    pub deeds: Deeds,
    /// Of its chance.
    pub seed: u64,
    /// How many shards it works on at once.
    pub shard_workers: usize,
    /// How long each of its invocations has; for ever unless set.
    pub budget: Option<Duration>,
    /// How often it plans and sweeps; never unless set.
    pub tick: Option<StdDuration>,
}

impl Default for Character {
    fn default() -> Self {
        Self {
            script: Box::new(Peace),
            skew: Duration::ZERO,
            deeds: Arc::new(|_| Deed::Count),
            seed: 1,
            shard_workers: 2,
            budget: None,
            tick: Some(StdDuration::from_secs(1)),
        }
    }
}

/// How the handling of one message, or an apply, went wrong.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The error and all its causes.
    pub text: String,
    /// The shard that was lost to another owner, if that was it.
    pub lost: Option<ShardKey>,
    /// Whether the executor has tried to write what no executor may: what is done already, or what doesn't add up. The
    /// shard refuses it, so that nothing is wrong but the executor.
    pub is_own_fault: bool,
}

impl From<&EngineError> for Trouble {
    fn from(error: &EngineError) -> Self {
        let lost = match error {
            EngineError::ShardLost { shard, .. } => Some(shard.clone()),
            _ => None,
        };
        let is_own_fault = matches!(error, EngineError::Owner(error)
            if !matches!(error, OwnerError::NotOwner { .. } | OwnerError::LeaseOver { .. }));
        Self { text: error.full_text(), lost, is_own_fault }
    }
}

/// A process. Dropping it ends it.
pub struct Process {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: Engine,
    /// Whether it runs.
    pub life: Arc<Life>,
    /// Its gate.
    pub gate: Arc<Gate>,
    /// Its store, which may hold writes that are still under way after its end.
    pub store: Arc<Hooked<SharedStore, GateHook>>,
    pub(crate) queue: Arc<GatedQueue>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) shard_workers: usize,
    pub(crate) budget: Option<Duration>,
    pub(crate) tick: Option<StdDuration>,
    pub(crate) troubles: Arc<Mutex<Vec<Trouble>>>,
    pub(crate) tasks: JoinSet<()>,
}

impl Process {
    /// Starts its loops; first it applies `job`, as often as it takes.
    pub fn start(&mut self, job: Option<String>) {
        let mind = self.mind();
        let tick = self.tick;
        self.tasks.spawn(async move {
            if let Some(job) = job {
                while let Err(error) = mind.engine.apply(&job, "/jobs").await {
                    mind.trouble("apply", &error);
                    mind.engine.clock.sleep(Duration::from_secs(1)).await;
                }
            }
            while let Some(tick) = tick {
                mind.tick().await;
                mind.engine.clock.sleep(Duration(tick.as_millis() as i64)).await;
            }
        });
        let shards = (0..self.shard_workers).flat_map(|_| [QueueName::Shards, QueueName::BackfillShards]);
        for queue in std::iter::once(QueueName::Instances).chain(shards) {
            let mind = self.mind();
            self.tasks.spawn(async move { mind.serve(queue).await });
        }
    }

    /// Ends it where it stands.
    pub fn kill(&mut self) {
        self.life.die();
        self.tasks.abort_all();
    }

    /// The panic that has ended one of its loops, if any: they don't end by themselves.
    pub fn panicked(&mut self) -> Option<String> {
        let ended = self.tasks.try_join_next()?.err().filter(JoinError::is_panic)?.into_panic();
        let text = ended.downcast_ref::<String>().map(String::as_str).or_else(|| ended.downcast_ref::<&str>().copied());
        Some(text.unwrap_or("a panic without a text").to_owned())
    }

    /// What went wrong in it so far.
    #[must_use]
    pub fn troubles(&self) -> Vec<Trouble> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn mind(&self) -> Mind {
        Mind {
            name: self.name.clone(),
            engine: self.engine.clone(),
            queue: Arc::clone(&self.queue),
            life: Arc::clone(&self.life),
            journal: Arc::clone(&self.journal),
            budget: self.budget,
            troubles: Arc::clone(&self.troubles),
        }
    }
}

/// What a loop of a process needs.
struct Mind {
    name: String,
    engine: Engine,
    queue: Arc<GatedQueue>,
    life: Arc<Life>,
    journal: Arc<Journal>,
    budget: Option<Duration>,
    troubles: Arc<Mutex<Vec<Trouble>>>,
}

impl Mind {
    fn trouble(&self, what: &str, error: &EngineError) {
        let trouble = Trouble::from(error);
        self.journal.note(&self.name, &format!("{what} went wrong: {}", trouble.text));
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
    }

    async fn tick(&self) {
        if let Err(error) = self.engine.tick(Sweep::Due).await {
            self.trouble("the tick", &error);
        }
    }

    /// Handles messages one after another, as Lambda's event source and `each_message` of the runtime do.
    async fn serve(&self, queue: QueueName) {
        loop {
            self.life.pass().await;
            let received = self.queue.receive(queue, 1, Duration::from_secs(20)).await;
            self.life.pass().await;
            for Received { receipt, body, .. } in received.into_iter().flatten() {
                self.journal.note(&self.name, &format!("receives {body}"));
                match self.handle(queue, &receipt, &body).await {
                    // A message that another has received since is no longer this one's.
                    Ok(Handled::Done) => drop(self.queue.delete(queue, &receipt).await),
                    Ok(Handled::Later(at)) => {
                        let wait = at.since(self.engine.clock.now().earliest()).max(Duration::ZERO);
                        let whole = Duration::from_secs(wait.0.div_euclid(1000) + 1);
                        drop(self.queue.set_visibility(queue, &receipt, whole).await);
                    }
                    Err(error) => self.trouble(&body, &error),
                }
            }
        }
    }

    async fn handle(&self, queue: QueueName, receipt: &str, body: &str) -> Result<Handled, EngineError> {
        if queue == QueueName::Instances {
            let Ok(message) = serde_json::from_str::<InstanceMessage>(body) else { return Ok(Handled::Done) };
            return self.engine.advance(&message.instance.0).await;
        }
        let Ok(message) = serde_json::from_str::<ShardMessage>(body) else { return Ok(Handled::Done) };
        let ends = self.budget.map(|budget| self.engine.clock.now().at.plus(budget));
        let delivery = Delivery { queue, receipt: receipt.to_owned() };
        self.engine.run_shard(&message.key(), Some(delivery), &Budget { ends, stop: None }).await
    }
}
