//! Answers that no stand-in gives: throttling, conflicts, broken connections, and the SDK's own further attempts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use shardcron_domain::ids::{GroupNo, ShardId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::{DateInterceptor, DateObserver};
use super::{DynamoStore, config};
use crate::conformance::{Samples, write_id};
use crate::{Guard, Item, Put, SetAdd, Store, StoreError, Transacted, Written};

/// What the server does with a request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// A status and a body.
    Http(u16, &'static str),
    /// The connection ends, before or within the answer.
    Broken(&'static str),
}

const DATE: &str = "Sat, 29 Aug 2026 16:00:00 GMT";
const DONE: Answer = Answer::Http(200, "{}");
const FAILED: Answer = error(500, r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"m"}"#);
const THROTTLED: Answer =
    error(400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"m"}"#);
const CONFLICT: Answer =
    error(400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"m"}"#);
const IN_PROGRESS: Answer =
    error(400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException","message":"m"}"#);
const DENIED: Answer = error(400, r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not you"}"#);
const UNMET: Answer =
    error(400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"m"}"#);
const CANCELED: Answer = error(
    400,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"m","CancellationReasons":[{"Code":"TransactionConflict","Message":"m"}]}"#,
);
const CUT: Answer = Answer::Broken("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{");

const fn error(status: u16, body: &'static str) -> Answer {
    Answer::Http(status, body)
}

#[derive(Debug, Default)]
struct Dates {
    clock: AtomicU64,
    seen: Mutex<Vec<(String, u64, u64)>>,
}

impl DateObserver for Dates {
    fn mark(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn observe(&self, date: &str, sent: u64, received: u64) {
        self.seen.lock().unwrap().push((date.to_owned(), sent, received));
    }
}

/// A store whose requests are answered so, one after another, with as many attempts to each as there are answers.
async fn scripted(answers: &[Answer]) -> (DynamoStore, Arc<Dates>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let script = answers.to_vec();
    tokio::spawn(async move {
        for answer in script {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, answer).await;
        }
    });
    let dates = Arc::new(Dates::default());
    let retries =
        RetryConfig::standard().with_max_attempts(answers.len() as u32).with_initial_backoff(Duration::from_millis(1));
    let config = config(&endpoint).retry_config(retries).interceptor(DateInterceptor::new(dates.clone()));
    (DynamoStore::new(Client::from_conf(config.build()), "jobs"), dates)
}

async fn serve(mut stream: TcpStream, answer: Answer) {
    let mut request = Vec::new();
    let mut length = None;
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some(head) = text.find("\r\n\r\n") {
            let body = *length.get_or_insert_with(|| {
                let value = text.split("content-length:").nth(1).and_then(|rest| rest.split("\r\n").next());
                value.map_or(0, |value| value.trim().parse().unwrap())
            });
            if request.len() >= head + 4 + body {
                break;
            }
        }
        if stream.read_buf(&mut request).await.unwrap() == 0 {
            return;
        }
    }
    let text = match answer {
        Answer::Broken(text) => text.to_owned(),
        Answer::Http(status, body) => format!(
            "HTTP/1.1 {status} X\r\ndate: {DATE}\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ),
    };
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

fn job() -> Put {
    Put { item: Samples::of("a").job(None).into(), guard: Guard::Absent }
}

async fn put(answers: &[Answer]) -> Result<Written, StoreError> {
    scripted(answers).await.0.put(job()).await
}

#[tokio::test]
async fn a_write_says_what_is_known_of_it() {
    assert!(matches!(put(&[DONE]).await, Ok(Written::Applied)));
    assert!(matches!(put(&[THROTTLED]).await, Err(StoreError::Throttled { .. })));
    assert!(matches!(put(&[CONFLICT]).await, Err(StoreError::Conflict { .. })));
    assert!(matches!(put(&[FAILED]).await, Err(StoreError::Unknown { .. })));
    assert!(matches!(put(&[Answer::Broken("")]).await, Err(StoreError::Unknown { .. })));
    assert!(matches!(put(&[CUT]).await, Err(StoreError::Unknown { .. })));
    let denied = put(&[DENIED]).await.unwrap_err();
    assert!(matches!(denied, StoreError::Refused { .. }), "{denied:?}");
    let text = "the write of job a: AccessDeniedException: not you (table `jobs`: the credentials don't allow this";
    assert!(denied.to_string().starts_with(text), "{denied}");
}

/// The SDK tries again by itself: what its last attempt came to isn't all that is known.
#[tokio::test]
async fn an_attempt_without_an_answer_leaves_the_write_unknown() {
    for first in [FAILED, Answer::Broken("")] {
        for last in [THROTTLED, CONFLICT, DENIED, FAILED] {
            let outcome = put(&[first, last]).await;
            assert!(matches!(outcome, Err(StoreError::Unknown { .. })), "{first:?} {last:?}: {outcome:?}");
        }
        // Definite all the same; the write id tells whose the item is.
        assert!(matches!(put(&[first, DONE]).await, Ok(Written::Applied)));
        assert!(matches!(put(&[first, UNMET]).await, Ok(Written::Missing)));
    }
    assert!(matches!(put(&[THROTTLED, THROTTLED]).await, Err(StoreError::Throttled { .. })));
}

#[tokio::test]
async fn a_transaction_says_what_is_known_of_it() {
    let transact = async |answers: &[Answer]| scripted(answers).await.0.transact(vec![job()], &write_id(1)).await;
    assert!(matches!(transact(&[DONE]).await, Ok(Transacted::Applied)));
    assert!(matches!(transact(&[CANCELED]).await, Err(StoreError::Conflict { .. })));
    assert!(matches!(transact(&[IN_PROGRESS]).await, Err(StoreError::Conflict { .. })));
    assert!(matches!(transact(&[FAILED, CANCELED]).await, Err(StoreError::Unknown { .. })));
    assert!(matches!(transact(&[FAILED, IN_PROGRESS]).await, Err(StoreError::Unknown { .. })));
}

#[tokio::test]
async fn an_addition_says_what_is_known_of_it() {
    let done = SetAdd::ShardDone(
        Samples::of("a").run(1),
        GroupNo(0),
        shardcron_domain::group::DoneShard { shard: ShardId::numbered(0), children: 0 },
    );
    let add = async |answers: &[Answer]| scripted(answers).await.0.add(done.clone()).await;
    assert!(matches!(add(&[DONE]).await, Ok(Written::Applied)));
    assert!(matches!(add(&[UNMET]).await, Ok(Written::Missing)));
    assert!(matches!(add(&[CUT]).await, Err(StoreError::Unknown { .. })));
}

#[tokio::test]
async fn a_read_that_fails_is_read_again() {
    let get = async |answers: &[Answer]| scripted(answers).await.0.get(&job().item.key()).await;
    assert!(matches!(get(&[DONE]).await, Ok(None)));
    assert!(matches!(get(&[THROTTLED]).await, Err(StoreError::Throttled { .. })));
    assert!(matches!(get(&[FAILED]).await, Err(StoreError::Unavailable { .. })));
    assert!(matches!(get(&[Answer::Broken("")]).await, Err(StoreError::Unavailable { .. })));
    assert!(matches!(get(&[DENIED]).await, Err(StoreError::Refused { .. })));
    assert!(matches!(get(&[FAILED, DONE]).await, Ok(None::<Item>)));
}

#[tokio::test]
async fn each_answer_shows_the_store_s_clock() {
    let (store, dates) = scripted(&[FAILED, Answer::Broken(""), DONE]).await;
    assert_eq!(store.put(job()).await.unwrap(), Written::Applied);
    let seen = dates.seen.lock().unwrap().clone();
    // Marks 0 and 1 are the first attempt's, 2 the second's, which got no answer, 3 and 4 the third's.
    assert_eq!(seen, [(DATE.to_owned(), 0, 1), (DATE.to_owned(), 3, 4)]);
}
