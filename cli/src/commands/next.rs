//! `shardcron next`

use serde_json::json;
use shardcron_domain::calendar::{Calendar, ClockChange, Dst, Gap, Overlap};
use shardcron_domain::ids::JobName;
use shardcron_domain::limits::AUDIT_TIMES_MAX;
use shardcron_domain::time::ScheduledTime;
use shardcron_engine::EngineError;
use shardcron_runtime::clock::wall_clock;
use shardcron_runtime::config;
use shardcron_runtime::zones::zone_rules;

use crate::args::{GapArg, NextArgs, OverlapArg, Where};
use crate::error::CliError;
use crate::place::{self, Session};
use crate::{output, times};

/// How many times are shown unless asked otherwise.
const COUNT: usize = 5;

pub(crate) async fn run(at: &Where, args: &NextArgs, session: Session, as_json: bool) -> Result<(), CliError> {
    let is_job = args.what.parse::<JobName>().is_ok();
    let calendar = if is_job { of_job(at, args, session).await? } else { of_schedule(args)? };
    let zone = calendar.zone().time_zone().clone();
    let mut found = Vec::new();
    if args.count.is_some_and(|count| count > AUDIT_TIMES_MAX) {
        return Err(
            CliError::wrong("value", format!("at most {AUDIT_TIMES_MAX} times are shown at once")).field("count")
        );
    }
    match (&args.from, &args.to) {
        (Some(from), Some(to)) => {
            let (from, to) = times::range(from, to, &zone)?;
            found.extend(calendar.between(from, to).take(args.count.unwrap_or(AUDIT_TIMES_MAX + 1)));
            if found.len() > AUDIT_TIMES_MAX {
                let message = format!("the range has over {AUDIT_TIMES_MAX} times");
                return Err(CliError::wrong("value", message).field("to").hint("ask for less at a time"));
            }
        }
        _ => {
            let mut last = match &args.after {
                Some(after) => times::parse("after", after, &zone)?,
                None => wall_clock(),
            };
            while found.len() < args.count.unwrap_or(COUNT) {
                let Some(next) = calendar.after(last) else { break };
                found.push(next);
                last = next;
            }
        }
    }
    if as_json {
        return output::json(&json!({ "times": found }));
    }
    if found.is_empty() {
        return output::text("no times\n");
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|time| vec![times::local(*time, &zone), time.to_string(), mark(*time, &calendar).to_owned()])
        .collect();
    output::text(&output::table(&[calendar.zone().name(), "UTC", ""], &rows))
}

/// A mark on days on which the zone's clock is put forward or back.
fn mark(time: ScheduledTime, calendar: &Calendar) -> &'static str {
    match calendar.zone().clock_change(time) {
        Some(ClockChange::Forward) => "the clock goes forward",
        Some(ClockChange::Back) => "the clock goes back",
        None => "",
    }
}

fn of_schedule(args: &NextArgs) -> Result<Calendar, CliError> {
    let rules = zone_rules(config::environment(config::ZONEINFO).as_deref())?;
    let zone = rules.zone(args.time_zone.as_deref().unwrap_or("UTC")).map_err(EngineError::from)?;
    // A bare rate() has no job to start with: it starts where the times are asked from.
    let start =
        match args.after.as_deref().map(|text| ("after", text)).or(args.from.as_deref().map(|text| ("from", text))) {
            Some((field, text)) => times::parse(field, text, zone.time_zone())?,
            None => wall_clock(),
        };
    Ok(Calendar::new(&args.what, &zone, dst(args), start).map_err(EngineError::from)?)
}

async fn of_job(at: &Where, args: &NextArgs, session: Session) -> Result<Calendar, CliError> {
    if args.time_zone.is_some() || args.gap.is_some() || args.overlap.is_some() {
        return Err(CliError::wrong(
            "usage",
            format!("`{}` is a job, which has a zone and a DST policy of its own", args.what),
        )
        .hint("leave out --time-zone, --gap and --overlap, or name a schedule such as `0 6 * * *`"));
    }
    let place = place::open(at, session).await?;
    let engine = &place.runtime.engine;
    let name: JobName = args
        .what
        .parse()
        .map_err(|error: shardcron_domain::ids::NameError| CliError::wrong("value", error.to_string()))?;
    let job = engine.live_job(&name).await?;
    Ok(engine.spec(&job, job.spec).await?.calendar)
}

fn dst(args: &NextArgs) -> Dst {
    Dst {
        gap: args.gap.map(|gap| match gap {
            GapArg::Next => Gap::Next,
            GapArg::Skip => Gap::Skip,
        }),
        overlap: args.overlap.map(|overlap| match overlap {
            OverlapArg::First => Overlap::First,
            OverlapArg::Last => Overlap::Last,
            OverlapArg::Both => Overlap::Both,
        }),
    }
}
