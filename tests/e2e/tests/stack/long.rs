//! A shard that takes longer than an invocation may.

use std::time::Duration;

use serde_json::json;
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::Stack;
use shardcron_e2e::wait::SOON;

/// More than two of the 20 s that an invocation may take in the tests' stack, as hours are to the 15 minutes of AWS.
const LONG: Duration = Duration::from_secs(50);

#[test]
fn a_shard_longer_than_an_invocation_is_handed_on_with_every_record_once() {
    let Some(stack) = Stack::for_test("a_shard_longer_than_an_invocation_is_handed_on_with_every_record_once") else {
        return;
    };
    let job = Sums::lasting(&stack, "long", LONG);
    job.apply(&json!({ "shards": { "batchRecords": 1 } }));
    let instance = job.trigger();
    stack.ends(&instance, 5 * SOON);
    job.assert_exact(&instance);
    let certificate = stack.certificate(&instance);
    let shard = &certificate["shards"][0];
    assert!(shard["token"].as_u64().unwrap() > 1, "it was claimed again after an invocation's end: {shard}");
    assert_eq!(shard["takeovers"], 0, "each owner gave it back in time: {shard}");
    assert_eq!(shard["recordsIn"], job.total());
}
