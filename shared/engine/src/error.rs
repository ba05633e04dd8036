//! What can go wrong in a use-case, by what the caller can do.

use shardcron_domain::backfill::BackfillError;
use shardcron_domain::boundary::Position;
use shardcron_domain::calendar::CalendarError;
use shardcron_domain::ids::{Attempt, Generation, InstanceId, JobName, ShardKey, Token};
use shardcron_domain::instance::{InstanceError, Window};
use shardcron_domain::job::{SpecError, TooManyDays};
use shardcron_domain::result::RejectRow;
use shardcron_domain::shard::{Fault, FaultKind, OwnerError};
use shardcron_domain::time::ScheduledTime;
use shardcron_input::{InputError, ManifestError};
use shardcron_objects::ObjectsError;
use shardcron_queue::QueueError;
use shardcron_store::StoreError;
use shardcron_work::WorkError;

use crate::announce::AnnounceError;
use crate::outbox::TargetError;

/// An error of a use-case.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The objects.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The end of an instance couldn't be announced. Worth another try; the sweep makes it.
    #[error(transparent)]
    Announce(#[from] AnnounceError),
    /// The input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The input is a list of days, and the window has too many.
    #[error(transparent)]
    Days(TooManyDays),
    /// What is stored as a manifest isn't one.
    #[error("a manifest can't be used: {0}")]
    Manifest(#[from] ManifestError),
    /// The work.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The job's spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Its calendar.
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    /// The store didn't let us have an answer in time. Worth another try.
    #[error("{what} could not be written in time{}", because(last))]
    Unsettled {
        /// What was tried.
        what: String,
        /// What the last try met, where it wasn't another writer.
        last: Option<Box<StoreError>>,
    },
    /// The shard isn't ours any more: the executor stops at once.
    #[error("{shard} isn't ours any more: {holder} (our token was {ours})")]
    ShardLost {
        /// Which shard.
        shard: ShardKey,
        /// Who has it now, or where it stands.
        holder: String,
        /// The token that the store refused.
        ours: Token,
    },
    /// The instance's step isn't ours any more.
    #[error("{instance} isn't ours any more: it is {status}")]
    StepLost {
        /// Which instance.
        instance: InstanceId,
        /// Where it stands.
        status: String,
    },
    /// A write that a shard's state doesn't allow.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// A change that an instance's state doesn't allow.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// A record was rejected, and the job allows no (more) rejects.
    #[error("{}", describe_reject(reject, *max))]
    Rejected {
        /// The record, and why.
        reject: Box<RejectRow>,
        /// How many the job allows.
        max: u64,
    },
    /// The target of the job's effects.
    #[error(transparent)]
    Target(Box<TargetError>),
    /// Somebody else has published where this instance's output belongs.
    #[error("{place} is taken: {why}; remove it, or give the job another output.objects, and rerun the instance")]
    OutputTaken {
        /// The certificate's place.
        place: String,
        /// By what.
        why: String,
    },
    /// The job would read what it has published.
    #[error(
        "{place}: the job would read its own output, which lies in its input; set output.objects elsewhere, and move away what is published"
    )]
    OwnOutput {
        /// What it would read: its output's place, or an object that it has published.
        place: String,
    },
    /// The boundary that an earlier attempt fixed isn't there any more.
    #[error(
        "the manifest of {instance} is gone or isn't the one that its shards were cut by; `shardcron rerun` begins it from scratch"
    )]
    ManifestLost {
        /// The instance.
        instance: InstanceId,
    },
    /// There is no such job.
    #[error("there is no job `{0}`")]
    NoJob(JobName),
    /// The job's `concurrencyPolicy` doesn't let it run beside the one that holds the slot.
    #[error("{instance} can't start: {holder} holds the slot, and the job's concurrencyPolicy lets only one run")]
    Overlap {
        /// The instance.
        instance: InstanceId,
        /// Who holds the slot.
        holder: String,
    },
    /// No more can wait for the slot.
    #[error("{instance} can't wait: the queue for its slot is full")]
    QueueFull {
        /// The instance.
        instance: InstanceId,
    },
    /// The command was about another generation or attempt.
    #[error("{instance} is at generation {generation}, attempt {attempt} by now; the command was about another")]
    Superseded {
        /// The instance.
        instance: InstanceId,
        /// Its generation.
        generation: Generation,
        /// Its attempt.
        attempt: Attempt,
    },
    /// A window that ends before it starts.
    #[error("a window must end ({}) after it starts ({})", .0.end, .0.start)]
    Window(Window),
    /// A backfill that can't be.
    #[error(transparent)]
    Backfill(BackfillError),
    /// There is no such backfill.
    #[error("job `{job}` has no backfill `{id}`")]
    NoBackfill {
        /// The job.
        job: JobName,
        /// The id.
        id: String,
    },
    /// The id that was given for a backfill is that of another request.
    #[error("backfill `{id}` of job `{job}` is another request: an id stands for one request for ever")]
    BackfillIdTaken {
        /// The job.
        job: JobName,
        /// The id.
        id: String,
    },
    /// The backfill has ended.
    #[error("backfill {id} has ended: it is {status}")]
    BackfillOver {
        /// The id.
        id: String,
        /// Where it stands.
        status: String,
    },
    /// Too much was asked for at once.
    #[error("{what}; ask for less at a time")]
    TooLong {
        /// What is too long.
        what: String,
    },
    /// There is no such instance.
    #[error("there is no instance {0}")]
    NoInstance(InstanceId),
    /// Nothing is published of it.
    #[error("nothing is published of {instance}, which is {status}")]
    NotPublished {
        /// The instance.
        instance: InstanceId,
        /// Where it stands.
        status: &'static str,
    },
    /// What is published is of an earlier generation, and under which spec that ran isn't kept.
    #[error(
        "what is published of {instance} is of generation {published}, and it is at generation {generation} by now"
    )]
    PublishedEarlier {
        /// The instance.
        instance: InstanceId,
        /// The generation that is published.
        published: Generation,
        /// The generation that it is at.
        generation: Generation,
    },
    /// The time isn't one of the job's calendar.
    #[error("{at} isn't a time of job `{job}` ({schedule} in {zone}); the nearest are {near}")]
    NotOfCalendar {
        /// The job.
        job: JobName,
        /// The time asked for.
        at: ScheduledTime,
        /// Its schedule.
        schedule: String,
        /// Its zone.
        zone: String,
        /// The times around it.
        near: String,
    },
    /// The time is still to come.
    #[error("{at} is still to come; job `{job}` runs it then")]
    Future {
        /// The job.
        job: JobName,
        /// The time asked for.
        at: ScheduledTime,
    },
    /// No time of the job's calendar has come yet.
    #[error("no time of job `{job}` has come yet; its first is {first}")]
    NothingDue {
        /// The job.
        job: JobName,
        /// The first time.
        first: String,
    },
    /// What was written as one isn't all to be seen, though it was read again and again. Worth another try.
    #[error("{0}")]
    Unseen(String),
    /// What is stored doesn't fit together, or a work does what none may. Another try does the same.
    #[error("{0}")]
    Inconsistent(String),
}

impl EngineError {
    /// What can mend it.
    #[must_use]
    pub fn fault_kind(&self) -> FaultKind {
        let kind = |is_retryable| if is_retryable { FaultKind::Retryable } else { FaultKind::Input };
        match self {
            Self::Input(error) => kind(error.is_retryable()),
            Self::Work(error) => kind(error.is_retryable()),
            Self::Target(error) => kind(error.is_retryable()),
            Self::Objects(error) => match error {
                ObjectsError::NotFound { .. } | ObjectsError::Changed { .. } | ObjectsError::Name { .. } => {
                    FaultKind::Input
                }
                // What refuses for now (no room, no permission) may be mended by people within the pauses.
                ObjectsError::Refused { .. } | ObjectsError::Unavailable { .. } => FaultKind::Retryable,
            },
            Self::Manifest(error) => match error {
                // Whoever tries next may be of the version that wrote it.
                ManifestError::Version { .. } => FaultKind::Retryable,
                ManifestError::Malformed(_)
                | ManifestError::Digest { .. }
                | ManifestError::Inconsistent(_)
                | ManifestError::Range { .. } => FaultKind::Input,
            },
            // The same would come of the same. Of these, only the first few can come to a shard or a step; the others are
            // answers to a command.
            Self::Spec(_)
            | Self::Days(_)
            | Self::Calendar(_)
            | Self::Rejected { .. }
            | Self::OutputTaken { .. }
            | Self::OwnOutput { .. }
            | Self::ManifestLost { .. }
            | Self::Inconsistent(_)
            | Self::NoJob(_)
            | Self::NoInstance(_)
            | Self::NoBackfill { .. }
            | Self::BackfillIdTaken { .. }
            | Self::BackfillOver { .. }
            | Self::Backfill(_)
            | Self::Window(_)
            | Self::TooLong { .. }
            | Self::NotPublished { .. }
            | Self::PublishedEarlier { .. }
            | Self::NotOfCalendar { .. }
            | Self::Future { .. }
            | Self::NothingDue { .. }
            | Self::Superseded { .. }
            | Self::Overlap { .. }
            | Self::QueueFull { .. } => FaultKind::Input,
            // A table or queue that refuses may be mended by people within the pauses, and an item that can't be read may
            // be of a newer version, which tries next. Who has lost a shard or step records no fault at all.
            Self::Store(_)
            | Self::Queue(_)
            | Self::Announce(_)
            | Self::Unsettled { .. }
            | Self::Unseen(_)
            | Self::ShardLost { .. }
            | Self::StepLost { .. }
            | Self::Owner(_)
            | Self::Instance(_) => FaultKind::Retryable,
        }
    }

    /// As it is kept on an item.
    #[must_use]
    pub fn fault(&self) -> Fault {
        Fault::new(self.fault_kind(), &self.full_text())
    }

    /// The error and all its causes, as one line.
    #[must_use]
    pub fn full_text(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        text
    }

    /// Whether somebody else has taken the place: nothing to mend, the caller only stops.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::ShardLost { .. } | Self::StepLost { .. } | Self::Owner(_) | Self::Instance(_))
    }
}

/// An error whose cause is that what is stored, or what a work does, doesn't fit together.
pub(crate) fn inconsistent(error: impl std::fmt::Display) -> EngineError {
    EngineError::Inconsistent(error.to_string())
}

fn describe_reject(reject: &RejectRow, max: u64) -> String {
    let place = match reject.position {
        Position::Object(at) if reject.line == 0 => format!("byte {}", at.offset),
        Position::Object(at) => format!("line {}, byte {}", reject.line, at.offset),
        other => other.to_string(),
    };
    let allowed = if max == 0 { String::new() } else { format!(" (and the job allows {max}, rejects.max)") };
    format!("{}, {place}: {}{allowed}", reject.source, reject.why)
}

fn because(last: &Option<Box<StoreError>>) -> String {
    last.as_ref().map_or_else(|| ": others wrote it all the time".to_owned(), |error| format!(": {error}"))
}
