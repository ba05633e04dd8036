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
