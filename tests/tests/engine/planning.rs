//! Planners that race, stand still, and meet an edit: each scheduled time has exactly one answer (G1, G2).

use std::collections::BTreeSet;
use std::time::Duration;

use shardcron_domain::time::ScheduledTime;
use shardcron_tests::fixture::{Fixture, job_name};
use shardcron_tests::gate::{FreezeAtRequest, Request, Script};
use shardcron_tests::life::State;
use shardcron_tests::planning::assert_planned;
use shardcron_tests::ports::SeededRandom;
use shardcron_tests::process::{Character, Process};
use shardcron_tests::world::World;

fn job(name: &str, schedule: &str) -> String {
    Fixture::small().job_with(|job| {
        job["name"] = name.into();
        job["schedule"] = schedule.into();
    })
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

/// Requests take a while, each another.
struct Slow(SeededRandom);

impl Script for Slow {
    fn latency(&self, _request: &Request) -> Duration {
        Duration::from_millis(self.0.below(20))
    }
}

fn slow(world: &World, name: &str, seed: u64) -> Process {
    let script = Box::new(Slow(SeededRandom::new(seed)));
    world.process(name, Character { script, seed, ..Character::default() })
}

/// oban-bg/oban-py#32, apache/dolphinscheduler#2231: planners of one host name, started together, at many jobs of one minute.
#[tokio::test(start_paused = true)]
async fn racing_planners_plan_each_time_once() {
    let world = World::new(1);
    let planners = [slow(&world, "same", 1), slow(&world, "same", 2), slow(&world, "same", 3)];
    for number in 0..50 {
        planners[0].engine.apply(&job(&format!("job-{number}"), "0 * * * *"), "/jobs").await.unwrap();
    }
    for _ in 0..3 {
        minutes(60).await;
        let [one, two, three] = &planners;
        let planned = tokio::join!(one.engine.plan_due(), two.engine.plan_due(), three.engine.plan_due());
        let planned = [planned.0.unwrap(), planned.1.unwrap(), planned.2.unwrap()];
        assert_eq!(planned.iter().map(|planned| planned.instances).sum::<usize>(), 50, "{planned:?}");
    }
    for number in 0..50 {
        let answers = assert_planned(&world, &job_name(&format!("job-{number}"))).await;
        assert_eq!((answers.instances.len(), answers.skips.len()), (3, 0));
    }
}

/// xuxueli/xxl-job#2572: times that passed while nobody planned are run or recorded, whoever races for them.
#[tokio::test(start_paused = true)]
async fn racing_planners_catch_up_once() {
    for seed in 0..50 {
        let world = World::new(seed);
        let (one, other) = (slow(&world, "one", seed), slow(&world, "other", seed + 100));
        one.engine.apply(&job("settle", "*/5 * * * *"), "/jobs").await.unwrap();
        minutes(180).await;
        let (first, second) = tokio::join!(one.engine.plan_due(), other.engine.plan_due());
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!((first.instances + second.instances, first.skipped + second.skipped), (1, 35));
        assert_planned(&world, &job_name("settle")).await;
    }
}

/// Stops at its n-th request, whichever that is, while `meanwhile` happens; then goes on. Whether it came that far.
async fn stopped_at(
    world: &World,
    number: usize,
    run: impl AsyncFnOnce(&Process),
    meanwhile: impl AsyncFnOnce(),
) -> bool {
    let script = Box::new(FreezeAtRequest::new(number));
    let process = world.process("stopped", Character { script, seed: 5, ..Character::default() });
    let go_on = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let stopped = process.life.state() == State::Frozen;
        if stopped {
            meanwhile().await;
            process.life.thaw();
        }
        stopped
    };
    tokio::join!(run(&process), go_on).1
}

/// A planner stands still anywhere in its planning while an edit goes ahead.
#[tokio::test(start_paused = true)]
async fn a_planner_that_stood_still_through_an_edit_plans_nothing_of_the_old_schedule() {
    for number in 1.. {
        let world = World::new(1);
        let editor = world.process("editor", Character::default());
        editor.engine.apply(&job("settle", "*/5 * * * *"), "/jobs").await.unwrap();
        minutes(7).await;
        editor.engine.plan_due().await.unwrap();
        // One time is due, so that no row of skips keeps a late step out.
        minutes(5).await;
        let run = async |planner: &Process| {
            planner.engine.plan_due().await.unwrap();
        };
        let edit = async || {
            minutes(30).await;
            editor.engine.apply(&job("settle", "*/7 * * * *"), "/jobs").await.unwrap();
            minutes(30).await;
        };
        let came_so_far = stopped_at(&world, number, run, edit).await;
        editor.engine.plan_due().await.unwrap();
        assert_planned(&world, &job_name("settle")).await;
        if !came_so_far {
            assert!(number > 3, "{number}");
            return;
        }
    }
}

/// An edit stands still anywhere while a planner goes ahead: the versions of the spec say truly from when they counted.
#[tokio::test(start_paused = true)]
async fn an_edit_that_stood_still_counts_from_when_it_was_made() {
    for number in 1.. {
        let world = World::new(1);
        let planner = world.process("planner", Character::default());
        planner.engine.apply(&job("settle", "*/5 * * * *"), "/jobs").await.unwrap();
        minutes(12).await;
        let run = async |editor: &Process| {
            editor.engine.apply(&job("settle", "*/7 * * * *"), "/jobs").await.unwrap();
        };
        let plan = async || {
            for _ in 0..30 {
                minutes(1).await;
                planner.engine.plan_due().await.unwrap();
            }
        };
        let came_so_far = stopped_at(&world, number, run, plan).await;
        minutes(30).await;
        planner.engine.plan_due().await.unwrap();
        assert_planned(&world, &job_name("settle")).await;
        if !came_so_far {
            assert!(number > 6, "{number}");
            return;
        }
    }
}

/// dagster-io/dagster#13597, PrefectHQ/prefect#7381: an edit counts from when it is made: today's run isn't run again at its new time, nor before.
#[tokio::test(start_paused = true)]
async fn a_moved_schedule_doesnt_run_the_day_again() {
    for (moved, runs) in [
        ("5 0 * * *", vec!["2026-08-30T00:15:00Z", "2026-08-31T00:05:00Z"]),
        ("20 0 * * *", vec!["2026-08-30T00:15:00Z", "2026-08-31T00:20:00Z"]),
    ] {
        let world = World::new(1);
        let planner = world.process("planner", Character::default());
        planner.engine.apply(&job("settle", "15 0 * * *"), "/jobs").await.unwrap();
        for minute in 0..26 * 60 {
            minutes(1).await;
            if minute == 30 {
                planner.engine.apply(&job("settle", moved), "/jobs").await.unwrap();
            }
            planner.engine.plan_due().await.unwrap();
        }
        let answers = assert_planned(&world, &job_name("settle")).await;
        let times: BTreeSet<ScheduledTime> = answers.instances.iter().map(|instance| instance.id.at).collect();
        assert_eq!(times, runs.iter().map(|at| at.parse().unwrap()).collect());
        let windows: Vec<_> = answers.instances.iter().map(|instance| instance.window).collect();
        assert_eq!(windows[0].end, windows[1].start, "windows tile, also over an edit");
    }
}

/// A trigger races the planner for the same time, at every request of either.
#[tokio::test(start_paused = true)]
async fn a_trigger_and_the_planner_make_one_instance() {
    let at: ScheduledTime = "2026-08-30T00:10:00Z".parse().unwrap();
    for number in 1.. {
        let world = World::new(1);
        let planner = world.process("planner", Character::default());
        planner.engine.apply(&job("settle", "*/5 * * * *"), "/jobs").await.unwrap();
        minutes(12).await;
        let name = job_name("settle");
        let run = async |process: &Process| {
            process.engine.ensure_instance(&name, at).await.unwrap();
            process.engine.plan_due().await.unwrap();
        };
        let plan = async || {
            planner.engine.plan_due().await.unwrap();
            planner.engine.ensure_instance(&name, at).await.unwrap();
        };
        let came_so_far = stopped_at(&world, number, run, plan).await;
        let answers = shardcron_tests::planning::answers(&world, &name);
        assert_eq!(answers.instances.iter().filter(|instance| instance.id.at == at).count(), 1);
        assert_planned(&world, &name).await;
        if !came_so_far {
            assert!(number > 5, "{number}");
            return;
        }
    }
}

/// The same file, applied twice at the same time, is one version: applying what is there already changes nothing.
#[tokio::test(start_paused = true)]
async fn racing_applies_of_one_file_make_one_version() {
    for number in 1.. {
        let world = World::new(1);
        let other = world.process("other", Character::default());
        let file = job("settle", "*/5 * * * *");
        let run = async |process: &Process| {
            process.engine.apply(&file, "/jobs").await.unwrap();
        };
        let meanwhile = async || {
            other.engine.apply(&file, "/jobs").await.unwrap();
        };
        let came_so_far = stopped_at(&world, number, run, meanwhile).await;
        let job = other.engine.job(&job_name("settle")).await.unwrap().unwrap();
        assert_eq!(job.spec.0, 1, "stopped at request {number}\n{}", world.journal.last(20));
        if !came_so_far {
            assert!(number > 2, "{number}");
            return;
        }
    }
}
