//! The bus as an adapter: what it is sent, and which answers count as taken.
#![expect(clippy::unwrap_used, reason = "tests panic where something is wrong")]

use std::net::Ipv4Addr;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use serde_json::{Value, json};
use shardcron_domain::certificate::InstanceName;
use shardcron_domain::ids::{Attempt, Generation};
use shardcron_domain::instance::Window;
use shardcron_engine::announce::{Announcement, Announcer, CertificatePlace};
use shardcron_runtime::announce::EventBus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

fn end() -> Announcement {
    let at = "2026-08-30T00:00:00Z".parse().unwrap();
    Announcement {
        job: "settle".parse().unwrap(),
        scheduled_time: at,
        instance: InstanceName("settle:2026-08-30T00:00:00Z".parse().unwrap()),
        generation: Generation::FIRST,
        attempt: Attempt::FIRST,
        window: Window { start: "2026-08-29T00:00:00Z".parse().unwrap(), end: at },
        outcome: "Succeeded",
        reason: None,
        certificate: Some(CertificatePlace { bucket: "ledger".to_owned(), key: "out/_certificate.json".to_owned() }),
        counts: None,
    }
}

/// A bus at an endpoint that gives this answer once, and returns the request's body.
async fn answering(status: u16, answer: &'static str) -> (EventBus, JoinHandle<Value>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let config = aws_sdk_eventbridge::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(format!("http://{}", listener.local_addr().unwrap()))
        .retry_config(RetryConfig::disabled())
        .build();
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        let body = loop {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "a request was cut off");
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.trim().parse().unwrap() {
                break body.to_owned();
            }
        };
        let length = answer.len();
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all((head + answer).as_bytes()).await.unwrap();
        serde_json::from_str(&body).unwrap()
    });
    (EventBus::new(Client::from_conf(config), "ends"), request)
}

#[tokio::test]
async fn an_end_is_one_event_with_all_of_it_as_its_detail() {
    let (bus, request) = answering(200, r#"{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}"#).await;
    bus.announce(&end()).await.unwrap();
    let entries = request.await.unwrap()["Entries"].take();
    assert_eq!(entries.as_array().unwrap().len(), 1);
    let entry = &entries[0];
    assert_eq!((&entry["EventBusName"], &entry["Source"]), (&json!("ends"), &json!("shardcron")));
    assert_eq!(entry["DetailType"], "Instance Ended");
    let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
    assert_eq!(detail, serde_json::to_value(end()).unwrap());
}

/// An answer of 200 that says that the entry wasn't taken isn't one that was.
#[tokio::test]
async fn what_was_not_taken_is_an_error_with_its_reason() {
    let refusal = r#"{"FailedEntryCount":1,"Entries":[{"ErrorCode":"ThrottlingException","ErrorMessage":"slow"}]}"#;
    for (status, answer, why) in [
        (200, refusal, "ThrottlingException"),
        (200, r#"{"FailedEntryCount":1}"#, "no reason given"),
        (400, r#"{"__type":"AccessDeniedException","message":"not allowed"}"#, ""),
    ] {
        let (bus, request) = answering(status, answer).await;
        let error = bus.announce(&end()).await.unwrap_err();
        assert_eq!(error.instance, "settle:2026-08-30T00:00:00Z");
        assert!(error.source.to_string().contains(why), "{error}");
        request.await.unwrap();
    }
}
