//! `shardcron version`

use serde_json::json;
use shardcron_runtime::config;
use shardcron_runtime::zones::zone_rules;

use crate::error::CliError;
use crate::output;

pub(crate) fn run(json: bool) -> Result<(), CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let rules = zone_rules(config::environment(config::ZONEINFO).as_deref())?;
    if json {
        return output::json(&json!({ "version": version, "tzdb": rules.version() }));
    }
    output::text(&format!("shardcron {version} (time zone rules {})\n", rules.version()))
}
