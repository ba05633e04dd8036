//! What a request costs. Prints, and checks nothing:
//! `cargo test -p shardcron-embedded latency -- --ignored --nocapture --test-threads 1`

#![allow(clippy::print_stdout, reason = "a measurement that prints")]

use std::time::Duration;

use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use shardcron_embedded::{EmbeddedQueues, EmbeddedTable, QueueDefinition};
use tokio::time::Instant;

use crate::support::{TABLE, client, create_table, is_there, text};

const ROUNDS: usize = 1000;

async fn measure(what: &str, mut request: impl AsyncFnMut(usize)) {
    let mut took = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
        let begin = Instant::now();
        request(round).await;
        took.push(begin.elapsed());
    }
    took.sort();
    let at = |percent: usize| took[ROUNDS * percent / 100];
    let mean = took.iter().sum::<Duration>() / u32::try_from(ROUNDS).unwrap();
    println!("{what}: median {:?}, 99 % {:?}, worst {:?}, mean {mean:?}", at(50), at(99), took[ROUNDS - 1]);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn table() {
    let directory = tempfile::tempdir().unwrap();
    let on_disk = EmbeddedTable::open(&directory.path().join("table.db")).unwrap();
    let in_memory = EmbeddedTable::in_memory().unwrap();
    for (what, table) in [("file", on_disk), ("memory", in_memory)] {
        let client = client(table.endpoint());
        create_table(&client).await;
        measure(&format!("{what}, conditional put"), async |round| {
            let put = client.put_item().table_name(TABLE).item("PK", text(round.to_string()));
            put.condition_expression("attribute_not_exists(PK)").send().await.unwrap();
        })
        .await;
        measure(&format!("{what}, get"), async |round| {
            assert!(is_there(&client, &round.to_string()).await);
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "a measurement"]
async fn queue() {
    let definition = QueueDefinition { name: "test".to_owned(), visibility_seconds: 30 };
    let queues = EmbeddedQueues::start(&[definition]).unwrap();
    let url = queues.queue_url("test").unwrap();
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(queues.endpoint())
        .build();
    let client = aws_sdk_sqs::Client::from_conf(config);
    measure("queue, send", async |round| {
        client.send_message().queue_url(url).message_body(round.to_string()).send().await.unwrap();
    })
    .await;
    measure("queue, receive and delete", async |_| {
        let received = client.receive_message().queue_url(url).send().await.unwrap();
        let receipt = received.messages()[0].receipt_handle().unwrap();
        client.delete_message().queue_url(url).receipt_handle(receipt).send().await.unwrap();
    })
    .await;
    measure("queue, send to a receive that waits", async |round| {
        let waiting = client.receive_message().queue_url(url).wait_time_seconds(20).send();
        let sending = client.send_message().queue_url(url).message_body(round.to_string()).send();
        let (received, sent) = tokio::join!(waiting, sending);
        sent.unwrap();
        let receipt = received.unwrap().messages()[0].receipt_handle().unwrap().to_owned();
        client.delete_message().queue_url(url).receipt_handle(receipt).send().await.unwrap();
    })
    .await;
}
