//! The fan-out as a Lambda function.

use std::convert::Infallible;
use std::sync::Arc;

use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use shardcron_fanout::handler::handle;
use shardcron_runtime::config::Config;
use shardcron_runtime::telemetry::emf::EmbeddedMetrics;
use shardcron_runtime::wiring::{self, Common};
use shardcron_runtime::zones::zone_rules;
use shardcron_work::Works;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let rules = zone_rules(config.zoneinfo.as_deref()).map_err(|error| error.to_string())?;
    let metrics = &Arc::new(EmbeddedMetrics::to_stdout(&config.table, config.metrics_by_job));
    let (events, capacity) = (Arc::clone(metrics) as _, Some(Arc::clone(metrics) as _));
    let common = Common { works: Works::builtin(), rules, events, capacity };
    let runtime = &wiring::aws(&config, common).await;
    let each = |event: LambdaEvent<SqsEvent>| async move {
        let answer = handle(runtime, event.payload).await;
        metrics.invocation_is_over();
        Ok::<_, Infallible>(answer)
    };
    lambda_runtime::run(service_fn(each)).await
}
