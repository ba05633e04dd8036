//! Many shards at once.

use serde_json::{Value, json};
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::Stack;
use shardcron_e2e::wait::{SOON, closely};

/// Shards that are to be worked on at the same time.
const AT_ONCE: usize = 20;

#[test]
fn twenty_shards_are_worked_on_at_once_and_the_result_is_exact() {
    let Some(stack) = Stack::for_test("twenty_shards_are_worked_on_at_once_and_the_result_is_exact") else { return };
    let job = Sums::new(&stack, "many", 2 * AT_ONCE as u64, 100);
    job.apply(&json!({ "shards": { "batchRecords": 2 }, "parallelism": AT_ONCE }));
    let instance = job.trigger();
    let mut peak = 0;
    closely("the end", 5 * SOON, || {
        let now = stack.describe(&instance);
        let leased = |shard: &&Value| shard["status"].get("leased").is_some();
        peak = peak.max(now["shardList"].as_array().unwrap().iter().filter(leased).count());
        (now["status"] == "Succeeded").then_some(())
    });
    job.assert_exact(&instance);
    assert!(peak >= AT_ONCE, "at most {peak} shards were leased at the same time");
    assert_eq!(stack.certificate(&instance)["totals"]["shards"], 2 * AT_ONCE);
}
