//! A shard that takes longer than an invocation may.

use serde_json::json;
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::Stack;
use shardcron_e2e::wait::SOON;

/// Records of a shard that is a commit for each: with an emulator's 5 ms for a commit it takes 40 s,
/// where an invocation may take 20 s.
pub(crate) const MANY: u64 = 8_000;

#[test]
fn a_shard_longer_than_an_invocation_is_handed_on_with_every_record_once() {
    let Some(stack) = Stack::for_test("a_shard_longer_than_an_invocation_is_handed_on_with_every_record_once") else {
        return;
    };
    let job = Sums::new(&stack, "long", 1, MANY);
    job.apply(&json!({ "shards": { "batchRecords": 1 } }));
    let instance = job.trigger();
    stack.ends(&instance, 3 * SOON);
    job.assert_exact(&instance);
    let certificate = stack.certificate(&instance);
    let shard = &certificate["shards"][0];
    assert!(shard["token"].as_u64().unwrap() > 1, "it was claimed again after an invocation's end: {shard}");
    assert_eq!(shard["takeovers"], 0, "each owner gave it back in time: {shard}");
    assert_eq!(shard["recordsIn"], MANY);
}
