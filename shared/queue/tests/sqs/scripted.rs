//! What no emulator shows: a batch taken in part, throttling, and answers that can't be told apart by hand.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use shardcron_domain::time::Duration;
use shardcron_embedded::{EmbeddedQueues, QueueDefinition};
use shardcron_queue::sqs::SqsQueue;
use shardcron_queue::{Outgoing, Queue, QueueError, QueueName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::endpoint::client;

const QUEUE: QueueName = QueueName::Instances;

/// An endpoint that gives these answers (status and body) in turn, and returns the requests' bodies.
async fn scripted(answers: Vec<(u16, &'static str)>) -> (SqsQueue, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let queue = queue_at(&format!("http://{}", listener.local_addr().unwrap()), "http://localhost/0/instances");
    let requests = tokio::spawn(async move {
        let mut requests = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            requests.push(request_body(&mut stream).await);
            let head = format!(
                "HTTP/1.1 {status} scripted\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + body).as_bytes()).await.unwrap();
        }
        requests
    });
    (queue, requests)
}

fn queue_at(endpoint: &str, url: &str) -> SqsQueue {
    SqsQueue::new(client(endpoint), BTreeMap::from([(QUEUE, url.to_owned())]))
}

async fn request_body(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.trim().parse().unwrap() {
                return body.to_owned();
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "a request was cut off");
    }
}

fn messages(count: usize) -> Vec<Outgoing> {
    (0..count).map(|n| Outgoing { body: format!("body-{n}"), delay: Duration::ZERO }).collect()
}

const TAKEN_IN_PART: &str = r#"{
    "Successful": [{"Id": "0", "MessageId": "a", "MD5OfMessageBody": "3cb42b68d1ab2b1d71e3d4b0f1a1f6f9"}],
    "Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": false}]
}"#;
const THE_OTHER_TAKEN: &str =
    r#"{"Successful": [{"Id": "1", "MessageId": "b", "MD5OfMessageBody": "3cb42b68d1ab2b1d71e3d4b0f1a1f6f9"}]}"#;
const THE_OTHER_FAILED: &str = r#"{"Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": false}]}"#;
const ONE_REFUSED: &str = r#"{"Failed": [
    {"Id": "0", "Code": "InvalidMessageContents", "Message": "invalid characters", "SenderFault": true},
    {"Id": "1", "Code": "RequestThrottled", "SenderFault": true}
]}"#;

#[tokio::test]
async fn what_a_batch_left_out_is_sent_once_more() {
    let (queue, requests) = scripted(vec![(200, TAKEN_IN_PART), (200, THE_OTHER_TAKEN)]).await;
    queue.send(QUEUE, messages(2)).await.unwrap();
    let requests = requests.await.unwrap();
    assert!(requests[0].contains("body-0") && requests[0].contains("body-1"), "{requests:?}");
    assert!(!requests[1].contains("body-0") && requests[1].contains("body-1"), "{requests:?}");
}

#[tokio::test]
async fn what_is_left_out_twice_is_unavailable() {
    let (queue, requests) = scripted(vec![(200, TAKEN_IN_PART), (200, THE_OTHER_FAILED)]).await;
    let failed = queue.send(QUEUE, messages(2)).await;
    assert!(matches!(failed, Err(QueueError::Unavailable { .. })), "{failed:?}");
    assert_eq!(requests.await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_refused_message_is_not_sent_again_and_the_others_are() {
    let (queue, requests) = scripted(vec![(200, ONE_REFUSED), (200, THE_OTHER_TAKEN)]).await;
    let failed = queue.send(QUEUE, messages(2)).await.unwrap_err();
    assert!(matches!(failed, QueueError::Refused { .. }), "{failed:?}");
    assert!(failed.to_string().contains("invalid characters"), "{failed}");
    let requests = requests.await.unwrap();
    assert!(!requests[1].contains("body-0") && requests[1].contains("body-1"), "{requests:?}");
}

#[tokio::test]
async fn an_answer_is_an_error_by_what_the_caller_can_do() {
    let receipt = r#"{"__type": "com.amazonaws.sqs#InvalidParameterValue",
        "message": "Value x for parameter ReceiptHandle is invalid. Reason: Message does not exist."}"#;
    let answers = vec![
        (400, r#"{"__type": "com.amazonaws.sqs#RequestThrottled", "message": "slow down"}"#),
        (503, "no JSON"),
        (400, receipt),
        (400, r#"{"__type": "com.amazonaws.sqs#ReceiptHandleIsInvalid", "message": "no"}"#),
        (400, r#"{"__type": "com.amazonaws.sqs#AccessDeniedException", "message": "no"}"#),
    ];
    let (queue, requests) = scripted(answers).await;
    let mut kinds = Vec::new();
    for _ in 0..5 {
        kinds.push(match queue.set_visibility(QUEUE, "x", Duration::from_secs(1)).await.unwrap_err() {
            QueueError::Unavailable { .. } => "unavailable",
            QueueError::Gone { .. } => "gone",
            QueueError::Refused { .. } => "refused",
        });
    }
    assert_eq!(kinds, ["unavailable", "unavailable", "gone", "gone", "refused"]);
    requests.await.unwrap();
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_refused() {
    let definition = QueueDefinition { name: "there".to_owned(), visibility_seconds: 30 };
    let queues = EmbeddedQueues::start(&[definition]).unwrap();
    let there = queues.queue_url("there").unwrap();
    queue_at(queues.endpoint(), there).send(QUEUE, messages(1)).await.unwrap();

    let missing = queue_at(queues.endpoint(), &there.replace("there", "missing"));
    let refused = missing.send(QUEUE, messages(1)).await;
    assert!(matches!(refused, Err(QueueError::Refused { .. })), "{refused:?}");

    let no_url = missing.receive(QueueName::Shards, 1, Duration::ZERO).await.unwrap_err();
    assert_eq!(no_url.to_string(), "can't receive from the queue of shards: no URL is configured for it");
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_unavailable() {
    let queues = EmbeddedQueues::start(&[]).unwrap();
    let queue = queue_at(queues.endpoint(), "http://localhost/0/instances");
    drop(queues);
    let failed = queue.receive(QUEUE, 1, Duration::ZERO).await;
    assert!(matches!(failed, Err(QueueError::Unavailable { .. })), "{failed:?}");
}

#[test]
fn a_queue_that_cannot_be_defined_is_named() {
    let definition = QueueDefinition { name: "no spaces".to_owned(), visibility_seconds: 30 };
    let refused = EmbeddedQueues::start(&[definition]).unwrap_err().to_string();
    assert!(refused.contains("`no spaces`"), "{refused}");
    let definition = QueueDefinition { name: "long".to_owned(), visibility_seconds: 43_201 };
    assert!(EmbeddedQueues::start(&[definition]).is_err());
}
