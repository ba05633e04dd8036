//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use shardcron_domain::limits::{BACKFILL_ACTIVE_DEFAULT, TICK_SECONDS_MAX, WORKERS_MAX};

/// Scheduled, sharded, resumable batch jobs.
#[derive(Debug, Parser)]
#[command(name = "shardcron", disable_version_flag = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) at: Where,
    /// Print one JSON document on standard output, and errors as JSON on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which installation a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct Where {
    /// The embedded installation in DIR [default: .shardcron]
    #[arg(long, global = true, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_DIR)]
    pub(crate) local: Option<PathBuf>,
    /// The DynamoDB table of the installation [env: SHARDCRON_TABLE]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "local")]
    pub(crate) table: Option<String>,
}

/// Where an embedded installation lives unless told otherwise.
pub(crate) const DEFAULT_DIR: &str = ".shardcron";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run on this machine, with nothing to install
    #[command(subcommand)]
    Local(LocalCommand),
    /// Run planner and workers in this process against DynamoDB, SQS and S3 at their endpoint
    Host(HostArgs),
    /// Make job files' specs the jobs' specs, from now on
    Apply(ApplyArgs),
    /// Check job files, without a table
    Validate(FilesArgs),
    /// List jobs
    List,
    /// Show a job, or an instance such as `flights:2026-11-28T11:00:00Z`
    Describe {
        /// The job or instance
        #[arg(value_name = "JOB|INSTANCE")]
        what: String,
    },
    /// Print an instance's published output
    Results(ResultsArgs),
    /// List the effects of an instance outside of its result, and what became of each
    Effects(EffectsArgs),
    /// Read an instance's input again and prove what is published of it; exit 1 when something doesn't hold
    Verify {
        /// The instance, as `job:scheduled time`
        instance: String,
    },
    /// List the records that an instance has rejected
    Rejects(RejectsArgs),
    /// Follow an instance until it has ended
    Watch {
        /// The instance
        instance: String,
    },
    /// Show when a schedule or a job runs next
    Next(NextArgs),
    /// Make an instance of a job, now or at a time
    Trigger(TriggerArgs),
    /// Plan a past range of a job, at a pace
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Backfill(BackfillArgs),
    /// Stop an instance; it ends as Cancelled
    Cancel {
        /// The instance
        instance: String,
    },
    /// Begin another attempt of a failed or cancelled instance, on the results that it has
    Retry {
        /// The instance
        instance: String,
    },
    /// Begin an ended instance from scratch, under the spec in force
    Rerun {
        /// The instance
        instance: String,
    },
    /// Let a job's times pass, recorded as skips, until it is resumed
    Suspend {
        /// The job
        job: String,
        /// Why, for whoever reads it later
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// End a job's suspension
    Resume {
        /// The job
        job: String,
        /// Which of the times that passed are run after all, by a backfill beside the schedule and its slot
        #[arg(long, value_enum, default_value = "none")]
        catch_up: CatchUpArg,
    },
    /// Delete a job; its instances and their results stay
    Delete {
        /// The job
        job: String,
    },
    /// Compare the calendar with what is recorded; exit 1 when a time is unanswered for
    Audit(AuditArgs),
    /// Say why a time of a job ran, waited, was skipped or is missing
    Explain {
        /// The job
        job: String,
        /// The time
        #[arg(long, value_name = "TIME")]
        at: String,
    },
    /// Print the JSON Schema of a job's file
    Schema,
    /// Print a shell's completions, to be put where the shell looks for them
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Show the version, and that of the zone rules
    Version,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LocalCommand {
    /// Apply a job and run one instance of it to its end
    Run(LocalRunArgs),
    /// Run timer and workers until interrupted
    Up(LocalUpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LocalRunArgs {
    /// The job's file
    #[arg(value_name = "JOB.json")]
    pub(crate) file: PathBuf,
    /// A time of its calendar: RFC 3339, or a local date or date-time in the job's zone [default: the latest that is due]
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    #[command(flatten)]
    pub(crate) workers: Workers,
    /// The directory of the embedded installation [default: .shardcron]
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LocalUpArgs {
    #[command(flatten)]
    pub(crate) workers: Workers,
    /// How often the planner looks for what is due, such as 60s
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = seconds)]
    pub(crate) tick: u32,
    /// The directory of the embedded installation [default: .shardcron]
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    #[command(flatten)]
    pub(crate) workers: Workers,
    /// How often the planner looks for what is due, such as 60s
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = seconds)]
    pub(crate) tick: u32,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Workers {
    /// Shards worked on at the same time
    #[arg(long = "workers", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=i64::from(WORKERS_MAX)))]
    pub(crate) count: u16,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The jobs' files
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Check and say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The jobs' files
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// The instance, as `job:scheduled time`
    pub(crate) instance: String,
    /// The form to print it in, without --json [default: that of the job's output]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct EffectsArgs {
    /// The instance, as `job:scheduled time`
    pub(crate) instance: String,
    /// Those of which this is known
    #[arg(long, value_enum)]
    pub(crate) only: Option<EffectStateArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffectStateArg {
    Pending,
    Unknown,
    Sent,
    Refused,
}

impl EffectStateArg {
    /// As the domain names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Unknown => "unknown",
            Self::Sent => "sent",
            Self::Refused => "refused",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RejectsArgs {
    /// The instance, as `job:scheduled time`
    pub(crate) instance: String,
    /// The form to print them in, without --json [default: a line each, `file:line: reason`]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Csv,
    Ndjson,
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// A schedule such as `0 6 * * *` (needs no table), or a job's name
    #[arg(value_name = "SCHEDULE|JOB", allow_hyphen_values = true)]
    pub(crate) what: String,
    /// The schedule's zone [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) time_zone: Option<String>,
    /// Times after this one [default: now]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to"])]
    pub(crate) after: Option<String>,
    /// How many [default: 5; with a range: all]
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<usize>,
    /// Times from this one on
    #[arg(long, value_name = "TIME", requires = "to")]
    pub(crate) from: Option<String>,
    /// Times before this one
    #[arg(long, value_name = "TIME", requires = "from")]
    pub(crate) to: Option<String>,
    /// What becomes of times that a clock skips when it is put forward
    #[arg(long, value_enum)]
    pub(crate) gap: Option<GapArg>,
    /// What becomes of times that come twice when it is put back
    #[arg(long, value_enum)]
    pub(crate) overlap: Option<OverlapArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapArg {
    Next,
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverlapArg {
    First,
    Last,
    Both,
}

/// Whole seconds, written `60`, `60s` or `2m`.
fn seconds(text: &str) -> Result<u32, String> {
    let (digits, factor) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: Option<u32> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .filter(|seconds| (1..=TICK_SECONDS_MAX).contains(seconds))
        .ok_or_else(|| "a duration is written `60s` or `2m`, from 1 s to a day".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CatchUpArg {
    All,
    Latest,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerArgs {
    /// The job
    pub(crate) job: String,
    /// The scheduled time [default: now, which needs --window unless it is of the calendar]
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// The data that it is about; needed for a time off the calendar
    #[arg(long, value_name = "FROM/TO")]
    pub(crate) window: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BackfillArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BackfillCommand>,
    /// The job
    #[arg(required = true)]
    pub(crate) job: Option<String>,
    /// The first time that belongs to the range
    #[arg(long, value_name = "TIME", required = true)]
    pub(crate) from: Option<String>,
    /// The first that no longer does
    #[arg(long, value_name = "TIME", required = true)]
    pub(crate) to: Option<String>,
    /// Times without an instance, times whose instance failed, or both
    #[arg(long, value_enum, default_value = "missing")]
    pub(crate) only: OnlyArg,
    /// Which times come first
    #[arg(long, value_enum, default_value = "oldest")]
    pub(crate) order: OrderArg,
    /// Instances at work at the same time
    #[arg(long, value_name = "N", default_value_t = BACKFILL_ACTIVE_DEFAULT)]
    pub(crate) max_active: u32,
    /// Instances begun in any minute [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) per_minute: Option<u32>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackfillCommand {
    /// List a job's backfills
    List {
        /// The job
        job: String,
    },
    /// Begin nothing more until it is resumed
    Pause(BackfillName),
    /// Go on with a paused backfill
    Resume(BackfillName),
    /// Begin nothing more; what it began goes on
    Cancel(BackfillName),
}

#[derive(Debug, Args)]
pub(crate) struct BackfillName {
    /// The job
    pub(crate) job: String,
    /// The backfill's id
    pub(crate) id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlyArg {
    Missing,
    Failed,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    Oldest,
    Newest,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The job [default: all jobs]
    pub(crate) job: Option<String>,
    /// The first time that belongs to the range
    #[arg(long, value_name = "TIME")]
    pub(crate) from: String,
    /// The first that no longer does
    #[arg(long, value_name = "TIME")]
    pub(crate) to: String,
}
