//! The shard's protocol, in every order of steps; and the seeded faults that must be found in it.

use shardcron_model::explore::{all, breaks};
use shardcron_model::shard::{Budget, ShardModel};
use shardcron_model::{Fault, Guarantee};

/// States that a run of this size must meet: a model that never comes to them says nothing about them.
const OF_INTEREST: [&str; 8] = [
    "a range beyond a gap is done",
    "a shard fails",
    "a shard is taken over",
    "all is done",
    "all is done by two owners",
    "all is done in two shards",
    "an owner is at work that isn't the owner any more",
    "the instance ends otherwise",
];

fn shard(without_cause: u8) -> ShardModel {
    ShardModel {
        records: 3,
        rejected: Some(1),
        backoff_limit: 1,
        budget: Budget::any(without_cause),
        skews: vec![[0, 0], [-1, 0], [0, 1]],
        fault: None,
    }
}

#[expect(clippy::print_stdout, reason = "the numbers stand in docs/proof.md")]
fn holds(model: ShardModel) {
    let explored = all(model);
    println!("{explored}");
    let found: Vec<_> = explored.found.keys().copied().collect();
    assert_eq!(found, OF_INTEREST, "{:#?}", explored.found);
}

#[test]
fn the_guarantees_hold_with_two_faults() {
    holds(shard(2));
}

/// Minutes: `cargo test -p shardcron-model -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn the_guarantees_hold_with_three_faults() {
    holds(shard(3));
}

#[test]
fn each_seeded_fault_is_found() {
    use Fault::{
        BackoffIgnored, CheckpointFirst, ClaimKeepsToken, EndBeforeFence, FenceKeepsToken, GapSkipped, LooksOnce,
        NoTokenCheck, NoVersionCheck, ResultFirst, RowsUnsettled, SplitInTwoWrites,
    };
    use Guarantee::{G3, G4, G5, G6, G8, G9};
    let seeded = [
        (SplitInTwoWrites, G3),
        (NoTokenCheck, G4),
        (NoVersionCheck, G4),
        (ClaimKeepsToken, G4),
        (ResultFirst, G5),
        (RowsUnsettled, G5),
        (CheckpointFirst, G6),
        (GapSkipped, G6),
        (BackoffIgnored, G8),
        (EndBeforeFence, G9),
        (LooksOnce, G9),
        (FenceKeepsToken, G9),
    ];
    for (fault, guarantee) in seeded {
        let run = breaks(&ShardModel { fault: Some(fault), ..shard(2) }, guarantee);
        let run = run.unwrap_or_else(|| panic!("{fault:?} breaks {guarantee:?}, and wasn't found"));
        println!("{fault:?} breaks {guarantee:?} in {} steps: {}", run.len(), run.join(", "));
    }
}
