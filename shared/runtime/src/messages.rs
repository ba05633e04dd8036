//! SQS batches, as Lambda's event source hands them to a function, answered with the messages that must come again.

use std::future::Future;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use serde::de::DeserializeOwned;
use shardcron_domain::time::Duration;
use shardcron_engine::events::{self, Event};
use shardcron_engine::{Delivery, EngineError, Handled};
use shardcron_queue::QueueName;

use crate::Runtime;

/// Handles each message of a batch in turn. One that is to be looked at later is made visible then and reported as
/// failed, as is one that met an error; one that can't be read is told of and dropped, since it would never be
/// better: messages are hints, and the sweep knows what is to be done.
pub async fn each_message<M, F>(
    runtime: &Runtime,
    queue: QueueName,
    event: SqsEvent,
    mut handle: impl FnMut(M, Delivery) -> F,
) -> SqsBatchResponse
where
    M: DeserializeOwned,
    F: Future<Output = Result<Handled, EngineError>>,
{
    let mut response = SqsBatchResponse::default();
    for message in event.records {
        let SqsMessage { message_id, receipt_handle, body, .. } = message;
        let delivery = Delivery { queue, receipt: receipt_handle.unwrap_or_default() };
        let read = serde_json::from_str::<M>(body.as_deref().unwrap_or_default());
        let again = match read {
            Err(error) => {
                let text = format!("a message that isn't one of ours was dropped: {error}");
                runtime.engine.events.emit(Event::new(events::TROUBLE).with("error", text));
                false
            }
            Ok(message) => match handle(message, delivery.clone()).await {
                Ok(Handled::Done) => false,
                Ok(Handled::Later(at)) => {
                    let now = runtime.engine.clock.now();
                    // The wait ends when the lease is surely over, not when it may be.
                    let wait = at.since(now.earliest()).max(Duration::ZERO);
                    let _ = runtime.engine.queue.set_visibility(queue, &delivery.receipt, round_up(wait)).await;
                    true
                }
                Err(error) => {
                    runtime.engine.events.emit(Event::new(events::TROUBLE).with("error", error.full_text()));
                    true
                }
            },
        };
        if again {
            response.batch_item_failures.push(failure(message_id.unwrap_or_default()));
        }
    }
    response
}

/// SQS counts visibility in whole seconds.
fn round_up(wait: Duration) -> Duration {
    Duration::from_secs(wait.0.div_euclid(1000) + 1)
}

fn failure(message_id: String) -> BatchItemFailure {
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    failure
}
