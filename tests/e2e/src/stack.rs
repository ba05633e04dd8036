//! The stack: what can be asked of it, and told to it, by commands.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::wait::{SOON, eventually};

/// Set by whoever has deployed a stack: then a test that finds none fails, and doesn't pass by for want of it.
const REQUIRED: &str = "SHARDCRON_E2E_REQUIRED";

/// A queue of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOf {
    /// Of instances.
    Instances,
    /// Of shards.
    Shards,
    /// Of backfilled instances' shards.
    BackfillShards,
}

impl QueueOf {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Instances, Self::Shards, Self::BackfillShards];

    fn url(self) -> String {
        required(match self {
            Self::Instances => "SHARDCRON_QUEUE_INSTANCES",
            Self::Shards => "SHARDCRON_QUEUE_SHARDS",
            Self::BackfillShards => "SHARDCRON_QUEUE_BACKFILL_SHARDS",
        })
    }
}

/// A deployed stack, at the endpoint that the environment names. The commands find it there by themselves.
#[derive(Debug)]
pub struct Stack {
    /// Where it is.
    pub endpoint: String,
    bucket: String,
    planner: String,
    /// The shard function's name.
    pub shard_function: String,
    aws: PathBuf,
    shardcron: PathBuf,
    run: String,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn required(name: &str) -> String {
    variable(name).unwrap_or_else(|| panic!("{name} isn't set; localstack/env prints all that is needed"))
}

/// Says that a test isn't run; fails where it must be.
pub fn not_run(test: &str, why: &str) {
    assert!(variable(REQUIRED).is_none(), "{test} can't be run: {why}");
    // Not by a macro, whose output the test harness keeps to itself.
    let mut out = std::io::stderr().lock();
    writeln!(out, "not run: {test}; {why}").unwrap();
}

impl Stack {
    /// The stack that the environment names; says that this test isn't run if it names none.
    #[must_use]
    pub fn for_test(test: &str) -> Option<Self> {
        let (Some(endpoint), Some(_)) = (variable("AWS_ENDPOINT_URL"), variable("SHARDCRON_STACK")) else {
            not_run(test, "AWS_ENDPOINT_URL and SHARDCRON_STACK aren't set");
            return None;
        };
        // Beside the directory of the tests' own binaries.
        let shardcron = std::env::current_exe().unwrap().parent().unwrap().with_file_name("shardcron");
        Some(Self {
            endpoint,
            bucket: required("SHARDCRON_BUCKET"),
            planner: required("SHARDCRON_PLANNER_FUNCTION"),
            shard_function: required("SHARDCRON_SHARD_FUNCTION"),
            aws: variable("SHARDCRON_AWS").map_or_else(|| "aws".into(), PathBuf::from),
            shardcron: variable("SHARDCRON_BIN").map_or(shardcron, PathBuf::from),
            run: format!("{:x}", SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()),
        })
    }

    /// What no other run has in its jobs' names.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// A place in the stack's own bucket.
    #[must_use]
    pub fn place(&self, kind: &str, of: &str) -> String {
        format!("s3://{}/{kind}/{of}/", self.bucket)
    }

    fn aws(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        // By name, as the first version of the AWS CLI goes to AWS itself for SQS otherwise.
        let endpoint = ["--endpoint-url", &self.endpoint];
        succeeded("aws", Command::new(&self.aws).args(endpoint).args(args).output().unwrap())
    }

    fn shardcron(&self, args: &[&str]) -> String {
        succeeded("shardcron", Command::new(&self.shardcron).args(args).output().unwrap())
    }

    /// Writes an object into the stack's bucket.
    pub fn put(&self, key: &str, content: &str) {
        let file = file_of(content);
        let to = format!("s3://{}/{key}", self.bucket);
        self.aws(["s3".as_ref(), "cp".as_ref(), "--only-show-errors".as_ref(), file.path().as_os_str(), to.as_ref()]);
    }

    /// The content of an object in the stack's bucket.
    #[must_use]
    pub fn get(&self, key: &str) -> String {
        self.aws(["s3", "cp", "--only-show-errors", &format!("s3://{}/{key}", self.bucket), "-"])
    }

    /// Whether there is such an object.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        let of = ["s3api", "list-objects-v2", "--bucket", &self.bucket, "--prefix", key];
        self.aws(of.iter().chain(&["--query", "length(Contents || `[]`)"])).trim() != "0"
    }

    /// Hands a payload to the planner function; gives its answer.
    ///
    /// # Errors
    /// What the function said in the place of an answer.
    pub fn answer(&self, payload: &Value) -> Result<Value, String> {
        let (file, answer) = (file_of(&payload.to_string()), NamedTempFile::new().unwrap());
        let payload = format!("fileb://{}", file.path().display());
        let invoke = ["lambda", "invoke", "--function-name", &self.planner, "--payload", &payload];
        let said = ["--query", "FunctionError", "--output", "text"];
        let answer_to = [answer.path().to_str().unwrap()];
        let fault = self.aws(invoke.iter().chain(&said).chain(&answer_to));
        let text = std::fs::read_to_string(answer.path()).unwrap();
        if fault.trim() == "None" { Ok(serde_json::from_str(&text).unwrap()) } else { Err(text) }
    }

    /// Hands a payload to the planner function, which must take it.
    pub fn invoke(&self, payload: &Value) -> Value {
        self.answer(payload).unwrap_or_else(|fault| panic!("{payload} was refused: {fault}"))
    }

    /// What the command tells of an instance or a job.
    #[must_use]
    pub fn describe(&self, what: &str) -> Value {
        serde_json::from_str(&self.shardcron(&["--json", "describe", what])).unwrap()
    }

    /// The published output of an instance.
    #[must_use]
    pub fn results(&self, instance: &str) -> String {
        self.shardcron(&["results", instance])
    }

    /// The certificate of an instance, as it stands in the bucket.
    #[must_use]
    pub fn certificate(&self, instance: &str) -> Value {
        serde_json::from_str(&self.get(&certificate_key(instance))).unwrap()
    }

    /// Whether an instance has a certificate.
    #[must_use]
    pub fn is_published(&self, instance: &str) -> bool {
        self.has(&certificate_key(instance))
    }

    /// Waits for the end of an instance.
    pub fn ends(&self, instance: &str, deadline: Duration) -> Value {
        eventually(&format!("the end of {instance}"), deadline, || {
            let now = self.describe(instance);
            let has_ended = ["Succeeded", "Failed", "Cancelled", "Replaced"].iter().any(|end| now["status"] == *end);
            has_ended.then_some(now)
        })
    }

    /// Waits until an instance has got so many records done and isn't at its end; gives how many.
    pub fn is_at_work(&self, instance: &str, records: u64, deadline: Duration) -> u64 {
        eventually(&format!("{records} records of {instance}"), deadline, || {
            let now = self.describe(instance);
            let done = now["records"]["in"].as_u64().unwrap();
            assert_ne!(now["status"], "Succeeded", "it was to be met at work: {now}");
            (now["status"] == "Running" && done >= records).then_some(done)
        })
    }

    /// Sends messages to a queue.
    pub fn send(&self, queue: QueueOf, bodies: &[String]) {
        for batch in bodies.chunks(10) {
            let entry =
                |(number, body): (usize, &String)| serde_json::json!({ "Id": number.to_string(), "MessageBody": body });
            let entries = Value::from(batch.iter().enumerate().map(entry).collect::<Vec<_>>());
            let file = file_of(&entries.to_string());
            let entries = format!("file://{}", file.path().display());
            let answer = self.aws(["sqs", "send-message-batch", "--queue-url", &queue.url(), "--entries", &entries]);
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["Successful"].as_array().unwrap().len(), batch.len(), "{answer}");
        }
    }

    /// How many messages a queue holds, those in flight included.
    #[must_use]
    pub fn messages(&self, queue: QueueOf) -> u64 {
        self.count(&queue.url())
    }

    /// Waits until no queue holds a message, and so no function has one in its hands. For tests that run alone.
    pub fn until_drained(&self) {
        eventually("the queues are empty", 2 * SOON, || {
            QueueOf::ALL.iter().all(|queue| self.messages(*queue) == 0).then_some(())
        });
    }

    /// How many messages the queue's dead letters are.
    #[must_use]
    pub fn dead_letters(&self, queue: QueueOf) -> u64 {
        let attributes = self.attributes(&queue.url(), "RedrivePolicy");
        let policy: Value = serde_json::from_str(attributes["RedrivePolicy"].as_str().unwrap()).unwrap();
        let dead = policy["deadLetterTargetArn"].as_str().unwrap().rsplit(':').next().unwrap();
        let url = self.aws(["sqs", "get-queue-url", "--queue-name", dead, "--query", "QueueUrl", "--output", "text"]);
        self.count(url.trim())
    }

    fn count(&self, url: &str) -> u64 {
        let attributes = self.attributes(url, "All");
        let number = |kind: &str| attributes[kind].as_str().unwrap().parse::<u64>().unwrap();
        number("ApproximateNumberOfMessages") + number("ApproximateNumberOfMessagesNotVisible")
    }

    fn attributes(&self, url: &str, names: &str) -> Value {
        let of =
            ["sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", names, "--query", "Attributes"];
        serde_json::from_str(&self.aws(of)).unwrap()
    }
}

/// `job:2026-01-05T00:00:00Z` has its certificate under `output/<job>/<job>@2026-01-05T00:00:00Z/`.
fn certificate_key(instance: &str) -> String {
    let (job, at) = instance.split_once(':').unwrap();
    format!("output/{job}/{job}@{at}/_certificate.json")
}

fn file_of(content: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

fn succeeded(what: &str, output: Output) -> String {
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("commands print UTF-8")
}
