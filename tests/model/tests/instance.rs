//! The instance's protocol, in every order of steps; and the seeded faults that must be found in it.

use shardcron_domain::time::Duration;
use shardcron_model::clock::TICK;
use shardcron_model::explore::{all, breaks};
use shardcron_model::instance::{Budget, InstanceModel};
use shardcron_model::{Fault, Guarantee};

/// States that a run must meet: a model that never comes to them says nothing about them.
const OF_INTEREST: [&str; 2] = ["it ends otherwise", "it succeeds"];

fn instance(budget: Budget) -> InstanceModel {
    InstanceModel { deadline: None, backoff_limit: 1, budget, skews: vec![[0, 0]], fault: None }
}

/// Fan-out to certificate, with so many faults.
fn undisturbed(faults: u8) -> InstanceModel {
    instance(Budget {
        all: faults,
        crashes: faults,
        unheard: 1,
        pauses: faults,
        failures: 1,
        early: 1,
        changes: 1,
        reports: 1,
        ..Budget::default()
    })
}

/// One that is cancelled and begun again, and so many faults beside.
fn begun_again(faults: u8) -> InstanceModel {
    instance(Budget {
        all: faults + 2,
        cancels: 1,
        retries: 1,
        reruns: 1,
        crashes: faults,
        pauses: faults,
        changes: faults,
        ..Budget::default()
    })
}

/// One whose deadline passes within a tick, that may be begun again, and so many crashes and wrong readings beside.
fn with_deadline(faults: u8) -> InstanceModel {
    let budget = Budget { all: faults + 2, retries: 1, pauses: 1, crashes: faults, early: faults, ..Budget::default() };
    InstanceModel { deadline: Some(Duration(TICK.0 / 2)), ..instance(budget) }
}

/// The second worker's clock is a tick ahead, in one of the beginnings.
fn with_wrong_clocks(model: InstanceModel) -> InstanceModel {
    InstanceModel { skews: vec![[0, 0], [0, 1]], ..model }
}

#[expect(clippy::print_stdout, reason = "the numbers stand in docs/proof.md")]
fn holds(name: &str, model: InstanceModel) {
    let explored = all(model);
    println!("{name}: {explored}");
    let found: Vec<_> = explored.found.keys().copied().collect();
    let others: Vec<_> = found.iter().filter(|name| !OF_INTEREST.contains(name)).collect();
    assert!(others.is_empty() || others == [&"a step is taken over"], "{:#?}", explored.found);
    assert!(OF_INTEREST.iter().all(|name| found.contains(name)), "{found:?}");
}

#[test]
fn the_guarantees_hold_on_the_road() {
    holds("on the road", with_wrong_clocks(undisturbed(1)));
}

#[test]
fn the_guarantees_hold_for_one_that_is_begun_again() {
    holds("begun again", begun_again(0));
}

#[test]
fn the_guarantees_hold_past_a_deadline() {
    holds("past a deadline", with_deadline(0));
}

/// Minutes: `cargo test -p shardcron-model -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn the_guarantees_hold_with_two_faults() {
    holds("on the road", with_wrong_clocks(undisturbed(2)));
}

#[test]
fn each_seeded_fault_is_found() {
    use Fault::{
        BoundaryNotFixed, CertificateOverwrites, CounterForSet, DoneReopened, PublishUnfinished, RetryKeepsAttempt,
        StepUnconditioned,
    };
    use Guarantee::{G3, G8, G10, G11};
    let rerun_while_paused = instance(Budget { all: 2, reruns: 1, pauses: 1, ..Budget::default() });
    let seeded = [
        (BoundaryNotFixed, undisturbed(2), G3),
        (StepUnconditioned, with_wrong_clocks(with_deadline(1)), G8),
        (DoneReopened, begun_again(0), G10),
        (RetryKeepsAttempt, begun_again(0), G10),
        (PublishUnfinished, undisturbed(2), G11),
        (CounterForSet, undisturbed(2), G11),
        (CertificateOverwrites, rerun_while_paused, G11),
    ];
    for (fault, model, guarantee) in seeded {
        let run = breaks(&InstanceModel { fault: Some(fault), ..model }, guarantee);
        let run = run.unwrap_or_else(|| panic!("{fault:?} breaks {guarantee:?}, and wasn't found"));
        println!("{fault:?} breaks {guarantee:?} in {} steps: {}", run.len(), run.join(", "));
    }
}
