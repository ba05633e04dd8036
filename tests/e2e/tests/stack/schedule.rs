//! The timer, and a range of the past.

use std::time::Duration;

use serde_json::json;
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::Stack;
use shardcron_e2e::wait::{SOON, eventually};

/// The next minute, the tick after it, and its work.
const A_FEW_MINUTES: Duration = Duration::from_secs(240);

/// What the flights of a month come to, by another program (tests/data/flights).
const FLIGHTS: &str = include_str!("../../../data/flights/2013-01.expected.csv");

#[test]
fn the_schedule_alone_brings_an_instance_to_its_published_result() {
    let Some(stack) = Stack::for_test("the_schedule_alone_brings_an_instance_to_its_published_result") else { return };
    let job = Sums::new(&stack, "each-minute", 3, 100);
    job.apply(&json!({ "schedule": "* * * * *" }));
    let instance = eventually("a scheduled instance that has succeeded", A_FEW_MINUTES, || {
        let described = stack.describe(&job.name);
        let instances = described["instances"].as_array().unwrap();
        let done = instances.iter().find(|instance| instance["status"] == "Succeeded")?;
        Some(done["instance"].as_str().unwrap().to_owned())
    });
    job.assert_exact(&instance);
    assert!(instance.ends_with(":00Z"), "{instance} is at a minute of its calendar");
    stack.invoke(&json!({ "command": "delete", "job": job.name }));
}

#[test]
fn a_backfill_of_three_days_publishes_each_day() {
    let Some(stack) = Stack::for_test("a_backfill_of_three_days_publishes_each_day") else { return };
    let job = Sums::new(&stack, "three-days", 2, 100);
    job.apply(&json!({}));
    let range = json!({
        "command": "backfill", "job": job.name, "from": "2026-02-27T00:00:00Z", "to": "2026-03-02T00:00:00Z",
    });
    stack.invoke(&range);
    for day in ["2026-02-27", "2026-02-28", "2026-03-01"] {
        let instance = format!("{}:{day}T00:00:00Z", job.name);
        eventually(&format!("{instance} is there"), SOON, || {
            let described = stack.describe(&job.name);
            described["instances"].as_array().unwrap().iter().any(|it| it["instance"] == *instance).then_some(())
        });
        stack.ends(&instance, SOON);
        job.assert_exact(&instance);
    }
    let described = stack.describe(&job.name);
    assert_eq!(described["instances"].as_array().unwrap().len(), 3, "the range ends before 2 March: {described}");
}

#[test]
fn the_flights_of_a_month_come_to_the_same_bytes_as_elsewhere() {
    let Some(stack) = Stack::for_test("the_flights_of_a_month_come_to_the_same_bytes_as_elsewhere") else { return };
    // localstack/deploy has applied the job and uploaded its input.
    let run = json!({ "command": "trigger", "job": "flights", "at": "2026-11-02T11:00:00Z" });
    let instance = stack.invoke(&run)["instance"].as_str().unwrap().to_owned();
    let ended = stack.ends(&instance, SOON);
    assert_eq!(ended["status"], "Succeeded", "{ended}");
    assert_eq!(ended["records"]["in"], 27_004);
    assert_eq!(stack.results(&instance), FLIGHTS);
    // The object itself, not what the command makes of it.
    let part = ended["parts"][0]["name"].as_str().unwrap();
    assert_eq!(stack.get(&format!("output/{}/{part}", instance.replacen(':', "@", 1))), FLIGHTS);
}
