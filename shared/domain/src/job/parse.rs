//! From the file's JSON to a [`JobSpec`], field by field.

use super::error::{SpecError, SpecErrorKind};
use super::input::input;
use super::read::{Fields, Node, listed};
use super::{
    AggregateSpec, CatchUp, ConcurrencyPolicy, CustomSpec, IfEmpty, JobSpec, OutputSpec, ReadySpec, RejectsSpec,
    ShardsSpec, WorkSpec, default, json,
};
use crate::calendar::{Dst, Gap, Overlap};
use crate::limits;
use crate::location::Location;
use crate::record::Format;
use crate::template::Template;

pub(super) const FORMATS: &[(&str, Format)] = &[("csv", Format::Csv), ("ndjson", Format::Ndjson)];

pub(super) fn job(text: &str) -> Result<JobSpec, SpecError> {
    let file = json::read(text)?;
    let fields = Node { value: &file, path: String::new() }.fields(&[
        "name",
        "schedule",
        "timeZone",
        "dst",
        "concurrencyPolicy",
        "concurrencyKey",
        "startingDeadlineSeconds",
        "catchUp",
        "suspend",
        "activeDeadlineSeconds",
        "backoffLimit",
        "parallelism",
        "ifEmpty",
        "input",
        "shards",
        "work",
        "rejects",
        "output",
        "effects",
    ])?;
    // What a field of seconds that is 0 would mean is that nothing ever runs.
    let seconds = |name| match fields.optional(name)? {
        Some(node) => node.integer(1..=limits::KUBERNETES_INT_MAX).map(Some),
        None => Ok(None),
    };
    let job = JobSpec {
        name: name(&fields.required("name", "\"daily-settlement\"")?)?,
        schedule: fields.required("schedule", "\"0 0 * * *\"")?.text_within(limits::SCHEDULE_BYTES_MAX)?.to_owned(),
        time_zone: fields.or("timeZone", default::time_zone(), |node| node.text().map(str::to_owned))?,
        dst: fields.or("dst", Dst::default(), dst)?,
        concurrency_policy: fields.or("concurrencyPolicy", ConcurrencyPolicy::default(), |node| {
            node.choice(&[
                ("Allow", ConcurrencyPolicy::Allow),
                ("Forbid", ConcurrencyPolicy::Forbid),
                ("Replace", ConcurrencyPolicy::Replace),
                ("Queue", ConcurrencyPolicy::Queue),
            ])
        })?,
        concurrency_key: match fields.optional("concurrencyKey")? {
            Some(node) => Some(name(&node)?),
            None => None,
        },
        starting_deadline_seconds: seconds("startingDeadlineSeconds")?,
        catch_up: fields.or("catchUp", CatchUp::default(), |node| {
            node.choice(&[("all", CatchUp::All), ("latest", CatchUp::Latest), ("none", CatchUp::None)])
        })?,
        suspend: fields.or("suspend", false, Node::boolean)?,
        active_deadline_seconds: seconds("activeDeadlineSeconds")?,
        backoff_limit: fields
            .or("backoffLimit", default::backoff_limit(), |node| node.integer(0..=limits::KUBERNETES_INT_MAX))?,
        parallelism: fields
            .or("parallelism", default::parallelism(), |node| node.integer(1..=limits::PARALLELISM_MAX))?,
        if_empty: fields.or("ifEmpty", IfEmpty::default(), |node| {
            node.choice(&[("fail", IfEmpty::Fail), ("succeed", IfEmpty::Succeed)])
        })?,
        input: input(&fields.required("input", "{ \"objects\": \"s3://bucket/prefix/\", \"format\": \"csv\" }")?)?,
        shards: fields.or("shards", ShardsSpec::default(), shards)?,
        work: work(&fields.required("work", "{ \"aggregate\": { \"count\": true } }")?)?,
        rejects: fields.or("rejects", RejectsSpec::default(), |node| {
            let fields = node.fields(&["max"])?;
            Ok(RejectsSpec { max: fields.or("max", 0, |node| node.integer(0..=u64::MAX))? })
        })?,
        output: output(&fields.required("output", "{ \"objects\": \"s3://bucket/results/\", \"format\": \"csv\" }")?)?,
        effects: fields.or("effects", None, |node| super::effects::read(node).map(Some))?,
    };
    check_together(&job)?;
    Ok(job)
}

/// What is right field by field and wrong together.
fn check_together(job: &JobSpec) -> Result<(), SpecError> {
    if job.catch_up == CatchUp::All
        && matches!(job.concurrency_policy, ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace)
    {
        let policy = format!("{:?}", job.concurrency_policy);
        let lost = if policy == "Forbid" { "skip" } else { "stop" };
        let message =
            format!("`all` doesn't go with concurrencyPolicy {policy}, which would {lost} what it catches up");
        return Err(SpecError::value("catchUp", message).with_hint("write concurrencyPolicy Queue or Allow"));
    }
    job.check_places("/")
}

impl JobSpec {
    /// Checks that the output doesn't lie in the input, where the next instance would read what this one published. A
    /// relative path is taken relative to `base`, an absolute directory. An input with times in it is held against the
    /// output when its times are known: by the step that lists it.
    ///
    /// # Errors
    /// [`SpecErrorKind::Value`](super::SpecErrorKind) of `output.objects`.
    pub fn check_places(&self, base: &str) -> Result<(), SpecError> {
        let literal = |text: &str| Template::parse(text).ok()?.literal();
        if let Some(input) = self.input.objects().and_then(literal)
            && let Ok(input) = Location::parse(&input, base)
            && let Ok(output) = Location::parse(&self.output.objects, base)
            && input.holds(&output)
        {
            let message =
                format!("`{}` lies in the input, so that the job would read its own output", self.output.objects);
            return Err(SpecError::value("output.objects", message).with_hint("name a place outside of input.objects"));
        }
        Ok(())
    }
}

fn name<T: std::str::FromStr<Err = crate::ids::NameError>>(node: &Node<'_>) -> Result<T, SpecError> {
    node.text()?.parse().map_err(|error: crate::ids::NameError| node.wrong(error.to_string()))
}

fn dst(node: &Node<'_>) -> Result<Dst, SpecError> {
    let fields = node.fields(&["gap", "overlap"])?;
    Ok(Dst {
        gap: fields.or("gap", None, |node| node.choice(&[("next", Gap::Next), ("skip", Gap::Skip)]).map(Some))?,
        overlap: fields.or("overlap", None, |node| {
            node.choice(&[("first", Overlap::First), ("last", Overlap::Last), ("both", Overlap::Both)]).map(Some)
        })?,
    })
}

pub(super) fn ready(node: &Node<'_>) -> Result<ReadySpec, SpecError> {
    let fields = node.fields(&["object", "withinSeconds"])?;
    let object = fields.required("object", "\"s3://bucket/prefix/_SUCCESS\"")?;
    let template = template(&object)?;
    if location(&object, &template.sample())?.is_directory() {
        return Err(object
            .wrong(format!("`{}` ends in `/`, and the marker is one object", template.as_str()))
            .with_hint("name the object that is put last, such as s3://bucket/prefix/_SUCCESS"));
    }
    Ok(ReadySpec {
        object: template.as_str().to_owned(),
        within_seconds: fields.required("withinSeconds", "3600")?.integer(1..=limits::KUBERNETES_INT_MAX)?,
    })
}

/// A location with times in it.
pub(super) fn template(node: &Node<'_>) -> Result<Template, SpecError> {
    Template::parse(node.text_within(limits::LOCATION_BYTES_MAX)?).map_err(|error| {
        let refused = node.wrong(error.to_string());
        match error.hint() {
            Some(hint) => refused.with_hint(hint),
            None => refused,
        }
    })
}

fn output(node: &Node<'_>) -> Result<OutputSpec, SpecError> {
    let fields = node.fields(&["objects", "format"])?;
    let objects = fields.required("objects", "\"s3://bucket/results/\"")?;
    let text = objects.text_within(limits::LOCATION_BYTES_MAX)?;
    if text.contains(['{', '}']) {
        return Err(objects
            .wrong(format!("`{text}` has braces, and an output's location isn't a template"))
            .with_hint(
                "leave them out: each instance's output has a place of its own below the location, named by its time",
            ));
    }
    if !location(&objects, text)?.is_directory() {
        return Err(objects
            .wrong(format!("`{text}` names one object, and an output is a place of many"))
            .with_hint(format!("write `{text}/`")));
    }
    Ok(OutputSpec { objects: text.to_owned(), format: fields.required("format", "\"csv\"")?.choice(FORMATS)? })
}

/// Checks a location. What a relative path is relative to is known only where the job's file is, and has no part in
/// whether it is a location.
pub(super) fn location(node: &Node<'_>, text: &str) -> Result<Location, SpecError> {
    Location::parse(text, "/").map_err(|error| node.wrong(error.to_string()))
}

fn shards(node: &Node<'_>) -> Result<ShardsSpec, SpecError> {
    let fields = node.fields(&["targetBytes", "targetRecords", "batchRecords", "parallelBatches", "split"])?;
    let default = ShardsSpec::default();
    Ok(ShardsSpec {
        target_bytes: fields
            .or("targetBytes", default.target_bytes, |node| node.integer(1..=limits::SHARD_BYTES_MAX))?,
        target_records: fields.or("targetRecords", None, |node| node.integer(1..=limits::SHARD_KEYS_MAX).map(Some))?,
        parallel_batches: fields
            .or("parallelBatches", 1, |node| node.integer(1..=limits::CHECKPOINT_RANGES_MAX as u32))?,
        split: fields.or("split", true, Node::boolean)?,
        batch_records: fields
            .or("batchRecords", default.batch_records, |node| node.integer(1..=limits::BATCH_RECORDS_MAX))?,
    })
}

fn work(node: &Node<'_>) -> Result<WorkSpec, SpecError> {
    const KINDS: &[&str] = &["aggregate", "send", "custom"];
    let fields = node.fields(KINDS)?;
    if fields.names().count() > 1 {
        let message = format!("it is one of {}, and not several", listed(KINDS.iter().copied()));
        return Err(node.wrong(message));
    }
    if let Some(node) = fields.optional("aggregate")? {
        return aggregate(&node).map(WorkSpec::Aggregate);
    }
    if let Some(node) = fields.optional("send")? {
        return super::effects::read_send(&node).map(WorkSpec::Send);
    }
    if let Some(node) = fields.optional("custom")? {
        return custom(&node).map(WorkSpec::Custom);
    }
    let message = format!("it says nothing; expected {}", listed(KINDS.iter().copied()));
    Err(SpecError::new(SpecErrorKind::Missing, node.path.as_str(), message))
}

fn aggregate(node: &Node<'_>) -> Result<AggregateSpec, SpecError> {
    let fields = node.fields(&["groupBy", "count", "sum", "min", "max"])?;
    let columns = |name| fields.or(name, Vec::new(), columns);
    let spec = AggregateSpec {
        group_by: columns("groupBy")?,
        count: fields.or("count", false, Node::boolean)?,
        sum: columns("sum")?,
        min: columns("min")?,
        max: columns("max")?,
    };
    if !spec.count && spec.sum.is_empty() && spec.min.is_empty() && spec.max.is_empty() {
        let message = "it computes nothing; expected at least one of `count`, `sum`, `min` or `max`";
        let error = SpecError::new(SpecErrorKind::Missing, node.path.as_str(), message);
        return Err(error.with_hint("write \"count\": true"));
    }
    check_output_columns(&fields, &spec)?;
    Ok(spec)
}

/// An output with two columns of one name can't be read back: `groupBy` may name a column `count` or `sum_x` itself.
fn check_output_columns(fields: &Fields<'_>, spec: &AggregateSpec) -> Result<(), SpecError> {
    let columns = spec.columns();
    for (index, column) in columns.iter().enumerate() {
        if index >= spec.group_by.len()
            && let Some(place) = spec.group_by.iter().position(|group| group == column)
        {
            let message = format!("the output would have two columns `{column}`: this one and the one computed");
            return Err(SpecError::value(format!("{}[{place}]", fields.path_of("groupBy")), message)
                .with_hint("rename the column in the input"));
        }
    }
    Ok(())
}

/// A list of columns' names.
pub(super) fn columns(node: &Node<'_>) -> Result<Vec<String>, SpecError> {
    let names = node.texts(limits::COLUMNS_MAX, limits::COLUMN_BYTES_MAX)?;
    match names.iter().position(String::is_empty) {
        Some(index) => Err(SpecError::value(format!("{}[{index}]", node.path), "a column's name isn't empty")),
        None => Ok(names),
    }
}

fn custom(node: &Node<'_>) -> Result<CustomSpec, SpecError> {
    let fields = node.fields(&["name", "with"])?;
    let name = fields.required("name", "\"my-work\"")?.text_within(limits::COLUMN_BYTES_MAX)?.to_owned();
    let with = fields.or("with", default::with(), |node| Ok(node.value.clone()))?;
    Ok(CustomSpec { name, with })
}
