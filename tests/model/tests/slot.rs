//! Planning and the slot, in every order of steps; and the seeded faults that must be found there.

use shardcron_model::explore::{all, breaks};
use shardcron_model::slot::{Budget, SlotModel};
use shardcron_model::{Fault, Guarantee};

/// So many faults, triggers and cancels.
fn any(without_cause: u8) -> Budget {
    let once = without_cause.min(1);
    Budget { all: without_cause, crashes: once, late: once, triggers: once, cancels: once }
}

#[expect(clippy::print_stdout, reason = "the numbers stand in docs/proof.md")]
fn holds(policy: &str, catch_up: &str, times: i64, without_cause: u8) {
    let explored = all(SlotModel::new(policy, catch_up, times, any(without_cause)));
    println!("{policy} {catch_up}: {explored}");
    let found: Vec<_> = explored.found.keys().copied().collect();
    assert_eq!(found, ["two have succeeded"], "{:#?}", explored.found);
}

#[test]
fn the_guarantees_hold_under_forbid() {
    holds("Forbid", "latest", 2, 1);
}

#[test]
fn the_guarantees_hold_under_replace() {
    holds("Replace", "latest", 2, 1);
}

#[test]
fn the_guarantees_hold_under_queue() {
    holds("Queue", "all", 2, 1);
}

/// Minutes: `cargo test -p shardcron-model -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn the_guarantees_hold_with_more_faults() {
    holds("Forbid", "latest", 2, 2);
    holds("Replace", "latest", 2, 2);
    holds("Queue", "all", 2, 2);
}

#[test]
fn each_seeded_fault_is_found() {
    use Fault::{InstanceNotAbsent, PlanWithoutVersion, ReplacerStartsAtOnce, SlotByLook};
    use Guarantee::{G1, G2, G7};
    let seeded = [
        (InstanceNotAbsent, "Queue", "all", G1),
        (PlanWithoutVersion, "Forbid", "latest", G2),
        (SlotByLook, "Forbid", "latest", G7),
        (ReplacerStartsAtOnce, "Replace", "latest", G7),
    ];
    for (fault, policy, catch_up, guarantee) in seeded {
        let mut model = SlotModel::new(policy, catch_up, 2, any(1));
        model.fault = Some(fault);
        let run = breaks(&model, guarantee);
        let run = run.unwrap_or_else(|| panic!("{fault:?} breaks {guarantee:?}, and wasn't found"));
        println!("{fault:?} breaks {guarantee:?} in {} steps: {}", run.len(), run.join(", "));
    }
}
