//! Backfills that elsewhere lost their limits, starved other jobs, or never came to an end.

use std::time::Duration;

use shardcron_domain::backfill::{Backfill, BackfillRequest, BackfillStatus, Only, Order};
use shardcron_domain::instance::{Instance, Origin};
use shardcron_domain::time::Duration as Span;
use shardcron_tests::fixture::job_name;
use shardcron_tests::planning::answers;
use shardcron_tests::process::Process;
use shardcron_tests::world::World;

use crate::support::*;

fn request(from: &str, to: &str, max_active: u32) -> BackfillRequest {
    let (only, order) = (Only::Missing, Order::Oldest);
    BackfillRequest { from: at(from), to: at(to), only, order, max_active, per_minute: None }
}

/// Waits until a backfill has ended, for at most so many seconds.
async fn until_over(world: &World, user: &Process, backfill: &Backfill, within: u64) -> Backfill {
    for _ in 0..within {
        let found = user.engine.find_backfill(&backfill.job, &backfill.id).await.unwrap();
        if found.is_over() {
            return found;
        }
        seconds(1).await;
    }
    world.fail(&format!("backfill {} isn't over after {within} s", backfill.id))
}

fn is_backfilled(instance: &Instance) -> bool {
    matches!(instance.origin, Origin::Backfill { .. })
}

/// How late the started instances of a job by schedule began.
fn delays(world: &World, name: &str) -> Vec<Span> {
    let found = answers(world, &job_name(name)).instances;
    found.iter().filter_map(|one| Some(one.started_at?.since(one.id.at.millis()))).collect()
}

/// temporalio/documentation#5288: `startingDeadlineSeconds` is of the schedule, and refuses nothing of a backfill.
#[tokio::test(start_paused = true)]
async fn a_backfill_isnt_bound_by_the_starting_deadline() {
    let world = world();
    let _worker = worker(&world, "worker", Duration::ZERO);
    let user = by_hand(&world, "user");
    user.engine.apply(&job("0 0 * * *", |job| job["startingDeadlineSeconds"] = 60.into()), "/jobs").await.unwrap();
    let request = request("2026-07-30T00:00:00Z", "2026-08-29T00:00:00Z", 5);
    let backfill = user.engine.backfill(&job_name("settle"), request).await.unwrap();
    let over = until_over(&world, &user, &backfill, 300).await;
    assert_eq!((over.status, over.account.begun, over.account.succeeded), (BackfillStatus::Succeeded, 30, 30));
}

/// apache/airflow#64109: two thousand runs that wait their turn keep another job's from nothing.
#[tokio::test(start_paused = true)]
async fn a_backfill_of_thousands_doesnt_keep_another_job_waiting() {
    let world = world();
    world.checker.go_light();
    let _worker = worker(&world, "worker", Duration::from_secs(20));
    let user = by_hand(&world, "user");
    let filled = job("* * * * *", |job| {
        job["name"] = "filled".into();
        job["suspend"] = true.into();
    });
    user.engine.apply(&filled, "/jobs").await.unwrap();
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    let request = request("2026-08-28T00:00:00Z", "2026-08-29T09:20:00Z", 3);
    let backfill = user.engine.backfill(&job_name("filled"), request).await.unwrap();
    until(&world, "2026-08-30T00:14:50Z").await;
    let found = user.engine.find_backfill(&backfill.job, &backfill.id).await.unwrap();
    assert!(found.account.begun > 50 && !found.exhausted, "{found:?}");
    assert_eq!(world.checker.most_active()[&backfill.id], 3);
    let delays = delays(&world, "settle");
    assert_eq!(delays.len(), 15);
    assert!(delays.iter().all(|delay| delay.0 < 5_000), "{delays:?}");
    answered_once(&world, "settle");
}

/// apache/airflow#18501: hundreds of finished runs that are run again at once keep no other job waiting.
#[tokio::test(start_paused = true)]
async fn hundreds_of_reruns_dont_keep_another_job_waiting() {
    const RUNS: usize = 300;
    let world = world();
    world.checker.go_light();
    let user = by_hand(&world, "user");
    let again = job("* * * * *", |job| {
        job["name"] = "again".into();
        job["catchUp"] = "all".into();
    });
    user.engine.apply(&again, "/jobs").await.unwrap();
    until(&world, "2026-08-30T04:59:30Z").await;
    user.engine.plan_due().await.unwrap();
    user.engine.suspend(&job_name("again"), None).await.unwrap();
    let _worker = worker(&world, "worker", Duration::ZERO);
    let (from, to) = (at("2026-08-30T00:00:00Z"), at("2026-08-30T05:00:00Z"));
    let all = async || user.engine.instances_between(&job_name("again"), from, to).await.unwrap();
    let have_succeeded = |instances: &[Instance], generation: u32| {
        let right = |one: &Instance| (one.generation.0, one.status.name()) == (generation, "Succeeded");
        instances.len() == RUNS && instances.iter().all(right)
    };
    minutes(2).await;
    let done = all().await;
    assert!(have_succeeded(&done, 1));
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    for instance in &done {
        user.engine.rerun(&instance.id, None).await.unwrap();
    }
    minutes(5).await;
    assert!(have_succeeded(&all().await, 2));
    let account = answered_once(&world, "settle");
    assert!(account.instances.len() >= 5 && account.skips.is_empty(), "{:?}", account.skips);
    let delays = delays(&world, "settle");
    assert!(delays.len() >= 5 && delays.iter().all(|delay| delay.0 < 10_000), "{delays:?}");
}

/// dagster-io/dagster#16304: a backfill of 20,000 times is begun in small steps, goes on after a crash, and can be
/// cancelled.
#[tokio::test(start_paused = true)]
async fn a_backfill_of_20000_times_survives_a_crash_and_can_be_cancelled() {
    let world = world();
    world.checker.go_light();
    let mut first = worker(&world, "first", Duration::ZERO);
    let user = by_hand(&world, "user");
    user.engine.apply(&with_policy("* * * * *", "Allow"), "/jobs").await.unwrap();
    let request = request("2026-08-16T00:00:00Z", "2026-08-29T21:20:00Z", 20);
    let backfill = user.engine.backfill(&job_name("settle"), request).await.unwrap();
    let look = async || user.engine.find_backfill(&backfill.job, &backfill.id).await.unwrap();
    minutes(1).await;
    first.kill();
    world.queue.clear();
    let before = look().await;
    assert!(before.account.begun > 20 && before.active.len() <= 20, "{before:?}");
    let _second = worker(&world, "second", Duration::ZERO);
    minutes(1).await;
    let behind = look().await;
    assert!(behind.cursor > before.cursor && behind.account.begun > before.account.begun, "{behind:?}");
    user.engine.set_backfill(&backfill.job, &backfill.id, BackfillStatus::Cancelled).await.unwrap();
    let over = until_over(&world, &user, &backfill, 60).await;
    assert_eq!((over.status, over.active.len()), (BackfillStatus::Cancelled, 0));
    assert!(over.account.begun < 20_000);
    assert_eq!((over.account.succeeded, over.account.failed), (over.account.begun, 0));
    minutes(1).await;
    let found = answers(&world, &job_name("settle")).instances;
    let filled: Vec<_> = found.iter().filter(|one| is_backfilled(one)).collect();
    assert_eq!(filled.len() as u64, over.account.begun, "nothing is begun after it");
    assert!(filled.iter().all(|one| one.status.name() == "Succeeded"));
    answered_once(&world, "settle");
}
