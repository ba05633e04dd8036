//! An installation that several processes share, and the jobs that they run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::location::{Location, Root};
use shardcron_domain::time::Duration as Span;
use shardcron_embedded::{EmbeddedQueues, EmbeddedTable, QueueDefinition};
use shardcron_queue::QueueName;
use shardcron_runtime::config;
use shardcron_runtime::telemetry::Silent;
use shardcron_runtime::wiring::{self, Common, Local};
use shardcron_work::Works;

use crate::generate::{Draw, Oracle, ledger};
use crate::harness::{Finished, LEASE_SECONDS, Process, Published, Site, repository};
use crate::wait::{eventually, within};

const TABLE: &str = "shardcron";

/// How long an instance may take to its end, with what befalls its hosts, on a machine that is busy with other tests:
/// leases end, and pauses after failures.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// How often an instance is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// The scheduled time that most tests run.
pub(crate) const INSTANCE: &str = "ledger:2026-01-05T00:00:00Z";

/// A table and queues, and the variables by which a process finds them.
pub(crate) struct Installation {
    pub(crate) site: Site,
    variables: Vec<(String, String)>,
    _table: EmbeddedTable,
    _queues: EmbeddedQueues,
}

impl Installation {
    /// An empty one, whose manifests and snapshots are in this directory of the site.
    pub(crate) fn with_state(site: Site, state: &str) -> Self {
        let table = EmbeddedTable::open(&site.path("store/table.db")).unwrap();
        let name = |queue: QueueName| format!("{queue:?}").to_lowercase();
        let definitions = QueueName::ALL.map(|queue| QueueDefinition { name: name(queue), visibility_seconds: 3 });
        let queues = EmbeddedQueues::start(&definitions).unwrap();
        let url = |queue: QueueName| queues.queue_url(&name(queue)).unwrap().to_owned();
        create(&site, &table, &queues, QueueName::ALL.map(|queue| (queue, url(queue))).into());
        let mut variables = BTreeMap::from([
            (config::TABLE, TABLE.to_owned()),
            (config::STATE, format!("{}/", site.path(state).display())),
            (config::QUEUE_INSTANCES, url(QueueName::Instances)),
            (config::QUEUE_SHARDS, url(QueueName::Shards)),
            (config::QUEUE_BACKFILL_SHARDS, url(QueueName::BackfillShards)),
            ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint().to_owned()),
            ("AWS_ENDPOINT_URL_SQS", queues.endpoint().to_owned()),
        ]);
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            variables.insert(name, "local".to_owned());
        }
        variables.insert("AWS_REGION", "us-east-1".to_owned());
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { site, variables, _table: table, _queues: queues }
    }

    pub(crate) fn new(site: Site) -> Self {
        Self::with_state(site, "state")
    }

    fn start(&self, args: &[&str], more: &[(&str, &str)]) -> Process {
        let own = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.site.start_with(args, &own.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// A host, with these variables beside those that it needs.
    pub(crate) fn host(&self, more: &[(&str, &str)]) -> Process {
        self.start(&["host", "--tick", "1s", "--workers", "2"], more)
    }

    pub(crate) fn run_with(&self, args: &[&str], more: &[(&str, &str)]) -> Finished {
        self.start(args, more).finish(LONG)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.run_with(args, &[])
    }

    /// Applies a job and begins an instance of it at each of these times of its calendar.
    pub(crate) fn begin(&self, job: &Value, times: &[&str]) {
        let name = job["name"].as_str().unwrap();
        self.site.job(&format!("{name}.json"), job);
        self.run(&["apply", &format!("{name}.json")]).exits(0);
        for time in times {
            self.run(&["trigger", name, "--at", time, "--json"]).exits(0);
        }
    }

    pub(crate) fn describe(&self, instance: &str) -> Value {
        self.run(&["describe", instance, "--json"]).exits(0).json()
    }

    /// Waits until an instance has ended; what is shown of it then.
    pub(crate) fn ended(&self, instance: &str) -> Finished {
        let mut described = self.run(&["describe", instance, "--json"]).exits(0);
        let ended = within(LONG, || {
            let status = described.json()["status"].as_str().unwrap().to_owned();
            let is_over = matches!(&*status, "Succeeded" | "Failed" | "Cancelled" | "Replaced");
            if !is_over {
                // Looking costs a process each time, and the hosts need the machine.
                within(LOOK, || false);
                described = self.run(&["describe", instance, "--json"]).exits(0);
            }
            is_over
        });
        assert!(ended, "{instance} hasn't ended after {LONG:?}: {:#}", described.json());
        described
    }

    /// Waits for its end, and asserts that what is published is this, with so many records, and that it is proven.
    #[track_caller]
    pub(crate) fn is_exact(&self, instance: &str, content: &str, records: u64) -> Published {
        let published = Published::of(&self.ended(instance));
        assert_eq!(published.content, content, "{instance}");
        assert_eq!(published.records(), [records, records, 0], "{}", published.certificate);
        let verified = self.run(&["verify", instance, "--json"]).exits(0).json();
        assert_eq!(verified["proven"], true, "{verified}");
        assert_eq!(verified["records"], json!({ "in": records, "out": records, "rejected": 0 }));
        assert_eq!(self.run(&["results", instance]).exits(0).text(), content);
        published
    }
}

/// Makes the table, as whoever sets up an installation does.
fn create(site: &Site, table: &EmbeddedTable, queues: &EmbeddedQueues, urls: BTreeMap<QueueName, String>) {
    let local = Local {
        table_endpoint: table.endpoint().to_owned(),
        table: TABLE.to_owned(),
        queue_endpoint: queues.endpoint().to_owned(),
        queues: urls,
        objects: PathBuf::new(),
        state: Location { root: Root::Directory(site.path("state").display().to_string()), prefix: String::new() },
        lease: Span::from_secs(LEASE_SECONDS as i64),
        resend_after: Span::from_secs(60),
        ready_poll: Span::from_secs(30),
    };
    let common =
        Common { works: Works::builtin(), rules: ZoneRules::bundled(), events: Arc::new(Silent), capacity: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(wiring::local(local, common)).unwrap();
}

/// A ledger: so many files of so many records, and what they come to.
pub(crate) struct Ledger {
    files: Vec<(String, String)>,
    pub(crate) oracle: Oracle,
}

impl Ledger {
    pub(crate) fn new(seed: u64, files: usize, records: usize, groups: u64) -> Self {
        let (files, oracle) = ledger(&mut Draw::new(seed), files, records, groups);
        Self { files, oracle }
    }

    /// A directory with it in `in/`.
    pub(crate) fn site(&self) -> Site {
        let site = Site::new();
        for (name, content) in &self.files {
            site.write(&format!("in/{name}"), content);
        }
        site
    }

    /// A job that reads it, a file a shard, and publishes to this place.
    pub(crate) fn job(&self, batch_records: u64, output: &str) -> Value {
        json!({
            "name": "ledger", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" },
            "shards": { "targetBytes": 1, "batchRecords": batch_records }, "backoffLimit": 20,
            "work": Oracle::work(), "output": { "objects": output, "format": "csv" },
        })
    }

    /// Asserts that an instance of it publishes what it comes to.
    #[track_caller]
    pub(crate) fn is_exact(&self, installation: &Installation, instance: &str) -> Published {
        installation.is_exact(instance, &self.oracle.csv(), self.oracle.records)
    }
}

/// The flights of the example, as a job that runs in the directory of a site.
pub(crate) fn flights(site: &Site) -> (Value, String) {
    let example = repository().join("examples/flights");
    site.write("data/2013-01.csv.gz", fs::read(example.join("data/2013-01.csv.gz")).unwrap());
    let job = serde_json::from_slice(&fs::read(example.join("job.json")).unwrap()).unwrap();
    let expected = fs::read_to_string(repository().join("tests/data/flights/2013-01.expected.csv")).unwrap();
    (job, expected)
}

/// Waits until a process tells of this event.
pub(crate) fn tells(process: &Process, event: &str) -> Value {
    eventually(&format!("event `{event}`"), LONG, || process.events().into_iter().find(|told| told["event"] == event))
}

/// Waits until one of the processes tells of this event: its place among them.
pub(crate) fn one_tells(processes: &[Process], event: &str) -> usize {
    eventually(&format!("event `{event}` of one of them"), LONG, || {
        processes.iter().position(|process| process.events().iter().any(|told| told["event"] == event))
    })
}
