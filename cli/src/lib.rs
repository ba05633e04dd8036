//! The `shardcron` command, as a library: for a program that has works of its own beside the built-in ones.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use shardcron_work::Works;
//!
//! fn main() -> ExitCode {
//!     shardcron_cli::main(Works::builtin())
//! }
//! ```

mod args;
mod commands;
mod error;
mod output;
mod place;
mod times;
mod workers;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use shardcron_engine::ports::Events;
use shardcron_runtime::config;
use shardcron_runtime::telemetry::{JsonLines, Silent};
use shardcron_work::Works;

use crate::args::{Cli, Command, LocalCommand};
use crate::error::CliError;
use crate::place::Session;

/// Runs the command that the process's arguments name, with these works; `Works::builtin().with(…)` adds one's own.
#[must_use]
pub fn main(works: Works) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let json = cli.json;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(cli, works)),
        Err(error) => Err(CliError::failed("internal", error.to_string())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(json),
    }
}

/// Help on standard output; a usage error on standard error, as JSON where that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    let is_help = !error.use_stderr();
    if !is_help && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.to_string();
        // Up to the usage line: what is missing or wrong stands on lines of its own.
        let body = text.split("\n\nUsage:").next().unwrap_or_default().trim_start_matches("error: ");
        let message = body.split_whitespace().collect::<Vec<_>>().join(" ");
        return CliError::wrong("usage", message).hint("`shardcron --help` shows the commands").report(true);
    }
    // Clap repeats the arguments as they are: so it is told of escaped ones, which come to the same error.
    let args = std::env::args_os().map(|arg| error::escaped(&arg.to_string_lossy()));
    let escaped = if is_help { None } else { Cli::try_parse_from(args).err() };
    // Nobody is left to tell when even this can't be printed.
    let _ = escaped.as_ref().unwrap_or(error).print();
    ExitCode::from(if is_help { 0 } else { error::WRONG })
}

/// The signal that a write beyond the limit on a file's size raises (`ulimit -f`); the same number on Linux and macOS.
const SIGXFSZ: i32 = 25;

/// Lets a write beyond the limit on a file's size be an error, told as any other, and not the end of the process.
fn survive_size_limit() {
    // A handler that is installed stays, whatever becomes of its listener. Without one it is as it was.
    let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ));
}

async fn run(cli: Cli, works: Works) -> Result<(), CliError> {
    let json = cli.json;
    survive_size_limit();
    let quiet: Arc<dyn Events> = match config::environment("SHARDCRON_EVENTS").as_deref() {
        Some("stderr") => Arc::new(JsonLines::to_stderr()),
        _ => Arc::new(Silent),
    };
    let quiet = Session { events: quiet, works: works.clone() };
    let log = Session { events: Arc::new(JsonLines::to_stderr()), works };
    match cli.command {
        Command::Local(_) if cli.at.table.is_some() => Err(CliError::wrong(
            "usage",
            "the `local` commands are about the embedded installation, and --table names another",
        )
        .field("table")
        .hint("leave --table out; or, for a table, `apply` the job and let `shardcron --table NAME host` do the work")),
        Command::Local(LocalCommand::Run(args)) => {
            let dir = place::local_dir(args.dir.as_ref(), &cli.at);
            commands::local_run::run(&place::open_local(&dir, quiet).await?, &args, json).await
        }
        Command::Local(LocalCommand::Up(args)) => {
            let dir = place::local_dir(args.dir.as_ref(), &cli.at);
            let place = place::open_local(&dir, log).await?;
            commands::host::run(&place, args.workers.count, args.tick, true).await
        }
        Command::Host(args) => {
            let place = place::open_or_make(&cli.at, log).await?;
            commands::host::run(&place, args.workers.count, args.tick, cli.at.local.is_some()).await
        }
        Command::Apply(args) => commands::files::apply(&place::open_or_make(&cli.at, quiet).await?, &args, json).await,
        Command::Validate(args) => commands::files::validate(&args.files, &quiet.works, json),
        Command::List => match place::missing(&cli.at) {
            Some(dir) => commands::list::nothing(dir, json),
            None => commands::list::run(&place::open(&cli.at, quiet).await?, json).await,
        },
        Command::Describe { what } => commands::describe::run(&place::open(&cli.at, quiet).await?, &what, json).await,
        Command::Results(args) => commands::results::run(&place::open(&cli.at, quiet).await?, &args, json).await,
        Command::Effects(args) => commands::effects::run(&place::open(&cli.at, quiet).await?, &args, json).await,
        Command::Verify { instance } => {
            commands::verify::run(&place::open(&cli.at, quiet).await?, &instance, json).await
        }
        Command::Rejects(args) => commands::rejects::run(&place::open(&cli.at, quiet).await?, &args, json).await,
        Command::Watch { instance } => commands::watch::run(&place::open(&cli.at, quiet).await?, &instance, json).await,
        Command::Trigger(args) => commands::operate::trigger(&place::open(&cli.at, quiet).await?, &args, json).await,
        Command::Backfill(args) => commands::backfill::run(&place::open(&cli.at, quiet).await?, &args, json).await,
        Command::Cancel { instance } => {
            commands::operate::cancel(&place::open(&cli.at, quiet).await?, &instance, json).await
        }
        Command::Retry { instance } => {
            commands::operate::retry(&place::open(&cli.at, quiet).await?, &instance, json).await
        }
        Command::Rerun { instance } => {
            commands::operate::rerun(&place::open(&cli.at, quiet).await?, &instance, json).await
        }
        Command::Suspend { job, note } => {
            commands::operate::suspend(&place::open(&cli.at, quiet).await?, &job, note, json).await
        }
        Command::Resume { job, catch_up } => {
            commands::operate::resume(&place::open(&cli.at, quiet).await?, &job, catch_up, json).await
        }
        Command::Delete { job } => commands::operate::delete(&place::open(&cli.at, quiet).await?, &job, json).await,
        Command::Audit(args) => commands::audit::run(&place::open(&cli.at, quiet).await?, &args, json).await,
        Command::Explain { job, at } => {
            commands::audit::explain(&place::open(&cli.at, quiet).await?, &job, &at, json).await
        }
        Command::Next(args) => commands::next::run(&cli.at, &args, quiet, json).await,
        Command::Schema => commands::schema::run(),
        Command::Completions { shell } => commands::completions::run(shell),
        Command::Version => commands::version::run(json),
    }
}
