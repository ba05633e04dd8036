//! Alarms and dashboard go by metrics that the functions emit.

use std::collections::BTreeSet;

use serde_json::Value;
use shardcron_domain::instance::SkipReason;
use shardcron_runtime::telemetry::metrics::{ALL, NAMESPACE, TABLE};

use crate::template::{assert_refers, named, resources, template};

/// The references of a `Fn::Sub`, each replaced by its own name.
fn substituted(template: &Value, text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}').unwrap();
        assert_refers(template, name);
        plain.push_str(before);
        plain.push_str(name);
        rest = behind;
    }
    plain + rest
}

/// A metric on the dashboard.
struct Shown {
    namespace: String,
    name: String,
    dimensions: Vec<(String, String)>,
}

/// The metrics on the dashboard.
fn shown(template: &Value) -> Vec<Shown> {
    let dashboard = resources(template, "AWS::CloudWatch::Dashboard")[0].1;
    let body = substituted(template, dashboard["DashboardBody"]["Fn::Sub"].as_str().unwrap());
    let body: Value = serde_json::from_str(&body).unwrap();
    let widgets = body["widgets"].as_array().unwrap().iter();
    let metrics = widgets.flat_map(|widget| widget["properties"]["metrics"].as_array().unwrap());
    metrics
        .map(|metric| {
            let parts: Vec<&str> = metric.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let dimensions = parts[2..].chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()));
            Shown { namespace: parts[0].to_owned(), name: parts[1].to_owned(), dimensions: dimensions.collect() }
        })
        .collect()
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let template = template();
    let reasons = [
        SkipReason::CatchUp,
        SkipReason::StartingDeadlineExceeded,
        SkipReason::Suspended,
        SkipReason::Overlap,
        SkipReason::QueueFull,
    ]
    .map(|reason| format!("{reason:?}"));
    let mut seen = BTreeSet::new();
    for Shown { namespace, name, dimensions } in shown(&template) {
        if namespace != NAMESPACE {
            assert!(namespace.starts_with("AWS/"), "{namespace}");
            continue;
        }
        let metric = ALL.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no metric {name}"));
        assert_eq!(dimensions[0], (TABLE.to_owned(), "Table".to_owned()));
        if let Some((dimension, value)) = dimensions.get(1) {
            assert_eq!(Some(dimension.as_str()), metric.split.map(|split| split.dimension));
            assert!(reasons.contains(value), "{value}");
        }
        seen.insert(metric.name);
    }
    assert_eq!(seen, ALL.iter().map(|metric| metric.name).collect());
}

#[test]
fn the_alarms_go_by_metrics_that_are_emitted() {
    let template = template();
    let mut own = BTreeSet::new();
    for (name, alarm) in resources(&template, "AWS::CloudWatch::Alarm") {
        assert!(!alarm["AlarmDescription"].as_str().unwrap().is_empty());
        let computed = alarm["Metrics"].as_array().into_iter().flatten().filter(|part| part["Expression"].is_null());
        let parts: Vec<&Value> = computed.map(|part| &part["MetricStat"]["Metric"]).collect();
        for part in if parts.is_empty() { vec![alarm] } else { parts } {
            let dimensions = part["Dimensions"].as_array().unwrap();
            for value in dimensions.iter().map(|dimension| &dimension["Value"]).filter(|value| value.is_object()) {
                assert_refers(&template, named(value));
            }
            if part["Namespace"] != NAMESPACE {
                continue;
            }
            let metric = part["MetricName"].as_str().unwrap();
            assert!(ALL.iter().any(|known| known.name == metric), "{name} goes by {metric}");
            assert!(
                dimensions.len() == 1 && dimensions[0]["Name"] == TABLE && named(&dimensions[0]["Value"]) == "Table"
            );
            own.insert(metric);
        }
    }
    assert_eq!(own, ["Failed", "FencedWrites", "Missed", "OldestUnfinished", "ScheduleDelay", "Troubles"].into());
}

/// Stand-ins can't compute over metrics, so such alarms can be left out, and only those.
#[test]
fn what_computes_can_be_left_out() {
    let template = template();
    for (name, alarm) in resources(&template, "AWS::CloudWatch::Alarm") {
        let condition = &template["Resources"][name]["Condition"];
        assert_eq!(*condition == "ComputesAlarms", !alarm["Metrics"].is_null(), "{name}");
    }
    assert_eq!(template["Parameters"]["MathAlarms"]["Default"], "true");
}
