//! Every bound of shardcron, by name, with where it comes from.
//!
//! Input over a bound is refused where it enters, or spilled; never truncated.

use crate::time::Duration;

/// Characters of a job's name: a DNS label's 63 (RFC 1123), as for Kubernetes names; keys and paths hold it with room.
pub const JOB_NAME_MAX: usize = 63;

/// Items of one DynamoDB transaction (AWS quota: 100).
pub const TRANSACTION_ITEMS_MAX: usize = 100;

/// Bytes of all items of one DynamoDB transaction together (AWS quota: 4 MB).
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of one DynamoDB item (AWS quota: 400 KB).
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// Shards of one group, so that the end of each is a write to an item that at most this many others write.
pub const GROUP_SHARDS_MAX: usize = 100;

/// Bytes of one SQS message, and of one batch of them. AWS raised its quota to 1 MiB in 2025; 256 KiB is what every
/// endpoint takes.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// Messages of one SQS batch request (AWS quota: 10).
pub const MESSAGE_BATCH_MAX: usize = 10;

/// How long an SQS message can be delayed (AWS quota: 15 minutes).
pub const MESSAGE_DELAY_MAX: Duration = Duration::from_secs(900);

/// How long an SQS message can stay invisible (AWS quota: 12 hours).
pub const MESSAGE_VISIBILITY_MAX: Duration = Duration::from_secs(12 * 3600);

/// How long a Lambda invocation can run (AWS quota: 15 minutes).
pub const INVOCATION_MAX: Duration = Duration::from_secs(900);

/// The lease that an executor takes on a shard unless configured otherwise.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(30);

/// The shortest lease that can be configured: the storage clock's `Date` header counts whole seconds, so a reading of
/// it is uncertain by half a second at best.
pub const LEASE_MIN: Duration = Duration::from_secs(2);

/// The longest lease that can be configured: what a crash may cost in waiting.
pub const LEASE_MAX: Duration = Duration::from_secs(900);

/// Significant digits of a decimal: those of DynamoDB's numbers (AWS quota: 38).
pub const DECIMAL_DIGITS_MAX: u64 = 38;

/// The largest decimal exponent, as of DynamoDB's numbers (1E+125 in scientific notation).
pub const DECIMAL_EXPONENT_MAX: i64 = 125;

/// The smallest decimal exponent, as of DynamoDB's numbers (1E-130).
pub const DECIMAL_EXPONENT_MIN: i64 = -130;

/// Bytes of one input record: above it the record is refused, so that memory doesn't grow with the input.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a CSV header, so that a file that isn't CSV at all is refused early.
pub const HEADER_BYTES_MAX: usize = 1024 * 1024;

/// Objects packed into one shard, so that a page of a hundred shards stays small enough to be read by each of them.
pub const SHARD_OBJECTS_MAX: usize = 1_000;

/// Records that a reader hands over at once.
pub const CHUNK_RECORDS_MAX: usize = 1024;

/// Bytes of text that a reader hands over at once, beyond the one record that crosses the bound.
pub const CHUNK_BYTES_MAX: usize = 1024 * 1024;

/// The pause after a first failure, before jitter.
pub const BACKOFF_BASE: Duration = Duration::from_secs(1);

/// The longest pause between attempts (Kubernetes caps a Job's back-off at six minutes; we retry sooner).
pub const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// How long after sending messages the sweep sends them again, doubled each time that nothing moved.
pub const RESEND_AFTER: Duration = Duration::from_secs(60);

/// Doublings of [`RESEND_AFTER`] at most: about an hour between looks at an instance that doesn't move.
pub const RESEND_DOUBLINGS_MAX: u32 = 6;

/// Characters of an error kept on a shard or instance, so that a shard stays within one write unit (1 KB). The whole
/// error stands in the attempt log.
pub const ERROR_SUMMARY_MAX: usize = 160;

/// The same of an error that only other input mends. The shard has failed then and has no lease, so that within one write
/// unit there is room for a file's path, the line, what is wrong and what to do.
pub const INPUT_ERROR_SUMMARY_MAX: usize = 240;

/// Bytes of an error in the attempt log.
pub const ERROR_TEXT_MAX: usize = 16 * 1024;

/// Finished ranges that a checkpoint keeps beyond its first gap.
pub const CHECKPOINT_RANGES_MAX: usize = 8;

/// Shards that may be cut from one shard. Each can be cut again, so that even a shard that is ten thousand times as slow as
/// the others comes apart, while the entry of a shard in its group's set stays short.
pub const SPLIT_CHILDREN_MAX: u32 = 16;

/// Scheduled times that one planning step looks at; the rest follow in the next step.
pub const PLAN_TIMES_MAX: usize = 10_000;

/// Instances that one planning step creates: with the job, a row of skips and the slot they fill a transaction.
pub const PLAN_INSTANCES_MAX: usize = 90;

/// Due jobs that one tick of the planner takes on, earliest first; the rest follow in the next tick.
pub const TICK_JOBS_MAX: usize = 1_000;

/// Unfinished instances that one sweep looks at, earliest first.
pub const SWEEP_INSTANCES_MAX: usize = 1_000;

/// Partitions of each sparse index, so that no partition takes all writes.
pub const INDEX_BUCKETS: u32 = 8;

/// Objects that one boundary holds.
pub const BOUNDARY_OBJECTS_MAX: usize = 1_000_000;

/// Bytes of one part of a published output, beyond the one row that crosses the bound.
pub const PART_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a result row's key. A DynamoDB sort key has at most 1,024 (AWS quota); the rest is for what stands before
/// the key in it.
pub const RESULT_KEY_BYTES_MAX: usize = 900;

/// Bytes of a result row's value: what an item leaves beside its keys and the other attributes.
pub const RESULT_VALUE_BYTES_MAX: usize = ITEM_BYTES_MAX - 4 * 1024;

/// Rows of results that one shard may have: its owner holds them all in memory.
pub const SHARD_RESULT_ROWS_MAX: usize = 1_000_000;

/// Bytes of a job's file. Its canonical form is one attribute of a DynamoDB item (AWS quota: 400 KB an item).
pub const SPEC_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a schedule: far more than any that people can read.
pub const SCHEDULE_BYTES_MAX: usize = 1024;

/// Bytes of a location in a job's file (AWS quota: 1,024 bytes for an S3 object's key).
pub const LOCATION_BYTES_MAX: usize = 1024;

/// Bytes of a column's name, or of one of an input's `nulls`.
pub const COLUMN_BYTES_MAX: usize = 255;

/// Columns in one list of an aggregate, and texts in an input's `nulls`: with values of the greatest width, a row
/// still fits into an item many times.
pub const COLUMNS_MAX: usize = 100;

/// The greatest number of seconds of a deadline, and the greatest `backoffLimit`: Kubernetes' int32.
pub const KUBERNETES_INT_MAX: u32 = i32::MAX as u32;

/// The greatest `parallelism`: ten times the concurrent executions that Lambda has by default (AWS quota: 1,000 a
/// region, raised on request).
pub const PARALLELISM_MAX: u32 = 10_000;

/// Bytes of input that a shard aims at unless the job says otherwise: at the tens of megabytes a second that one
/// executor reads and works through, it ends well within one invocation.
pub const SHARD_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// The most that a job may aim at: the size of the greatest S3 object that every endpoint takes (AWS quota: 5 TiB
/// until 2025). More would never cut anything.
pub const SHARD_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024 * 1024;

/// Keys of a range that a shard has unless the job says otherwise: five commits.
pub const SHARD_KEYS_DEFAULT: u32 = 100_000;

/// The most that a job may ask for: more would never cut anything that fits a boundary's shards.
pub const SHARD_KEYS_MAX: u32 = 1_000_000_000;

/// Shards that a range of keys is cut into: a longer range has larger shards.
pub const BOUNDARY_SHARDS_MAX: u64 = 100_000;

/// Pieces that one object is cut into when a boundary is fixed, each of which costs a read: a larger object has larger ones.
pub const OBJECT_PIECES_MAX: u64 = 10_000;

/// Items of a list: so many are read from a job's file (64 KiB) at most, and more than the days of 27 years.
pub const LIST_ITEMS_MAX: usize = 10_000;

/// Bytes of one item of a list.
pub const LIST_ITEM_BYTES_MAX: usize = 255;

/// Records that one commit covers unless the job says otherwise.
pub const BATCH_RECORDS_DEFAULT: u32 = 20_000;

/// The most records that one commit may cover: what is done again after a crash.
pub const BATCH_RECORDS_MAX: u32 = 1_000_000;

/// Sendings of one write whose outcome isn't definite, outside a lease.
pub const WRITE_TRIES_MAX: u32 = 6;

/// The pause before a write is sent again, before jitter and doubling.
pub const WRITE_PAUSE_BASE: Duration = Duration::from_millis(20);

/// The longest pause before a write is sent again: well within the shortest lease.
pub const WRITE_PAUSE_MAX: Duration = Duration::from_millis(500);

/// How long before the end of its invocation an executor stops reading: enough for a commit, a release and a message.
pub const SHUTDOWN_MARGIN: Duration = Duration::from_secs(5);

/// Earlier instances that fan-out looks at for how fast its job goes.
pub const PAST_RUNS_LOOKED_AT_MAX: u32 = 3;

/// Shard records that fan-out writes at the same time.
pub const FAN_OUT_WRITES_AT_ONCE: usize = 16;

/// How often a reader reads a shard's rows again until they agree with its counts: the items of a transaction become
/// visible one by one.
pub const SETTLE_READS_MAX: u32 = 20;

/// The pause between these reads.
pub const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// Instances that wait for one slot: beyond it a time is skipped, or, when all are caught up, planned later.
pub const QUEUE_MAX: usize = 100;

/// How late a scheduled time may be planned and still count as on time: the timer's minute.
pub const ON_TIME: Duration = Duration::from_secs(60);

/// How late the first of several due times may be while the planner counts as ticking, if unevenly: two of the timer's
/// minutes. Beyond it the times were missed, and the job's `catchUp` decides.
pub const TICKING: Duration = Duration::from_secs(120);

/// Instances of one backfill that may be unfinished at the same time.
pub const BACKFILL_ACTIVE_MAX: u32 = 100;

/// Instances of one backfill that are begun at the same time unless asked otherwise.
pub const BACKFILL_ACTIVE_DEFAULT: u32 = 5;

/// Instances that one backfill may begin a minute: the times of the last minute's are kept on its item.
pub const BACKFILL_PER_MINUTE_MAX: u32 = 600;

/// Instances that one step of a backfill begins: with the backfill itself they fit a transaction.
pub const BACKFILL_STEP_MAX: usize = 50;

/// Scheduled times that one step of a backfill passes over.
pub const BACKFILL_LOOK_MAX: usize = 1_000;

/// Scheduled times that a preview of a backfill goes through: each costs a read.
pub const BACKFILL_PREVIEW_MAX: u64 = 100_000;

/// How often an input that isn't ready is looked at again.
pub const READY_POLL: Duration = Duration::from_secs(30);

/// Scheduled times that one audit goes through.
pub const AUDIT_TIMES_MAX: usize = 2_000_000;

/// Unfinished backfills that one sweep goes on with, the longest waiting first.
pub const SWEEP_BACKFILLS_MAX: usize = 100;

/// How far back a tick looks for scheduled times that nothing answers for: of one of the due jobs.
pub const MISSED_LOOK_BACK: Duration = Duration::from_secs(3600);

/// Rejected records of one commit that has result rows beside them: a tenth of a transaction.
pub const COMMIT_REJECTS_MAX: usize = TRANSACTION_ITEMS_MAX / 10;

/// Result rows of one commit: what is left of a transaction. A batch that changes more writes all of the shard's rows as
/// one object instead.
pub const COMMIT_ROWS_MAX: usize = TRANSACTION_ITEMS_MAX - 1 - COMMIT_REJECTS_MAX;

/// Bytes of the result rows of one commit: half of a transaction's, which leaves room for keys and attribute names.
pub const COMMIT_BYTES_MAX: usize = TRANSACTION_BYTES_MAX / 2;

/// Bytes of an effect's key: it is kept beside the body, and is a row's key in the built-in `send`.
pub const EFFECT_KEY_BYTES_MAX: usize = RESULT_KEY_BYTES_MAX;

/// Bytes of an effect's body: half of what an SQS message takes with its attributes ([`MESSAGE_BYTES_MAX`]).
pub const EFFECT_BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

/// Sendings of one effect by one holder in a row, before the attempt fails and the shard pauses as after any failure.
pub const EFFECT_TRIES_MAX: u32 = 4;

/// The pause before an effect is sent again, before jitter and doubling.
pub const EFFECT_PAUSE_BASE: Duration = Duration::from_millis(500);

/// The longest pause between two sendings that a holder waits for; a target that asks for more gets it by the shard's own
/// pause after a failure.
pub const EFFECT_PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long a target may take to answer unless the job says otherwise: as long as most clients wait.
pub const EFFECT_TIMEOUT_SECONDS_DEFAULT: u32 = 10;

/// The longest that a job may let a target take: a third of an invocation ([`INVOCATION_MAX`]).
pub const EFFECT_TIMEOUT_SECONDS_MAX: u32 = 300;

/// Bytes of a target's location (what proxies and servers commonly take as a URL is 2,048 and more).
pub const EFFECT_TARGET_BYTES_MAX: usize = 2048;
