//! The works that a program knows, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use shardcron_domain::ids::InstanceId;
use shardcron_domain::job::{InputSource, InputSpec, JobSpec, LastKey, SpecError, WorkSpec, check_emits, nearest};
use shardcron_domain::record::{ITEM_FIELD, KEY_FIELD};

use crate::{Aggregate, SendWork, Work};

type Factory = dyn Fn(&Value, &InputSpec) -> Result<Arc<dyn Work>, SpecError> + Send + Sync;

/// The works that a program knows: the built-in ones, and its own under the names that jobs call them by.
///
/// ```
/// # use std::sync::Arc;
/// # use shardcron_work::{Aggregate, Work, Works};
/// # use shardcron_domain::job::AggregateSpec;
/// // A job names it: "work": { "custom": { "name": "count-all" } }
/// let works = Works::builtin().with("count-all", |_with, input| {
///     let spec = AggregateSpec { count: true, ..AggregateSpec::default() };
///     let work: Arc<dyn Work> = Arc::new(Aggregate::new(spec, &input.nulls));
///     Ok(work)
/// });
/// ```
#[derive(Clone, Default)]
pub struct Works {
    custom: BTreeMap<String, Arc<Factory>>,
}

impl Works {
    /// The works that shardcron comes with.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// These, and a work of one's own under `name`; one that was there under this name is replaced.
    ///
    /// `factory` is given the job's `work.custom.with` and its input. A [`SpecError`] of it names a field of `with`, by
    /// its path in there.
    #[must_use]
    pub fn with<F>(mut self, name: impl Into<String>, factory: F) -> Self
    where
        F: Fn(&Value, &InputSpec) -> Result<Arc<dyn Work>, SpecError> + Send + Sync + 'static,
    {
        self.custom.insert(name.into(), Arc::new(factory));
        self
    }

    /// The work that a job asks for.
    ///
    /// # Errors
    /// [`SpecError`] when there is no work of the name it gives, the work refuses what it is given, or it asks for effects
    /// and the job doesn't say where they go, or the other way round.
    pub fn for_job(&self, job: &JobSpec) -> Result<Arc<dyn Work>, SpecError> {
        let work = self.named(job)?;
        check_emits(job.effects.as_ref(), work.emits_effects())?;
        check_fit(job, &*work)?;
        Ok(work)
    }

    /// The work that a job asks for, for one of its instances.
    ///
    /// # Errors
    /// As [`Works::for_job`].
    pub fn for_instance(&self, job: &JobSpec, instance: &InstanceId) -> Result<Arc<dyn Work>, SpecError> {
        let work = self.for_job(job)?;
        Ok(work.for_instance(instance).unwrap_or(work))
    }

    fn named(&self, job: &JobSpec) -> Result<Arc<dyn Work>, SpecError> {
        match &job.work {
            WorkSpec::Aggregate(spec) => Ok(Arc::new(Aggregate::new(spec.clone(), &job.input.nulls))),
            WorkSpec::Send(spec) => Ok(Arc::new(SendWork::new(spec.clone(), &job.input.nulls))),
            WorkSpec::Custom(spec) => match self.custom.get(&spec.name) {
                Some(factory) => factory(&spec.with, &job.input).map_err(|error| error.inside("work.custom.with")),
                None => Err(self.unknown(&spec.name)),
            },
        }
    }

    fn unknown(&self, name: &str) -> SpecError {
        let message = format!("this program has no work `{name}`");
        let names = || self.custom.keys().map(String::as_str);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.custom.is_empty() => "works of one's own are registered with `Works::with`".to_owned(),
            None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        SpecError::value("work.custom.name", message).with_hint(hint)
    }
}

/// What a job may ask of some works only.
fn check_fit(job: &JobSpec, work: &dyn Work) -> Result<(), SpecError> {
    if let InputSource::Keys { keys } = &job.input.source
        && keys.through == LastKey::MaxId
        && work.keys().is_none()
    {
        let message = "this work doesn't know which key is the last";
        return Err(SpecError::value("input.keys.through", message).with_hint("write the last key as a number"));
    }
    check_columns(job)?;
    if job.shards.parallel_batches > 1 && work.stage().is_none() {
        let message = "this work has no stage, so that there is nothing to do to several batches at the same time";
        return Err(SpecError::value("shards.parallelBatches", message).with_hint("leave it out"));
    }
    Ok(())
}

/// A key or an item, for a work that knows nothing of what stands behind it, is a record with one field: any other column is
/// a mistake, and would have no value in any record.
fn check_columns(job: &JobSpec) -> Result<(), SpecError> {
    let only = match &job.input.source {
        InputSource::Objects { .. } => return Ok(()),
        InputSource::Keys { .. } => KEY_FIELD,
        InputSource::List { .. } => ITEM_FIELD,
    };
    let lists: Vec<(&str, &[String])> = match &job.work {
        WorkSpec::Aggregate(spec) => vec![
            ("work.aggregate.groupBy", &spec.group_by),
            ("work.aggregate.sum", &spec.sum),
            ("work.aggregate.min", &spec.min),
            ("work.aggregate.max", &spec.max),
        ],
        WorkSpec::Send(spec) => vec![("work.send.key", &spec.key), ("work.send.body", &spec.body)],
        WorkSpec::Custom(_) => return Ok(()),
    };
    for (field, columns) in lists {
        if let Some(place) = columns.iter().position(|column| column != only) {
            let message =
                format!("the records of this input have the one column `{only}`, and not `{}`", columns[place]);
            return Err(SpecError::value(format!("{field}[{place}]"), message).with_hint(format!("write \"{only}\"")));
        }
    }
    Ok(())
}

impl fmt::Debug for Works {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Works").field("custom", &self.custom.keys()).finish()
    }
}
