//! Events as CloudWatch reads metrics out of them: its "embedded metric format" (AWS, "Specification: Embedded metric
//! format", version 0).
//!
//! A line is the event as it is everywhere, with one member more, `_aws`, which says where the metrics are in it, and
//! the members that this names.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use shardcron_domain::ids::InstanceId;
use shardcron_engine::events::{self, Event};
use shardcron_engine::ports::Events;
use shardcron_store::dynamo::CapacityObserver;

use super::metrics::{ALL, Figure, JOB, Metric, NAMESPACE, TABLE};

/// Events with metrics in them, one a line.
pub struct EmbeddedMetrics {
    to: Mutex<Box<dyn Write + Send>>,
    table: String,
    by_job: bool,
    consumed: Mutex<(f64, f64)>,
}

impl EmbeddedMetrics {
    /// To standard output, which Lambda sends to CloudWatch Logs. `table` names the installation; with `by_job` metrics
    /// are kept for each job too.
    #[must_use]
    pub fn to_stdout(table: &str, by_job: bool) -> Self {
        Self::new(Box::new(std::io::stdout()), table, by_job)
    }

    fn new(to: Box<dyn Write + Send>, table: &str, by_job: bool) -> Self {
        Self { to: Mutex::new(to), table: table.to_owned(), by_job, consumed: Mutex::default() }
    }

    /// Tells what the invocation has consumed. For its end: a process may be frozen before the next.
    pub fn invocation_is_over(&self) {
        let (reads, writes) = std::mem::take(&mut *self.consumed.lock().unwrap_or_else(PoisonError::into_inner));
        if reads + writes > 0.0 {
            self.emit(Event::new(events::CONSUMED).with("readUnits", reads).with("writeUnits", writes));
        }
    }

    #[expect(clippy::disallowed_methods, reason = "when a metric was observed is on the machine's clock, as logs are")]
    fn now_ms() -> i64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
    }
}

impl Events for EmbeddedMetrics {
    fn emit(&self, event: Event) {
        let Some(line) = line_of(&event, &self.table, self.by_job, Self::now_ms()) else { return };
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that can't be written must not stop a settlement.
        let _ = to.write_all(&line);
    }
}

impl CapacityObserver for EmbeddedMetrics {
    fn consumed(&self, _operation: &'static str, read_units: f64, write_units: f64) {
        let mut consumed = self.consumed.lock().unwrap_or_else(PoisonError::into_inner);
        *consumed = (consumed.0 + read_units, consumed.1 + write_units);
    }
}

fn line_of(event: &Event, table: &str, by_job: bool, now_ms: i64) -> Option<Vec<u8>> {
    let Value::Object(mut members) = serde_json::to_value(event).ok()? else { return None };
    let job = job_of(event);
    let mut directives = Vec::new();
    let figures: Vec<(Metric, Value)> =
        ALL.into_iter().filter_map(|metric| Some((metric, figure_of(&metric, event)?))).collect();
    for (metric, figure) in &figures {
        let mut sets = vec![vec![TABLE]];
        if by_job && job.is_some() {
            sets.push(vec![TABLE, JOB]);
        }
        if let Some(split) = metric.split
            && let Some(value) = event.fields.get(split.field)
        {
            sets.push(vec![TABLE, split.dimension]);
            members.insert(split.dimension.to_owned(), value.clone());
        }
        members.insert(metric.name.to_owned(), figure.clone());
        directives.push(json!({
            "Namespace": NAMESPACE,
            "Dimensions": sets,
            "Metrics": [{ "Name": metric.name, "Unit": metric.unit.name() }],
        }));
    }
    if !directives.is_empty() {
        members.insert(TABLE.to_owned(), table.into());
        if let Some(job) = job.filter(|_| by_job) {
            members.insert(JOB.to_owned(), job.into());
        }
        members.insert("_aws".to_owned(), json!({ "Timestamp": now_ms, "CloudWatchMetrics": directives }));
    }
    let mut line = serde_json::to_vec(&members).ok()?;
    line.push(b'\n');
    Some(line)
}

/// The figure that an event has of a metric, if any.
fn figure_of(metric: &Metric, event: &Event) -> Option<Value> {
    if metric.event != event.event {
        return None;
    }
    match metric.figure {
        Figure::Each => Some(1.into()),
        Figure::Where(field, value) => (event.fields.get(field)?.as_str()? == value).then(|| 1.into()),
        Figure::Field(field) => event.fields.get(field).filter(|figure| figure.is_number()).cloned(),
    }
}

fn job_of(event: &Event) -> Option<String> {
    let of_instance = event.instance.as_deref().and_then(|id| id.parse::<InstanceId>().ok());
    let named = || event.fields.get("job").and_then(Value::as_str).map(str::to_owned);
    of_instance.map(|id| id.job.to_string()).or_else(named)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn line(event: &Event, by_job: bool) -> Value {
        serde_json::from_slice(&line_of(event, "jobs", by_job, 1_788_048_000_000).unwrap()).unwrap()
    }

    /// The rules of the specification that a line with metrics must keep to.
    fn assert_conforms(line: &Value) {
        let members = line.as_object().unwrap();
        assert!(line["_aws"]["Timestamp"].is_i64(), "milliseconds since 1970");
        let directives = line["_aws"]["CloudWatchMetrics"].as_array().unwrap();
        assert!(!directives.is_empty());
        for directive in directives {
            assert!((1..=1024).contains(&directive["Namespace"].as_str().unwrap().len()));
            let sets = directive["Dimensions"].as_array().unwrap();
            assert!(!sets.is_empty());
            for name in sets.iter().flat_map(|set| set.as_array().unwrap()) {
                let value = members[name.as_str().unwrap()].as_str().expect("a dimension's value is a text");
                assert!((1..=1024).contains(&value.len()));
            }
            assert!(sets.iter().all(|set| set.as_array().unwrap().len() <= 30));
            let metrics = directive["Metrics"].as_array().unwrap();
            assert!((1..=100).contains(&metrics.len()));
            for metric in metrics {
                assert!(members[metric["Name"].as_str().unwrap()].is_number(), "a root member with a number");
                assert!(["Count", "Milliseconds"].contains(&metric["Unit"].as_str().unwrap()));
            }
        }
    }

    fn ended() -> Event {
        let id = "settle:2026-08-30T00:00:00Z".parse().unwrap();
        Event::of_instance(events::ENDED, &id).with("status", "Failed").with("runMs", 1200).with("takeovers", 2)
    }

    #[test]
    fn a_line_is_the_event_with_its_metrics() {
        let line = line(&ended(), false);
        assert_conforms(&line);
        assert_eq!((&line["event"], &line["status"]), (&json!("ended"), &json!("Failed")));
        assert_eq!((&line["Failed"], &line["RunTime"], &line["Takeovers"]), (&json!(1), &json!(1200), &json!(2)));
        assert_eq!((&line["Succeeded"], &line["Job"]), (&Value::Null, &Value::Null));
        assert_eq!(line["_aws"]["CloudWatchMetrics"].as_array().unwrap().len(), 3);
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Table"]]));
        assert_eq!(line["Table"], "jobs");
    }

    #[test]
    fn a_job_is_a_dimension_only_where_that_is_asked_for() {
        let line = line(&ended(), true);
        assert_conforms(&line);
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Table"], ["Table", "Job"]]));
        assert_eq!(line["Job"], "settle");
    }

    #[test]
    fn skips_are_counted_whole_and_by_reason() {
        let event = Event::new(events::SKIPPED).with("job", "settle").with("count", 3).with("reason", "CatchUp");
        let line = line(&event, false);
        assert_conforms(&line);
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Table"], ["Table", "Reason"]]));
        assert_eq!((&line["Skipped"], &line["Reason"]), (&json!(3), &json!("CatchUp")));
    }

    #[test]
    fn an_event_without_a_figure_is_a_line_and_no_metric() {
        let told = line(&Event::new(events::RELEASED).with("records", 5), true);
        assert_eq!(told, json!({ "event": "released", "records": 5 }));
        let triggered = line(&Event::new(events::PLANNED).with("trigger", true), false);
        assert_eq!((&triggered["Planned"], &triggered["ScheduleDelay"]), (&json!(1), &Value::Null));
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_an_invocation_consumed_is_told_once() {
        let kept = Kept::default();
        let metrics = EmbeddedMetrics::new(Box::new(kept.clone()), "jobs", false);
        metrics.consumed("GetItem", 0.5, 0.0);
        metrics.consumed("PutItem", 0.0, 2.0);
        metrics.consumed("GetItem", 1.0, 0.0);
        metrics.invocation_is_over();
        metrics.invocation_is_over();
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert_conforms(&lines[0]);
        assert_eq!((&lines[0]["ReadUnits"], &lines[0]["WriteUnits"]), (&json!(1.5), &json!(2.0)));
    }
}
