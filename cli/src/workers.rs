//! Workers: the same handlers as the Lambda functions', fed from the queues by this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use shardcron_domain::time::Duration;
use shardcron_engine::events::{self, Event};
use shardcron_engine::{Budget, Sweep};
use shardcron_queue::{QueueName, Received};
use shardcron_runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a worker waits for a message before it looks whether it is to stop.
const POLL: Duration = Duration::from_secs(1);

/// How long a worker waits after the queue didn't answer.
const PAUSE: Duration = Duration::from_secs(1);

/// How soon the planner ticks again where one tick didn't come to the end of what is due: nobody has to wait for the
/// timer, and the sweep gets its turn.
const MORE_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// Workers at their queues, until told to stop.
pub(crate) struct Workers {
    stop: Arc<AtomicBool>,
    woken: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Workers {
    /// Starts one worker at the instances and `count` at the shards.
    pub(crate) fn start(runtime: &Runtime, count: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (woken, wake) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut spawn = |queue| tasks.spawn(work(runtime.clone(), queue, Arc::clone(&stop), wake.clone()));
        spawn(QueueName::Instances);
        for _ in 0..count {
            spawn(QueueName::Shards);
        }
        spawn(QueueName::BackfillShards);
        Self { stop, woken, tasks }
    }

    /// Lets each worker commit and give back what it has, and waits for that.
    pub(crate) async fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Whoever only waits for a message needn't wait any longer.
        self.woken.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn work(runtime: Runtime, queue: QueueName, stop: Arc<AtomicBool>, mut wake: watch::Receiver<bool>) {
    let budget = Budget { ends: None, stop: Some(Arc::clone(&stop)) };
    while !stop.load(Ordering::Relaxed) {
        // A message that was on its way to a worker that stops is seen again when its visibility ends.
        let received = tokio::select! {
            received = runtime.engine.queue.receive(queue, 1, POLL) => received,
            _ = wake.changed() => return,
        };
        match received {
            Ok(messages) => {
                for message in messages {
                    handle(&runtime, queue, message, &budget).await;
                }
            }
            Err(error) => {
                runtime.engine.events.emit(Event::new(events::TROUBLE).with("error", error.to_string()));
                runtime.engine.clock.sleep(PAUSE).await;
            }
        }
    }
}

/// One message, in the shape in which Lambda hands it over; deleted unless it is to come again.
async fn handle(runtime: &Runtime, queue: QueueName, message: Received, budget: &Budget) {
    let receipt = message.receipt.clone();
    let event = batch_of(message);
    let response: SqsBatchResponse = match queue {
        QueueName::Instances => shardcron_fanout::handler::handle(runtime, event).await,
        QueueName::Shards | QueueName::BackfillShards => {
            shardcron_shard::handler::handle(runtime, queue, event, budget).await
        }
    };
    if response.batch_item_failures.is_empty() {
        // If this fails, the message comes again, and is found to be about nothing.
        let _ = runtime.engine.queue.delete(queue, &receipt).await;
    }
}

fn batch_of(message: Received) -> SqsEvent {
    let mut one = SqsMessage::default();
    one.message_id = Some(message.id);
    one.receipt_handle = Some(message.receipt);
    one.body = Some(message.body);
    one.attributes = HashMap::from([("ApproximateReceiveCount".to_owned(), message.receive_count.to_string())]);
    let mut event = SqsEvent::default();
    event.records = vec![one];
    event
}

/// The planner each `tick`, and the sweep each second where that costs nothing, until told to stop.
pub(crate) struct Timer {
    /// How often the planner looks for what is due.
    pub(crate) tick: std::time::Duration,
    /// How often the sweep looks at what is unfinished between ticks; `None`: only at ticks.
    pub(crate) sweep: Option<std::time::Duration>,
    /// Whether the first sweep looks at everything, since the queues begin empty.
    pub(crate) queues_are_new: bool,
}

impl Timer {
    /// Runs until `stopped` is done. Whatever goes wrong is told of, and tried again at the next tick.
    pub(crate) async fn run(self, runtime: &Runtime, stopped: impl Future<Output = ()>) {
        let mut stopped = std::pin::pin!(stopped);
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sweeps = tokio::time::interval(self.sweep.unwrap_or(self.tick));
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut which = if self.queues_are_new { Sweep::All } else { Sweep::Due };
        loop {
            let outcome = tokio::select! {
                () = &mut stopped => return,
                _ = ticks.tick() => {
                    let ticked = shardcron_planner::handler::tick(runtime, which).await;
                    if matches!(&ticked, Ok(ticked) if ticked.more) {
                        ticks.reset_after(MORE_AFTER.min(self.tick));
                    }
                    ticked.map(|_| which = Sweep::Due).map_err(|error| error.full_text())
                }
                _ = sweeps.tick(), if self.sweep.is_some() => {
                    runtime.engine.sweep(Sweep::Due).await.map(|_| ()).map_err(|error| error.full_text())
                }
            };
            if let Err(error) = outcome {
                runtime.engine.events.emit(Event::new(events::TROUBLE).with("error", error));
            }
        }
    }
}
