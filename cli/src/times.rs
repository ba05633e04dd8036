//! Times as people write them: RFC 3339, or a local date or date-time in a zone.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use shardcron_domain::time::ScheduledTime;

use crate::error::CliError;

/// Reads a time given as `field`; a local one is in `zone`. Of two equal local times it is the first; one that the
/// zone's clock skipped is the instant after the gap.
pub(crate) fn parse(field: &'static str, text: &str, zone: &TimeZone) -> Result<ScheduledTime, CliError> {
    let wrong = |why: String| {
        CliError::wrong("value", format!("`{text}` {why}"))
            .field(field)
            .hint("write 2026-08-30T00:00:00+08:00, or a local date (2026-08-30) or date-time (2026-08-30T00:00)")
    };
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return ScheduledTime::from_timestamp(at).map_err(|error| wrong(format!("can't be used: {error}")));
    }
    let local = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(|date| date.at(0, 0, 0, 0)));
    let local = local.map_err(|_| wrong("isn't a time".to_owned()))?;
    let zoned = local.to_zoned_datetime(zone.clone()).map_err(|error| wrong(format!("can't be used: {error}")))?;
    ScheduledTime::from_timestamp(zoned.timestamp()).map_err(|error| wrong(format!("can't be used: {error}")))
}

/// Reads `--from` and `--to`, as [`parse`] does.
///
/// # Errors
/// What isn't a time; a range that is empty, since no time lies in `[from, to)`.
pub(crate) fn range(from: &str, to: &str, zone: &TimeZone) -> Result<(ScheduledTime, ScheduledTime), CliError> {
    let (from, to) = (parse("from", from, zone)?, parse("to", to, zone)?);
    if to <= from {
        return Err(CliError::wrong("value", format!("--to ({to}) must be after --from ({from})")).field("to"));
    }
    Ok((from, to))
}

/// An instant as a zone's clock shows it, with its offset.
pub(crate) fn local(at: ScheduledTime, zone: &TimeZone) -> String {
    at.timestamp().to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}
