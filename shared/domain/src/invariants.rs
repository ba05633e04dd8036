//! The guarantees, each as a named predicate: the model, the simulation, the tests and `verify` use the same ones.
//!
//! A predicate takes what a reader of the store sees and says whether the guarantee holds; where the guarantee is
//! about a change, it takes the item before and after.

use std::collections::BTreeSet;

use crate::boundary::{Position, Range};
use crate::certificate::{Certificate, Totals};
use crate::checkpoint::Checkpoint;
use crate::ids::InstanceId;
use crate::instance::{Instance, InstanceStatus, Origin, WaitingFor};
use crate::plan::SkippedRange;
use crate::shard::{Shard, ShardStatus};
use crate::slot::Slot;
use crate::time::ScheduledTime;

/// G1: for a job and scheduled time there is at most one instance.
#[must_use]
pub fn g1_one_identity(instances: &[InstanceId]) -> bool {
    let mut seen = BTreeSet::new();
    instances.iter().all(|id| seen.insert(id))
}

/// G2: every one of `expected` has an instance or a recorded skip. Returns those that have neither.
#[must_use]
pub fn g2_unanswered(
    expected: impl Iterator<Item = ScheduledTime>,
    instances: &BTreeSet<ScheduledTime>,
    skips: &[SkippedRange],
) -> Vec<ScheduledTime> {
    let skipped = |time: ScheduledTime| skips.iter().any(|skip| skip.from <= time && time <= skip.to);
    expected.filter(|time| !instances.contains(time) && !skipped(*time)).collect()
}

/// G2: the planner answers for a time once: by an instance of the schedule or by a skip, never by both. One that somebody
/// asked for may stand beside a skip: it keeps the reason.
#[must_use]
pub fn g2_answered_once(instances: &[Instance], skips: &[SkippedRange]) -> bool {
    let scheduled =
        instances.iter().filter(|instance| instance.origin == Origin::Schedule).map(|instance| &instance.id);
    let skipped = |id: &InstanceId| {
        skips.iter().filter(|skip| skip.job == id.job).any(|skip| skip.from <= id.at && id.at <= skip.to)
    };
    scheduled.filter(|id| skipped(id)).count() == 0
}

/// G3: the leaves, in any order, tile the boundary: no gap, no overlap.
#[must_use]
pub fn g3_cover(boundary: Range, leaves: &[Range]) -> bool {
    let mut at = boundary.from();
    let mut rest: Vec<Range> = leaves.to_vec();
    // Empty ranges (an empty object's shard) cover nothing and are in nobody's way, as long as they lie within.
    if rest.iter().any(|range| !boundary.spans(range.from()) || !boundary.spans(range.to())) {
        return false;
    }
    rest.retain(|range| !range.is_empty());
    while let Some(place) = rest.iter().position(|range| range.from() == at) {
        at = rest.swap_remove(place).to();
    }
    rest.is_empty() && at == boundary.to()
}

/// G4: one owner that counts: a change of a shard keeps its token (its owner's write) or raises it (a claim, fence or
/// reopening), and always raises the version; so of two writers that read the same item only one applies.
#[must_use]
pub fn g4_one_owner(before: &Shard, after: &Shard) -> bool {
    let owner_changed = match (&before.status, &after.status) {
        (ShardStatus::Leased(old), ShardStatus::Leased(new)) => old.owner != new.owner,
        (ShardStatus::Leased(_), _) => false,
        (_, ShardStatus::Leased(_)) => true,
        _ => false,
    };
    after.version == before.version.next()
        && after.token >= before.token
        && (!owner_changed || after.token > before.token)
}

/// G5: exact effect: every record of the input that is done is in the results or in the rejects, once. `rows` is how
/// many records the shard's result rows say they hold, `rejects` how many reject rows there are.
#[must_use]
pub fn g5_exact_effect(shard: &Shard, rows: u64, rejects: u64) -> bool {
    let counts = shard.counts;
    counts.input == counts.output + counts.rejected && rows == counts.output && rejects == counts.rejected
}

/// G5, of each record: `records` says for each of a shard's records where it stands, and how often it is in the committed
/// results or rejects. One that is done is there once, another one not at all.
#[must_use]
pub fn g5_each_once(checkpoint: &Checkpoint, mut records: impl Iterator<Item = (Position, u32)>) -> bool {
    records.all(|(at, times)| times == u32::from(is_done(checkpoint, at)))
}

/// Whether the record that begins at `at` is done.
fn is_done(checkpoint: &Checkpoint, at: Position) -> bool {
    at < checkpoint.prefix || checkpoint.ranges.iter().any(|range| range.from() <= at && at < range.to())
}

/// G6, of each record: the checkpoint covers none whose result isn't committed. `records` is as for [`g5_each_once`].
#[must_use]
pub fn g6_never_ahead(checkpoint: &Checkpoint, mut records: impl Iterator<Item = (Position, u32)>) -> bool {
    records.all(|(at, times)| times > 0 || !is_done(checkpoint, at))
}

/// G6: the checkpoint never goes back, and never skips a gap.
#[must_use]
pub fn g6_checkpoint(before: &Checkpoint, after: &Checkpoint, shard: Range) -> bool {
    let beyond = |checkpoint: &Checkpoint| checkpoint.ranges.iter().all(|range| range.from() > checkpoint.prefix);
    before.prefix <= after.prefix && shard.spans(after.prefix) && beyond(after)
}

/// G7, seen from the instances: of those that share a slot and don't wait for it, at most one is unfinished. Backfilled
/// ones have no part in a slot.
#[must_use]
pub fn g7_one_at_work(instances: &[Instance]) -> bool {
    let waits = |instance: &Instance| instance.status == InstanceStatus::Waiting(WaitingFor::Slot);
    instances.iter().filter(|instance| !instance.status.is_terminal() && !waits(instance)).count() <= 1
}

/// G7: the overlap policy holds: whoever is at work holds the slot, which one at a time does. `instances` are those that
/// came to it. One that waits for the slot isn't at work; nor is one that is being stopped and doesn't hold it: it waited
/// until then, since a holder passes the slot on in the write of its end.
#[must_use]
pub fn g7_holder_works<'a>(slot: &Slot, instances: impl IntoIterator<Item = &'a Instance>) -> bool {
    let rests = |instance: &Instance| {
        instance.status.is_terminal()
            || matches!(instance.status, InstanceStatus::Waiting(WaitingFor::Slot) | InstanceStatus::Stopping(_))
    };
    instances.into_iter().all(|instance| rests(instance) || slot.holder.as_ref() == Some(&instance.id))
}

/// G8: no attempt of a shard starts beyond `backoffLimit`.
#[must_use]
pub fn g8_limits(shard: &Shard, backoff_limit: u32) -> bool {
    !matches!(shard.status, ShardStatus::Leased(_)) || shard.failures <= backoff_limit
}

/// G8: what is being stopped, by its deadline or for another reason, never succeeds in that attempt: it ends as its
/// outcome says.
#[must_use]
pub fn g8_stopped_never_succeeds(before: &Instance, after: &Instance) -> bool {
    let same_attempt = (before.generation, before.attempt) == (after.generation, after.attempt);
    let outcome = before.status.outcome();
    outcome.is_none() || !same_attempt || after.status.outcome() == outcome
}

/// G9: a shard's progress is of the run that is going on. `instance` is as it stands when the write applies: unless that is
/// at work on the shard's generation and attempt, neither checkpoint nor counts may move.
#[must_use]
pub fn g9_commits_nothing(instance: &Instance, before: &Shard, after: &Shard) -> bool {
    let commits = (&before.checkpoint, before.counts) != (&after.checkpoint, after.counts);
    let goes_on =
        !instance.status.is_terminal() && instance.run() == after.key.run && instance.attempt == after.attempt;
    !commits || goes_on
}

/// G9: stopped is fenced: once the outcome is written, no shard of the instance is open.
#[must_use]
pub fn g9_stopped_is_fenced(instance: &Instance, shards: &[Shard]) -> bool {
    let stopped = instance.status.is_terminal() && instance.status != InstanceStatus::Succeeded;
    !stopped || shards.iter().all(|shard| !shard.status.is_open())
}

/// G10: finished is final: a terminal instance changes only by another attempt or generation.
#[must_use]
pub fn g10_finished_is_final(before: &Instance, after: &Instance) -> bool {
    let same_run = (before.generation, before.attempt) == (after.generation, after.attempt);
    !(before.status.is_terminal() && same_run) || before.status == after.status
}

/// G10, of a shard: one that is done never changes, and one that has failed or was fenced only by being opened for a later
/// attempt.
#[must_use]
pub fn g10_shard_is_final(before: &Shard, after: &Shard) -> bool {
    let reopened = after.status == ShardStatus::Pending && after.attempt > before.attempt;
    before.status.is_open() || before == after || (before.status != ShardStatus::Done && reopened)
}

/// G11: published is whole: the certificate accounts for every shard, is of a finished generation, and its sums add up.
#[must_use]
pub fn g11_published_is_whole(certificate: &Certificate, instance: &Instance, boundary: Range) -> bool {
    let ranges: Vec<Range> = certificate.shards.iter().map(|shard| shard.range).collect();
    let totals = Totals::of(&certificate.shards);
    let finished = match instance.status {
        InstanceStatus::Succeeded => certificate.generation == instance.generation,
        InstanceStatus::Publishing => certificate.generation <= instance.generation,
        _ => certificate.generation < instance.generation,
    };
    finished
        && totals == certificate.totals
        && totals.records_in == totals.records_out + totals.rejected
        && g3_cover(boundary, &ranges)
}

/// G11: the certificate accounts for these shards, which are all of its generation: each is done, and its account says
/// what its item says.
#[must_use]
pub fn g11_accounts_for(certificate: &Certificate, shards: &[Shard]) -> bool {
    let is_true = |shard: &Shard| {
        certificate.shards.iter().any(|account| {
            let counts = (account.records_in, account.records_out, account.rejected);
            account.id == shard.key.shard
                && account.range == shard.range
                && account.token == shard.token
                && counts == (shard.counts.input, shard.counts.output, shard.counts.rejected)
        })
    };
    certificate.shards.len() == shards.len()
        && shards.iter().all(|shard| shard.status == ShardStatus::Done && is_true(shard))
}

/// G11: what readers see only goes forward: a certificate gives way to one of a higher generation and to no other.
#[must_use]
pub fn g11_goes_forward(before: &Certificate, after: &Certificate) -> bool {
    before == after || (before.instance == after.instance && before.generation < after.generation)
}

/// G12: time only moves progress: two runs of the same input under different clocks publish the same parts, and count the
/// same. How the input was cut may differ: what was learned of earlier runs, and splits, depend on time.
#[must_use]
pub fn g12_time_only_moves_progress(one: &Certificate, other: &Certificate) -> bool {
    let bytes =
        |certificate: &Certificate| certificate.parts.iter().map(|part| part.sha256.clone()).collect::<Vec<_>>();
    bytes(one) == bytes(other) && one.totals.counts() == other.totals.counts()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::Position;

    fn keys(from: i64, to: i64) -> Range {
        Range::new(Position::Key(from), Position::Key(to)).unwrap()
    }

    #[test]
    fn a_gap_an_overlap_and_a_stray_each_break_the_cover() {
        let all = keys(0, 30);
        assert!(g3_cover(all, &[keys(10, 30), keys(0, 10)]));
        assert!(g3_cover(all, &[keys(0, 30), keys(10, 10)]));
        assert!(!g3_cover(all, &[keys(0, 10), keys(11, 30)]));
        assert!(!g3_cover(all, &[keys(0, 12), keys(10, 30)]));
        assert!(!g3_cover(all, &[keys(0, 30), keys(0, 30)]));
        assert!(!g3_cover(all, &[keys(0, 31)]));
        assert!(g3_cover(keys(5, 5), &[]));
    }

    #[test]
    fn a_record_is_in_the_results_once_it_is_done_and_not_before() {
        let shard = keys(0, 4);
        let checkpoint = Checkpoint::start(shard).with(keys(0, 1), shard).unwrap().with(keys(2, 3), shard).unwrap();
        let times = |times: [u32; 4]| (0..4).map(Position::Key).zip(times);
        assert!(g5_each_once(&checkpoint, times([1, 0, 1, 0])));
        assert!(!g5_each_once(&checkpoint, times([1, 0, 2, 0])));
        assert!(!g5_each_once(&checkpoint, times([1, 1, 1, 0])));
        assert!(g6_never_ahead(&checkpoint, times([1, 1, 1, 0])));
        assert!(!g6_never_ahead(&checkpoint, times([1, 0, 0, 0])));
    }
}
