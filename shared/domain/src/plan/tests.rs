//! One planning step after another, in virtual time, over a slot that the test keeps.

use super::*;
use crate::calendar::ZoneRules;
use crate::ids::Version;

fn time(text: &str) -> ScheduledTime {
    text.parse().unwrap()
}

fn spec(schedule: &str, more: &str) -> JobSpec {
    let text = format!(
        r#"{{ "name": "job", "schedule": "{schedule}", "input": {{ "objects": "in/", "format": "csv" }},
             "work": {{ "aggregate": {{ "count": true }} }}, "output": {{ "objects": "out/", "format": "csv" }} {more} }}"#
    );
    JobSpec::parse(&text).unwrap()
}

fn write_id() -> WriteId {
    WriteId("w".into())
}

/// A job, its calendar and its slot, planned step by step.
struct Plan {
    job: Job,
    spec: JobSpec,
    calendar: Calendar,
    slot: Option<Slot>,
    existing: BTreeSet<ScheduledTime>,
    ran: Vec<ScheduledTime>,
    waits: Vec<ScheduledTime>,
    windows: Vec<Window>,
    skips: Vec<SkippedRange>,
    replaced: Vec<InstanceId>,
}

impl Plan {
    fn new(schedule: &str, more: &str, start: &str) -> Self {
        let spec = spec(schedule, more);
        let start = time(start);
        let calendar = spec.calendar(&ZoneRules::bundled(), start).unwrap();
        let overlap = Overlap::of(&spec);
        let slot = overlap.slot.clone().map(|key| Slot::free(key, write_id()));
        let job = Job {
            name: "job".parse().unwrap(),
            spec: SpecVersion::FIRST,
            spec_digest: String::new(),
            start,
            planned_through: start,
            window_through: None,
            next_fire: calendar.after(start),
            suspended: None,
            deleted_at: None,
            overlap,
            unslotted_at: None,
            version: Version::FIRST,
            write_id: write_id(),
        };
        let (existing, ran, waits) = (BTreeSet::new(), Vec::new(), Vec::new());
        let (windows, skips, replaced) = (Vec::new(), Vec::new(), Vec::new());
        Self { job, spec, calendar, slot, existing, ran, waits, windows, skips, replaced }
    }

    /// A tick at this time: steps until there is nothing more.
    fn tick(&mut self, now: &str) {
        let now = time(now);
        loop {
            let context = PlanContext {
                job: &self.job,
                spec: &self.spec,
                catch_up: self.spec.catch_up,
                calendar: &self.calendar,
                overlap: &self.job.overlap,
                slot: self.slot.as_ref(),
                existing: &self.existing,
                now,
                write_id: &write_id(),
            };
            let Some(step) = plan_step(&context) else { return };
            for new in &step.instances {
                if new.waits {
                    self.waits.push(new.at)
                } else {
                    self.ran.push(new.at)
                }
                self.windows.push(new.window);
            }
            self.skips.extend(step.skips);
            self.replaced.extend(step.replaced);
            if let Some(slot) = step.slot {
                self.slot = Some(slot);
            }
            assert!(step.job.planned_through > self.job.planned_through);
            assert_eq!(step.job.version, self.job.version.next());
            self.job = step.job;
            if !step.more {
                return;
            }
        }
    }

    fn skipped(&self, reason: SkipReason) -> u64 {
        self.skips.iter().filter(|skip| skip.reason == reason).map(|skip| skip.count).sum()
    }

    /// G2 over all that has been planned.
    fn is_answered_for(&self, from: &str) -> bool {
        let expected = self.calendar.between(time(from), self.job.planned_through);
        let instances = self.ran.iter().chain(&self.waits).chain(&self.existing).copied().collect();
        crate::invariants::g2_unanswered(expected, &instances, &self.skips).is_empty()
    }

    /// The holder of the slot ends.
    fn end(&mut self) {
        let slot = self.slot.clone().unwrap();
        let (next, holder) = slot.without(&slot.holder.clone().unwrap(), &write_id()).unwrap();
        self.slot = Some(next);
        if let Some(holder) = holder {
            self.waits.retain(|at| *at != holder.at);
            self.ran.push(holder.at);
        }
    }
}

const DAYS_3: &str = "2026-03-04T00:00:30Z";
const START: &str = "2026-03-01T00:00:00Z";

#[test]
fn three_days_down_latest_runs_one_and_records_the_rest() {
    let mut plan = Plan::new("* * * * *", "", START);
    plan.tick(DAYS_3);
    assert_eq!(plan.ran, [time("2026-03-04T00:00:00Z")]);
    assert_eq!(plan.skipped(SkipReason::CatchUp), 3 * 1440 - 1);
    assert_eq!(plan.skips.len(), 1, "a run of skips is one row");
    assert!(plan.is_answered_for("2026-03-01T00:01:00Z"));
    plan.tick("2026-03-04T00:01:10Z");
    assert_eq!(plan.ran.last(), Some(&time("2026-03-04T00:01:00Z")));
}

#[test]
fn three_days_down_all_runs_every_time_and_none_only_what_is_on_time() {
    let mut all = Plan::new("* * * * *", r#", "catchUp": "all""#, START);
    all.tick(DAYS_3);
    assert_eq!(all.ran.len(), 3 * 1440);
    assert!(all.skips.is_empty());
    let mut none = Plan::new("* * * * *", r#", "catchUp": "none""#, START);
    none.tick(DAYS_3);
    assert_eq!(none.ran, [time("2026-03-04T00:00:00Z")]);
    assert_eq!(none.skipped(SkipReason::CatchUp), 3 * 1440 - 1);
    let mut hours = Plan::new("0 * * * *", r#", "catchUp": "none""#, START);
    hours.tick("2026-03-04T00:30:00Z");
    assert!(hours.ran.is_empty());
    assert_eq!(hours.skipped(SkipReason::CatchUp), 72);
}

/// sidekiq-cron#147, #132: a slow tick loses no time.
#[test]
fn a_slow_tick_loses_no_time() {
    for catch_up in ["latest", "none"] {
        let mut plan = Plan::new("* * * * *", &format!(r#", "catchUp": "{catch_up}""#), START);
        for now in ["2026-03-01T00:00:59Z", "2026-03-01T00:02:00Z", "2026-03-01T00:02:58Z", "2026-03-01T00:04:01Z"] {
            plan.tick(now);
        }
        assert_eq!(plan.ran.len(), 4, "{catch_up}");
        assert!(plan.skips.is_empty());
    }
    let mut daily = Plan::new("0 6 * * *", "", START);
    daily.tick("2026-03-01T06:01:01Z");
    assert_eq!(daily.ran, [time("2026-03-01T06:00:00Z")]);
}

#[test]
fn on_the_edge_of_the_starting_deadline_a_time_is_too_late() {
    let mut edge = Plan::new("0 6 * * *", r#", "startingDeadlineSeconds": 3600"#, START);
    edge.tick("2026-03-01T07:00:00Z");
    assert!(edge.ran.is_empty());
    assert_eq!(edge.skipped(SkipReason::StartingDeadlineExceeded), 1);
    let mut within = Plan::new("0 6 * * *", r#", "startingDeadlineSeconds": 3600"#, START);
    within.tick("2026-03-01T06:59:59Z");
    assert_eq!(within.ran.len(), 1);
}

/// kubernetes#45825, #110919: a suspended span is recorded, however long, and the next time runs.
#[test]
fn a_suspended_span_is_recorded_and_the_next_time_runs() {
    let mut plan = Plan::new("*/5 * * * *", "", START);
    plan.job.suspended = Some(Suspension { since: time(START), note: None, by_spec: false });
    plan.tick("2026-03-08T00:00:30Z");
    assert!(plan.ran.is_empty());
    assert_eq!(plan.skipped(SkipReason::Suspended), 7 * 288);
    assert_eq!(plan.skipped(SkipReason::CatchUp), 0);
    plan.job.suspended = None;
    plan.tick("2026-03-08T00:05:30Z");
    assert_eq!(plan.ran, [time("2026-03-08T00:05:00Z")]);
}

/// kubernetes (Forbid started overlapping runs): a run of 35 minutes under Forbid, every 10 minutes.
#[test]
fn forbid_records_what_falls_due_while_one_runs() {
    let mut plan = Plan::new("*/10 * * * *", r#", "concurrencyPolicy": "Forbid""#, "2026-03-01T00:00:01Z");
    for minute in [10, 20, 30, 40] {
        plan.tick(&format!("2026-03-01T00:{minute}:30Z"));
    }
    assert_eq!(plan.ran, [time("2026-03-01T00:10:00Z")]);
    assert_eq!(plan.skipped(SkipReason::Overlap), 3);
    plan.end();
    plan.tick("2026-03-01T00:50:30Z");
    assert_eq!(plan.ran.last(), Some(&time("2026-03-01T00:50:00Z")));
    assert!(plan.is_answered_for("2026-03-01T00:10:00Z"));
}

#[test]
fn queue_waits_in_order_and_is_bounded() {
    let mut plan = Plan::new("* * * * *", r#", "concurrencyPolicy": "Queue""#, "2026-03-01T00:00:01Z");
    for minute in 1..=3 {
        plan.tick(&format!("2026-03-01T00:0{minute}:30Z"));
    }
    assert_eq!((plan.ran.len(), plan.waits.len()), (1, 2));
    plan.end();
    assert_eq!(plan.ran.last(), Some(&time("2026-03-01T00:02:00Z")));
    for minute in 4..(QUEUE + 10) {
        plan.tick(&format!("2026-03-01T{:02}:{:02}:30Z", minute / 60, minute % 60));
    }
    assert_eq!(plan.slot.as_ref().unwrap().waiting.len(), QUEUE);
    assert!(plan.skipped(SkipReason::QueueFull) > 0);
    assert!(plan.is_answered_for("2026-03-01T00:01:00Z"));
}

const QUEUE: usize = crate::limits::QUEUE_MAX;

#[test]
fn queue_with_all_to_be_caught_up_stops_at_its_bound_and_goes_on() {
    let more = r#", "concurrencyPolicy": "Queue", "catchUp": "all""#;
    let mut plan = Plan::new("* * * * *", more, START);
    plan.tick("2026-03-01T05:00:30Z");
    assert_eq!(plan.ran.len() + plan.waits.len(), QUEUE + 1);
    assert!(plan.skips.is_empty());
    for _ in 0..250 {
        plan.end();
        plan.tick("2026-03-01T05:00:30Z");
    }
    assert_eq!(plan.ran.len() + plan.waits.len(), 300);
    assert!(plan.skips.is_empty());
    assert!(plan.is_answered_for("2026-03-01T00:01:00Z"));
}

#[test]
fn replace_stops_the_holder_and_whoever_waits_and_the_new_one_waits_for_its_end() {
    let mut plan = Plan::new("*/10 * * * *", r#", "concurrencyPolicy": "Replace""#, "2026-03-01T00:00:01Z");
    for minute in [10, 20, 30] {
        plan.tick(&format!("2026-03-01T00:{minute}:30Z"));
    }
    let replaced: Vec<ScheduledTime> = plan.replaced.iter().map(|id| id.at).collect();
    let at = |minute| time(&format!("2026-03-01T00:{minute}:00Z"));
    assert_eq!(replaced, [at(10), at(10), at(20)]);
    let slot = plan.slot.as_ref().unwrap();
    assert_eq!((slot.holder.as_ref().unwrap().at, slot.waiting.len(), slot.waiting[0].at), (at(10), 1, at(30)));
    plan.end();
    assert_eq!(plan.ran.last(), Some(&at(30)));
}

#[test]
fn a_time_that_was_triggered_or_backfilled_before_is_answered_for_by_that() {
    let mut plan = Plan::new("0 * * * *", r#", "catchUp": "all""#, START);
    plan.existing.insert(time("2026-03-01T02:00:00Z"));
    plan.tick("2026-03-01T03:10:00Z");
    assert_eq!(plan.ran, [time("2026-03-01T01:00:00Z"), time("2026-03-01T03:00:00Z")]);
    assert!(plan.skips.is_empty());
    assert!(plan.is_answered_for("2026-03-01T01:00:00Z"));
}

#[test]
fn windows_tile_over_runs_and_skips() {
    let mut plan = Plan::new("0 * * * *", "", START);
    plan.tick("2026-03-01T01:00:10Z");
    plan.tick("2026-03-01T05:30:00Z");
    plan.tick("2026-03-01T06:00:10Z");
    let hour = |hour: u32| time(&format!("2026-03-01T0{hour}:00:00Z"));
    let expected = [(0, 1), (4, 5), (5, 6)].map(|(start, end)| Window { start: hour(start), end: hour(end) });
    assert_eq!(plan.windows, expected);
}

/// A laptop that wakes after an hour: at most one run of an interval job (robfig/cron#26).
#[test]
fn an_interval_job_catches_up_once() {
    let mut plan = Plan::new("rate(5 minutes)", "", START);
    plan.tick("2026-03-01T01:00:30Z");
    assert_eq!(plan.ran.len(), 1);
    assert_eq!(plan.skipped(SkipReason::CatchUp), 11);
}
