//! Planners that die or hear no answer at any of their writes, and slots that are handed over by processes that die:
//! each time is answered for exactly once, and nobody waits for ever.

use std::time::Duration;

use shardcron_domain::backfill::{BackfillRequest, Only, Order};
use shardcron_domain::slot::{Slot, SlotKey};
use shardcron_engine::Sweep;
use shardcron_store::hooked::Verdict;
use shardcron_store::{Guard, Item, ItemKey, Put, Store};
use shardcron_tests::fixture::{instance_id, job_name};
use shardcron_tests::gate::{Act, AtWrite, Moment, Peace};
use shardcron_tests::life::State;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::world::World;

use crate::support::*;

const POLICIES: [&str; 4] = ["Allow", "Forbid", "Queue", "Replace"];

/// 00:00 is planned and at work or about to be; 00:05 and 00:10 have passed since.
async fn two_due(policy: &str) -> World {
    let world = world();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("*/5 * * * *", policy), "/jobs").await.unwrap();
    until(&world, "2026-08-30T00:00:10Z").await;
    user.engine.plan_due().await.unwrap();
    until(&world, "2026-08-30T00:12:00Z").await;
    world
}

fn faulty(world: &World, fault: AtWrite) -> Process {
    world.process("faulty", Character { script: Box::new(fault), seed: 7, ..Character::default() })
}

/// What is left is done by a healthy process.
async fn finish(world: &World) {
    let _worker = calm(world, "healthy", Box::new(Peace));
    seconds(15).await;
    until_all_ended(world, "settle", 400).await;
    let account = answered_once(world, "settle");
    assert!(account.expected.len() >= 3, "{:?}", account.expected);
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_dies_at_any_write_leaves_each_time_with_one_answer() {
    for policy in POLICIES {
        for moment in [Moment::Before, Moment::After] {
            for write in 1.. {
                let world = two_due(policy).await;
                let mut planner = faulty(&world, AtWrite { write, moment, act: Act::Crash });
                let tick = async {
                    planner.engine.plan_due().await.unwrap();
                    planner.engine.sweep(Sweep::Due).await.unwrap();
                };
                let over = tokio::time::timeout(Duration::from_secs(20), tick).await.is_ok();
                let died = planner.life.state() == State::Dead;
                assert_ne!(over, died, "{policy}, write {write}");
                planner.kill();
                world.queue.clear();
                finish(&world).await;
                if !died {
                    assert!(write >= 3, "{policy} has {write} writes");
                    break;
                }
            }
        }
    }
}

/// No answer, an answer that is lost, a write that arrives late: the planner goes on and nothing is doubled.
#[tokio::test(start_paused = true)]
async fn a_planner_that_hears_no_answer_makes_one_outcome() {
    let faults = [
        (Moment::Before, Verdict::LoseAnswer),
        (Moment::After, Verdict::LoseAnswer),
        (Moment::Before, Verdict::Delay),
        (Moment::Before, Verdict::Conflict),
        (Moment::Before, Verdict::Throttle),
    ];
    for policy in POLICIES {
        for (moment, verdict) in faults {
            for write in 1.. {
                let world = two_due(policy).await;
                let planner = faulty(&world, AtWrite { write, moment, act: Act::Deny(verdict) });
                planner.engine.plan_due().await.unwrap();
                planner.engine.sweep(Sweep::Due).await.unwrap();
                planner.store.deliver().await;
                world.checker.accept();
                finish(&world).await;
                if planner.gate.writes() < write {
                    break;
                }
            }
        }
    }
}

/// Who ends the holder dies at any write of that: the next that waits comes to the slot all the same.
#[tokio::test(start_paused = true)]
async fn a_hand_over_that_is_cut_off_at_any_write_is_finished_by_whoever_comes_next() {
    for policy in ["Queue", "Replace"] {
        for moment in [Moment::Before, Moment::After] {
            for write in 1.. {
                let world = world();
                let user = by_hand(&world, "user");
                user.engine.apply(&with_policy("* * * * *", policy), "/jobs").await.unwrap();
                for minute in ["00:00", "00:01", "00:02"] {
                    until(&world, &format!("2026-08-30T{minute}:10Z")).await;
                    user.engine.plan_due().await.unwrap();
                }
                user.engine.suspend(&job_name("settle"), None).await.unwrap();
                let mut first = calm(&world, "first", Box::new(AtWrite { write, moment, act: Act::Crash }));
                seconds(40).await;
                let died = first.life.state() == State::Dead;
                first.kill();
                world.queue.clear();
                finish(&world).await;
                let expected = if policy == "Queue" { "Succeeded" } else { "Replaced" };
                assert_eq!(state(&world, &instance_id()), expected);
                assert_eq!(state(&world, &id("2026-08-30T00:02:00Z")), "Succeeded", "{policy}, write {write}");
                if !died {
                    assert!(write > 10, "{policy} has {write} writes");
                    break;
                }
            }
        }
    }
}

/// A cancel of the holder, or of one that waits, that dies at any of its writes is finished by the sweep.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_is_cut_off_at_any_write_is_finished_by_the_sweep() {
    for cancelled in ["2026-08-30T00:00:00Z", "2026-08-30T00:01:00Z"] {
        for write in 1.. {
            let world = world();
            let user = by_hand(&world, "user");
            user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
            for minute in ["00:00", "00:01", "00:02"] {
                until(&world, &format!("2026-08-30T{minute}:10Z")).await;
                user.engine.plan_due().await.unwrap();
            }
            user.engine.suspend(&job_name("settle"), None).await.unwrap();
            let mut dying = faulty(&world, AtWrite { write, moment: Moment::After, act: Act::Crash });
            let cancelled = id(cancelled);
            let cancel = dying.engine.cancel(&cancelled, None, "ada");
            let over = tokio::time::timeout(Duration::from_secs(20), cancel).await.is_ok();
            dying.kill();
            world.queue.clear();
            finish(&world).await;
            assert_eq!(state(&world, &cancelled), "Cancelled");
            assert_eq!(state(&world, &id("2026-08-30T00:02:00Z")), "Succeeded");
            if over {
                assert!(write > 2, "{write}");
                break;
            }
        }
    }
}

/// The slot's row is taken away by hand, or has forgotten those that wait: the sweep brings each of them to it anew.
#[tokio::test(start_paused = true)]
async fn one_that_its_slot_has_forgotten_comes_to_it_anew() {
    for row_is_gone in [true, false] {
        let world = world();
        world.checker.go_light();
        let user = by_hand(&world, "user");
        user.engine.apply(&with_policy("* * * * *", "Queue"), "/jobs").await.unwrap();
        for minute in ["00:00", "00:01", "00:02"] {
            until(&world, &format!("2026-08-30T{minute}:10Z")).await;
            user.engine.plan_due().await.unwrap();
        }
        user.engine.suspend(&job_name("settle"), None).await.unwrap();
        let key = ItemKey::Slot(SlotKey::Job(job_name("settle")));
        let Some(Item::Slot(slot)) = shardcron_tests::watch::item(&world.store, &key) else { panic!("no slot") };
        assert_eq!(slot.waiting.len(), 2);
        assert!(world.store.remove(&key));
        if !row_is_gone {
            let forgetful = Slot { waiting: Vec::new(), ..slot };
            world.store.put(Put { item: forgetful.into(), guard: Guard::Absent }).await.unwrap();
        }
        let _worker = calm(&world, "healthy", Box::new(Peace));
        until_all_ended(&world, "settle", 400).await;
        for minute in ["00:00", "00:01", "00:02"] {
            assert_eq!(state(&world, &id(&format!("2026-08-30T{minute}:00Z"))), "Succeeded");
        }
    }
}

/// Whoever asks for a backfill, or goes on with it, dies at any write: if it was written down it is done, exactly.
#[tokio::test(start_paused = true)]
async fn a_backfill_that_is_cut_off_at_any_write_goes_on_exactly() {
    for moment in [Moment::Before, Moment::After] {
        // Each of the first, which are the asking; then one here and there.
        for write in (1..12).chain((12..).step_by(41)) {
            let world = two_due("Forbid").await;
            world.checker.go_light();
            let asked = BackfillRequest {
                from: at("2026-08-29T23:00:00Z"),
                to: at("2026-08-30T00:12:00Z"),
                only: Only::Missing,
                order: Order::Oldest,
                max_active: 3,
                per_minute: Some(10),
            };
            let mut dying = faulty(&world, AtWrite { write, moment, act: Act::Crash });
            dying.start(None);
            let asking = async {
                dying.engine.backfill(&job_name("settle"), asked).await.unwrap();
                seconds(100).await;
            };
            let died = async { dying.life.wait_for(State::Dead).await };
            tokio::select! { () = asking => {}, () = died => {} }
            let died = dying.life.state() == State::Dead;
            dying.kill();
            world.queue.clear();
            let _worker = calm(&world, "healthy", Box::new(Peace));
            seconds(130).await;
            until_all_ended(&world, "settle", 400).await;
            let backfills = world.store.backfills(&job_name("settle")).await.unwrap();
            for backfill in &backfills {
                assert!(backfill.is_over(), "{backfill:?}");
                let account = &backfill.account;
                assert_eq!((account.expected, account.begun + account.already_there), (15, 15), "write {write}");
                assert_eq!((account.succeeded, account.counts.input), (account.begun, 2 * account.begun));
            }
            answered_once(&world, "settle");
            if !died {
                assert!(write > 20 && backfills.len() == 1, "{write}");
                break;
            }
        }
    }
}
