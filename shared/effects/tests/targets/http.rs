//! HTTP: what leaves, and what is made of what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use shardcron_domain::outbox::{Answer, OutboxRow};
use shardcron_domain::time::Duration;
use shardcron_effects::{EffectTargets, HttpTargets, SqsTargets, Targets};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::{row, sender, spec};

/// A request as it came.
#[derive(Debug)]
struct Came {
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// Answers each connection's one request with the next of these texts; an empty one closes it without an answer.
async fn server(answers: &[&str]) -> (String, mpsc::UnboundedReceiver<Came>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/payments?a=b", listener.local_addr().unwrap());
    let (came, seen) = mpsc::unbounded_channel();
    let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            came.send(read(&mut stream).await).unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (url, seen)
}

async fn read(stream: &mut TcpStream) -> Came {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let line = lines.next().unwrap().to_owned();
            let header = |line: &str| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_lowercase(), value.to_owned())
            };
            let headers: BTreeMap<String, String> = lines.map(header).collect();
            let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Came { line, headers, body: body.to_owned() };
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{text}");
    }
}

fn targets() -> Targets {
    let secrets = |name: &str| match name {
        "SHARDCRON_SECRET_LEDGER" => Some("Bearer abc".to_owned()),
        "SHARDCRON_SECRET_BROKEN" => Some("a\nb".to_owned()),
        _ => None,
    };
    let no_sqs = Box::new(|| -> futures::future::BoxFuture<'static, aws_sdk_sqs::Client> { panic!("no SQS here") });
    Targets::new(HttpTargets::new(Arc::new(secrets)), SqsTargets::new(no_sqs))
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test]
async fn an_effect_is_a_post_with_its_id_and_its_senders_token() {
    let (url, mut seen) = server(&[&answer(201, "", "done")]).await;
    let row = OutboxRow { content_type: Some("text/plain".to_owned()), ..row("k", "héllo") };
    let outcome = targets().send(&spec(&url), &sender(), &row).await;
    assert_eq!(outcome, Answer::Status { status: 201, text: "done".to_owned(), retry_after: None });
    let came = seen.recv().await.unwrap();
    assert_eq!((came.line.as_str(), came.body.as_str()), ("POST /payments?a=b HTTP/1.1", "héllo"));
    for (name, value) in [
        ("idempotency-key", row.request_id.as_str()),
        ("shardcron-instance", "pay:2026-08-29T16:00:00Z"),
        ("shardcron-generation", "2"),
        ("shardcron-shard", "00003"),
        ("shardcron-token", "2000000007"),
        ("content-type", "text/plain"),
    ] {
        assert_eq!(came.headers.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!came.headers.contains_key("authorization") && !came.headers.contains_key("shardcron-install"));
}

#[tokio::test]
async fn a_token_is_brought_by_a_put_and_an_outcome_asked_for_by_a_get() {
    let (url, mut seen) = server(&[&answer(204, "", ""), &answer(404, "", "unheard of")]).await;
    let mut spec = spec(&url);
    spec.authorization_env = Some("SHARDCRON_SECRET_LEDGER".to_owned());
    spec.outcomes = Some(url.replace("payments?a=b", "payments/{id}"));
    let targets = targets();
    assert!(matches!(targets.install(&spec, &sender()).await, Answer::Status { status: 204, .. }));
    let came = seen.recv().await.unwrap();
    assert_eq!((came.line.as_str(), came.body.as_str()), ("PUT /payments?a=b HTTP/1.1", ""));
    assert_eq!(
        (came.headers["shardcron-install"].as_str(), came.headers["shardcron-token"].as_str()),
        ("1", "2000000007")
    );
    assert_eq!(came.headers["authorization"], "Bearer abc");
    assert!(!came.headers.contains_key("idempotency-key"));

    let id = row("k", "").request_id;
    assert!(matches!(targets.ask(&spec, &id).await, Answer::Status { status: 404, .. }));
    let came = seen.recv().await.unwrap();
    assert_eq!(came.line, format!("GET /payments/{id} HTTP/1.1"));
    assert_eq!(came.headers["authorization"], "Bearer abc");
}

#[tokio::test]
async fn the_status_counts_whatever_comes_after_it() {
    let long = "x".repeat(100_000);
    let cut = "HTTP/1.1 500 X\r\ncontent-length: 20\r\n\r\nhalf".to_owned();
    let cases = [
        (answer(503, "retry-after: 7\r\n", "later"), 503, "later", Some(Duration::from_secs(7))),
        (answer(429, "retry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n", ""), 429, "", None),
        (answer(422, "", &long), 422, "", None),
        (answer(302, "location: http://127.0.0.1:1/\r\n", ""), 302, "", None),
        (cut, 500, "", None),
    ];
    for (text, status, said, retry_after) in cases {
        let (url, _seen) = server(&[&text]).await;
        let outcome = targets().send(&spec(&url), &sender(), &row("k", "{}")).await;
        assert_eq!(outcome, Answer::Status { status, text: said.to_owned(), retry_after });
    }
}

#[tokio::test]
async fn no_connection_is_told_from_no_answer() {
    let (url, _seen) = server(&[""]).await;
    assert!(matches!(targets().send(&spec(&url), &sender(), &row("k", "{}")).await, Answer::Lost(_)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert!(matches!(targets().send(&spec(&url), &sender(), &row("k", "{}")).await, Answer::NotSent(_)));
    // It speaks no TLS: no request has left when that shows.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let (targets, spec, sender, row) = (targets(), spec(&url), sender(), row("k", "{}"));
    let (answer, _) = tokio::join!(targets.send(&spec, &sender, &row), async { drop(listener.accept().await) });
    assert!(matches!(answer, Answer::NotSent(_)), "{answer:?}");
}

#[tokio::test]
async fn a_secret_that_isnt_there_is_the_targets_fault_and_no_effects() {
    for name in ["SHARDCRON_SECRET_NONE", "SHARDCRON_SECRET_BROKEN"] {
        let mut spec = spec("http://127.0.0.1:1/");
        spec.authorization_env = Some(name.to_owned());
        let Answer::Unusable(why) = targets().send(&spec, &sender(), &row("k", "{}")).await else { panic!("{name}") };
        assert!(why.contains(name) && !why.contains("a\nb"), "{why}");
    }
}
