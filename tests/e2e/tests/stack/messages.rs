//! Messages that come twice, that nobody sent, and that can't be read.

use serde_json::json;
use shardcron_e2e::job::Sums;
use shardcron_e2e::stack::{QueueOf, Stack};
use shardcron_e2e::wait::SOON;

const SHARDS: u64 = 4;

/// What no part of shardcron has sent.
fn garbage() -> Vec<String> {
    let texts = ["?", "{}", "[1, 2]", "null", "\"instance\"", "{\"instance\": 7}", "{\"instance\":\"nobody\"}"];
    let mut garbage: Vec<String> = texts.map(str::to_owned).to_vec();
    garbage.push(json!({ "instance": "nobody:2026-01-05T00:00:00Z" }).to_string());
    garbage.push(json!({ "instance": "nobody:2026-01-05T00:00:00Z", "generation": 1, "shard": "00000" }).to_string());
    garbage.push("x".repeat(100_000));
    garbage
}

/// Messages about each shard, about some that there aren't, and about the instance, each three times.
fn duplicates(stack: &Stack, instance: &str) {
    let about = |shard: u64, generation: u64| {
        json!({ "instance": instance, "generation": generation, "shard": format!("{shard:05}") }).to_string()
    };
    let mut shards: Vec<String> = (0..SHARDS + 2).map(|shard| about(shard, 1)).collect();
    shards.push(about(0, 2));
    stack.send(QueueOf::Shards, &[&shards[..]; 3].concat());
    // The queue that a message comes by isn't what it means.
    stack.send(QueueOf::BackfillShards, &shards);
    stack.send(QueueOf::Instances, &vec![json!({ "instance": instance }).to_string(); 5]);
}

#[test]
fn messages_that_come_often_early_late_or_broken_change_nothing() {
    let Some(stack) = Stack::for_test("messages_that_come_often_early_late_or_broken_change_nothing") else { return };
    let job = Sums::new(&stack, "messages", SHARDS, 1_200);
    job.apply(&json!({ "shards": { "batchRecords": 2 } }));
    let instance = format!("{}:2026-01-05T00:00:00Z", job.name);
    // Before there is such an instance, while it is at work, and after its end.
    duplicates(&stack, &instance);
    // Each sending is a process of its own: what needn't come while it is at work comes before, so that there is time.
    for queue in QueueOf::ALL {
        stack.send(queue, &garbage());
    }
    assert_eq!(job.trigger(), instance);
    stack.is_at_work(&instance, 1, SOON);
    duplicates(&stack, &instance);
    stack.ends(&instance, SOON);
    job.assert_exact(&instance);

    let (described, certificate) = (stack.describe(&instance), stack.certificate(&instance));
    assert_eq!(certificate["totals"]["takeovers"], 0, "no message took a shard from its owner");
    duplicates(&stack, &instance);
    stack.until_drained();
    assert_eq!(stack.describe(&instance), described, "what has ended stays as it is");
    assert_eq!(stack.certificate(&instance), certificate);
    for queue in QueueOf::ALL {
        assert_eq!(stack.dead_letters(queue), 0, "{queue:?}");
    }
}
