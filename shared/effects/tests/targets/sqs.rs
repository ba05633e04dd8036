//! Queues as targets, on SQS in process.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use shardcron_domain::outbox::Answer;
use shardcron_effects::{EffectTargets, HttpTargets, SqsTargets, Targets};
use shardcron_embedded::EmbeddedQueues;

use super::{row, sender, spec};

fn client(url: &str) -> Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(url)
        .retry_config(RetryConfig::disabled());
    Client::from_conf(config.build())
}

fn targets(client: &Client) -> Targets {
    let client = client.clone();
    let sqs = SqsTargets::new(Box::new(move || Box::pin(std::future::ready(client.clone()))));
    Targets::new(HttpTargets::new(Arc::new(|_| None)), sqs)
}

async fn queue(client: &Client, name: &str) -> String {
    let request = client.create_queue().queue_name(name);
    let request =
        if name.ends_with(".fifo") { request.attributes(QueueAttributeName::FifoQueue, "true") } else { request };
    request.send().await.unwrap().queue_url.unwrap()
}

/// The next messages, deleted: their bodies with their attributes and system attributes, by name.
async fn received(client: &Client, url: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let answer = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(10)
        .message_attribute_names("All")
        .message_system_attribute_names(MessageSystemAttributeName::All)
        .send()
        .await
        .unwrap();
    let mut found = Vec::new();
    for receipt in answer.messages().iter().filter_map(|message| message.receipt_handle()) {
        client.delete_message().queue_url(url).receipt_handle(receipt).send().await.unwrap();
    }
    for message in answer.messages.unwrap_or_default() {
        let own = message.message_attributes.unwrap_or_default();
        let own = own.into_iter().map(|(name, value)| (name, value.string_value.unwrap_or_default()));
        let system = message.attributes.unwrap_or_default();
        let system = system.into_iter().map(|(name, value)| (name.as_str().to_owned(), value));
        found.push((message.body.unwrap_or_default(), own.chain(system).collect()));
    }
    found
}

#[tokio::test]
async fn a_message_carries_id_and_token() {
    let queues = EmbeddedQueues::start(&[]).unwrap();
    let client = client(queues.endpoint());
    let url = queue(&client, "payments").await;
    for target in ["sqs:payments".to_owned(), format!("sqs:{url}")] {
        let effect = row(&target, "{\"a\":\"é\"}");
        let answer = targets(&client).send(&spec(&target), &sender(), &effect).await;
        assert!(matches!(answer, Answer::Status { status: 200, .. }), "{answer:?}");
        let came = received(&client, &url).await;
        assert_eq!(came.len(), 1, "{target}");
        let (body, attributes) = &came[0];
        assert_eq!(*body, effect.body);
        assert_eq!(attributes["Idempotency-Key"], effect.request_id.as_str());
        assert_eq!(attributes["Shardcron-Token"], "2000000007");
        assert_eq!(attributes["Shardcron-Instance"], "pay:2026-08-29T16:00:00Z");
        assert_eq!(attributes["Shardcron-Shard"], "00003");
    }
}

#[tokio::test]
async fn a_fifo_queue_drops_what_comes_twice_and_keeps_the_order_of_a_shard() {
    let queues = EmbeddedQueues::start(&[]).unwrap();
    let client = client(queues.endpoint());
    let url = queue(&client, "payments.fifo").await;
    let targets = targets(&client);
    let spec = spec("sqs:payments.fifo");
    for key in ["1", "2", "1", "3", "2"] {
        let answer = targets.send(&spec, &sender(), &row(key, key)).await;
        assert!(matches!(answer, Answer::Status { status: 200, .. }), "{answer:?}");
    }
    let mut bodies = Vec::new();
    loop {
        // A group's next message comes only after the one before it is deleted.
        let came = received(&client, &url).await;
        if came.is_empty() {
            break;
        }
        for (body, attributes) in came {
            assert_eq!(attributes["MessageGroupId"], "pay:2026-08-29T16:00:00Z:00003");
            assert_eq!(attributes["MessageDeduplicationId"], row(&body, "").request_id.as_str());
            bodies.push(body);
        }
    }
    assert_eq!(bodies, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_queue_that_isnt_there_is_the_targets_fault_and_no_effects() {
    let queues = EmbeddedQueues::start(&[]).unwrap();
    let client = client(queues.endpoint());
    let url = queue(&client, "payments").await;
    for target in ["sqs:nowhere".to_owned(), format!("sqs:{}", url.replace("payments", "nowhere"))] {
        let answer = targets(&client).send(&spec(&target), &sender(), &row("k", "{}")).await;
        assert!(matches!(answer, Answer::Unusable(_)), "{target}: {answer:?}");
    }
    drop(queues);
    let answer = targets(&client).send(&spec("sqs:payments"), &sender(), &row("k", "{}")).await;
    assert!(matches!(answer, Answer::NotSent(_)), "nothing was looked up: {answer:?}");
    let answer = targets(&client).send(&spec(&format!("sqs:{url}")), &sender(), &row("k", "{}")).await;
    assert!(matches!(answer, Answer::Lost(_)), "it may have left: {answer:?}");
    assert!(matches!(targets(&client).install(&spec("sqs:payments"), &sender()).await, Answer::Unusable(_)));
}
