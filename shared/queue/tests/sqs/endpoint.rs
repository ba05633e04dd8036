//! Where the suite runs.

use std::collections::BTreeMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use shardcron_embedded::EmbeddedQueues;
use shardcron_queue::QueueName;
use shardcron_queue::sqs::SqsQueue;

use crate::conformance::VISIBILITY_SECONDS;

pub(crate) fn client(url: &str) -> Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(url)
        .retry_config(RetryConfig::disabled())
        .build();
    Client::from_conf(config)
}

/// Queues of one test's own.
pub(crate) struct Endpoint {
    _embedded: Option<EmbeddedQueues>,
    client: Client,
    urls: BTreeMap<QueueName, String>,
}

impl Endpoint {
    pub(crate) async fn start(test: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "says where the tests run, and nothing else")]
        let outside = std::env::var("SHARDCRON_TEST_ENDPOINT").ok();
        let embedded = outside.is_none().then(|| EmbeddedQueues::start(&[]).unwrap());
        let url = outside.as_deref().or(embedded.as_ref().map(EmbeddedQueues::endpoint)).unwrap();
        let client = client(url);
        let mut urls = BTreeMap::new();
        for (queue, seconds) in VISIBILITY_SECONDS {
            let request = client
                .create_queue()
                // SQS's names have 80 characters at most.
                .queue_name(format!("{test:.50}-{}-{queue:?}", std::process::id()))
                .attributes(QueueAttributeName::VisibilityTimeout, seconds.to_string());
            urls.insert(queue, request.send().await.unwrap().queue_url.unwrap());
        }
        Self { _embedded: embedded, client, urls }
    }

    pub(crate) fn queue(&self) -> SqsQueue {
        SqsQueue::new(self.client.clone(), self.urls.clone())
    }

    pub(crate) async fn stop(self) {
        for url in self.urls.into_values() {
            self.client.delete_queue().queue_url(url).send().await.unwrap();
        }
    }
}
