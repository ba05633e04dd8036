//! The guarantees, each as a named predicate: the model, the simulation, the tests and `verify` use the same ones.
//!
//! A predicate takes what a reader of the store sees and says whether the guarantee holds; where the guarantee is
//! about a change, it takes the item before and after.

use std::collections::BTreeSet;

use crate::boundary::Range;
use crate::certificate::Certificate;
use crate::checkpoint::Checkpoint;
use crate::ids::InstanceId;
use crate::instance::{Instance, InstanceStatus};
use crate::plan::SkippedRange;
use crate::shard::{Shard, ShardStatus};
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

/// G6: the checkpoint never goes back, and never skips a gap.
#[must_use]
pub fn g6_checkpoint(before: &Checkpoint, after: &Checkpoint, shard: Range) -> bool {
    let beyond = |checkpoint: &Checkpoint| checkpoint.ranges.iter().all(|range| range.from() > checkpoint.prefix);
    before.prefix <= after.prefix && shard.spans(after.prefix) && beyond(after)
}

/// G7: the overlap policy holds: of the instances of one slot, at most one is at work.
#[must_use]
pub fn g7_one_at_work(instances: &[Instance]) -> bool {
    let at_work = |instance: &&Instance| !instance.status.is_terminal();
    instances.iter().filter(at_work).count() <= 1
}

/// G8: no attempt of a shard starts beyond `backoffLimit`.
#[must_use]
pub fn g8_limits(shard: &Shard, backoff_limit: u32) -> bool {
    !matches!(shard.status, ShardStatus::Leased(_)) || shard.failures <= backoff_limit
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

/// G11: published is whole: the certificate accounts for every shard, is of a finished generation, and its sums add up.
#[must_use]
pub fn g11_published_is_whole(certificate: &Certificate, instance: &Instance, boundary: Range) -> bool {
    let ranges: Vec<Range> = certificate.shards.iter().map(|shard| shard.range).collect();
    let totals = crate::certificate::Totals::of(&certificate.shards);
    let finished = certificate.generation < instance.generation
        || matches!(instance.status, InstanceStatus::Publishing | InstanceStatus::Succeeded);
    finished
        && totals == certificate.totals
        && totals.records_in == totals.records_out + totals.rejected
        && g3_cover(boundary, &ranges)
}

/// G12: time only moves progress: two runs of the same input under different clocks publish the same parts.
#[must_use]
pub fn g12_time_only_moves_progress(one: &Certificate, other: &Certificate) -> bool {
    let bytes =
        |certificate: &Certificate| certificate.parts.iter().map(|part| part.sha256.clone()).collect::<Vec<_>>();
    one.manifest_digest != other.manifest_digest || bytes(one) == bytes(other)
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
}
