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

/// Bytes of a DynamoDB partition key (AWS quota: 2,048).
pub const PK_BYTES_MAX: usize = 2048;

/// Bytes of a DynamoDB sort key (AWS quota: 1,024).
pub const SK_BYTES_MAX: usize = 1024;

/// Characters of a transaction's client token (DynamoDB API reference, `ClientRequestToken`: 36).
pub const CLIENT_TOKEN_MAX: usize = 36;

/// Entries that one request to an index asks for. DynamoDB's own bound is 1 MB an answer, some 5,000 entries.
pub const INDEX_PAGE_MAX: usize = 1_000;

/// How long a new table may take to become active; it takes some ten seconds.
pub const TABLE_ACTIVE_WITHIN: Duration = Duration::from_secs(120);

/// Attempts that the SDK makes of a request to the table by itself (its default: 3).
pub const REQUEST_ATTEMPTS_MAX: u32 = 3;

/// How long one attempt of a request to the table or the bus may take: within a lease, so that a commit can be settled,
/// and more than the five seconds that the embedded table waits for another process's lock.
pub const REQUEST_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(8);

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

/// How long a receive can wait for the first message (AWS quota: 20 s).
pub const MESSAGE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Sendings of a batch of messages: what SQS itself failed to take is sent once more, and after that by the sweep.
pub const MESSAGE_SENDS_MAX: usize = 2;

/// Characters of a queue's name (AWS quota: 80, with `.fifo`).
pub const QUEUE_NAME_MAX: usize = 80;

/// Characters of a bucket's name (AWS quota: 3 to 63).
pub const BUCKET_NAME: std::ops::RangeInclusive<usize> = 3..=63;

/// Bytes of an object's key (AWS quota: 1,024 bytes of UTF-8). In a directory too, so that what works there works in S3.
pub const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// Bytes of one part of a key where keys are files' paths: `NAME_MAX` of Linux's file systems.
pub const FILE_NAME_BYTES_MAX: usize = 255;

/// Objects of one page of a listing (AWS quota: 1,000 a `ListObjectsV2`).
pub const LIST_PAGE_MAX: usize = 1_000;

/// How long an attempt of a request to S3 may wait until its answer begins. S3 answers small requests in 100 to 200 ms (its
/// performance guidelines), so that a slower one by far is better sent anew.
pub const OBJECTS_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes a second that an upload gets through at least: a put's attempt may take as much longer than
/// [`OBJECTS_ANSWER_TIMEOUT`]. Slow, so that it bounds what hangs and not a narrow line.
pub const UPLOAD_RATE_MIN: u64 = 256 * 1024;

/// Bytes of a content that is put by one request still: below it, the two requests more cost more than they save.
pub const SINGLE_PUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of a part of an upload, but for the last, which may be smaller (AWS quota: at least 5 MiB, the last one aside).
pub const UPLOAD_PART_BYTES: u64 = 8 * 1024 * 1024;

/// Parts of one upload (AWS quota: 10,000).
pub const UPLOAD_PARTS_MAX: u64 = 10_000;

/// Bytes of an object that is put: all the parts that an upload can have. It is far more than fits into the memory of a
/// function, where a put's content is.
pub const OBJECT_BYTES_MAX: u64 = UPLOAD_PARTS_MAX * UPLOAD_PART_BYTES;

/// Parts that are sent at the same time: S3's guidelines ask for several connections where one isn't enough, and a
/// small function's line is full with a few.
pub const UPLOAD_PARTS_AT_ONCE: usize = 4;

/// Whole uploads that one put tries, when each meets another write of its object under way, or is aborted by somebody:
/// as often as the SDK sends a request.
pub const UPLOADS_MAX: u32 = 3;

/// How long the completion of an upload may take: S3 joins the parts before it answers, which "can take several minutes"
/// for the greatest objects by its reference; ours are small.
pub const UPLOAD_COMPLETION_TIMEOUT: Duration = Duration::from_secs(60);

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

/// Groups that an owner looks into for shards that wait before it cuts its own: an instance with more of them unfinished
/// has work for everybody.
pub const SPLIT_GROUPS_LOOKED_AT_MAX: u32 = 2;

/// How long a shard is to take, if its job's past runs say how fast that goes: long beside its own few writes, short beside
/// an invocation's 15 minutes ([`INVOCATION_MAX`]) and beside the wait for the last of its instance.
pub const SHARD_AIM: Duration = Duration::from_secs(60);

/// The least part of what a job asks for that a shard is made by what was learned, as its divisor: so that one run that was
/// held up by others doesn't make a thousand shards of the next.
pub const LEARNED_PART_MIN: u64 = 64;

/// Scheduled times that one planning step looks at; the rest follow in the next step.
pub const PLAN_TIMES_MAX: usize = 10_000;

/// Instances that one planning step creates: with the job, a row of skips and the slot they fill a transaction.
pub const PLAN_INSTANCES_MAX: usize = 90;

/// Due jobs that one tick of the planner takes on, the least behind first; the rest follow in the next tick.
pub const TICK_JOBS_MAX: usize = 1_000;

/// Due jobs among which a tick chooses: ten times what it takes on. At some hundred bytes of the index each, reading
/// them is one page of a query (1 MB, AWS quota) or two.
pub const TICK_DUE_MAX: usize = 10 * TICK_JOBS_MAX;

/// Where more jobs are due than a tick takes on, one in so many of those it does is of those furthest behind.
pub const TICK_BEHIND_SHARE: usize = 10;

/// Planning steps of one tick beyond the first of each due job: 9,000 instances ([`PLAN_INSTANCES_MAX`]), or a million
/// skips. At the third of a second that a full step has taken at worst, they are over within the timer's minute.
pub const TICK_STEPS_MAX: usize = 100;

/// How long after its beginning a tick still begins planning steps: with the sweep beside them it ends well within the
/// planner's timeout (300 s, infra/template.yaml).
pub const TICK_TIME_MAX: Duration = Duration::from_secs(120);

/// Unfinished instances that one sweep looks at, earliest first.
pub const SWEEP_INSTANCES_MAX: usize = 1_000;

/// After how long the open index counts as showing whatever was written. DynamoDB's global secondary indexes follow
/// their table usually within a second, and AWS gives no bound; this is many times as long, and so short that a job of
/// each minute comes to it between two of its times.
pub const INDEX_SETTLES: Duration = Duration::from_secs(30);

/// Unfinished instances of the whole installation that are looked through for those of one job, when its policy was
/// edited: ten sweeps' worth. Where more are open, the former policy stays in force.
pub const OPEN_LOOK_MAX: usize = 10 * SWEEP_INSTANCES_MAX;

/// How often whatever loses a race for an item to other writers is decided anew. With pauses of up to [`RACE_PAUSE_MAX`]
/// between, fifty commands on one job at once all settle.
pub const RACES_MAX: u32 = 30;

/// The pause before a command that lost to another writer is decided anew, before jitter and doubling.
pub const RACE_PAUSE_BASE: Duration = Duration::from_millis(20);

/// The longest such pause.
pub const RACE_PAUSE_MAX: Duration = Duration::from_secs(1);

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

/// Bytes of a location in a job's file: as of an object's key.
pub const LOCATION_BYTES_MAX: usize = OBJECT_KEY_BYTES_MAX;

/// Bytes of a column's name, or of one of an input's `nulls`.
pub const COLUMN_BYTES_MAX: usize = 255;

/// Columns in one list of an aggregate, and texts in an input's `nulls`: with values of the greatest width, a row
/// still fits into an item many times.
pub const COLUMNS_MAX: usize = 100;

/// The greatest number of seconds of a deadline, and the greatest `backoffLimit`: Kubernetes' int32.
pub const KUBERNETES_INT_MAX: u32 = i32::MAX as u32;

/// The `backoffLimit` of a job that names none: Kubernetes' of a Job.
pub const BACKOFF_LIMIT_DEFAULT: u32 = 6;

/// The `parallelism` of a job that names none: a fraction of the concurrent executions that Lambda has by default.
pub const PARALLELISM_DEFAULT: u32 = 64;

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

/// How often a claim of a shard is tried when others change the shard in between: fewer, since its message comes again.
pub const CLAIM_RACES_MAX: u32 = 5;

/// The part of its lease, as a divisor, that a batch may take before what there is of it is committed: so that a commit
/// renews the lease in time, and a crash costs little.
pub const BATCH_PART_OF_LEASE: i64 = 3;

/// How long before the end of its invocation an executor stops reading: enough for a commit, a release and a message.
pub const SHUTDOWN_MARGIN: Duration = Duration::from_secs(5);

/// Earlier instances that fan-out looks at for how fast its job goes.
pub const PAST_RUNS_LOOKED_AT_MAX: u32 = 3;

/// Shard records that fan-out writes at the same time.
pub const FAN_OUT_WRITES_AT_ONCE: usize = 16;

/// Shards, or groups of them, that finalize reads at once. As many shards' rows are in memory beside the merged ones.
pub const FINALIZE_READS_AT_ONCE: usize = 16;

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

/// How often a paused backfill is looked at all the same.
pub const BACKFILL_IDLE_LOOK: Duration = Duration::from_secs(3600);

/// How often an input that isn't ready is looked at again.
pub const READY_POLL: Duration = Duration::from_secs(30);

/// Scheduled times that one audit goes through.
pub const AUDIT_TIMES_MAX: usize = 2_000_000;

/// Findings of one verification that are kept; those beyond are counted. The text of so many is a megabyte or two.
pub const FINDINGS_MAX: usize = 10_000;

/// Objects of a boundary that a verification asks for at a time.
pub const VERIFY_HEADS_AT_ONCE: usize = 16;

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

/// Bytes of a target's answer that are read: enough to say why, and to leave a short answer's connection in use.
pub const EFFECT_ANSWER_BYTES_MAX: usize = 8 * 1024;

/// How much the number of a generation counts in the token that targets see: more than a shard is ever claimed.
pub const EFFECT_TOKENS_OF_A_GENERATION: u64 = 1_000_000_000;

/// Shards that one process of the command works on at the same time: each has its rows in memory.
pub const WORKERS_MAX: u16 = 256;

/// The longest between two ticks of the command's own timer: a day.
pub const TICK_SECONDS_MAX: u32 = 86_400;
