//! What a tick costs: what is due, and never what exists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use shardcron_engine::Sweep;
use shardcron_tests::gate::{Act, Request, Script};
use shardcron_tests::process::{Character, Process};
use shardcron_tests::world::World;

use crate::support::*;

#[derive(Default, Clone)]
struct Counting(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Script for Counting {
    fn before(&self, request: &Request) -> Act {
        if let Some(operation) = &request.operation {
            *self.0.lock().unwrap().entry(operation.name()).or_default() += 1;
        }
        Act::Proceed
    }
}

impl Counting {
    fn take(&self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn counted(world: &World) -> (Process, Counting) {
    let counting = Counting::default();
    let script = Box::new(counting.clone());
    (world.process("planner", Character { script, seed: 8, ..Character::default() }), counting)
}

const JOBS: usize = 2_000;
const DUE: usize = 20;

/// Of 2,000 jobs, 20 are due: a tick reads and writes for those.
#[tokio::test(start_paused = true)]
async fn a_tick_costs_what_is_due() {
    for (policy, gets) in [("Allow", 3), ("Forbid", 4), ("Queue", 4), ("Replace", 5)] {
        let world = world();
        world.checker.go_light();
        let user = by_hand(&world, "user");
        for number in 0..JOBS {
            let file = job(if number < DUE { "30 * * * *" } else { "0 12 1 1 *" }, |job| {
                job["name"] = format!("job-{number}").into();
                job["concurrencyPolicy"] = policy.into();
            });
            user.engine.apply(&file, "/jobs").await.unwrap();
        }
        let (planner, counting) = counted(&world);
        until(&world, "2026-08-30T00:29:50Z").await;
        planner.engine.plan_due().await.unwrap();
        assert_eq!(counting.take(), [("due_jobs", 1)].into(), "nothing is due");
        for hour in 0..2 {
            until(&world, &format!("2026-08-30T0{hour}:30:00Z")).await;
            let planned = planner.engine.plan_due().await.unwrap();
            assert_eq!(planned.instances as u64 + planned.skipped, DUE as u64);
            let cost = counting.take();
            // The look at one job's recent past is a handful of requests, whatever is due.
            assert!(cost["get"] <= gets * DUE + 6, "{policy}: {cost:?}");
            assert_eq!((cost["due_jobs"], cost["transact"], cost.get("put")), (1, DUE, None), "{policy}: {cost:?}");
            assert!(cost.values().sum::<usize>() <= (gets + 1) * DUE + 12, "{policy}: {cost:?}");
            assert!(!cost.contains_key("jobs"), "{cost:?}");
        }
    }
}

/// A sweep costs the instances that are due for a look: those that have ended cost nothing.
#[tokio::test(start_paused = true)]
async fn a_sweep_costs_what_is_open() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |job| job["catchUp"] = "all".into()), "/jobs").await.unwrap();
    let mut worker = worker(&world, "worker", std::time::Duration::ZERO);
    until(&world, "2026-08-30T01:00:30Z").await;
    worker.kill();
    world.queue.clear();
    assert_eq!(answered_once(&world, "settle").by_state(), [("Succeeded", 61)].into());
    let (planner, counting) = counted(&world);
    planner.engine.sweep(Sweep::All).await.unwrap();
    assert_eq!(counting.take(), [("open_backfills", 1), ("open_instances", 1)].into());
    until(&world, "2026-08-30T01:03:00Z").await;
    planner.engine.plan_due().await.unwrap();
    counting.take();
    planner.engine.sweep(Sweep::Due).await.unwrap();
    let cost = counting.take();
    assert!(cost.values().sum::<usize>() <= 2 + 3 * 3, "{cost:?}");
}

/// A job under suspension costs one write a tick at which a time of it has come, and no more.
#[tokio::test(start_paused = true)]
async fn catching_up_costs_steps_and_not_times() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |_| {}), "/jobs").await.unwrap();
    until(&world, "2026-09-20T00:00:00Z").await;
    let (planner, counting) = counted(&world);
    let planned = planner.engine.plan_due().await.unwrap();
    assert_eq!(planned.instances as u64 + planned.skipped, 21 * 1440 + 1);
    let cost = counting.take();
    assert_eq!(cost["transact"], 4, "30,241 times in steps of 10,000: {cost:?}");
}
