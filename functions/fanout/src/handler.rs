//! Turns a batch of instance messages into steps of instances.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use shardcron_engine::messages::InstanceMessage;
use shardcron_queue::QueueName;
use shardcron_runtime::Runtime;
use shardcron_runtime::messages::each_message;

/// Does the step that is due of each instance; the answer names the messages that must come again.
pub async fn handle(runtime: &Runtime, event: SqsEvent) -> SqsBatchResponse {
    runtime.clock.anchor_anew();
    let engine = &runtime.engine;
    let answer = each_message(runtime, QueueName::Instances, event, |message: InstanceMessage, _| async move {
        engine.advance(&message.instance.0).await
    });
    answer.await
}
