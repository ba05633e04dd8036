//! The installation that a command is about: an embedded one in a directory, or a table at an endpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shardcron_domain::limits::LEASE_MAX;
use shardcron_domain::location::{Location, Root};
use shardcron_domain::time::Duration;
use shardcron_embedded::{EmbeddedError, EmbeddedQueues, EmbeddedTable, QueueDefinition};
use shardcron_engine::ports::Events;
use shardcron_queue::QueueName;
use shardcron_runtime::Runtime;
use shardcron_runtime::config::{self, ConfigError};
use shardcron_runtime::wiring::{self, Common, Local};
use shardcron_runtime::zones::zone_rules;
use shardcron_work::Works;

use crate::args::{DEFAULT_DIR, Where};
use crate::error::CliError;

/// The lease of the embedded installation: short, since a person waits for a takeover.
const LEASE: Duration = Duration::from_secs(5);

/// How soon the embedded sweep sends messages again: its queues are lost with the process, so there is no long queue
/// to flood.
const RESEND_AFTER: Duration = Duration::from_secs(5);

/// How often an embedded installation looks whether an input is ready: it costs nothing there.
const READY_POLL: Duration = Duration::from_secs(1);

/// The table's name in the embedded installation.
const TABLE: &str = "shardcron";

/// The table's file in the directory of an embedded installation: without it there is none.
const TABLE_FILE: &str = "table.db";

/// An open installation.
pub(crate) struct Place {
    pub(crate) runtime: Runtime,
    /// Kept alive for as long as the runtime is used.
    _stand_ins: Option<(EmbeddedTable, EmbeddedQueues)>,
}

impl From<EmbeddedError> for CliError {
    fn from(error: EmbeddedError) -> Self {
        // It tells its cause itself, and after a semicolon what to do.
        let text = error.to_string();
        match text.rsplit_once("; ") {
            Some((message, hint)) => Self::failed("store", message).hint(hint),
            None => Self::failed("store", text),
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let field = match &error {
            ConfigError::Missing { name, .. } | ConfigError::Value { name, .. } => *name,
        };
        Self::wrong("config", error.to_string()).field(field)
    }
}

/// What a command is run with, whatever installation it is about.
pub(crate) struct Session {
    /// Who is told what happens.
    pub(crate) events: Arc<dyn Events>,
    /// The works that jobs can name.
    pub(crate) works: Works,
}

fn common(session: Session) -> Result<Common, CliError> {
    let rules = zone_rules(config::environment(config::ZONEINFO).as_deref())?;
    Ok(Common { works: session.works, rules, events: session.events, capacity: None })
}

/// The name of a queue, as the embedded installation has it.
fn queue_name(queue: QueueName) -> &'static str {
    match queue {
        QueueName::Instances => "instances",
        QueueName::Shards => "shards",
        QueueName::BackfillShards => "backfill-shards",
    }
}

/// Opens the embedded installation in this directory, and makes it if there is none.
pub(crate) async fn open_local(dir: &Path, session: Session) -> Result<Place, CliError> {
    let failed = |what: &str, error: std::io::Error| {
        CliError::failed("store", format!("{what} {}: {error}", dir.display()))
            .hint("name another directory with `--local=DIR`, or make room there")
    };
    std::fs::create_dir_all(dir).map_err(|error| failed("can't make the directory", error))?;
    let dir = dir.canonicalize().map_err(|error| failed("can't use the directory", error))?;
    let lease = config::lease_from(config::environment)?.unwrap_or(LEASE);
    let table = EmbeddedTable::open(&dir.join(TABLE_FILE))?;
    let definitions: Vec<QueueDefinition> = QueueName::ALL
        .into_iter()
        .map(|queue| QueueDefinition {
            name: queue_name(queue).to_owned(),
            // A worker keeps a message it works on near its lease; this is for one that dies before it can.
            visibility_seconds: u32::try_from(lease.0 / 1000 + 1).unwrap_or(LEASE_MAX.0 as u32),
        })
        .collect();
    let queues = EmbeddedQueues::start(&definitions)?;
    let urls: BTreeMap<QueueName, String> = QueueName::ALL
        .into_iter()
        .filter_map(|queue| queues.queue_url(queue_name(queue)).map(|url| (queue, url.to_owned())))
        .collect();
    let local = Local {
        table_endpoint: table.endpoint().to_owned(),
        table: TABLE.to_owned(),
        queue_endpoint: queues.endpoint().to_owned(),
        queues: urls,
        objects: dir.join("objects"),
        state: Location { root: Root::Directory(text(&dir.join("state"))?), prefix: String::new() },
        lease,
        resend_after: RESEND_AFTER,
        ready_poll: READY_POLL,
    };
    let runtime =
        wiring::local(local, common(session)?).await.map_err(|error| CliError::failed("store", error.to_string()))?;
    runtime.anchor().await?;
    Ok(Place { runtime, _stand_ins: Some((table, queues)) })
}

/// The embedded installation that the arguments name, where it isn't there.
pub(crate) fn missing(at: &Where) -> Option<&Path> {
    at.local.as_deref().filter(|dir| !dir.join(TABLE_FILE).exists())
}

/// Opens the installation that the arguments and the environment name, which must be there: a directory's name that was
/// mistyped is no new installation in which all is well.
pub(crate) async fn open(at: &Where, session: Session) -> Result<Place, CliError> {
    if let Some(dir) = missing(at) {
        return Err(CliError::wrong("no_installation", format!("there is no installation in {}", dir.display())).hint(
            "`shardcron --local apply FILE` or `shardcron local run JOB.json` makes one; `--local=DIR` names another directory",
        ));
    }
    open_or_make(at, session).await
}

/// Opens the installation that the arguments and the environment name. An embedded one that isn't there is made.
pub(crate) async fn open_or_make(at: &Where, session: Session) -> Result<Place, CliError> {
    if let Some(dir) = &at.local {
        return open_local(dir, session).await;
    }
    let table = at.table.clone().or_else(|| config::environment(config::TABLE));
    let Some(table) = table else {
        return Err(CliError::wrong("config", "which installation? Neither --local nor a table is named")
            .hint("`--local` for the embedded one, or `--table NAME` (or SHARDCRON_TABLE) for one at an endpoint"));
    };
    open_remote(table, session).await
}

/// Opens the installation around this table, at the endpoint and with the credentials that the AWS SDK finds.
pub(crate) async fn open_remote(table: String, session: Session) -> Result<Place, CliError> {
    let get = |name: &str| if name == config::TABLE { Some(table.clone()) } else { config::environment(name) };
    let config = config::Config::from(get)?;
    let runtime = wiring::aws_with_directories(&config, common(session)?).await;
    runtime.anchor().await?;
    Ok(Place { runtime, _stand_ins: None })
}

/// The directory of a `local` command.
pub(crate) fn local_dir(dir: Option<&PathBuf>, at: &Where) -> PathBuf {
    dir.or(at.local.as_ref()).cloned().unwrap_or_else(|| PathBuf::from(DEFAULT_DIR))
}

/// A path as text; shardcron's own records hold text only.
pub(crate) fn text(path: &Path) -> Result<String, CliError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| CliError::wrong("value", format!("the path {} isn't UTF-8", path.display())))
}
