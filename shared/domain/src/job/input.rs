//! What a job reads: objects, a range of keys, or a list.

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::{SpecError, SpecErrorKind};
use super::parse::{FORMATS, location, ready, template};
use super::read::{Node, listed};
use super::schema;
use crate::instance::Window;
use crate::limits;
use crate::record::Format;
use crate::time::ScheduledTime;

/// What a job reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct InputSpec {
    /// Where the records come from.
    #[serde(flatten)]
    pub source: InputSource,
    /// Texts that stand for no value, such as `""` or `NA`. None by default, so that no field is skipped unasked.
    #[schemars(default, schema_with = "schema::texts")]
    pub nulls: Vec<String>,
    /// The marker that an instance waits for before its input is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadySpec>,
}

/// Where the records come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = schema::exactly_one)]
pub enum InputSource {
    /// Objects of a bucket or a directory.
    Objects {
        /// Their location, as a [`Template`](crate::template::Template). A relative path is relative to the job's file.
        #[schemars(
            description = "The location of its objects, such as `s3://bucket/in/{window.start:%Y/%m/%d}/`. A relative \
            path is relative to the job's file."
        )]
        #[schemars(length(min = 1, max = limits::LOCATION_BYTES_MAX))]
        objects: String,
        /// What they are made of.
        format: Format,
    },
    /// A range of integer keys. The work itself knows what stands behind them; to one that doesn't, each key is a record
    /// with the one field `key`.
    Keys {
        /// The range.
        keys: KeysSpec,
    },
    /// A list, of which each item is a record with the one field `item`.
    List {
        /// The list.
        #[schemars(schema_with = "schema::list")]
        list: ListSpec,
    },
}

/// A range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KeysSpec {
    /// The first.
    #[schemars(schema_with = "schema::key")]
    pub from: i64,
    /// The last.
    #[schemars(schema_with = "schema::last_key")]
    pub through: LastKey,
}

/// The last key of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum LastKey {
    /// This one.
    Key(i64),
    /// The last that there is when the boundary is fixed: the work is asked for it, once.
    #[serde(serialize_with = "as_max_id")]
    MaxId,
}

fn as_max_id<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(MAX_ID)
}

pub(super) const MAX_ID: &str = "max_id";

/// A list of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ListSpec {
    /// These.
    Items(Vec<String>),
    /// The numbers from 0 up to but without `buckets`: for a work that takes those of its records whose hash falls into
    /// the bucket.
    Buckets {
        /// How many.
        buckets: u32,
    },
    /// The days that begin in the instance's window, in the job's zone, as `2026-08-30`.
    Days {
        /// Of what.
        days: DaysOf,
    },
}

/// What the days of a list are the days of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DaysOf {
    /// The instance's window.
    Window,
}

/// What says that an input is complete: an object that its producer puts last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct ReadySpec {
    /// The location of that object, as a [`Template`](crate::template::Template).
    #[schemars(description = "The location of that object, with times in it as in `input.objects`.")]
    #[schemars(length(min = 1, max = limits::LOCATION_BYTES_MAX))]
    pub object: String,
    /// How long it may take after the scheduled time, or after the instance was planned if that is later; then the instance
    /// fails.
    #[schemars(range(min = 1, max = limits::KUBERNETES_INT_MAX))]
    pub within_seconds: u32,
}

/// A window has more days than a list may have items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the window has more than {} days, the most that a list can have", limits::LIST_ITEMS_MAX)]
pub struct TooManyDays;

impl InputSpec {
    /// The location of its objects, if it reads objects.
    #[must_use]
    pub fn objects(&self) -> Option<&str> {
        match &self.source {
            InputSource::Objects { objects, .. } => Some(objects),
            InputSource::Keys { .. } | InputSource::List { .. } => None,
        }
    }
}

impl ListSpec {
    /// The items for an instance with this window, in order.
    ///
    /// # Errors
    /// [`TooManyDays`].
    pub fn items(&self, window: Window, zone: &TimeZone) -> Result<Vec<String>, TooManyDays> {
        match self {
            Self::Items(items) => Ok(items.clone()),
            Self::Buckets { buckets } => Ok((0..*buckets).map(|bucket| bucket.to_string()).collect()),
            Self::Days { days: DaysOf::Window } => days_in(window, zone),
        }
    }
}

fn days_in(window: Window, zone: &TimeZone) -> Result<Vec<String>, TooManyDays> {
    let mut date = window.start.timestamp().to_zoned_datetime(zone.clone()).date();
    let mut days = Vec::new();
    // A date that the zone skips begins where the next one does, and stands for nothing.
    let begins = |date: jiff::civil::Date| date.to_zoned_datetime(zone.clone()).ok().filter(|day| day.date() == date);
    loop {
        if let Some(day) = begins(date) {
            let Ok(at) = ScheduledTime::from_second(day.timestamp().as_second()) else { return Ok(days) };
            if at >= window.end {
                return Ok(days);
            }
            if at >= window.start {
                days.push(date.to_string());
            }
        }
        if days.len() > limits::LIST_ITEMS_MAX {
            return Err(TooManyDays);
        }
        let Ok(next) = date.tomorrow() else { return Ok(days) };
        date = next;
    }
}

const KINDS: &[&str] = &["objects", "keys", "list"];

pub(super) fn input(node: &Node<'_>) -> Result<InputSpec, SpecError> {
    let fields = node.fields(&["objects", "format", "keys", "list", "nulls", "ready"])?;
    let kinds = fields.names().filter(|name| KINDS.contains(name)).count();
    if kinds > 1 {
        let message = format!("it is one of {}, and not several", listed(KINDS.iter().copied()));
        return Err(node.wrong(message));
    }
    let source = if let Some(keys) = fields.optional("keys")? {
        InputSource::Keys { keys: self::keys(&keys)? }
    } else if let Some(list) = fields.optional("list")? {
        InputSource::List { list: self::list(&list)? }
    } else {
        let objects = fields.required("objects", "\"s3://bucket/prefix/\"")?;
        let template = template(&objects)?;
        location(&objects, &template.sample())?;
        InputSource::Objects {
            objects: template.as_str().to_owned(),
            format: fields.required("format", "\"csv\"")?.choice(FORMATS)?,
        }
    };
    if let (InputSource::Keys { .. } | InputSource::List { .. }, Some(format)) = (&source, fields.optional("format")?) {
        return Err(format.wrong("only objects have a format").with_hint("leave it out"));
    }
    Ok(InputSpec {
        source,
        nulls: fields.or("nulls", Vec::new(), |node| node.texts(limits::COLUMNS_MAX, limits::COLUMN_BYTES_MAX))?,
        ready: fields.or("ready", None, |node| ready(node).map(Some))?,
    })
}

fn keys(node: &Node<'_>) -> Result<KeysSpec, SpecError> {
    let fields = node.fields(&["from", "through"])?;
    let from = key(&fields.required("from", "1")?, "a whole number")?;
    let last = fields.required("through", "\"max_id\"")?;
    let through = match last.value.as_str() {
        Some(MAX_ID) => LastKey::MaxId,
        _ => LastKey::Key(key(&last, "a whole number or `max_id`")?),
    };
    match through {
        LastKey::Key(i64::MAX) => Err(last.wrong(format!("the greatest key is {}", i64::MAX - 1))),
        LastKey::Key(through) if through < from => {
            Err(last.wrong(format!("{through} lies before {from}, so that there is no key in between")))
        }
        _ => Ok(KeysSpec { from, through }),
    }
}

fn key(node: &Node<'_>, expected: &str) -> Result<i64, SpecError> {
    node.value.as_i64().ok_or_else(|| {
        let message = format!("expected {expected} that fits 64 bits, found {}", node.value);
        SpecError::new(SpecErrorKind::Type, node.path.as_str(), message)
    })
}

fn list(node: &Node<'_>) -> Result<ListSpec, SpecError> {
    if !node.value.is_object() {
        let items = node.texts(limits::LIST_ITEMS_MAX, limits::LIST_ITEM_BYTES_MAX)?;
        let is_bad = |item: &String| item.is_empty() || item.chars().any(char::is_control);
        return match items.iter().position(is_bad) {
            Some(at) => Err(SpecError::value(
                format!("{}[{at}]", node.path),
                "an item has at least one character, and no control character",
            )),
            None if items.is_empty() => Err(node.wrong("it has no items")),
            None => Ok(ListSpec::Items(items)),
        };
    }
    let fields = node.fields(&["buckets", "days"])?;
    match (fields.optional("buckets")?, fields.optional("days")?) {
        (Some(_), Some(_)) => Err(node.wrong("it is `buckets` or `days`, and not both")),
        (Some(buckets), None) => Ok(ListSpec::Buckets { buckets: buckets.integer(1..=limits::LIST_ITEMS_MAX as u32)? }),
        (None, Some(days)) => Ok(ListSpec::Days { days: days.choice(&[("window", DaysOf::Window)])? }),
        (None, None) => {
            let message = "it says nothing; expected a list of texts, `buckets` or `days`";
            Err(SpecError::new(SpecErrorKind::Missing, node.path.as_str(), message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::ZoneRules;

    #[test]
    fn a_day_belongs_to_the_window_that_it_begins_in() {
        let zone = ZoneRules::bundled().zone("America/New_York").unwrap().time_zone().clone();
        let window = |start: &str, end: &str| Window { start: start.parse().unwrap(), end: end.parse().unwrap() };
        let days = |start, end| ListSpec::Days { days: DaysOf::Window }.items(window(start, end), &zone).unwrap();
        assert_eq!(days("2026-11-01T04:00:00Z", "2026-11-03T05:00:00Z"), ["2026-11-01", "2026-11-02"]);
        assert_eq!(days("2026-11-01T04:00:01Z", "2026-11-02T05:00:01Z"), ["2026-11-02"]);
        assert!(days("2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z").is_empty());
        let apia = ZoneRules::bundled().zone("Pacific/Apia").unwrap().time_zone().clone();
        let skipped = ListSpec::Days { days: DaysOf::Window }
            .items(window("2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z"), &apia)
            .unwrap();
        assert_eq!(skipped, ["2011-12-29", "2011-12-31"], "Samoa had no 30 December 2011");
    }

    #[test]
    fn a_window_of_too_many_days_is_refused() {
        let window =
            Window { start: "1900-01-01T00:00:00Z".parse().unwrap(), end: "2026-01-01T00:00:00Z".parse().unwrap() };
        assert_eq!(ListSpec::Days { days: DaysOf::Window }.items(window, &TimeZone::UTC), Err(TooManyDays));
        assert_eq!(ListSpec::Buckets { buckets: 3 }.items(window, &TimeZone::UTC).unwrap(), ["0", "1", "2"]);
    }
}
