//! A cancel of what is at work.

use serde_json::{Value, json};
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::Stack;
use shardcron_e2e::wait::SOON;

/// Records of each shard, with a commit for each: far more than are done by the time of the cancel.
const MANY: u64 = 8_000;

#[test]
fn an_instance_cancelled_in_flight_is_fenced_and_publishes_nothing() {
    let Some(stack) = Stack::for_test("an_instance_cancelled_in_flight_is_fenced_and_publishes_nothing") else {
        return;
    };
    let job = Sums::new(&stack, "cancelled", 2, MANY);
    job.apply(&json!({ "shards": { "batchRecords": 1 } }));
    let instance = job.trigger();
    stack.is_at_work(&instance, 20, SOON);
    let cancel = json!({ "command": "cancel", "instance": instance, "generation": 1, "attempt": 1, "by": "a test" });
    stack.invoke(&cancel);
    let ended = stack.ends(&instance, SOON);
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("Cancelled"), &json!("cancelled by a test")));
    let closed = |shard: &Value| shard["status"].get("fenced").is_some();
    assert!(ended["shardList"].as_array().unwrap().iter().all(closed), "{ended}");
    // Whoever was at work has found out by then, and given its message up.
    stack.until_drained();
    assert_eq!(stack.describe(&instance), ended, "what was at work commits nothing more");
    assert!(ended["records"]["in"].as_u64().unwrap() < job.total(), "{ended}");
    assert!(!stack.is_published(&instance));
    // Delivered again, it is about what has ended.
    assert!(stack.answer(&cancel).is_ok_and(|answer| answer["status"] == "Cancelled"));
}
