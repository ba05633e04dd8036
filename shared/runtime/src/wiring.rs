//! Wiring: the engine over real adapters, on AWS or against stand-ins.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, Region, retry::RetryConfig, timeout::TimeoutConfig};
use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::limits::{READY_POLL, REQUEST_ATTEMPT_TIMEOUT, REQUEST_ATTEMPTS_MAX};
use shardcron_domain::location::Location;
use shardcron_domain::time::Duration;
use shardcron_effects::{HttpTargets, SqsClient, SqsTargets, Targets};
use shardcron_engine::announce::Announcer;
use shardcron_engine::ports::Events;
use shardcron_engine::{Engine, Ports, Settings};
use shardcron_objects::Objects;
use shardcron_objects::by_root::ByRoot;
use shardcron_objects::local::LocalObjects;
use shardcron_objects::s3::S3Objects;
use shardcron_queue::QueueName;
use shardcron_queue::sqs::SqsQueue;
use shardcron_store::dynamo::{CapacityObserver, DateInterceptor, DynamoStore};
use shardcron_work::Works;

use crate::Runtime;
use crate::announce::EventBus;
use crate::chance::OsRandom;
use crate::clock::StorageClock;
use crate::config::{self, Config, environment};

/// The AWS SDK's variable for an endpoint of S3's alone.
const S3_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// What stands in for AWS on one machine.
pub struct Local {
    /// Where DynamoDB's stand-in answers.
    pub table_endpoint: String,
    /// The table's name there.
    pub table: String,
    /// Where SQS's stand-in answers.
    pub queue_endpoint: String,
    /// The queues' URLs there.
    pub queues: BTreeMap<QueueName, String>,
    /// The directory that stands in for buckets.
    pub objects: PathBuf,
    /// The installation's own place for manifests.
    pub state: Location,
    /// The lease that executors take.
    pub lease: Duration,
    /// How long after sending messages the sweep sends them again.
    pub resend_after: Duration,
    /// How often an input that isn't ready is looked at again.
    pub ready_poll: Duration,
}

/// What every installation has, wherever it runs.
pub struct Common {
    /// The works that jobs can name.
    pub works: Works,
    /// The zone rules.
    pub rules: ZoneRules,
    /// Who is told what happens.
    pub events: Arc<dyn Events>,
    /// Who is told what the table's requests consume; asking for it costs nothing.
    pub capacity: Option<Arc<dyn CapacityObserver>>,
}

/// A client's configuration for a stand-in: any credentials do, and no request leaves the machine.
fn stand_in(endpoint: &str) -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .credentials_provider(aws_sdk_dynamodb::config::SharedCredentialsProvider::new(Credentials::new(
            "local",
            "local",
            None,
            None,
            "shardcron",
        )))
        .build()
}

/// A store on the table at this configuration's endpoint, and the clock that its answers set.
fn dynamo(
    config: &SdkConfig,
    table: &str,
    capacity: Option<&Arc<dyn CapacityObserver>>,
) -> (DynamoStore, Arc<StorageClock>) {
    let clock = Arc::new(StorageClock::new());
    let builder = aws_sdk_dynamodb::config::Builder::from(config)
        .retry_config(RetryConfig::standard().with_max_attempts(REQUEST_ATTEMPTS_MAX))
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(REQUEST_ATTEMPT_TIMEOUT.to_std()).build())
        .interceptor(DateInterceptor::new(Arc::clone(&clock) as _));
    let store = DynamoStore::new(aws_sdk_dynamodb::Client::from_conf(builder.build()), table);
    match capacity {
        Some(observer) => (store.with_capacity_observer(Arc::clone(observer)), clock),
        None => (store, clock),
    }
}

/// The targets of effects, with the secrets that the environment has now.
fn targets(sqs: SqsClient) -> Targets {
    let secrets = config::secrets();
    Targets::new(HttpTargets::new(Arc::new(move |name| secrets.get(name).cloned())), SqsTargets::new(sqs))
}

/// A client of the SQS that the environment names, made when it is first needed. For the embedded installation too: an
/// effect is for somebody outside, who couldn't read a queue within this process.
fn outer_sqs() -> SqsClient {
    Box::new(|| {
        Box::pin(async { aws_sdk_sqs::Client::new(&aws_config::defaults(BehaviorVersion::latest()).load().await) })
    })
}

/// What an installation reaches besides its table.
struct Reached {
    objects: Arc<dyn Objects>,
    queue: SqsQueue,
    effects: Targets,
    announcer: Option<Arc<dyn Announcer>>,
}

fn runtime(
    (store, clock): (DynamoStore, Arc<StorageClock>),
    reached: Reached,
    common: Common,
    settings: Settings,
) -> Runtime {
    let engine = Engine::new(Ports {
        store: Arc::new(store),
        objects: reached.objects,
        queue: Arc::new(reached.queue),
        effects: Arc::new(reached.effects),
        clock: Arc::clone(&clock) as _,
        random: Arc::new(OsRandom),
        events: common.events,
        announcer: reached.announcer,
        works: common.works,
        rules: common.rules,
        settings,
    });
    Runtime { engine, clock }
}

/// The engine over stand-ins on one machine. Creates the table if it isn't there.
///
/// # Errors
/// When the stand-in refuses the table.
pub async fn local(local: Local, common: Common) -> Result<Runtime, shardcron_store::StoreError> {
    let (store, clock) = dynamo(&stand_in(&local.table_endpoint), &local.table, common.capacity.as_ref());
    store.create_table().await?;
    let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&stand_in(&local.queue_endpoint)), local.queues);
    let objects = Arc::new(LocalObjects::new(local.objects));
    let settings = Settings {
        lease: local.lease,
        resend_after: local.resend_after,
        ready_poll: local.ready_poll,
        state: local.state,
    };
    let reached = Reached { objects, queue, effects: targets(outer_sqs()), announcer: None };
    Ok(runtime((store, clock), reached, common, settings))
}

/// The engine on AWS, or on what answers in its place at `AWS_ENDPOINT_URL`. Region, credentials and endpoint are those
/// that the SDK finds in the environment, in its files or from the machine; a fault of theirs shows at the first request.
/// Objects are in buckets; a path is refused, since a function's own disk is no place for what others read.
pub async fn aws(config: &Config, common: Common) -> Runtime {
    let sdk = aws_config::defaults(BehaviorVersion::latest()).load().await;
    over(&sdk, config, buckets(&sdk), common)
}

/// The same with directories of this machine beside the buckets: for processes that all see the same ones.
pub async fn aws_with_directories(config: &Config, common: Common) -> Runtime {
    let sdk = aws_config::defaults(BehaviorVersion::latest()).load().await;
    // No bucket is looked for in the directory that would have them.
    let directories = Arc::new(LocalObjects::new(PathBuf::new()));
    let objects = Arc::new(ByRoot::new(buckets(&sdk), directories));
    over(&sdk, config, objects, common)
}

fn buckets(sdk: &SdkConfig) -> Arc<dyn Objects> {
    // At an endpoint of its own a bucket has no host name, and goes into the path.
    let has_endpoint = sdk.endpoint_url().is_some() || environment(S3_ENDPOINT).is_some();
    let s3 = aws_sdk_s3::config::Builder::from(sdk).force_path_style(has_endpoint);
    Arc::new(S3Objects::new(aws_sdk_s3::Client::from_conf(s3.build())))
}

fn over(sdk: &SdkConfig, config: &Config, objects: Arc<dyn Objects>, common: Common) -> Runtime {
    let (store, clock) = dynamo(sdk, &config.table, common.capacity.as_ref());
    let sqs = aws_sdk_sqs::Client::new(sdk);
    let queue = SqsQueue::new(sqs.clone(), config.queues.clone());
    let effects = targets(Box::new(move || Box::pin(std::future::ready(sqs.clone()))));
    let settings = Settings {
        lease: config.lease,
        resend_after: config.resend_after,
        ready_poll: READY_POLL,
        state: config.state.clone(),
    };
    let bus = aws_sdk_eventbridge::config::Builder::from(sdk)
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(REQUEST_ATTEMPT_TIMEOUT.to_std()).build())
        .build();
    let bus = config.event_bus.as_ref().map(|name| EventBus::new(aws_sdk_eventbridge::Client::from_conf(bus), name));
    let reached = Reached { objects, queue, effects, announcer: bus.map(|bus| Arc::new(bus) as _) };
    runtime((store, clock), reached, common, settings)
}
