//! Faults that other schedulers were seen to have, shown not to be in calendars and planning, and that what
//! `docs/field-reports.md` names is there. Each test names the report.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use shardcron_domain::calendar::{Calendar, Dst, ZoneRules};
use shardcron_domain::ids::{InstanceId, SpecVersion, Version, WriteId};
use shardcron_domain::instance::SkipReason;
use shardcron_domain::job::JobSpec;
use shardcron_domain::plan::{Job, Overlap, PlanContext, SkippedRange, Suspension, plan_step};
use shardcron_domain::time::ScheduledTime;

fn at(text: &str) -> ScheduledTime {
    text.parse().unwrap()
}

fn calendar(schedule: &str, zone: &str, start: &str) -> Calendar {
    let zone = ZoneRules::bundled().zone(zone).unwrap();
    Calendar::new(schedule, &zone, Dst::default(), at(start)).unwrap()
}

/// A job's file with these fields more.
fn spec(schedule: &str, more: &str) -> JobSpec {
    let text = format!(
        r#"{{ "name": "job", "schedule": "{schedule}", "input": {{ "objects": "in/", "format": "csv" }},
             "work": {{ "aggregate": {{ "count": true }} }}, "output": {{ "objects": "out/", "format": "csv" }} {more} }}"#
    );
    JobSpec::parse(&text).unwrap()
}

/// A job under Allow, planned tick by tick.
struct Planned {
    job: Job,
    spec: JobSpec,
    calendar: Calendar,
    ran: Vec<ScheduledTime>,
    skips: Vec<SkippedRange>,
}

impl Planned {
    fn new(schedule: &str, more: &str, start: &str) -> Self {
        let (spec, start) = (spec(schedule, more), at(start));
        let calendar = spec.calendar(&ZoneRules::bundled(), start).unwrap();
        let job = Job {
            name: spec.name.clone(),
            spec: SpecVersion::FIRST,
            spec_digest: String::new(),
            start,
            planned_through: start,
            window_through: None,
            next_fire: calendar.after(start),
            suspended: None,
            deleted_at: None,
            overlap: Overlap::of(&spec),
            unslotted_at: None,
            version: Version::FIRST,
            write_id: WriteId("w".into()),
        };
        Self { job, spec, calendar, ran: Vec::new(), skips: Vec::new() }
    }

    /// Plans up to `now`; the times that it runs.
    fn tick(&mut self, now: ScheduledTime) -> Vec<ScheduledTime> {
        let before = self.ran.len();
        loop {
            let step = plan_step(&PlanContext {
                job: &self.job,
                spec: &self.spec,
                catch_up: self.spec.catch_up,
                calendar: &self.calendar,
                overlap: &self.job.overlap,
                slot: None,
                existing: &BTreeSet::new(),
                now,
                write_id: &WriteId("w".into()),
            });
            let Some(step) = step else { break };
            self.ran.extend(step.instances.iter().map(|new| new.at));
            self.skips.extend(step.skips);
            self.job = step.job;
            if !step.more {
                break;
            }
        }
        self.ran[before..].to_vec()
    }

    fn skipped(&self, reason: SkipReason) -> u64 {
        self.skips.iter().filter(|skip| skip.reason == reason).map(|skip| skip.count).sum()
    }

    /// The calendar's times so far, each run or in one row of skips and not both.
    fn assert_each_answered_once(&self) {
        let times: Vec<_> = self.calendar.between(self.job.start, self.job.planned_through).collect();
        let times: Vec<_> = times
            .into_iter()
            .chain(self.calendar.contains(self.job.planned_through).then_some(self.job.planned_through))
            .collect();
        for time in times.iter().filter(|time| **time > self.job.start) {
            let runs = self.ran.iter().filter(|ran| *ran == time).count();
            let skips = self.skips.iter().filter(|skip| skip.from <= *time && *time <= skip.to).count();
            assert_eq!(runs + skips, 1, "{time}: {runs} runs, {skips} skips");
        }
    }
}

/// kubernetes/kubernetes#45825.
#[test]
fn three_suspended_hours_of_minutes_count_against_nothing() {
    let mut plan = Planned::new("* * * * *", "", "2026-03-01T09:00:00Z");
    plan.job.suspended = Some(Suspension { since: at("2026-03-01T09:00:00Z"), note: None, by_spec: false });
    assert!(plan.tick(at("2026-03-01T12:00:30Z")).is_empty());
    plan.job.suspended = None;
    assert_eq!(plan.job.next_fire, Some(at("2026-03-01T12:01:00Z")));
    assert_eq!(plan.tick(at("2026-03-01T12:01:10Z")), [at("2026-03-01T12:01:00Z")]);
    assert_eq!((plan.skipped(SkipReason::Suspended), plan.skipped(SkipReason::CatchUp)), (180, 0));
    plan.assert_each_answered_once();
}

/// celery/django-celery-beat#604: an interval knows nothing of clock changes. (The report's is of ten seconds; the least
/// here is a minute.)
#[test]
fn an_interval_goes_through_the_repeated_hour_evenly() {
    let calendar = calendar("rate(1 minute)", "America/Los_Angeles", "2025-11-01T00:00:00Z");
    let times: Vec<_> = calendar.between(at("2025-11-02T08:00:00Z"), at("2025-11-02T10:00:00Z")).collect();
    assert_eq!(times.len(), 120);
    assert!(times.windows(2).all(|pair| pair[1].as_second() - pair[0].as_second() == 60));
}

/// Steve-Mcl/node-red-contrib-cron-plus#108: no minute of the repeated hour is silent. (Seconds aren't a field here:
/// six bare fields are refused.)
#[test]
fn the_repeated_hour_of_london_has_a_run_each_minute() {
    let calendar = calendar("* * * * *", "Europe/London", "2025-10-01T00:00:00Z");
    for (from, to) in
        [("2025-10-26T00:00:00Z", "2025-10-26T01:00:00Z"), ("2025-10-26T01:00:00Z", "2025-10-26T02:00:00Z")]
    {
        assert_eq!(calendar.between(at(from), at(to)).count(), 60, "{from}");
    }
    let zone = ZoneRules::bundled().zone("Europe/London").unwrap();
    let refused = Calendar::new("15 * * * * *", &zone, Dst::default(), at("2025-10-01T00:00:00Z")).unwrap_err();
    assert!(refused.reason.contains("six fields"), "{refused}");
}

/// mvniekerk/tokio-cron-scheduler#107: planned on over both changes of a year by one calendar that is never made anew.
#[test]
fn the_local_time_is_right_on_both_sides_of_a_change_without_a_restart() {
    let more = r#", "timeZone": "Europe/Berlin""#;
    let mut plan = Planned::new("0 9 * * *", more, "2026-01-01T00:00:00Z");
    for day in 0..365 {
        plan.tick(ScheduledTime::from_second(at("2026-01-01T12:00:00Z").as_second() + day * 86_400).unwrap());
    }
    assert_eq!(plan.ran.len(), 365);
    let zone = plan.calendar.zone().time_zone();
    let is_nine = |ran: &ScheduledTime| zone.to_datetime(ran.timestamp()).time() == jiff::civil::time(9, 0, 0, 0);
    assert!(plan.ran.iter().all(is_nine), "{:?}", plan.ran);
}

/// PrefectHQ/prefect#7381: an id is the job and the instant, so that planning a change of clocks in one go, or day by
/// day, or over again, comes to the same ids.
#[test]
fn ids_are_the_same_however_often_a_change_of_clocks_is_planned() {
    let more = r#", "timeZone": "America/New_York", "catchUp": "all""#;
    let start = "2026-10-28T00:00:00Z";
    let ids = |plan: &Planned| -> Vec<String> {
        let id = |at: &ScheduledTime| InstanceId { job: plan.job.name.clone(), at: *at }.to_string();
        plan.ran.iter().map(id).collect()
    };
    let mut at_once = Planned::new("30 1 * * *", more, start);
    at_once.tick(at("2026-11-05T00:00:00Z"));
    let mut by_hour = Planned::new("30 1 * * *", more, start);
    for hour in 0..=8 * 24 {
        by_hour.tick(ScheduledTime::from_second(at(start).as_second() + hour * 3600).unwrap());
    }
    assert_eq!(ids(&at_once), ids(&by_hour));
    assert_eq!(at_once.ran.len(), 8);
    assert_eq!(ids(&at_once)[4..6], ["job:2026-11-01T05:30:00Z", "job:2026-11-02T06:30:00Z"]);
    by_hour.assert_each_answered_once();
}

/// sidekiq-scheduler/sidekiq-scheduler#283: even if the store's own clock jumps, which is the only one that counts: a day
/// forward makes one run of each job, a day back none twice, and each time has one answer.
#[test]
fn a_clock_that_jumps_by_a_day_makes_no_burst_and_nothing_twice() {
    const DAY: i64 = 86_400;
    let now = at("2026-03-10T00:10:00Z").as_second();
    let tick = |plan: &mut Planned, second: i64| plan.tick(ScheduledTime::from_second(second).unwrap()).len();
    for jump in [DAY, -DAY] {
        for number in 0..500 {
            let schedule = format!("{} * * * *", number % 60);
            let mut plan = Planned::new(&schedule, "", "2026-03-10T00:00:30Z");
            tick(&mut plan, now);
            assert!(tick(&mut plan, now + jump) <= 1, "{schedule}, {jump}");
            assert_eq!(tick(&mut plan, now + jump.min(0)), 0, "{schedule}, {jump}");
            // After a jump back, what hasn't been planned yet comes at its time.
            let mut runs = 0;
            for minute in 1..=120 {
                runs += tick(&mut plan, now + minute * 60);
            }
            assert_eq!(runs, if jump > 0 { 0 } else { 2 }, "{schedule}, {jump}");
            plan.assert_each_answered_once();
        }
    }
}

#[test]
fn a_job_without_a_zone_is_in_utc() {
    let job = spec("30 2 * * *", "");
    assert_eq!(job.time_zone, "UTC");
    let calendar = job.calendar(&ZoneRules::bundled(), at("2026-01-01T00:00:00Z")).unwrap();
    let times = calendar.between(at("2026-03-07T00:00:00Z"), at("2026-03-10T00:00:00Z"));
    let times: Vec<_> = times.map(|time| time.to_string()).collect();
    assert_eq!(times, ["2026-03-07T02:30:00Z", "2026-03-08T02:30:00Z", "2026-03-09T02:30:00Z"]);
}

/// kubernetes/kubernetes#78795: the machine's zone has no part in it, nor what the environment says of zones: the test
/// before this one, in processes of other environments.
#[test]
fn the_machines_zone_changes_nothing() {
    for zone in ["UTC", "America/Los_Angeles", "Asia/Kathmandu", ":/nowhere"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_job_without_a_zone_is_in_utc"]).env("TZ", zone).env("TZDIR", "/nowhere");
        let output = child.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{zone}: {told}");
    }
}

/// Every test that `docs/field-reports.md` names is there, and no report is there twice.
#[test]
fn every_test_that_the_field_reports_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/field-reports.md")).unwrap();
    let (mut rows, mut named, mut wrong) = (BTreeSet::new(), 0, Vec::new());
    for line in page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| source") && !line.starts_with("| ---"))
    {
        let source = line.split('|').nth(1).unwrap().trim();
        if !rows.insert(source) {
            wrong.push(format!("{source} is there twice"));
        }
        if line.matches(" | ").count() != 2 {
            wrong.push(format!("{source} hasn't three columns"));
        }
    }
    for name in page.split('`').skip(1).step_by(2) {
        let Some((file, function)) = name.split_once(".rs::") else { continue };
        named += 1;
        let source = std::fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default();
        let found = source.lines().zip(source.lines().skip(1)).any(|(before, line)| {
            let is_it = line
                .split_once("fn ")
                .is_some_and(|(_, rest)| rest.strip_prefix(function).is_some_and(|rest| rest.starts_with('(')));
            is_it && (before.contains("test]") || before.contains("test("))
        });
        if !found {
            wrong.push(format!("{name} isn't a test"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows.len() > 100 && named > 100, "{} rows name {named} tests", rows.len());
}
