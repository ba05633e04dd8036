//! Backfills: at the pace that was asked for, through crashes, with an account that adds up.
//!
//! The watch over backfills fails each of these tests when at any write one has more at work, or has begun more within
//! a minute, than it may.

use std::sync::Arc;
use std::time::Duration;

use shardcron_domain::backfill::{Backfill, BackfillId, BackfillRequest, BackfillStatus, Only, Order};
use shardcron_domain::instance::{Origin, SkipReason};
use shardcron_engine::EngineError;
use shardcron_store::Store;
use shardcron_tests::fixture::{Fixture, input, job_name};
use shardcron_tests::gate::{Act, AtWrite, Moment, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::planning::answers;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::work::Deed;
use shardcron_tests::world::World;

use crate::support::*;

fn request(from: &str, to: &str, max_active: u32) -> BackfillRequest {
    let (only, order) = (Only::Missing, Order::Oldest);
    BackfillRequest { from: at(from), to: at(to), only, order, max_active, per_minute: None }
}

fn found(world: &World, id: &BackfillId) -> Backfill {
    let key = shardcron_store::ItemKey::Backfill(job_name("settle"), id.clone());
    match shardcron_tests::watch::item(&world.store, &key) {
        Some(shardcron_store::Item::Backfill(backfill)) => *backfill,
        _ => world.fail(&format!("backfill {id} isn't there")),
    }
}

async fn until_over(world: &World, id: &BackfillId, within: u64) -> Backfill {
    for _ in 0..within {
        let backfill = found(world, id);
        if backfill.is_over() {
            world.assert_sound();
            return backfill;
        }
        seconds(1).await;
    }
    world.fail(&format!("it isn't over after {within} s: {:#?}", found(world, id)));
}

/// A daily job applied now, whose past is before it; each day reads its own object, or the one that all read.
async fn daily(policy: &str, each_its_own: bool) -> (World, Process) {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    let file = job("0 0 * * *", |job| {
        job["concurrencyPolicy"] = policy.into();
        if each_its_own {
            job["input"]["objects"] = "s3://ledger/in/{time:%F}/".into();
        }
    });
    user.engine.apply(&file, "/jobs").await.unwrap();
    (world, user)
}

/// A year, at 30 a minute and five at once, by processes that die twice: the account is exact.
#[tokio::test(start_paused = true)]
async fn a_year_is_backfilled_at_its_pace_through_two_crashes() {
    let (world, user) = daily("Forbid", false).await;
    let asked = BackfillRequest { per_minute: Some(30), ..request("2025-08-30T00:00:00Z", "2026-08-30T00:00:00Z", 5) };
    let backfill = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    let started = world.time.now();
    for (life, write) in [(0, 700), (1, 901)] {
        let script = Box::new(AtWrite { write, moment: Moment::After, act: Act::Crash });
        let mut dying = world.process("dying", Character { script, seed: life, ..Character::default() });
        dying.start(None);
        for _ in 0..600 {
            seconds(1).await;
            if dying.life.state() == State::Dead {
                break;
            }
        }
        assert_eq!(dying.life.state(), State::Dead);
        dying.kill();
        world.queue.clear();
        seconds(70).await;
    }
    let _worker = worker(&world, "worker", Duration::ZERO);
    let over = until_over(&world, &backfill.id, 1500).await;
    assert_eq!(over.status, BackfillStatus::Succeeded);
    let account = over.account;
    assert_eq!((account.expected, account.begun, account.succeeded, account.failed), (365, 365, 365, 0));
    assert_eq!((account.already_there, account.were_skipped, account.left_out), (0, 0, 0));
    assert_eq!((account.counts.input, account.counts.output), (730, 730));
    let ran = answers(&world, &job_name("settle")).instances;
    let of_it = ran.iter().filter(|instance| instance.origin == Origin::Backfill { id: backfill.id.clone() });
    assert_eq!(of_it.count(), 365);
    assert_eq!(world.checker.most_active()[&backfill.id], 5);
    let took = world.time.now().since(started).0 / 1000;
    assert!((720..1200).contains(&took), "365 at 30 a minute take twelve minutes and what the crashes cost: {took} s");
    for pair in ran.windows(2) {
        assert_eq!(pair[0].window.end, pair[1].window.start);
    }
}

/// Skipped times are run after all and keep their reason; what is there is left alone; what failed is retried on
/// request only.
#[tokio::test(start_paused = true)]
async fn only_says_which_times_are_begun() {
    for (only, begun, there, left_out, were_skipped) in
        [(Only::Missing, 3, 2, 0, 3), (Only::Failed, 1, 1, 3, 0), (Only::All, 4, 1, 0, 3)]
    {
        let world = World::new(1);
        let user = by_hand(&world, "user");
        let file = job("0 0 * * *", |job| job["input"]["objects"] = "s3://ledger/in/{time:%F}/".into());
        user.engine.apply(&file, "/jobs").await.unwrap();
        let mut first = calm(&world, "first", Box::new(shardcron_tests::gate::Peace));
        world.objects.overwrite(&input("2026-08-30/a.csv"), "merchant,amount\nm1,100\n".to_owned());
        until(&world, "2026-08-31T00:01:00Z").await;
        user.engine.suspend(&job_name("settle"), None).await.unwrap();
        first.kill();
        seconds(3 * 86_400).await;
        user.engine.resume(&job_name("settle")).await.unwrap();
        let account = answered_once(&world, "settle");
        assert_eq!(account.by_state(), [("Failed", 1), ("Succeeded", 1)].into());
        assert_eq!(account.skipped(SkipReason::Suspended), 3);
        for day in ["08-31", "09-01", "09-02", "09-03"] {
            world.objects.overwrite(&input(&format!("2026-{day}/a.csv")), "merchant,amount\nm1,100\n".to_owned());
        }
        let asked = BackfillRequest { only, ..request("2026-08-30T00:00:00Z", "2026-12-01T00:00:00Z", 2) };
        let preview = user.engine.preview_backfill(&job_name("settle"), asked.clone()).await.unwrap();
        assert_eq!((preview.expected, preview.would_begin, preview.were_skipped), (5, begun, were_skipped));
        assert_eq!((preview.already_there, preview.left_out), (there, left_out));
        let _second = calm(&world, "second", Box::new(shardcron_tests::gate::Peace));
        let backfill = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
        let over = until_over(&world, &backfill.id, 120).await;
        let account = over.account;
        assert_eq!((account.expected, account.begun, account.succeeded), (5, begun, begun), "{only:?}");
        assert_eq!((account.already_there, account.left_out), (there, left_out), "{only:?}");
        assert_eq!(account.skipped, [("Suspended".to_owned(), 3)].into(), "{only:?}: begun or left out");
        assert_eq!((account.were_skipped, account.counts.input), (were_skipped, begun), "{only:?}");
        answered_once(&world, "settle");
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_can_come_first() {
    let (world, user) = daily("Allow", false).await;
    let _worker = worker(&world, "worker", Duration::from_secs(5));
    let asked = BackfillRequest { order: Order::Newest, ..request("2026-08-01T00:00:00Z", "2026-08-11T00:00:00Z", 1) };
    let backfill = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    until_over(&world, &backfill.id, 300).await;
    let ran = answers(&world, &job_name("settle")).instances;
    let ran: Vec<_> = ran.iter().filter(|ran| ran.origin != Origin::Schedule).collect();
    assert_eq!(ran.len(), 10);
    assert!(ran.windows(2).all(|pair| pair[0].started_at > pair[1].started_at));
}

#[tokio::test(start_paused = true)]
async fn a_backfill_can_be_paused_resumed_and_cancelled() {
    let (world, user) = daily("Allow", false).await;
    let _worker = worker(&world, "worker", Duration::from_secs(5));
    let name = job_name("settle");
    let asked = request("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z", 2);
    let id = user.engine.backfill(&name, asked).await.unwrap().id;
    seconds(12).await;
    user.engine.set_backfill(&name, &id, BackfillStatus::Paused).await.unwrap();
    user.engine.set_backfill(&name, &id, BackfillStatus::Paused).await.unwrap();
    let begun = found(&world, &id).account.begun;
    assert!((2..10).contains(&begun), "{begun}");
    minutes(10).await;
    let paused = found(&world, &id);
    assert_eq!((paused.account.begun, paused.account.succeeded, paused.active.len()), (begun, begun, 0));
    user.engine.set_backfill(&name, &id, BackfillStatus::Running).await.unwrap();
    seconds(12).await;
    user.engine.set_backfill(&name, &id, BackfillStatus::Cancelled).await.unwrap();
    let cancelled = until_over(&world, &id, 60).await;
    assert_eq!(cancelled.status, BackfillStatus::Cancelled);
    let account = cancelled.account;
    assert!(account.begun > begun && account.begun < 31 && account.begun == account.succeeded, "{account:?}");
    let over = user.engine.set_backfill(&name, &id, BackfillStatus::Running).await;
    assert!(matches!(over, Err(EngineError::BackfillOver { .. })), "{over:?}");
}

/// Two requests at once, for 1 to 20 and 10 to 30 July: the union, each once, and the second says what it shares
/// (mozilla/telemetry-airflow#2386).
#[tokio::test(start_paused = true)]
async fn overlapping_backfills_do_the_union_once() {
    let (world, user) = daily("Allow", false).await;
    let other = by_hand(&world, "other");
    let name = job_name("settle");
    let (one, two) = tokio::join!(
        user.engine.backfill(&name, request("2026-07-01T00:00:00Z", "2026-07-21T00:00:00Z", 5)),
        other.engine.backfill(&name, request("2026-07-10T00:00:00Z", "2026-07-31T00:00:00Z", 5)),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    let _workers = [worker(&world, "one", Duration::ZERO), worker(&world, "two", Duration::ZERO)];
    let (one, two) = (until_over(&world, &one.id, 300).await.account, until_over(&world, &two.id, 300).await.account);
    assert_eq!((one.expected, two.expected), (20, 21));
    assert_eq!(one.begun + two.begun, 30);
    assert_eq!(one.already_there + two.already_there, 11, "shared");
    assert_eq!((one.succeeded + two.succeeded, one.counts.input + two.counts.input), (30, 60));
}

/// The same request, delivered twice while it goes on, is one backfill.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_delivered_twice_is_one_backfill() {
    let (_world, user) = daily("Allow", false).await;
    let asked = request("2026-07-01T00:00:00Z", "2026-07-21T00:00:00Z", 5);
    let one = user.engine.backfill(&job_name("settle"), asked.clone()).await.unwrap();
    let two = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    assert_eq!(one.id, two.id);
}

/// Day 4 of ten fails: the others succeed, and it ends as partially failed (apache/dolphinscheduler#15835).
#[tokio::test(start_paused = true)]
async fn a_day_that_fails_leaves_the_others_to_succeed() {
    let (world, user) = daily("Allow", true).await;
    for day in 1..=10 {
        world.objects.overwrite(&input(&format!("2026-07-{day:02}/a.csv")), Fixture::new(1, 1, 2).objects[0].1.clone());
    }
    let deeds = Arc::new(|source: &str| if source.contains("07-04") { Deed::Refuse } else { Deed::Count });
    let _worker = with_deeds(&world, "worker", deeds);
    let asked = request("2026-07-01T00:00:00Z", "2026-07-11T00:00:00Z", 10);
    let backfill = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    let over = until_over(&world, &backfill.id, 120).await;
    assert_eq!(over.status, BackfillStatus::PartiallyFailed);
    let account = over.account;
    assert_eq!((account.begun, account.succeeded, account.failed, account.counts.input), (10, 9, 1, 18));
    assert_eq!(state(&world, &id("2026-07-04T00:00:00Z")), "Failed");
}

/// One of twenty takes a hundred times as long: the other places are used on (apache/airflow#38954).
#[tokio::test(start_paused = true)]
async fn a_slow_one_doesnt_block_the_free_places() {
    let (world, user) = daily("Allow", true).await;
    for day in 1..=20 {
        world.objects.overwrite(&input(&format!("2026-07-{day:02}/a.csv")), Fixture::new(1, 1, 2).objects[0].1.clone());
    }
    let deeds =
        Arc::new(|source: &str| Deed::Take(Duration::from_secs(if source.contains("07-02") { 300 } else { 3 })));
    let _worker = with_deeds(&world, "worker", deeds);
    let asked = request("2026-07-01T00:00:00Z", "2026-07-21T00:00:00Z", 5);
    let backfill = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    seconds(30).await;
    assert_eq!(found(&world, &backfill.id).account.succeeded, 19);
    let over = until_over(&world, &backfill.id, 320).await;
    assert_eq!((over.status, over.account.succeeded), (BackfillStatus::Succeeded, 20));
}

/// Beside a backfill of three at once the schedule still obeys Forbid, and the backfill doesn't take its slot, nor
/// hold its shards up (cadence-workflow/cadence#8005, apache/airflow#64109).
#[tokio::test(start_paused = true)]
async fn the_schedule_goes_on_beside_a_backfill() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Forbid"), "/jobs").await.unwrap();
    let _worker = worker(&world, "worker", Duration::from_secs(70));
    let asked = request("2026-08-29T00:00:00Z", "2026-08-29T00:15:00Z", 3);
    let backfill = user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    until(&world, "2026-08-30T00:05:50Z").await;
    let account = answered_once(&world, "settle");
    let scheduled: Vec<_> = account.instances.iter().filter(|i| i.origin == Origin::Schedule).collect();
    assert_eq!(scheduled.len(), 3);
    assert_eq!(account.skipped(SkipReason::Overlap), 3);
    for instance in &scheduled {
        let late = instance.started_at.unwrap().since(instance.id.at.millis());
        assert!(late.0 < 2_000, "{} began {late:?} late", instance.id);
    }
    assert!(scheduled.iter().all(|instance| instance.slot.is_some()));
    let over = until_over(&world, &backfill.id, 1500).await;
    assert_eq!(over.account.succeeded, 15);
    assert_eq!(world.checker.most_active()[&backfill.id], 3);
    let backfilled = answers(&world, &job_name("settle")).instances;
    assert!(backfilled.iter().filter(|i| i.origin != Origin::Schedule).all(|instance| instance.slot.is_none()));
}

/// 20,000 times are planned in pages; each step is bounded, and it can be cancelled at any moment (dagster-io/dagster#16304).
#[tokio::test(start_paused = true)]
async fn a_backfill_of_20_000_times_is_planned_in_pages_and_cancellable() {
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("* * * * *", |_| {}), "/jobs").await.unwrap();
    let (from, to) = ("2026-08-10T00:00:00Z", "2026-08-23T21:20:00Z");
    // First times that are all there already: they are passed over a thousand at a time.
    let name = job_name("settle");
    let backfill = user.engine.backfill(&name, request(from, to, 100)).await.unwrap();
    assert!(backfill.account.expected <= 100 && !backfill.is_over());
    let before = user.gate.writes();
    user.engine.advance_backfill(&name, &backfill.id).await.unwrap();
    assert!(user.gate.writes() - before <= 2, "a step is one write");
    let only_failed = BackfillRequest { only: Only::Failed, ..request(from, to, 1) };
    let other = user.engine.backfill(&name, only_failed).await.unwrap();
    let over = until_over(&world, &other.id, 1).await;
    assert_eq!((over.account.expected, over.account.begun), (20_000, 0));
    assert_eq!(over.account.left_out + over.account.already_there, 20_000);
    user.engine.set_backfill(&name, &backfill.id, BackfillStatus::Cancelled).await.unwrap();
    let begun = found(&world, &backfill.id).account.begun;
    assert!(begun <= 200);
    let _worker = worker(&world, "worker", Duration::ZERO);
    let over = until_over(&world, &backfill.id, 120).await;
    assert_eq!((over.status, over.account.succeeded), (BackfillStatus::Cancelled, begun));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing() {
    let (world, user) = daily("Forbid", false).await;
    let (writes, before) = (user.gate.writes(), world.store.snapshot());
    let asked = request("2026-07-01T00:00:00Z", "2027-07-01T00:00:00Z", 5);
    let preview = user.engine.preview_backfill(&job_name("settle"), asked).await.unwrap();
    assert_eq!((preview.expected, preview.would_begin, preview.already_there), (60, 60, 0));
    assert_eq!((user.gate.writes(), world.store.snapshot() == before), (writes, true));
}

#[tokio::test(start_paused = true)]
async fn a_request_out_of_bounds_is_refused() {
    let (world, user) = daily("Forbid", false).await;
    let good = request("2026-07-01T00:00:00Z", "2026-07-02T00:00:00Z", 5);
    for bad in [
        BackfillRequest { to: good.from, ..good.clone() },
        BackfillRequest { max_active: 0, ..good.clone() },
        BackfillRequest { max_active: 101, ..good.clone() },
        BackfillRequest { per_minute: Some(0), ..good.clone() },
        request("2027-07-01T00:00:00Z", "2027-07-02T00:00:00Z", 5),
    ] {
        let refused = user.engine.backfill(&job_name("settle"), bad).await;
        assert!(matches!(refused, Err(EngineError::Backfill(_))), "{refused:?}");
    }
    let nobody = user.engine.backfill(&job_name("nobody"), good).await;
    assert!(matches!(nobody, Err(EngineError::NoJob(_))), "{nobody:?}");
    assert!(!world.store.snapshot().iter().any(|item| matches!(item, shardcron_store::Item::Backfill(_))));
}

/// The same request delivered twice at once is one backfill, at its own pace and not at twice that.
#[tokio::test(start_paused = true)]
async fn the_same_backfill_twice_at_once_is_one() {
    let (world, user) = daily("Allow", false).await;
    let other = world.process("other", Character { seed: 77, ..Character::default() });
    let asked = request("2026-08-01T00:00:00Z", "2026-08-30T00:00:00Z", 2);
    let name = job_name("settle");
    let (one, two) =
        tokio::join!(user.engine.backfill(&name, asked.clone()), other.engine.backfill(&name, asked.clone()));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.id, two.id);
    assert_eq!(world.store.backfills(&name).await.unwrap().len(), 1);
    assert_eq!(user.engine.backfill(&name, asked.clone()).await.unwrap().id, one.id, "and while it is unfinished");
    let _worker = worker(&world, "worker", Duration::ZERO);
    let over = until_over(&world, &one.id, 120).await;
    assert_eq!((over.account.begun, over.account.succeeded), (29, 29));
    let again = user.engine.backfill(&name, asked).await.unwrap();
    assert_ne!(again.id, one.id, "after its end the request is another one");
    assert_eq!(until_over(&world, &again.id, 10).await.account.already_there, 29);
}

/// Under an id of the caller's a late duplicate finds the one that has ended; and the id is no other request's.
#[tokio::test(start_paused = true)]
async fn a_late_duplicate_with_an_id_finds_the_ended_one() {
    let (world, user) = daily("Allow", false).await;
    let asked = request("2026-08-01T00:00:00Z", "2027-01-01T00:00:00Z", 5);
    let (name, id) = (job_name("settle"), "august".parse::<BackfillId>().unwrap());
    let as_august = async |asked: &BackfillRequest| {
        user.engine.backfill_as(&job_name("settle"), Some("august".parse().unwrap()), asked.clone()).await
    };
    assert_eq!(as_august(&asked).await.unwrap().id, id);
    let _worker = worker(&world, "worker", Duration::ZERO);
    let over = until_over(&world, &id, 120).await;
    seconds(5 * 86_400).await;
    assert_eq!(as_august(&asked).await.unwrap(), over);
    let refused = as_august(&request("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z", 5)).await;
    assert!(matches!(refused, Err(EngineError::BackfillIdTaken { .. })), "{refused:?}");
    assert_eq!(world.store.backfills(&name).await.unwrap().len(), 1);
}

/// A preview announces nothing and writes nothing, also where a failed instance waits for its announcement.
#[tokio::test(start_paused = true)]
async fn a_preview_tells_nobody() {
    struct Deaf;
    impl Script for Deaf {
        fn before(&self, request: &Request) -> Act {
            match request.what.starts_with("announce") {
                true => Act::Deny(shardcron_store::hooked::Verdict::LoseAnswer),
                false => Act::Proceed,
            }
        }
    }
    let world = World::new(1).announcing();
    let user = by_hand(&world, "user");
    user.engine.apply(&job("0 0 * * *", |_| {}), "/jobs").await.unwrap();
    let mut deaf = world.process("deaf", Character { script: Box::new(Deaf), seed: 4, ..Character::default() });
    deaf.start(None);
    until_state(&world, &id("2026-08-30T00:00:00Z"), "Failed", 60).await;
    deaf.kill();
    assert!(instance(&world, &id("2026-08-30T00:00:00Z")).is_unannounced());
    until(&world, "2026-08-30T12:00:00Z").await;
    let before = world.store.snapshot();
    for (only, would_begin) in [(Only::Failed, 1), (Only::All, 1), (Only::Missing, 0)] {
        let asked = BackfillRequest { only, ..request("2026-08-30T00:00:00Z", "2026-08-31T00:00:00Z", 1) };
        let preview = user.engine.preview_backfill(&job_name("settle"), asked).await.unwrap();
        assert_eq!((preview.expected, preview.would_begin), (1, would_begin), "{only:?}");
    }
    assert_eq!(world.bus.as_ref().unwrap().taken(), []);
    assert_eq!(world.store.snapshot(), before);
    let asked = BackfillRequest { only: Only::Failed, ..request("2026-08-30T00:00:00Z", "2026-08-31T00:00:00Z", 1) };
    user.engine.backfill(&job_name("settle"), asked).await.unwrap();
    assert_eq!(world.bus.as_ref().unwrap().taken().len(), 1, "the backfill itself announces the end first");
}
