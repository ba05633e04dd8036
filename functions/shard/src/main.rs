//! The shard executor as a Lambda function, for the queues of shards and of backfilled instances' shards alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use shardcron_queue::QueueName;
use shardcron_runtime::config::Config;
use shardcron_runtime::telemetry::emf::EmbeddedMetrics;
use shardcron_runtime::wiring::{self, Common};
use shardcron_runtime::zones::zone_rules;
use shardcron_shard::handler::handle;
use shardcron_work::Works;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let rules = zone_rules(config.zoneinfo.as_deref()).map_err(|error| error.to_string())?;
    let metrics = &Arc::new(EmbeddedMetrics::to_stdout(&config.table, config.metrics_by_job));
    let (events, capacity) = (Arc::clone(metrics) as _, Some(Arc::clone(metrics) as _));
    let common = Common { works: Works::builtin(), rules, events, capacity };
    let runtime = &wiring::aws(&config, common).await;
    let queues = &config.queues;
    let each = |event: LambdaEvent<SqsEvent>| async move {
        let queue = queue_of(queues, &event.payload)?;
        // The deadline goes over to the storage clock, which a frozen process has left behind.
        runtime.anchor().await?;
        let budget = runtime.budget_until(event.context.deadline);
        let answer = handle(runtime, queue, event.payload, &budget).await;
        metrics.invocation_is_over();
        Ok::<_, Error>(answer)
    };
    lambda_runtime::run(service_fn(each)).await
}

/// The queue that a batch came from: its ARN ends in the queue's name, as its URL does.
fn queue_of(queues: &BTreeMap<QueueName, String>, batch: &SqsEvent) -> Result<QueueName, Error> {
    let arn = batch.records.first().and_then(|message| message.event_source_arn.as_deref()).unwrap_or_default();
    let is_it = |url: &str| url.rsplit('/').next() == arn.rsplit(':').next();
    let found = QueueName::ALL.into_iter().find(|queue| queues.get(queue).is_some_and(|url| is_it(url)));
    found.ok_or_else(|| format!("a batch came from `{arn}`, which none of the queues' URLs names").into())
}
