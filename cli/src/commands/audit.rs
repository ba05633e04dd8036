//! `shardcron audit` and `shardcron explain`

use serde_json::json;
use shardcron_engine::EngineError;

use crate::args::AuditArgs;
use crate::commands::operate::job_name;
use crate::error::CliError;
use crate::output;
use crate::place::Place;
use crate::times;

/// Missing times that are shown as text; `--json` shows all.
const MISSING_SHOWN: usize = 20;

pub(crate) async fn run(place: &Place, args: &AuditArgs, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let jobs = match &args.job {
        Some(name) => {
            let name = job_name(name)?;
            vec![engine.job(&name).await?.ok_or(EngineError::NoJob(name))?]
        }
        None => engine.all_jobs().await?,
    };
    if jobs.is_empty() {
        // What was asked is checked all the same.
        times::range(&args.from, &args.to, &jiff::tz::TimeZone::UTC)?;
    }
    let mut missing = 0;
    let mut documents = Vec::new();
    let mut text = String::new();
    for job in jobs {
        // A deleted job has a past too; local times in it are read in UTC.
        let zone = match job.deleted_at {
            None => engine.spec(&job, job.spec).await?.zone().time_zone().clone(),
            Some(_) => jiff::tz::TimeZone::UTC,
        };
        let (from, to) = times::range(&args.from, &args.to, &zone)?;
        let audit = engine.audit(&job.name, from, to).await?;
        missing += audit.missing.len();
        let list = |counts: Vec<String>| if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        let instances = list(audit.instances.iter().map(|(name, count)| format!("{count} {name}")).collect());
        let skipped = list(audit.skipped.iter().map(|(name, count)| format!("{count} {name}")).collect());
        text.push_str(&format!("job {}: {} times expected\n", job.name, audit.expected));
        text.push_str(&format!(
            "  instances {instances}\n  skipped   {skipped}\n  missing   {}\n",
            audit.missing.len()
        ));
        if audit.pending > 0 {
            text.push_str(&format!("  pending   {} (just passed; the planner comes to them)\n", audit.pending));
        }
        for time in audit.missing.iter().take(MISSING_SHOWN) {
            text.push_str(&format!("    {}  {time}\n", times::local(*time, &zone)));
        }
        documents.push(json!({ "job": job.name, "audit": audit }));
    }
    if as_json {
        output::json(&json!({ "jobs": documents, "missing": missing }))?;
    } else if documents.is_empty() {
        output::text("no jobs, and so no times\n")?;
    } else {
        output::text(&text)?;
    }
    if missing == 0 {
        return Ok(());
    }
    Err(CliError::failed("missing", format!("{missing} scheduled times are unanswered for"))
        .hint("`shardcron backfill JOB --from TIME --to TIME` plans them"))
}

pub(crate) async fn explain(place: &Place, job: &str, at: &str, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let name = job_name(job)?;
    let job = engine.job(&name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
    let zone = match job.deleted_at {
        None => engine.spec(&job, job.spec).await?.zone().time_zone().clone(),
        Some(_) => jiff::tz::TimeZone::UTC,
    };
    let at = times::parse("at", at, &zone)?;
    let explanation = engine.explain(&name, at).await?;
    if as_json {
        return output::json(&json!({ "job": name, "at": at, "explanation": explanation }));
    }
    let row = explanation.row.map_or_else(String::new, |row| format!("  row: {row}\n"));
    output::text(&format!("{name} at {at} ({}): {}\n{row}", times::local(at, &zone), explanation.reason))
}
