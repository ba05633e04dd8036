//! Works by name.

use std::sync::Arc;

use serde_json::json;
use shardcron_domain::job::{JobSpec, SpecError, SpecErrorKind};
use shardcron_work::{Work, Works};

use crate::common::aggregate;

fn job(work: serde_json::Value) -> JobSpec {
    let job = json!({
        "name": "a", "schedule": "@daily", "work": work,
        "input": { "objects": "in/", "format": "csv", "nulls": ["NA"] },
        "output": { "objects": "out/", "format": "csv" }
    });
    JobSpec::parse(&job.to_string()).unwrap()
}

fn works() -> Works {
    Works::builtin().with("count-by", |with, input| {
        let Some(column) = with["column"].as_str() else {
            return Err(SpecError::new(SpecErrorKind::Missing, "column", "it is missing"));
        };
        assert_eq!(input.nulls, ["NA"]);
        let work: Arc<dyn Work> = Arc::new(aggregate(&[column], true, &[], &[], &[], &[]));
        Ok(work)
    })
}

#[test]
fn a_job_finds_the_built_in_and_ones_own() {
    assert!(works().for_job(&job(json!({ "aggregate": { "count": true } }))).is_ok());
    assert!(works().for_job(&job(json!({ "custom": { "name": "count-by", "with": { "column": "g" } } }))).is_ok());
}

#[test]
fn a_name_that_isnt_registered_is_refused_with_the_nearest() {
    let refused = |works: Works, name: &str| works.for_job(&job(json!({ "custom": { "name": name } }))).err().unwrap();
    let error = refused(works(), "count_by");
    assert_eq!((error.field.as_str(), error.hint.as_deref()), ("work.custom.name", Some("did you mean `count-by`?")));
    assert_eq!(refused(works(), "settle").hint.as_deref(), Some("it has count-by"));
    assert!(refused(Works::builtin(), "settle").hint.unwrap().contains("Works::with"));
}

#[test]
fn what_a_work_refuses_is_named_by_its_path_in_the_job() {
    let error = works().for_job(&job(json!({ "custom": { "name": "count-by" } }))).err().unwrap();
    assert_eq!((error.kind, error.field.as_str()), (SpecErrorKind::Missing, "work.custom.with.column"));
}

/// A key or an item has one column: another one would have no value in any record.
#[test]
fn a_column_that_a_key_or_an_item_doesnt_have_is_refused() {
    let refused = |input: serde_json::Value, work: serde_json::Value| {
        let text = json!({
            "name": "a", "schedule": "@daily", "work": { "aggregate": work }, "input": input,
            "output": { "objects": "out/", "format": "csv" }
        });
        Works::builtin().for_job(&JobSpec::parse(&text.to_string()).unwrap()).err().map(|error| error.field)
    };
    let keys = || json!({ "keys": { "from": 1, "through": 5 } });
    assert_eq!(refused(keys(), json!({ "groupBy": ["key"], "sum": ["key"] })), None);
    assert_eq!(refused(keys(), json!({ "sum": ["key", "kee"] })), Some("work.aggregate.sum[1]".to_owned()));
    let list = || json!({ "list": ["a"] });
    assert_eq!(refused(list(), json!({ "groupBy": ["item"], "count": true })), None);
    assert_eq!(
        refused(list(), json!({ "groupBy": ["key"], "count": true })),
        Some("work.aggregate.groupBy[0]".to_owned())
    );
}
