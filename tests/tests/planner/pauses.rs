//! A planner that stands still at any of its requests while something else goes ahead, and the other way round: each
//! time is answered for exactly once, under every policy.

use std::time::Duration;

use shardcron_domain::backfill::{BackfillRequest, Only, Order};
use shardcron_domain::instance::Instance;
use shardcron_domain::job::CatchUp;
use shardcron_engine::Engine;
use shardcron_tests::fixture::{instance_id, job_name};
use shardcron_tests::gate::Peace;
use shardcron_tests::world::World;

use crate::support::*;

const POLICIES: [&str; 4] = ["Allow", "Forbid", "Queue", "Replace"];

/// What goes ahead meanwhile.
const DEEDS: [&str; 9] =
    ["plan", "suspend", "resume", "apply", "edit policy", "trigger", "trigger skipped", "delete", "backfill"];

async fn perform(engine: &Engine, deed: &str, policy: &str) {
    let name = job_name("settle");
    match deed {
        "plan" => {
            engine.plan_due().await.unwrap();
        }
        "suspend" => drop(engine.suspend(&name, None).await.unwrap()),
        "resume" => drop(engine.resume_and_catch_up(&name, CatchUp::All).await.unwrap()),
        "apply" => drop(engine.apply(&with_policy("*/7 * * * *", policy), "/jobs").await.unwrap()),
        "edit policy" => {
            let other = if policy == "Queue" { "Replace" } else { "Queue" };
            engine.apply(&with_policy("*/5 * * * *", other), "/jobs").await.unwrap();
        }
        // Refused under Forbid while another holds the slot.
        "trigger" => drop(engine.trigger(&name, Some(at("2026-08-30T00:10:00Z")), None).await),
        "trigger skipped" => drop(engine.trigger(&name, Some(at("2026-08-30T00:05:00Z")), None).await),
        "delete" => engine.delete(&name).await.unwrap(),
        "backfill" => {
            let request = BackfillRequest {
                from: at("2026-08-30T00:00:00Z"),
                to: at("2026-08-31T00:00:00Z"),
                only: Only::All,
                order: Order::Newest,
                max_active: 10,
                per_minute: None,
            };
            engine.backfill(&name, request).await.unwrap();
        }
        other => panic!("{other}"),
    }
}

/// 00:00 is planned, and holds its slot if there is one, or has ended; 00:05 and 00:10 have passed.
async fn two_due(policy: &str, suspended: bool, busy: bool) -> World {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("*/5 * * * *", policy), "/jobs").await.unwrap();
    if busy {
        until(&world, "2026-08-30T00:00:10Z").await;
        user.engine.plan_due().await.unwrap();
    }
    if suspended {
        until(&world, "2026-08-30T00:03:00Z").await;
        user.engine.suspend(&job_name("settle"), None).await.unwrap();
    }
    until(&world, "2026-08-30T00:12:00Z").await;
    world
}

async fn finish(world: &World, what: &str) {
    let _worker = calm(world, "healthy", Box::new(Peace));
    seconds(15).await;
    until_all_ended(world, "settle", 400).await;
    world.journal.note("test", what);
    answered_once(world, "settle");
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_stood_still_doubles_and_loses_nothing() {
    for policy in POLICIES {
        for deed in DEEDS {
            for number in 1.. {
                let world = two_due(policy, deed == "resume", number % 2 == 0).await;
                let user = by_hand(&world, "other");
                let came_so_far = stopped_at(
                    &world,
                    number,
                    async |planner| {
                        planner.engine.plan_due().await.unwrap();
                    },
                    async || perform(&user.engine, deed, policy).await,
                )
                .await;
                finish(&world, &format!("{policy}, {deed}, request {number}")).await;
                if !came_so_far {
                    assert!(number > 4);
                    break;
                }
            }
        }
    }
}

/// A command stands still while planners go on, for half an hour of virtual time.
#[tokio::test(start_paused = true)]
async fn a_command_that_stood_still_doubles_and_loses_nothing() {
    for policy in POLICIES {
        for deed in DEEDS {
            for number in 1.. {
                let world = two_due(policy, deed == "resume", number % 2 == 0).await;
                let planner = by_hand(&world, "planner");
                let came_so_far = stopped_at(
                    &world,
                    number,
                    async |process| perform(&process.engine, deed, policy).await,
                    async || {
                        for _ in 0..5 {
                            planner.engine.plan_due().await.unwrap();
                            minutes(2).await;
                        }
                        planner.engine.plan_due().await.unwrap();
                    },
                )
                .await;
                finish(&world, &format!("{policy}, {deed}, request {number}")).await;
                if !came_so_far {
                    assert!(number > 2);
                    break;
                }
            }
        }
    }
}

/// A trigger stands still at any of its requests while its job's policy is edited and the new one comes into force: what
/// it makes then never runs beside an instance under that.
#[tokio::test(start_paused = true)]
async fn a_trigger_that_stood_still_across_an_edit_never_runs_beside_the_new_policy() {
    for former in ["Allow", "Forbid"] {
        for number in 1.. {
            let world = world();
            world.checker.go_light();
            let user = by_hand(&world, "user");
            user.engine.apply(&with_policy("*/5 * * * *", former), "/jobs").await.unwrap();
            let _worker = worker(&world, "worker", Duration::from_secs(40));
            until(&world, "2026-08-30T00:02:00Z").await;
            let window = instance(&world, &instance_id()).window;
            let came_so_far = stopped_at(
                &world,
                number,
                async |process| drop(process.engine.trigger(&job_name("settle"), None, Some(window)).await),
                async || {
                    let edited = job("*/5 * * * *", |job| {
                        job["concurrencyPolicy"] = "Forbid".into();
                        job["concurrencyKey"] = "ledger".into();
                    });
                    user.engine.apply(&edited, "/jobs").await.unwrap();
                    until(&world, "2026-08-30T00:05:20Z").await;
                },
            )
            .await;
            if !came_so_far {
                assert!(number > 4);
                break;
            }
            until(&world, "2026-08-30T00:13:00Z").await;
            let account = answered_once(&world, "settle");
            let (held, others): (Vec<_>, Vec<_>) = account
                .instances
                .iter()
                .partition(|instance| instance.slot.as_ref().is_some_and(|slot| slot.to_string() == "key/ledger"));
            assert!(held.len() >= 2, "the new policy is in force");
            for (one, other) in held.iter().flat_map(|one| others.iter().map(move |other| (one, other))) {
                let span = |instance: &Instance| (instance.started_at.unwrap(), instance.ended_at.unwrap());
                let ((began, ended), (since, until)) = (span(one), span(other));
                assert!(until <= began || ended <= since, "{former}, request {number}: {one:#?} beside {other:#?}");
            }
        }
    }
}
