//! Configuration: the environment, read once.

use std::collections::BTreeMap;

use shardcron_domain::job::SECRET_PREFIX;
use shardcron_domain::limits::{LEASE_DEFAULT, LEASE_MAX, LEASE_MIN, RESEND_AFTER};
use shardcron_domain::location::Location;
use shardcron_domain::time::Duration;
use shardcron_queue::QueueName;

/// The table's name.
pub const TABLE: &str = "SHARDCRON_TABLE";
/// The installation's own place for manifests, such as `s3://bucket/state/`.
pub const STATE: &str = "SHARDCRON_STATE";
/// The URL of the queue of instances.
pub const QUEUE_INSTANCES: &str = "SHARDCRON_QUEUE_INSTANCES";
/// The URL of the queue of shards.
pub const QUEUE_SHARDS: &str = "SHARDCRON_QUEUE_SHARDS";
/// The URL of the queue of backfilled instances' shards.
pub const QUEUE_BACKFILL_SHARDS: &str = "SHARDCRON_QUEUE_BACKFILL_SHARDS";
/// The lease in seconds.
pub const LEASE_SECONDS: &str = "SHARDCRON_LEASE_SECONDS";
/// The EventBridge bus that the ends of instances are announced on, by name or ARN.
pub const EVENT_BUS: &str = "SHARDCRON_EVENT_BUS";
/// Whether the functions keep metrics for each job too: `true` or `false`.
pub const METRICS_BY_JOB: &str = "SHARDCRON_METRICS_BY_JOB";
/// A zoneinfo directory with newer rules than the bundled ones.
pub const ZONEINFO: &str = "SHARDCRON_ZONEINFO";

/// All that a [`Config`] is read from. The template is held against it.
pub const VARIABLES: [&str; 9] = [
    TABLE,
    STATE,
    QUEUE_INSTANCES,
    QUEUE_SHARDS,
    QUEUE_BACKFILL_SHARDS,
    LEASE_SECONDS,
    EVENT_BUS,
    METRICS_BY_JOB,
    ZONEINFO,
];

/// An environment variable that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It isn't set.
    #[error("{name} isn't set; it is {what}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What it holds.
        what: &'static str,
    },
    /// Its value can't be used.
    #[error("{name} is `{value}`: {why}")]
    Value {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        why: String,
    },
}

/// What an installation sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The table's name.
    pub table: String,
    /// The installation's own place for manifests.
    pub state: Location,
    /// The queues' URLs.
    pub queues: BTreeMap<QueueName, String>,
    /// The lease that executors take.
    pub lease: Duration,
    /// How long after sending messages the sweep sends them again.
    pub resend_after: Duration,
    /// The bus that ends are announced on, if they are.
    pub event_bus: Option<String>,
    /// Whether metrics are kept for each job too.
    pub metrics_by_job: bool,
    /// A zoneinfo directory, if one is set.
    pub zoneinfo: Option<String>,
}

impl Config {
    /// From the process's environment.
    ///
    /// # Errors
    /// [`ConfigError`], naming the variable.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from(environment)
    }

    /// From these variables.
    ///
    /// # Errors
    /// [`ConfigError`], naming the variable.
    pub fn from(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let required = |name, what| get(name).ok_or(ConfigError::Missing { name, what });
        let state = required(STATE, "the place for manifests, such as s3://bucket/state/")?;
        let queues = BTreeMap::from([
            (QueueName::Instances, required(QUEUE_INSTANCES, "the URL of the queue of instances")?),
            (QueueName::Shards, required(QUEUE_SHARDS, "the URL of the queue of shards")?),
            (
                QueueName::BackfillShards,
                required(QUEUE_BACKFILL_SHARDS, "the URL of the queue of backfilled instances' shards")?,
            ),
        ]);
        Ok(Self {
            table: required(TABLE, "the table's name")?,
            state: parse_state(state)?,
            queues,
            lease: lease_from(&get)?.unwrap_or(LEASE_DEFAULT),
            resend_after: RESEND_AFTER,
            event_bus: get(EVENT_BUS),
            metrics_by_job: switch(METRICS_BY_JOB, get(METRICS_BY_JOB))?,
            zoneinfo: get(ZONEINFO),
        })
    }
}

/// The lease that the environment asks for, if it does.
///
/// # Errors
/// [`ConfigError::Value`] when it isn't a number of seconds within the bounds.
pub fn lease_from(get: impl Fn(&str) -> Option<String>) -> Result<Option<Duration>, ConfigError> {
    let Some(value) = get(LEASE_SECONDS) else { return Ok(None) };
    let lease = value.parse().map(Duration::from_secs).ok().filter(|lease| (LEASE_MIN..=LEASE_MAX).contains(lease));
    lease.map(Some).ok_or_else(|| ConfigError::Value {
        name: LEASE_SECONDS,
        value,
        why: format!("a lease has {} to {} seconds", LEASE_MIN.0 / 1000, LEASE_MAX.0 / 1000),
    })
}

fn switch(name: &'static str, value: Option<String>) -> Result<bool, ConfigError> {
    match value.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            Err(ConfigError::Value { name, value: other.to_owned(), why: "it is `true` or `false`".to_owned() })
        }
    }
}

fn parse_state(value: String) -> Result<Location, ConfigError> {
    let why = match Location::parse(&value, "/") {
        Ok(location) if location.is_directory() => return Ok(location),
        Ok(_) => "a place for many objects ends in `/`".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ConfigError::Value { name: STATE, value, why })
}

/// The secrets that jobs can name (`effects.authorizationEnv`): the variables whose names begin with [`SECRET_PREFIX`]. An
/// empty one, and one that isn't UTF-8, counts as not set.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub fn secrets() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| name.starts_with(SECRET_PREFIX) && !value.is_empty())
        .collect()
}

/// A variable of the process's environment; an empty one counts as not set.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from(|name| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned()))
    }

    const WHOLE: [(&str, &str); 5] = [
        (TABLE, "shardcron"),
        (STATE, "s3://bucket/state/"),
        (QUEUE_INSTANCES, "http://q/1"),
        (QUEUE_SHARDS, "http://q/2"),
        (QUEUE_BACKFILL_SHARDS, "http://q/3"),
    ];

    #[test]
    fn a_whole_environment_is_read_with_its_defaults() {
        let config = from(&WHOLE).unwrap();
        assert_eq!(config.lease, LEASE_DEFAULT);
        assert_eq!(config.queues[&QueueName::Shards], "http://q/2");
        assert_eq!((config.event_bus, config.metrics_by_job), (None, false));
    }

    #[test]
    fn nothing_is_read_that_is_not_listed() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        Config::from(|name| {
            read.borrow_mut().insert(name.to_owned());
            WHOLE.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        })
        .unwrap();
        assert_eq!(read.into_inner(), VARIABLES.map(str::to_owned).into());
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        assert!(matches!(from(&WHOLE[1..]), Err(ConfigError::Missing { name: TABLE, .. })));
        for bad in ["1", "901", "x", "-3"] {
            let mut pairs = WHOLE.to_vec();
            pairs.push((LEASE_SECONDS, bad));
            assert!(matches!(from(&pairs), Err(ConfigError::Value { name: LEASE_SECONDS, .. })), "{bad}");
        }
        let mut pairs = WHOLE.to_vec();
        pairs.push((METRICS_BY_JOB, "yes"));
        assert!(matches!(from(&pairs), Err(ConfigError::Value { name: METRICS_BY_JOB, .. })));
        let mut pairs = WHOLE.to_vec();
        pairs[1].1 = "s3://bucket/state";
        assert!(matches!(from(&pairs), Err(ConfigError::Value { name: STATE, .. })));
    }
}
