//! Zone rules: the bundled ones, or a zoneinfo directory that the environment names.

use jiff::tz::TimeZoneDatabase;
use shardcron_domain::calendar::ZoneRules;

use crate::config::{ConfigError, ZONEINFO};

/// The rules of this zoneinfo directory, or the bundled ones when none is named.
///
/// # Errors
/// [`ConfigError::Value`] when the directory can't be read or has no zones.
pub fn zone_rules(directory: Option<&str>) -> Result<ZoneRules, ConfigError> {
    let Some(directory) = directory else { return Ok(ZoneRules::bundled()) };
    let refused = |why: String| ConfigError::Value { name: ZONEINFO, value: directory.to_owned(), why };
    let database = TimeZoneDatabase::from_dir(directory).map_err(|error| refused(error.to_string()))?;
    if database.get("UTC").is_err() {
        return Err(refused("it has no zone `UTC`; name a directory such as /usr/share/zoneinfo".to_owned()));
    }
    // `tzdata.zi` begins with a line such as `# version 2026a`; distributions ship it beside the zones.
    let first = std::fs::read_to_string(format!("{directory}/tzdata.zi")).unwrap_or_default();
    let version = first.lines().next().and_then(|line| line.strip_prefix("# version ")).unwrap_or("unknown");
    Ok(ZoneRules::from_database(database, format!("{version} ({directory})")))
}
