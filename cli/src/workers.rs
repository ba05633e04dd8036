//! Workers: the same handlers as the Lambda functions', fed from the queues by this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use serde_json::{Value, json};
use shardcron_domain::time::Duration;
use shardcron_engine::events::{self, Event};
use shardcron_engine::{Budget, Sweep};
use shardcron_queue::{QueueName, Received};
use shardcron_runtime::Runtime;
use tokio::task::JoinSet;

/// How long a worker waits for a message before it looks whether it is to stop.
const POLL: Duration = Duration::from_secs(1);

/// How long a worker waits after the queue didn't answer.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Workers at their queues, until told to stop.
pub(crate) struct Workers {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Workers {
    /// Starts one worker at the instances and `count` at the shards.
    pub(crate) fn start(runtime: &Runtime, count: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        tasks.spawn(work(runtime.clone(), QueueName::Instances, Arc::clone(&stop)));
        for _ in 0..count {
            tasks.spawn(work(runtime.clone(), QueueName::Shards, Arc::clone(&stop)));
        }
        tasks.spawn(work(runtime.clone(), QueueName::BackfillShards, Arc::clone(&stop)));
        Self { stop, tasks }
    }

    /// Lets each worker commit and give back what it has, and waits for that.
    pub(crate) async fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn work(runtime: Runtime, queue: QueueName, stop: Arc<AtomicBool>) {
    let budget = Budget { ends: None, stop: Some(Arc::clone(&stop)) };
    while !stop.load(Ordering::Relaxed) {
        match runtime.engine.queue.receive(queue, 1, POLL).await {
            Ok(messages) => {
                for message in messages {
                    handle(&runtime, queue, message, &budget).await;
                }
            }
            Err(error) => {
                runtime.engine.events.emit(Event::new(events::TROUBLE).with("error", error.to_string()));
                tokio::time::sleep(PAUSE).await;
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

/// The timer's event, as EventBridge sends it.
pub(crate) fn timer_event() -> Result<EventBridgeEvent<Value>, serde_json::Error> {
    serde_json::from_value(json!({
        "version": "0", "id": "local", "detail-type": shardcron_planner::handler::TIMER_DETAIL_TYPE, "source": "aws.events",
        "account": "000000000000", "time": "1970-01-01T00:00:00Z", "region": "local", "resources": [], "detail": {}
    }))
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
                _ = ticks.tick() => match timer_event() {
                    Ok(event) => shardcron_planner::handler::handle(runtime, event, which)
                        .await
                        .map(|_| which = Sweep::Due)
                        .map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                },
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
