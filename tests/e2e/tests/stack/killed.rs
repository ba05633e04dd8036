//! Functions that die in the middle of a shard. They run alone: which process works is told by its use of the processor.

use std::time::Duration;

use serde_json::json;
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::{QueueOf, Stack, not_run};
use shardcron_e2e::wait::{SOON, closely, eventually};

/// So long that there is a middle, and that it isn't over with one invocation.
const WHILE: Duration = Duration::from_secs(20);

/// The function's timeout in the tests' stack, and what a stand-in needs to notice it.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Whether there are processes to kill. A function is started by its first message.
fn on_this_machine(stack: &Stack, test: &str) -> bool {
    let warm = Sums::new(stack, "warm", 1, 10);
    warm.apply(&json!({}));
    stack.ends(&warm.trigger(), SOON);
    let found = !stack.shard_processes().is_empty();
    if !found {
        not_run(test, "no process of the shard function is on this machine");
    }
    found
}

#[test]
fn a_function_that_its_timeout_kills_in_mid_shard_is_taken_over_from_its_last_commit() {
    let test = "a_function_that_its_timeout_kills_in_mid_shard_is_taken_over_from_its_last_commit";
    let Some(stack) = Stack::for_test(test) else { return };
    if !on_this_machine(&stack, test) {
        return;
    }
    let job = Sums::lasting(&stack, "timeout", WHILE);
    job.apply(&json!({ "shards": { "batchRecords": 1 } }));
    let instance = job.trigger();
    stack.is_at_work(&instance, 20, SOON);
    let working = eventually("a process that works", SOON, || stack.busy_shard_process());
    working.freeze();
    let before = stack.describe(&instance);
    let done = before["records"]["in"].as_u64().unwrap();
    assert!(before["status"] == "Running" && done < job.total(), "it was frozen in mid-shard: {before}");
    eventually("the timeout has killed what hangs", TIMEOUT, || (!working.is_alive()).then_some(()));
    stack.ends(&instance, 5 * SOON);
    job.assert_exact(&instance);
    let shard = &stack.certificate(&instance)["shards"][0];
    assert!(shard["takeovers"].as_u64().unwrap() >= 1, "{shard}");
    assert_eq!(shard["recordsIn"], job.total());
}

#[test]
fn a_batch_that_kills_its_function_each_time_reaches_failed() {
    let test = "a_batch_that_kills_its_function_each_time_reaches_failed";
    let Some(stack) = Stack::for_test(test) else { return };
    if !on_this_machine(&stack, test) {
        return;
    }
    // One batch, of 75 MB: it takes seconds, and nothing of it is committed in its first one.
    let job = Sums::new(&stack, "deadly", 1, 2_000_000);
    let limit = 2;
    job.apply(&json!({ "shards": { "batchRecords": 1_000_000 }, "backoffLimit": limit }));
    let instance = job.trigger();
    let mut killed = 0;
    let mut seen = 0;
    // One that is killed before it has made its message visible sooner waits for the sweep, a minute each time.
    let ended = closely("the end", 5 * SOON, || {
        let now = stack.describe(&instance);
        let shard = &now["shardList"][0];
        let token = shard["token"].as_u64().unwrap_or(0);
        if token > seen && shard["status"].get("leased").is_some() {
            seen = token;
            killed += 1;
            stack.shard_processes().into_iter().for_each(shardcron_e2e::processes::Process::kill);
        }
        ["Failed", "Succeeded"].iter().any(|end| now["status"] == *end).then_some(now)
    });
    assert_eq!(ended["status"], "Failed", "{ended}");
    // One that has committed before it was killed begins to count anew.
    assert!(killed > limit, "an attempt, and as many again as the limit allows: {ended}");
    assert!(ended["records"]["in"].as_u64().unwrap() < job.total(), "{ended}");
    assert!(!stack.is_published(&instance));
    for queue in QueueOf::ALL {
        assert_eq!(stack.dead_letters(queue), 0, "{queue:?}: what failed stands in the table");
    }
}
