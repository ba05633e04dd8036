//! `shardcron schema`

use shardcron_domain::job::JobSpec;

use crate::error::CliError;
use crate::output;

pub(crate) fn run() -> Result<(), CliError> {
    output::text(&JobSpec::schema_text())
}
