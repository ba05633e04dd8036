//! `shardcron validate` and `shardcron apply`

use std::path::{Path, PathBuf};

use serde_json::json;
use shardcron_domain::calendar::ZoneRules;
use shardcron_domain::job::{JobSpec, SpecError};
use shardcron_domain::time::ScheduledTime;
use shardcron_engine::apply::Applied;
use shardcron_runtime::config;
use shardcron_runtime::zones::zone_rules;
use shardcron_work::Works;

use crate::args::ApplyArgs;
use crate::error::CliError;
use crate::output;
use crate::place::{Place, text};

/// A job file's text, and the directory that its relative paths are relative to: the file's, or the working directory where
/// it is a pipe or standard input. A pipe can be read once only.
pub(crate) fn read(file: &Path) -> Result<(String, String), CliError> {
    let wrong = |why: String| {
        CliError::wrong("file", format!("{}: {why}", file.display()))
            .hint("name a job's file, such as examples/flights/job.json")
    };
    let content = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let content = String::from_utf8(content).map_err(|error| {
        wrong(format!("isn't UTF-8 text (the first bad byte is at offset {})", error.utf8_error().valid_up_to()))
    })?;
    let dir = if is_stream(file) {
        std::env::current_dir()
    } else {
        file.canonicalize().map(|file| file.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned))
    };
    Ok((content, text(&dir.map_err(|error| wrong(error.to_string()))?)?))
}

/// Whether what was read stands in no directory, such as `/dev/stdin` and what a shell makes of `<(…)`. A file that was
/// redirected to standard input has a place, which the command wasn't told.
fn is_stream(file: &Path) -> bool {
    file.starts_with("/dev") || file.starts_with("/proc") || !file.is_file()
}

fn check(file: &Path, rules: &ZoneRules, works: &Works) -> Result<JobSpec, CliError> {
    let (content, base) = read(file)?;
    let check = || -> Result<JobSpec, SpecError> {
        let spec = JobSpec::parse(&content)?;
        spec.check_places(&base)?;
        // Whether a schedule is right doesn't depend on when it starts.
        let start = ScheduledTime::from_second(0).unwrap_or_else(|_| unreachable!("1970 is in range"));
        spec.calendar(rules, start)?;
        works.for_job(&spec)?;
        Ok(spec)
    };
    check().map_err(|error| CliError::from(error).in_file(file))
}

pub(crate) fn validate(files: &[std::path::PathBuf], works: &Works, json: bool) -> Result<(), CliError> {
    let rules = zone_rules(config::environment(config::ZONEINFO).as_deref())?;
    let mut valid = Vec::new();
    for file in files {
        let spec = check(file, &rules, works)?;
        valid.push((file.display().to_string(), spec.name.to_string()));
    }
    if json {
        let files: Vec<_> = valid.iter().map(|(file, job)| json!({ "file": file, "job": job })).collect();
        return output::json(&json!({ "valid": files }));
    }
    output::text(&valid.iter().map(|(file, job)| format!("{file}: job {job} is valid\n")).collect::<String>())
}

pub(crate) async fn apply(place: &Place, args: &ApplyArgs, json: bool) -> Result<(), CliError> {
    let engine = &place.runtime.engine;
    // All are checked before any is applied, so that a mistake in the last doesn't leave half of them applied.
    let mut files = Vec::new();
    for file in &args.files {
        let (content, base) = read(file)?;
        let checked = engine.check(&content).and_then(|spec| Ok(spec.check_places(&base)?));
        checked.map_err(|error| CliError::from(error).in_file(file))?;
        files.push((file, content, base));
    }
    let mut outcomes = Vec::new();
    for (file, content, base) in files {
        let applied =
            if args.dry_run { engine.would_apply(&content, &base).await } else { engine.apply(&content, &base).await };
        let (spec, applied) = applied.map_err(|error| CliError::from(error).in_file(file))?;
        outcomes.push((spec.name.to_string(), applied));
    }
    if json {
        let jobs: Vec<_> = outcomes.iter().map(|(job, applied)| json!({ "job": job, "applied": applied })).collect();
        return output::json(&json!({ "jobs": jobs, "dryRun": args.dry_run }));
    }
    let word = |applied: &Applied| match (applied, args.dry_run) {
        (Applied::Created, false) => "created",
        (Applied::CreatedAgain, false) => "created again",
        (Applied::Changed, false) => "changed, from now on",
        (Applied::Created, true) => "would be created",
        (Applied::CreatedAgain, true) => "would be created again",
        (Applied::Changed, true) => "would be changed, from now on",
        (Applied::Unchanged, _) => "unchanged",
    };
    output::text(&outcomes.iter().map(|(job, applied)| format!("job {job} {}\n", word(applied))).collect::<String>())
}
