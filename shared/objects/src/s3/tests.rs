//! What an endpoint that works never shows: lost answers, conflicts, bodies that break off, refusals. A server of ours
//! gives each request the next of its scripted answers.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use shardcron_domain::limits::OBJECT_BYTES_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::put::check_size;
use super::read::covered;
use super::*;

mod parts;

/// No answer: the connection ends.
const LOST: &str = "";

/// An answer with these headers (each with its line's end) and this body.
fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len())
}

fn error(status: &str, code: &str) -> String {
    answer(status, "", &format!("<Error><Code>{code}</Code><Message>no</Message></Error>"))
}

fn tagged(status: &str, body: &str) -> String {
    answer(status, "ETag: \"t\"\r\n", body)
}

/// The answer to a HEAD: a length and no body.
fn head(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\nETag: \"t\"\r\n\r\n")
}

/// Reads a request; returns its head.
async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let read = stream.read_buf(&mut bytes).await.unwrap();
        assert!(read > 0, "the request broke off");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return head.to_owned();
        }
    }
}

/// An adapter whose requests get these answers, one after the other; and, once all are given, the requests' heads.
async fn scripted(answers: impl IntoIterator<Item = String>) -> (S3Objects, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.into_iter().collect();
    let requests = tokio::spawn(async move {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            heads.push(request(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        heads
    });
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .build();
    (S3Objects::new(Client::from_conf(config)), requests)
}

fn object() -> ObjectName {
    ObjectName { root: Root::Bucket("bucket".to_owned()), key: "a/b".to_owned() }
}

async fn put_absent(answers: impl IntoIterator<Item = String>) -> (Result<Put, ObjectsError>, Vec<String>) {
    let (objects, requests) = scripted(answers).await;
    let put = objects.put_if_absent(&object(), Bytes::from_static(b"ours")).await;
    (put, requests.await.unwrap())
}

fn written() -> Put {
    Put::Written(ETag("\"t\"".to_owned()))
}

#[tokio::test]
async fn a_put_that_meets_its_own_lost_sending_was_written() {
    let refused = error("412 Precondition Failed", "PreconditionFailed");
    let (put, requests) = put_absent([LOST.to_owned(), refused, head(4), tagged("200 OK", "ours")]).await;
    assert_eq!(put.unwrap(), written());
    assert!(requests[0].to_ascii_lowercase().contains("if-none-match: *"), "{}", requests[0]);
    assert!(requests[3].contains("if-match: \"t\""), "{}", requests[3]);
}

#[tokio::test]
async fn a_put_that_meets_anothers_object_after_a_lost_answer_is_refused() {
    let refused = || error("412 Precondition Failed", "PreconditionFailed");
    for rest in [vec![head(5)], vec![head(4), tagged("200 OK", "ourz")], vec![answer("404 Not Found", "", "")]] {
        let answers = [error("500 Internal Server Error", "InternalError"), refused()].into_iter().chain(rest);
        assert_eq!(put_absent(answers).await.0.unwrap(), Put::Refused);
    }
}

#[tokio::test]
async fn a_put_that_was_refused_at_once_reads_nothing_back() {
    let (put, _) = put_absent([error("412 Precondition Failed", "PreconditionFailed")]).await;
    assert_eq!(put.unwrap(), Put::Refused);
}

#[tokio::test]
async fn a_put_that_meets_another_under_way_is_sent_again_so_often() {
    let conflict = || error("409 Conflict", "ConditionalRequestConflict");
    assert_eq!(put_absent([conflict(), tagged("200 OK", "")]).await.0.unwrap(), written());
    // Nothing was written by what met a conflict, so there is nothing to read back.
    let refused = error("412 Precondition Failed", "PreconditionFailed");
    assert_eq!(put_absent([conflict(), refused]).await.0.unwrap(), Put::Refused);
    let (put, _) = put_absent([conflict(), conflict(), conflict()]).await;
    assert!(matches!(put, Err(ObjectsError::Unavailable { .. })), "{put:?}");
}

#[tokio::test]
async fn a_put_if_match_of_an_absent_object_is_refused_and_of_an_absent_bucket_an_error() {
    let tag = ETag("\"old\"".to_owned());
    let (objects, requests) = scripted([error("404 Not Found", "NoSuchKey")]).await;
    assert_eq!(objects.put_if_match(&object(), &tag, Bytes::new()).await.unwrap(), Put::Refused);
    assert!(requests.await.unwrap()[0].contains("if-match: \"old\""));
    let (objects, _requests) = scripted([error("404 Not Found", "NoSuchBucket")]).await;
    let put = objects.put_if_match(&object(), &tag, Bytes::new()).await;
    assert!(matches!(put, Err(ObjectsError::Refused { .. })), "{put:?}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error() {
    let truncated = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf";
    let (objects, _requests) = scripted([truncated.to_owned()]).await;
    let mut reader = objects.get(&object(), None, None).await.unwrap();
    let end = loop {
        match reader.next().await {
            Ok(Some(bytes)) => assert!(b"half".starts_with(&bytes)),
            end => break end,
        }
    };
    assert!(matches!(end, Err(ObjectsError::Unavailable { .. })), "{end:?}");
}

#[tokio::test]
async fn a_range_is_what_was_asked_for() {
    let whole = tagged("200 OK", "0123456789");
    let (objects, _requests) = scripted([whole]).await;
    let refused = objects.get(&object(), Some(2..4), None).await.err();
    assert!(matches!(refused, Some(ObjectsError::Refused { .. })), "{refused:?}");

    assert_eq!(covered("bytes 2-3/10", &(2..4)), Some(2));
    assert_eq!(covered("bytes 2-9/10", &(2..u64::MAX)), Some(8));
    for (wrong, range) in [("bytes 2-3/10", 2..5), ("bytes 0-3/10", 2..4), ("bytes 2-3/*", 2..4), ("2-3/10", 2..4)] {
        assert_eq!(covered(wrong, &range), None, "{wrong}");
    }
}

#[tokio::test]
async fn a_range_beyond_the_end_has_no_bytes_and_still_its_condition() {
    let tag = ETag("\"t\"".to_owned());
    let beyond = || error("416 Requested Range Not Satisfiable", "InvalidRange");
    let (objects, requests) = scripted([beyond(), head(4)]).await;
    assert_eq!(objects.get(&object(), Some(9..12), Some(&tag)).await.unwrap().next().await.unwrap(), None);
    assert!(requests.await.unwrap().iter().all(|request| request.contains("if-match: \"t\"")));
    let (objects, _requests) = scripted([beyond(), answer("412 Precondition Failed", "", "")]).await;
    let changed = objects.get(&object(), Some(9..12), Some(&tag)).await.err();
    assert!(matches!(changed, Some(ObjectsError::Changed { .. })), "{changed:?}");
}

fn listing(keys: &[&str], next: &str) -> String {
    let object = |key: &&str| format!("<Contents><Key>{key}</Key><Size>1</Size><ETag>\"t\"</ETag></Contents>");
    let contents: String = keys.iter().map(object).collect();
    let next = match next {
        "" => "<IsTruncated>false</IsTruncated>".to_owned(),
        next => format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>"),
    };
    answer("200 OK", "", &format!("<ListBucketResult>{next}{contents}</ListBucketResult>"))
}

#[tokio::test]
async fn a_listing_goes_on_over_short_and_empty_pages() {
    let root = object().root;
    let (objects, requests) = scripted([listing(&["b"], "1"), listing(&[], "2"), listing(&["c", "d"], "3")]).await;
    let found = objects.list(&root, "", Some("a"), 3).await.unwrap();
    assert_eq!(found.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(), ["b", "c", "d"]);
    let requests = requests.await.unwrap();
    assert!(requests[0].contains("start-after=a") && requests[0].contains("max-keys=3"), "{}", requests[0]);
    assert!(requests[2].contains("continuation-token=2") && requests[2].contains("max-keys=2"), "{}", requests[2]);
}

#[tokio::test]
async fn a_listing_out_of_order_is_refused() {
    for keys in [["c", "b"], ["b", "b"], ["a", "b"]] {
        let (objects, _requests) = scripted([listing(&keys, "")]).await;
        let listed = objects.list(&object().root, "", Some("a"), 10).await;
        assert!(matches!(listed, Err(ObjectsError::Refused { .. })), "{keys:?}: {listed:?}");
    }
}

#[tokio::test]
async fn an_error_says_what_was_tried_and_what_to_look_at() {
    let (objects, _requests) = scripted([error("404 Not Found", "NoSuchBucket")]).await;
    let text = objects.list(&object().root, "a/", None, 1).await.unwrap_err().to_string();
    assert_eq!(text, "listing s3://bucket/a/: NoSuchBucket: no (create the bucket, or mend its name)");
    let (objects, _requests) = scripted([answer("403 Forbidden", "", "")]).await;
    let text = objects.head(&object()).await.unwrap_err().to_string();
    assert!(text.starts_with("looking at s3://bucket/a/b: HTTP status 403 (the credentials"), "{text}");
}

#[tokio::test]
async fn names_that_s3_has_not_are_refused_before_any_request() {
    let (objects, _requests) = scripted([]).await;
    let path = Root::Directory("/data".to_owned());
    let refused = objects.list(&path, "in/", None, 1).await.unwrap_err().to_string();
    assert!(refused.contains("/data/in/") && refused.contains("--local"), "{refused}");
    for key in [String::new(), "é".repeat(513)] {
        let object = ObjectName { key, ..object() };
        assert!(matches!(objects.head(&object).await, Err(ObjectsError::Name { .. })));
    }
}

#[test]
fn answers_are_sorted_by_what_the_caller_can_do() {
    let of = Meaning::of;
    assert_eq!(of(404, Some("NoSuchKey")), Meaning::Absent);
    assert_eq!(of(404, None), Meaning::Absent);
    assert_eq!(of(404, Some("NoSuchUpload")), Meaning::UploadGone);
    assert_eq!(of(404, Some("NoSuchBucket")), Meaning::Refused);
    assert_eq!(of(403, Some("AccessDenied")), Meaning::Refused);
    assert_eq!(of(503, Some("SlowDown")), Meaning::Unavailable);
    assert_eq!(of(400, Some("RequestTimeout")), Meaning::Unavailable);
    assert_eq!(of(500, None), Meaning::Unavailable);
    assert_eq!(of(501, Some("NotImplemented")), Meaning::Refused);
    assert_eq!(of(409, Some("ConditionalRequestConflict")), Meaning::Conflict);
}

#[test]
fn a_put_has_a_bound() {
    assert!(check_size(OBJECT_BYTES_MAX).is_ok());
    assert!(matches!(check_size(OBJECT_BYTES_MAX + 1), Err(Fault::TooLarge(_))));
}
