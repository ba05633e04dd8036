//! Items to check with.

use std::collections::BTreeSet;

use shardcron_domain::backfill::{Backfill, BackfillRequest, BackfillStatus, Only, Order, Reconciliation};
use shardcron_domain::boundary::{ObjectPosition, Position, Range};
use shardcron_domain::checkpoint::Checkpoint;
use shardcron_domain::group::{DoneShard, Group};
use shardcron_domain::ids::{
    Attempt, Generation, GroupNo, InstanceId, JobName, Owner, RunId, ShardId, ShardKey, SpecVersion, Token, Version,
    WriteId,
};
use shardcron_domain::instance::{
    Boundary, FailReason, Instance, InstanceStatus, Origin, Outcome, SkipReason, WaitingFor, Window,
};
use shardcron_domain::job::ConcurrencyPolicy;
use shardcron_domain::lease::Lease;
use shardcron_domain::limits::{
    BACKFILL_ACTIVE_MAX, BACKFILL_PER_MINUTE_MAX, CHECKPOINT_RANGES_MAX, EFFECT_BODY_BYTES_MAX, EFFECT_KEY_BYTES_MAX,
    EFFECT_TARGET_BYTES_MAX, ERROR_SUMMARY_MAX, ERROR_TEXT_MAX, INPUT_ERROR_SUMMARY_MAX, JOB_NAME_MAX, QUEUE_MAX,
};
use shardcron_domain::outbox::{EffectState, Outbox, OutboxRow, RequestId};
use shardcron_domain::plan::{Job, Overlap, SkippedRange, SpecRecord, Suspension};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::{Counts, Fault, FaultKind, FenceReason, Shard, ShardStatus};
use shardcron_domain::slot::{Slot, SlotKey};
use shardcron_domain::time::{Duration, Millis, ScheduledTime};

use crate::{AttemptLog, Item, StoredEffect, StoredReject, StoredResult};

/// Items of one job.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Its name.
    pub job: JobName,
}

impl Samples {
    /// Items of the job with this name.
    #[must_use]
    pub fn of(job: &str) -> Self {
        Self { job: job.parse().expect("a job's name") }
    }

    /// The scheduled time at this minute of 2026-01-01.
    #[must_use]
    pub fn at(minute: i64) -> ScheduledTime {
        ScheduledTime::from_second(1_767_225_600 + minute * 60).expect("a time")
    }

    /// A job that is next due at this minute, if it is.
    #[must_use]
    pub fn job(&self, next_fire: Option<i64>) -> Job {
        Job {
            name: self.job.clone(),
            spec: SpecVersion::FIRST,
            spec_digest: "ab".repeat(32),
            start: Self::at(0),
            planned_through: Self::at(0),
            window_through: None,
            next_fire: next_fire.map(Self::at),
            suspended: None,
            deleted_at: None,
            overlap: Overlap::default(),
            unslotted_at: None,
            version: Version::FIRST,
            write_id: write_id(0),
        }
    }

    /// A version of the job's spec.
    #[must_use]
    pub fn spec(&self, version: u32) -> SpecRecord {
        SpecRecord {
            job: self.job.clone(),
            version: SpecVersion(version),
            since: Self::at(0),
            applied_at: Millis(1),
            spec: "{\"schedule\": \"0 0 * * *\"}".to_owned(),
            base: "/srv/jobs".to_owned(),
        }
    }

    /// The instance of this minute, to be looked at from the start of 2026 on.
    #[must_use]
    pub fn instance(&self, minute: i64) -> Instance {
        let id = InstanceId { job: self.job.clone(), at: Self::at(minute) };
        let window = Window { start: Self::at(minute - 1), end: Self::at(minute) };
        Instance::planned(id, SpecVersion::FIRST, Origin::Schedule, window, Self::at(0).millis(), write_id(0))
    }

    /// A run of skips from this minute on.
    #[must_use]
    pub fn skip(&self, minute: i64) -> SkippedRange {
        SkippedRange {
            job: self.job.clone(),
            from: Self::at(minute),
            to: Self::at(minute + 1),
            count: 2,
            reason: SkipReason::CatchUp,
            spec: SpecVersion::FIRST,
        }
    }

    /// The job's own slot, which nobody holds.
    #[must_use]
    pub fn slot(&self) -> Slot {
        Slot::free(SlotKey::Job(self.job.clone()), write_id(0))
    }

    /// A backfill of the first hour of 2026, to be looked at from the start of that on.
    #[must_use]
    pub fn backfill(&self, id: &str) -> Backfill {
        let request = BackfillRequest {
            from: Self::at(0),
            to: Self::at(60),
            only: Only::Missing,
            order: Order::Oldest,
            max_active: 1,
            per_minute: None,
        };
        let id = id.parse().expect("a backfill's id");
        Backfill::new(self.job.clone(), id, request, Self::at(0).millis(), write_id(0))
    }

    /// A backfill that has as much on it as its limits allow.
    #[must_use]
    pub fn busy_backfill(&self, id: &str) -> Backfill {
        Backfill {
            active: (0..i64::from(BACKFILL_ACTIVE_MAX)).map(Self::at).collect(),
            begun_at: (0..i64::from(BACKFILL_PER_MINUTE_MAX)).map(|n| Self::at(n).millis()).collect(),
            ..self.backfill(id)
        }
    }

    /// This generation of the instance of minute 1.
    #[must_use]
    pub fn run(&self, generation: u32) -> RunId {
        RunId { instance: self.instance(1).id, generation: Generation(generation) }
    }

    /// A group of the first generation.
    #[must_use]
    pub fn group(&self, no: u32) -> Group {
        Group {
            run: self.run(1),
            no: GroupNo(no),
            size: 100,
            done: BTreeSet::new(),
            page: "manifests/page".to_owned(),
            page_digest: "cd".repeat(32),
            version: Version::FIRST,
            write_id: write_id(0),
        }
    }

    /// A shard's key in the first generation.
    #[must_use]
    pub fn shard_key(&self, shard: &ShardId) -> ShardKey {
        ShardKey { run: self.run(1), shard: shard.clone() }
    }

    /// A shard of the first generation.
    #[must_use]
    pub fn shard(&self, number: u32) -> Shard {
        let key = self.shard_key(&ShardId::numbered(number));
        Shard::new(key, range(Position::Key(0), Position::Key(100)), Attempt::FIRST, None, write_id(0))
    }

    /// The same shard, leased until `until` under token 1.
    #[must_use]
    pub fn leased(&self, number: u32, until: i64) -> Shard {
        let lease = Lease { owner: Owner("owner".to_owned()), until: Millis(until), length: Duration::from_secs(30) };
        Shard { token: Token(1), status: ShardStatus::Leased(lease), ..self.shard(number) }
    }

    /// A row of the results of shard 0.
    #[must_use]
    pub fn result(&self, key: &str, value: &str) -> Item {
        let row = ResultRow { key: key.to_owned(), value: value.to_owned(), records: 3 };
        Item::Result(StoredResult { shard: self.shard(0).key, row })
    }

    /// A reject of shard 0.
    #[must_use]
    pub fn reject(&self, position: Position) -> Item {
        let (source, why) = ("s3://ledger/a.csv".to_owned(), "amount isn't a number".to_owned());
        Item::Reject(StoredReject { shard: self.shard(0).key, row: RejectRow { position, line: 7, source, why } })
    }

    /// The effect of this number of shard 0.
    #[must_use]
    pub fn effect(&self, no: u32) -> StoredEffect {
        let key = format!("[\"{no}\"]");
        let row = OutboxRow {
            no,
            request_id: RequestId::of(&self.run(1).instance, &key),
            key,
            target: "https://ledger.example/".to_owned(),
            body: "{}".to_owned(),
            content_type: None,
            state: EffectState::Pending,
        };
        StoredEffect { shard: self.shard(0).key, row }
    }
}

/// The write id with this number.
#[must_use]
pub fn write_id(number: u64) -> WriteId {
    WriteId(format!("write-{number}"))
}

/// A name for a transaction of a check. DynamoDB knows tokens by account, not by table, and for ten minutes: so it has
/// the check's name and the process's number in it.
#[must_use]
pub fn transaction_token(check: &str, number: u32) -> WriteId {
    WriteId(format!("{check}-{}-{number}", std::process::id()))
}

pub(super) fn range(from: Position, to: Position) -> Range {
    Range::new(from, to).expect("a range")
}

/// Every kind of item, as small as they come and with each field at an extreme.
#[must_use]
pub fn every_kind() -> Vec<Item> {
    let small = Samples::of("a");
    let mut items = vec![
        Item::Job(small.job(None)),
        Item::Spec(small.spec(1)),
        Item::Instance(Box::new(Instance { next_look: None, ..small.instance(1) })),
        Item::Skip(small.skip(1)),
        Item::Slot(small.slot()),
        Item::Backfill(Box::new(Backfill { next_look: None, ..small.backfill("b") })),
        Item::Group(small.group(0)),
        Item::Shard(Box::new(small.shard(0))),
        small.result("", ""),
        small.reject(Position::Item(0)),
        Item::Effect(small.effect(0)),
    ];
    items.extend(extremes(&Samples::of(&"Z".repeat(JOB_NAME_MAX))));
    items
}

fn extremes(large: &Samples) -> Vec<Item> {
    let first = ScheduledTime::from_second(-62_167_219_200).expect("year 0");
    let last = ScheduledTime::from_second(253_402_207_200).expect("year 9999");
    let long = WriteId("é\"\\\n\u{1F980}".repeat(50));
    let fault = Fault::new(FaultKind::Input, &"\u{1F980}".repeat(INPUT_ERROR_SUMMARY_MAX));
    let counts = Counts { input: u64::MAX, output: u64::MAX - 1, rejected: 1 };
    let lease = Lease { owner: Owner(String::new()), until: Millis(i64::MAX), length: Duration(i64::MIN) };
    let at = |object, offset| Position::Object(ObjectPosition { object, offset, line: u64::MAX });
    let child = ShardId::numbered(u32::MAX).child(u32::MAX).child(0);

    let shared = SlotKey::Shared(large.job.to_string().parse().expect("a key"));

    let mut items = vec![
        Item::Job(Job {
            start: first,
            planned_through: last,
            window_through: Some(first),
            next_fire: Some(last),
            suspended: Some(Suspension { since: first, note: Some("é".repeat(1024)), by_spec: true }),
            deleted_at: Some(last),
            overlap: Overlap { policy: ConcurrencyPolicy::Queue, slot: Some(shared.clone()) },
            unslotted_at: Some(Millis(i64::MAX)),
            spec: SpecVersion(u32::MAX),
            version: Version(u64::MAX),
            write_id: long.clone(),
            ..large.job(None)
        }),
        Item::Spec(SpecRecord { since: last, applied_at: Millis(i64::MIN), ..large.spec(u32::MAX) }),
        Item::Skip(SkippedRange { from: first, to: last, count: u64::MAX, ..large.skip(0) }),
        Item::Slot(Slot {
            key: shared.clone(),
            holder: Some(large.instance(0).id),
            waiting: (0..QUEUE_MAX as i64).rev().map(|minute| large.instance(minute).id).collect(),
            version: Version(u64::MAX),
            write_id: long.clone(),
        }),
        Item::Group(Group {
            done: (0..100)
                .map(ShardId::numbered)
                .chain([child.clone()])
                .map(|shard| DoneShard { shard, children: 2 })
                .collect(),
            size: u32::MAX,
            ..large.group(u32::MAX)
        }),
        Item::Attempt(AttemptLog {
            shard: large.shard_key(&child),
            token: Token(u64::MAX),
            owner: "somebody".to_owned(),
            ended_at: Millis(i64::MAX),
            fault: fault.clone(),
            text: "x".repeat(ERROR_TEXT_MAX),
        }),
        large.result("\u{7f}#é/\u{1F980}", "{\"sum\":\"-99999999999999999999999999999999999999\"}"),
        large.reject(Position::Key(i64::MIN)),
        large.reject(Position::Item(u32::MAX)),
        large.reject(at(u32::MAX, u64::MAX)),
    ];
    let (token, text) = (Token(u64::MAX), "\u{1F980}".repeat(ERROR_SUMMARY_MAX));
    for (no, state) in (u32::MAX - 3..=u32::MAX).zip([
        EffectState::Pending,
        EffectState::Sent { at: Millis(i64::MIN), token, status: u16::MAX },
        EffectState::Refused { at: Millis(i64::MAX), token, status: 0, text: text.clone() },
        EffectState::Unknown { tries: u32::MAX, at: Millis(0), token, last: text.clone() },
    ]) {
        items.push(Item::Effect(StoredEffect {
            shard: large.shard_key(&child),
            row: OutboxRow {
                key: "k".repeat(EFFECT_KEY_BYTES_MAX),
                target: "t".repeat(EFFECT_TARGET_BYTES_MAX),
                body: "b".repeat(EFFECT_BODY_BYTES_MAX),
                content_type: Some("text/plain".to_owned()),
                state,
                ..large.effect(no).row
            },
        }));
    }
    for (number, status) in (0..).zip([
        BackfillStatus::Running,
        BackfillStatus::Paused,
        BackfillStatus::Cancelled,
        BackfillStatus::Succeeded,
        BackfillStatus::PartiallyFailed,
    ]) {
        let busy = large.busy_backfill(&format!("{number}{}", "z".repeat(JOB_NAME_MAX - 1)));
        items.push(Item::Backfill(Box::new(Backfill {
            request: BackfillRequest {
                from: first,
                to: last,
                only: [Only::Missing, Only::Failed, Only::All][number % 3],
                order: [Order::Oldest, Order::Newest][number % 2],
                max_active: u32::MAX,
                per_minute: Some(u32::MAX),
            },
            status,
            cursor: Some(last),
            exhausted: true,
            account: Reconciliation {
                expected: u64::MAX,
                begun: 1,
                were_skipped: 2,
                skipped: [("Suspended".to_owned(), u64::MAX)].into(),
                already_there: 3,
                left_out: 4,
                succeeded: 5,
                failed: 6,
                counts,
            },
            created_at: Millis(i64::MIN),
            next_look: Some(Millis(i64::MAX)),
            version: Version(u64::MAX),
            write_id: long.clone(),
            ..busy
        })));
    }
    for (minute, status) in (2..).zip([
        InstanceStatus::Waiting(WaitingFor::Slot),
        InstanceStatus::Waiting(WaitingFor::Ready),
        InstanceStatus::Sharding,
        InstanceStatus::Running,
        InstanceStatus::Finalizing,
        InstanceStatus::Publishing,
        InstanceStatus::Stopping(Outcome::Failed(FailReason::Step(fault.clone()))),
        InstanceStatus::Stopping(Outcome::Replaced { by: large.instance(0).id }),
        InstanceStatus::Succeeded,
        InstanceStatus::Failed(FailReason::EmptyInput { place: String::new() }),
        InstanceStatus::Failed(FailReason::Shard { shard: child.to_string(), fault: fault.clone() }),
        InstanceStatus::Failed(FailReason::TooManyRejects { rejected: u64::MAX, max: 0 }),
        InstanceStatus::Failed(FailReason::DeadlineExceeded),
        InstanceStatus::Failed(FailReason::NotReady { object: "é".repeat(1024) }),
        InstanceStatus::Cancelled { by: "é".to_owned() },
        InstanceStatus::Replaced { by: large.instance(0).id },
    ]) {
        items.push(Item::Instance(Box::new(Instance {
            status,
            generation: Generation(u32::MAX),
            attempt: Attempt(u32::MAX),
            token: Token(u64::MAX),
            version: Version(u64::MAX),
            origin: Origin::Backfill { id: large.backfill("b").id },
            slot: Some(shared.clone()),
            skipped: Some(SkipReason::QueueFull),
            started_at: Some(Millis(i64::MIN)),
            ended_at: Some(Millis(i64::MAX)),
            deadline: Some(Millis(0)),
            lease: Some(lease.clone()),
            not_before: Some(Millis(-1)),
            boundary: Some(Boundary {
                manifest: "m".repeat(1024),
                digest: "ef".repeat(32),
                shards: u32::MAX,
                whole: range(Position::Key(i64::MIN), Position::Key(i64::MAX)),
                objects: u64::MAX,
                bytes: u64::MAX,
            }),
            groups_done: [0, 1, u32::MAX].map(GroupNo).into(),
            counts: Some(counts),
            next_look: Some(Millis(i64::MIN)),
            last_fault: Some(fault.clone()),
            ..large.instance(minute)
        })));
    }
    let mut ranges = Vec::new();
    for object in 1..=CHECKPOINT_RANGES_MAX as u32 {
        ranges.push(range(at(object, 1), at(object, u64::MAX)));
    }
    for (number, status) in (0..).zip([
        ShardStatus::Pending,
        ShardStatus::Leased(lease.clone()),
        ShardStatus::Done,
        ShardStatus::Failed(fault.clone()),
        ShardStatus::Fenced(FenceReason::Superseded),
    ]) {
        items.push(Item::Shard(Box::new(Shard {
            range: range(at(0, 0), at(u32::MAX, u64::MAX)),
            status,
            not_before: Some(Millis(i64::MAX)),
            checkpoint: Checkpoint { prefix: at(0, 5), ranges: ranges.clone() },
            counts,
            outbox: Outbox { rows: u32::MAX, settled: u32::MAX, refused: u32::MAX },
            failures: u32::MAX,
            takeovers: u32::MAX,
            progressed: true,
            deadline: Some(Millis(i64::MIN)),
            last_fault: Some(fault.clone()),
            ..large.shard(number)
        })));
    }
    items
}
