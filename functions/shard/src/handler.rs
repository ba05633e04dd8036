//! Turns a batch of shard messages (one, as deployed) into work on shards.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use shardcron_engine::Budget;
use shardcron_engine::messages::ShardMessage;
use shardcron_queue::QueueName;
use shardcron_runtime::Runtime;
use shardcron_runtime::messages::each_message;

/// Works on each shard for as long as the budget lasts; the answer names the messages that must come again.
pub async fn handle(runtime: &Runtime, queue: QueueName, event: SqsEvent, budget: &Budget) -> SqsBatchResponse {
    runtime.clock.anchor_anew();
    let engine = &runtime.engine;
    let answer = each_message(runtime, queue, event, |message: ShardMessage, delivery| async move {
        engine.run_shard(&message.key(), Some(delivery), budget).await
    });
    answer.await
}
