//! Uploads in parts: the requests' order, the condition on the completion, and what becomes of one that fails.

use super::*;

fn begun() -> String {
    answer("200 OK", "", "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
}

fn sent() -> String {
    tagged("200 OK", "")
}

fn completed() -> String {
    let tag = "<CompleteMultipartUploadResult><ETag>\"t\"</ETag></CompleteMultipartUploadResult>";
    answer("200 OK", "", tag)
}

fn aborted() -> String {
    answer("204 No Content", "", "")
}

fn lost_to_another() -> String {
    error("412 Precondition Failed", "PreconditionFailed")
}

/// Puts ten bytes, in parts of so many; gives the requests' first lines too.
async fn put(part: u64, answers: Vec<String>) -> (Result<Put, ObjectsError>, Vec<String>) {
    let (mut objects, requests) = scripted(answers).await;
    objects.cut = Cut { single_max: 9, part };
    let put = objects.put_if_absent(&object(), Bytes::from_static(b"0123456789")).await;
    (put, requests.await.unwrap())
}

/// What the requests were, by method and query.
fn kinds(requests: &[String]) -> Vec<&'static str> {
    let kind = |head: &String| match head.lines().next().unwrap() {
        line if line.starts_with("POST") && line.contains("?uploads") => "begin",
        line if line.starts_with("PUT") && line.contains("partNumber=") => "part",
        line if line.starts_with("POST") && line.contains("uploadId=u") => "complete",
        line if line.starts_with("DELETE") && line.contains("uploadId=u") => "abort",
        line if line.starts_with("HEAD") => "look",
        line if line.starts_with("GET") => "read",
        line => panic!("{line}"),
    };
    requests.iter().map(kind).collect()
}

#[tokio::test]
async fn a_large_content_goes_in_parts_and_its_completion_carries_the_condition() {
    let (put, requests) = put(4, vec![begun(), sent(), sent(), sent(), completed()]).await;
    assert_eq!(put.unwrap(), written());
    assert_eq!(kinds(&requests), ["begin", "part", "part", "part", "complete"]);
    let mut lengths: Vec<_> = requests[1..4].iter().map(|head| head.contains("content-length: 2\r\n")).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [false, false, true], "4, 4 and 2 bytes: {requests:?}");
    let has_condition = |head: &String| head.to_ascii_lowercase().contains("if-none-match: *");
    assert_eq!(requests.iter().map(has_condition).collect::<Vec<_>>(), [false, false, false, false, true]);
}

#[tokio::test]
async fn a_content_within_the_bound_goes_by_one_request() {
    let (mut objects, requests) = scripted([tagged("200 OK", "")]).await;
    objects.cut = Cut { single_max: 10, part: 4 };
    assert_eq!(objects.put_if_absent(&object(), Bytes::from_static(b"0123456789")).await.unwrap(), written());
    assert_eq!(requests.await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_upload_whose_part_is_refused_is_aborted() {
    let (put, requests) = put(10, vec![begun(), error("403 Forbidden", "AccessDenied"), aborted()]).await;
    assert!(matches!(put, Err(ObjectsError::Refused { .. })), "{put:?}");
    assert_eq!(kinds(&requests), ["begin", "part", "abort"]);
}

#[tokio::test]
async fn an_upload_that_cannot_be_completed_is_aborted() {
    let (put, requests) = put(10, vec![begun(), sent(), lost_to_another(), aborted()]).await;
    assert_eq!(put.unwrap(), Put::Refused);
    assert_eq!(kinds(&requests), ["begin", "part", "complete", "abort"]);
    // What can't even be aborted is refused all the same.
    let failing = error("403 Forbidden", "AccessDenied");
    let (put, _) = self::put(10, vec![begun(), sent(), lost_to_another(), failing]).await;
    assert_eq!(put.unwrap(), Put::Refused);
}

#[tokio::test]
async fn a_completion_that_meets_its_own_lost_sending_was_written() {
    let failed_late = || answer("200 OK", "", "<Error><Code>InternalError</Code><Message>no</Message></Error>");
    for first in [LOST.to_owned(), failed_late(), error("503 Service Unavailable", "SlowDown")] {
        for second in [lost_to_another(), error("404 Not Found", "NoSuchUpload")] {
            let answers = vec![begun(), sent(), first.clone(), second, head(10), tagged("200 OK", "0123456789")];
            let (put, requests) = put(10, answers).await;
            assert_eq!(put.unwrap(), written(), "{first}");
            assert_eq!(kinds(&requests), ["begin", "part", "complete", "complete", "look", "read"]);
        }
    }
}

#[tokio::test]
async fn an_upload_that_is_gone_or_met_another_write_is_made_anew_so_often() {
    let gone = || error("404 Not Found", "NoSuchUpload");
    let conflict = || error("409 Conflict", "ConditionalRequestConflict");
    let once = |end: String| vec![begun(), sent(), end, aborted()];
    for first in [gone(), conflict()] {
        let (put, _) = put(10, [once(first), vec![begun(), sent(), completed()]].concat()).await;
        assert_eq!(put.unwrap(), written());
    }
    let (put, _) = put(10, [once(conflict()), once(gone()), once(conflict())].concat()).await;
    assert!(matches!(put, Err(ObjectsError::Unavailable { .. })), "{put:?}");
}

#[tokio::test]
async fn a_later_upload_knows_what_an_earlier_one_has_written() {
    // The first completion's answer is lost, and its second sending meets what it has written itself, still under way.
    let conflict = error("409 Conflict", "ConditionalRequestConflict");
    let absent = answer("404 Not Found", "", "");
    let first = [begun(), sent(), LOST.to_owned(), conflict, absent, aborted()];
    let second = [begun(), sent(), lost_to_another(), head(10), tagged("200 OK", "0123456789")];
    let (put, _) = put(10, first.into_iter().chain(second).collect()).await;
    assert_eq!(put.unwrap(), written());
}
