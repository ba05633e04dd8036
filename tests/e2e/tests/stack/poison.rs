//! Input that can't be worked on.

use serde_json::json;
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::{QueueOf, Stack};
use shardcron_e2e::wait::SOON;

#[test]
fn a_poisoned_batch_fails_its_instance_and_a_rerun_over_mended_input_succeeds() {
    let Some(stack) = Stack::for_test("a_poisoned_batch_fails_its_instance_and_a_rerun_over_mended_input_succeeds")
    else {
        return;
    };
    let job = Sums::new(&stack, "poison", 3, 50);
    let good = job.content(1);
    stack.put(&job.key(1), &good.replace("\"amount\":75}", "\"amount\":oops}"));
    job.apply(&json!({}));
    let instance = job.trigger();
    let ended = stack.ends(&instance, SOON);
    assert_eq!(ended["status"], "Failed", "{ended}");
    let reason = ended["reason"].as_str().unwrap();
    assert!(reason.contains("00001.ndjson") && reason.contains("line 26"), "{reason}");
    assert!(!stack.is_published(&instance));
    // What there is to know stands in the table. No message of it is dead, and none goes round.
    for queue in QueueOf::ALL {
        assert_eq!(stack.dead_letters(queue), 0, "{queue:?}");
    }

    stack.put(&job.key(1), &good);
    stack.invoke(&json!({ "command": "rerun", "instance": instance, "generation": 1, "attempt": 1 }));
    let ended = stack.ends(&instance, SOON);
    assert_eq!(ended["generation"], 2);
    job.assert_exact(&instance);
}
