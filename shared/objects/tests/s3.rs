//! The conformance suite on S3, or on what stands in for it, at the endpoint in `SHARDCRON_TEST_S3_ENDPOINT`.
//!
//! The region is us-east-1, and the credentials are those in `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
//! `AWS_SESSION_TOKEN`; without them, some that any stand-in takes. `SHARDCRON_TEST_S3_LARGE_RACES=no` leaves out what
//! LocalStack 4.14.0 is known to get wrong: racing completions of uploads in parts, all of which it lets win.
#![expect(clippy::unwrap_used, reason = "panics are how a test reports")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use shardcron_objects::s3::S3Objects;
use shardcron_objects::{Objects, Root, conformance};

/// Where to test.
const ENDPOINT: &str = "SHARDCRON_TEST_S3_ENDPOINT";

#[expect(clippy::disallowed_methods, reason = "a test that needs an endpoint is told of it by the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether large contents race; they do, unless this is `no`.
const LARGE_RACES: &str = "SHARDCRON_TEST_S3_LARGE_RACES";

/// Something that no other run has in its buckets' names.
#[expect(clippy::disallowed_methods, reason = "only to tell runs apart")]
fn run() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{:x}-{:x}", now.as_millis(), std::process::id())
}

fn client(endpoint: &str) -> Client {
    let or_test = |name| variable(name).unwrap_or_else(|| "test".to_owned());
    let credentials = Credentials::new(
        or_test("AWS_ACCESS_KEY_ID"),
        or_test("AWS_SECRET_ACCESS_KEY"),
        variable("AWS_SESSION_TOKEN"),
        None,
        "test",
    );
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .credentials_provider(credentials);
    Client::from_conf(config.build())
}

/// Deletes a bucket of this test and what is in it.
async fn remove(client: &Client, bucket: &str) {
    loop {
        let page = client.list_objects_v2().bucket(bucket).send().await.unwrap();
        for object in page.contents() {
            client.delete_object().bucket(bucket).key(object.key().unwrap()).send().await.unwrap();
        }
        if page.is_truncated() != Some(true) {
            break;
        }
    }
    client.delete_bucket().bucket(bucket).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_conforms() {
    let Some(endpoint) = variable(ENDPOINT) else {
        // Not by a macro, whose output the test harness keeps to itself.
        writeln!(std::io::stderr(), "not run: the conformance suite on S3; {ENDPOINT} isn't set").unwrap();
        return;
    };
    let client = client(&endpoint);
    let objects: Arc<dyn Objects> = Arc::new(S3Objects::new(client.clone()));
    let (run, buckets) = (run(), Mutex::new(Vec::new()));
    let root = |part: &str| {
        let bucket = format!("shardcron-{part}-{run}");
        let create = async { client.create_bucket().bucket(&bucket).send().await.unwrap() };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(create));
        buckets.lock().unwrap().push(bucket.clone());
        Root::Bucket(bucket)
    };
    if variable(LARGE_RACES).as_deref() == Some("no") {
        writeln!(std::io::stderr(), "left out: races of large contents; {LARGE_RACES} is `no`").unwrap();
        conformance::all_but_large_races(objects, root).await;
    } else {
        conformance::all(objects, root).await;
    }
    for bucket in buckets.into_inner().unwrap() {
        remove(&client, &bucket).await;
    }
}
