//! `shardcron backfill`

use serde_json::{Value, json};
use shardcron_domain::backfill::{Backfill, BackfillId, BackfillRequest, BackfillStatus, Only, Order};
use shardcron_domain::ids::NameError;
use shardcron_engine::EngineError;

use crate::args::{BackfillArgs, BackfillCommand, BackfillName, OnlyArg, OrderArg};
use crate::commands::operate::job_name;
use crate::error::CliError;
use crate::output;
use crate::place::Place;
use crate::times;

pub(crate) async fn run(place: &Place, args: &BackfillArgs, as_json: bool) -> Result<(), CliError> {
    match &args.command {
        Some(BackfillCommand::List { job }) => list(place, job, as_json).await,
        Some(BackfillCommand::Pause(name)) => set(place, name, BackfillStatus::Paused, as_json).await,
        Some(BackfillCommand::Resume(name)) => set(place, name, BackfillStatus::Running, as_json).await,
        Some(BackfillCommand::Cancel(name)) => set(place, name, BackfillStatus::Cancelled, as_json).await,
        None => begin(place, args, as_json).await,
    }
}

async fn begin(place: &Place, args: &BackfillArgs, as_json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    let (Some(job), Some(from), Some(to)) = (&args.job, &args.from, &args.to) else {
        return Err(CliError::wrong("usage", "a backfill needs JOB, --from and --to"));
    };
    let name = job_name(job)?;
    let job = engine.live_job(&name).await?;
    let zone = engine.spec(&job, job.spec).await?.zone().time_zone().clone();
    let request = BackfillRequest {
        from: times::parse("from", from, &zone)?,
        to: times::parse("to", to, &zone)?,
        only: match args.only {
            OnlyArg::Missing => Only::Missing,
            OnlyArg::Failed => Only::Failed,
            OnlyArg::All => Only::All,
        },
        order: match args.order {
            OrderArg::Oldest => Order::Oldest,
            OrderArg::Newest => Order::Newest,
        },
        max_active: args.max_active,
        per_minute: args.per_minute,
    };
    if args.dry_run {
        let preview = engine.preview_backfill(&name, request).await?;
        if as_json {
            return output::json(&json!({ "job": name, "dryRun": true, "preview": preview }));
        }
        return output::text(&format!(
            "of {} times, {} would be begun ({} of them were skipped), {} are there already, {} are left out\n",
            preview.expected, preview.would_begin, preview.were_skipped, preview.already_there, preview.left_out
        ));
    }
    show(&engine.backfill(&name, request).await?, as_json)
}

async fn set(place: &Place, name: &BackfillName, status: BackfillStatus, as_json: bool) -> Result<(), CliError> {
    let job = job_name(&name.job)?;
    let id: BackfillId =
        name.id.parse().map_err(|error: NameError| CliError::wrong("value", error.to_string()).field("id"))?;
    show(&place.runtime.engine.set_backfill(&job, &id, status).await?, as_json)
}

async fn list(place: &Place, job: &str, as_json: bool) -> Result<(), CliError> {
    let name = job_name(job)?;
    // A deleted job's are listed still.
    place.runtime.engine.job(&name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
    let backfills = place.runtime.engine.store.backfills(&name).await.map_err(EngineError::from)?;
    if as_json {
        let backfills: Vec<Value> = backfills.iter().map(document).collect();
        return output::json(&json!({ "backfills": backfills }));
    }
    if backfills.is_empty() {
        return output::text("no backfills\n");
    }
    output::text(&backfills.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn show(backfill: &Backfill, as_json: bool) -> Result<(), CliError> {
    if as_json { output::json(&document(backfill)) } else { output::text(&text(backfill)) }
}

/// A backfill for scripts.
pub(crate) fn document(backfill: &Backfill) -> Value {
    let mut document = json!(backfill);
    document["account"]["counts"] = output::counts(backfill.account.counts);
    document
}

/// A backfill and its reconciliation.
fn text(backfill: &Backfill) -> String {
    let (request, account) = (&backfill.request, &backfill.account);
    let mut text = format!("backfill {} of job {}  {:?}\n", backfill.id, backfill.job, backfill.status);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<9} {value}\n"));
    line("range", format!("{} to {}, {:?} first", request.from, request.to, request.order));
    line(
        "times",
        format!("{} looked at so far, {}", account.expected, if backfill.exhausted { "all" } else { "more to come" }),
    );
    line(
        "begun",
        format!(
            "{} ({} of them had been skipped), {} at work",
            account.begun,
            account.were_skipped,
            backfill.active.len()
        ),
    );
    if !account.skipped.is_empty() {
        let reasons: Vec<String> = account.skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        line("skipped", format!("{}, begun or left out", reasons.join(", ")));
    }
    line("others", format!("{} were there already, {} left out", account.already_there, account.left_out));
    line("ended", format!("{} succeeded, {} failed", account.succeeded, account.failed));
    let counts = account.counts;
    line("records", format!("{} in, {} out, {} rejected", counts.input, counts.output, counts.rejected));
    text
}
