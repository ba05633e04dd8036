//! What things cost: a tick of the planner what is due and not what exists, a shard's life its commits.
//!
//! Measured by the table's own account of consumed capacity. `SHARDCRON_TEST_JOBS=100000` makes it that many jobs, of
//! which a hundred are due; by default there are fewer, since they have to be written first.
#![expect(clippy::disallowed_methods, reason = "the size of the test is set by the environment")]
#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, TryStreamExt, stream};
use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::ids::{SpecVersion, Version, WriteId};
use shardcron_domain::instance::{InstanceStatus, Window};
use shardcron_domain::job::JobSpec;
use shardcron_domain::location::{Location, Root};
use shardcron_domain::plan::{Job, Overlap, SpecRecord};
use shardcron_domain::time::{Duration, Millis, ScheduledTime};
use shardcron_embedded::{EmbeddedQueues, EmbeddedTable, QueueDefinition};
use shardcron_engine::Budget;
use shardcron_queue::QueueName;
use shardcron_runtime::Runtime;
use shardcron_runtime::telemetry::Silent;
use shardcron_runtime::wiring::{self, Common, Local};
use shardcron_store::dynamo::CapacityObserver;
use shardcron_store::{Guard, Item, Put};
use shardcron_work::Works;

/// Read units that a due job may cost, and write units.
const READ_UNITS: f64 = 2.5;
const WRITE_UNITS: f64 = 10.0;

#[derive(Default)]
struct Meter(Mutex<BTreeMap<&'static str, (f64, f64)>>);

impl CapacityObserver for Meter {
    fn consumed(&self, operation: &'static str, read_units: f64, write_units: f64) {
        let mut meter = self.0.lock().unwrap();
        let entry = meter.entry(operation).or_default();
        *entry = (entry.0 + read_units, entry.1 + write_units);
    }
}

impl Meter {
    fn take(&self) -> (f64, f64, String) {
        let meter = std::mem::take(&mut *self.0.lock().unwrap());
        let (reads, writes) = meter.values().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (reads, writes, format!("{meter:?}"))
    }
}

async fn installation(meter: &Arc<Meter>) -> (Runtime, EmbeddedTable, EmbeddedQueues, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let table = EmbeddedTable::in_memory().unwrap();
    let definition = |name: &str| QueueDefinition { name: name.to_owned(), visibility_seconds: 30 };
    let names = ["instances", "shards", "backfill"];
    let queues = EmbeddedQueues::start(&names.map(definition)).unwrap();
    let urls =
        QueueName::ALL.into_iter().zip(names).map(|(queue, name)| (queue, queues.queue_url(name).unwrap().to_owned()));
    let local = Local {
        table_endpoint: table.endpoint().to_owned(),
        table: "jobs".to_owned(),
        queue_endpoint: queues.endpoint().to_owned(),
        queues: urls.collect(),
        objects: dir.path().to_owned(),
        state: Location { root: Root::Directory(dir.path().to_str().unwrap().to_owned()), prefix: String::new() },
        lease: Duration::from_secs(30),
        resend_after: Duration::from_secs(60),
        ready_poll: Duration::from_secs(30),
    };
    let common = Common {
        works: Works::builtin(),
        rules: ZoneRules::bundled(),
        events: Arc::new(Silent),
        capacity: Some(Arc::clone(meter) as _),
    };
    let runtime = wiring::local(local, common).await.unwrap();
    runtime.anchor().await.unwrap();
    (runtime, table, queues, dir)
}

fn job(number: usize, is_due: bool, now: Millis) -> [Put; 2] {
    let name = format!("job-{number:06}");
    // This minute of each hour: due once, however long the test takes.
    let minute = now.0.div_euclid(60_000) % 60;
    let schedule = if is_due { format!("{minute} * * * *") } else { "0 0 1 1 *".to_owned() };
    let spec = JobSpec::parse(&format!(
        r#"{{ "name": "{name}", "schedule": "{schedule}", "input": {{ "objects": "s3://data/in/", "format": "csv" }},
             "work": {{ "aggregate": {{ "count": true }} }}, "output": {{ "objects": "s3://data/out/", "format": "csv" }} }}"#
    ))
    .unwrap();
    // A due one was planned up to the minute before.
    let planned_through = ScheduledTime::floor(now.plus(Duration::from_secs(-60))).unwrap();
    let calendar = spec.calendar(&ZoneRules::bundled(), planned_through).unwrap();
    let job = Job {
        name: spec.name.clone(),
        spec: SpecVersion::FIRST,
        spec_digest: "0".repeat(64),
        start: planned_through,
        planned_through,
        window_through: Some(planned_through),
        next_fire: calendar.after(planned_through),
        suspended: None,
        deleted_at: None,
        overlap: Overlap::default(),
        unslotted_at: None,
        version: Version::FIRST,
        write_id: WriteId(format!("{number:032}")),
    };
    let record = SpecRecord {
        job: spec.name.clone(),
        version: SpecVersion::FIRST,
        since: planned_through,
        applied_at: now,
        spec: spec.to_json(),
        base: "/".to_owned(),
    };
    [Put { item: Item::Job(job), guard: Guard::Absent }, Put { item: Item::Spec(record), guard: Guard::Absent }]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_costs_what_is_due_and_not_what_exists() {
    let jobs: usize = std::env::var("SHARDCRON_TEST_JOBS").map_or(1_000, |text| text.parse().unwrap());
    let due = 100;
    let meter = Arc::new(Meter::default());
    let (runtime, _table, _queues, _dir) = installation(&meter).await;
    let now = runtime.engine.clock.now().at;
    let puts = (0..jobs).flat_map(|number| job(number, number < due, now));
    let store = &runtime.engine.store;
    stream::iter(puts).map(|put| store.put(put)).buffer_unordered(16).try_collect::<Vec<_>>().await.unwrap();
    meter.take();
    let planned = runtime.engine.plan_due().await.unwrap();
    let (reads, writes, detail) = meter.take();
    assert!(planned.instances >= due, "{planned:?}");
    let (reads, writes) = (reads / due as f64, writes / due as f64);
    println!("{jobs} jobs, {due} due: {reads:.2} read units and {writes:.2} write units a due job; {detail}");
    assert!(reads <= READ_UNITS, "{reads:.2} read units a due job: {detail}");
    assert!(writes <= WRITE_UNITS, "{writes:.2} write units a due job: {detail}");
    assert_eq!(runtime.engine.plan_due().await.unwrap().instances, 0, "it is planned once");
    let (idle, _, _) = meter.take();
    assert!(idle < 10.0, "a tick with nothing due costs {idle} read units");
}

/// What each step of one shard's life costs in write units, by the table's own account.
///
/// An item of up to 1 KB is one unit, and in a transaction two. So: its creation, its claim, each commit with the shard
/// and the one row that it changes, the entry in its group's set.
#[tokio::test(flavor = "multi_thread")]
async fn a_shards_life_costs_its_commits() {
    const COMMITS: i64 = 10;
    let meter = Arc::new(Meter::default());
    let (runtime, _table, _queues, dir) = installation(&meter).await;
    let engine = &runtime.engine;
    let job = format!(
        r#"{{ "name": "life", "schedule": "@daily", "input": {{ "keys": {{ "from": 1, "through": {} }} }},
             "shards": {{ "batchRecords": 100 }}, "work": {{ "aggregate": {{ "count": true, "sum": ["key"] }} }},
             "output": {{ "objects": "out/", "format": "csv" }} }}"#,
        COMMITS * 100
    );
    let (spec, _) = engine.apply(&job, dir.path().to_str().unwrap()).await.unwrap();
    let hour = Window { start: "2026-01-01T00:00:00Z".parse().unwrap(), end: "2026-01-01T01:00:00Z".parse().unwrap() };
    let (instance, _) = engine.trigger(&spec.name, None, Some(hour)).await.unwrap();
    let step = async || {
        meter.take();
        engine.advance(&instance.id).await.unwrap();
        meter.take()
    };
    let (reads, fan_out, detail) = step().await;
    println!("fan-out of one shard: {reads:.1} read units and {fan_out:.1} write units; {detail}");
    let key = engine.shards_of(&engine.instance(&instance.id).await.unwrap().unwrap()).await.unwrap()[0].key.clone();
    meter.take();
    engine.run_shard(&key, None, &Budget::default()).await.unwrap();
    let (reads, writes, detail) = meter.take();
    println!("its life: {reads:.1} read units and {writes:.1} write units for {COMMITS} commits; {detail}");
    let expected = 1.0 + 4.0 * COMMITS as f64 + 2.0;
    assert!(
        (writes - expected).abs() < 0.1,
        "{writes} write units, and claim, commits and done are {expected}: {detail}"
    );
    assert!(reads <= 12.0, "{reads} read units: {detail}");
    let (reads, finalize, detail) = step().await;
    println!("finalize: {reads:.1} read units and {finalize:.1} write units; {detail}");
    assert!(finalize <= 8.0, "claim, publishing and success, each with its place in the open index: {detail}");
    let end = engine.instance(&instance.id).await.unwrap().unwrap();
    assert_eq!(end.status, InstanceStatus::Succeeded);
}
