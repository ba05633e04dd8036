//! What must hold after a run: each time is answered for, each instance has ended as it may, and what is published is
//! what must be, byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shardcron_domain::ids::{InstanceId, SpecVersion};
use shardcron_domain::instance::{FailReason, Instance, InstanceStatus, SkipReason};
use shardcron_domain::invariants::{
    g1_one_identity, g2_answered_once, g2_unanswered, g11_published_is_whole, g12_time_only_moves_progress,
};
use shardcron_domain::shard::{FaultKind, Shard, ShardStatus};
use shardcron_domain::time::ScheduledTime;
use shardcron_engine::command::Expect;
use shardcron_engine::events;
use shardcron_store::{Item, ItemKey};

use super::commands::{Operators, is_backfilled};
use super::run::Ran;
use super::scenario::{FIRST, Scenario};
use crate::fixture::job_name;
use crate::gate::MET_A_TRANSACTION;
use crate::planning::{Answers, answers};
use crate::process::Character;
use crate::world::World;

/// Judges the world after a run.
pub(super) async fn judge(world: &World, scenario: &Scenario, operators: &Operators) -> Ran {
    world.assert_sound();
    let found = answers(world, &job_name("settle"));
    answered_once(world, scenario, &found, operators);
    let mut ran = Ran::default();
    for instance in &found.instances {
        let spec = spec_of(world, instance.spec);
        if let Err(why) = may_end_so(scenario, operators, instance, &spec) {
            world.fail(&format!("{} has ended as {:?}: {why}", instance.id, instance.status));
        }
        acted_once(world, operators, instance);
        failed_for_its_reason(world, scenario, instance);
        let leased =
            |shard: &Shard| matches!(shard.status, ShardStatus::Leased(_)) && shard.key.run.instance == instance.id;
        if let Some(shard) = world.shards().into_iter().find(leased) {
            world.fail(&format!("{} has ended, and {shard:?} is at work", instance.id));
        }
        if instance.status == InstanceStatus::Succeeded {
            let edited: Value = serde_json::from_str(&scenario.job(true)).expect("it was just made");
            let is_edited = spec["shards"]["batchRecords"] == edited["shards"]["batchRecords"];
            let certificate = published(world, scenario, instance, &spec).await;
            ran.published.insert((instance.id.clone(), is_edited), certificate);
        }
    }
    ran.tally = tally(world, &found);
    ran.journal = world.journal.text();
    ran.stored = format!("{:#?}\n{:?}", world.checker.snapshot(), world.objects.snapshot());
    ran
}

fn spec_of(world: &World, version: SpecVersion) -> Value {
    world.store.inspect(|items| match items.get(&ItemKey::Spec(job_name("settle"), version)) {
        Some(Item::Spec(record)) => serde_json::from_str(&record.spec).expect("it is JSON"),
        _ => panic!("spec {version} isn't there"),
    })
}

/// G1, G2: the job's times, which the scenario names, have one answer each, and nothing else has one that wasn't asked
/// for.
fn answered_once(world: &World, scenario: &Scenario, found: &Answers, operators: &Operators) {
    let ids: Vec<InstanceId> = found.instances.iter().map(|instance| instance.id.clone()).collect();
    if !g1_one_identity(&ids) {
        world.fail(&format!("G1: {ids:?}"));
    }
    if !g2_answered_once(&found.instances, &found.skips) {
        world.fail(&format!("G2: a time has two answers: {:?} and {:?}", found.instances, found.skips));
    }
    let since = world.store.inspect(|items| match items.get(&ItemKey::Spec(job_name("settle"), SpecVersion::FIRST)) {
        Some(Item::Spec(record)) => record.since,
        _ => panic!("the job isn't there"),
    });
    let first: ScheduledTime = FIRST.parse().expect("a good time");
    let later = |minutes: u64| ScheduledTime::from_second(first.as_second() + 60 * minutes as i64).expect("a time");
    let times = [Some(first), scenario.second.map(later)];
    let expected: Vec<ScheduledTime> = times.into_iter().flatten().filter(|time| *time > since).collect();
    let instances: BTreeSet<ScheduledTime> = ids.iter().map(|id| id.at).collect();
    let missing = g2_unanswered(expected.iter().copied(), &instances, &found.skips);
    if !missing.is_empty() {
        world.fail(&format!("G2: {missing:?} have no answer"));
    }
    for skip in &found.skips {
        let may_be = match skip.reason {
            SkipReason::CatchUp => scenario.catch_up == "latest",
            SkipReason::Suspended => operators.asked().suspended,
            SkipReason::Overlap => scenario.policy == "Forbid",
            SkipReason::QueueFull | SkipReason::StartingDeadlineExceeded => false,
        };
        let covered = expected.iter().filter(|time| skip.from <= **time && **time <= skip.to).count() as u64;
        if !may_be || skip.count != covered {
            world.fail(&format!("{skip:?} covers {covered} of {expected:?}, under {}", scenario.policy));
        }
    }
    for instance in &found.instances {
        let skips: Vec<_> = found
            .skips
            .iter()
            .filter(|skip| skip.from <= instance.id.at && instance.id.at <= skip.to)
            .map(|skip| skip.reason)
            .collect();
        // A time that was skipped and asked for since says so.
        let right = match instance.skipped {
            None => skips.is_empty(),
            Some(reason) => skips == [reason],
        };
        if !right || !(expected.contains(&instance.id.at) || is_backfilled(instance) || instance.id.at <= since) {
            world.fail(&format!("{instance:?} has the skips {skips:?}; {expected:?} were due"));
        }
    }
}

/// Whether the scenario lets an instance end as it has.
fn may_end_so(
    scenario: &Scenario,
    operators: &Operators,
    instance: &Instance,
    spec: &Value,
) -> Result<(), &'static str> {
    let is_exhausted = |kind: FaultKind| kind != FaultKind::Input && scenario.backoff_limit.is_some();
    let must_fail = scenario.must_fail(spec);
    let may = match &instance.status {
        InstanceStatus::Succeeded if must_fail => return Err("more is rejected than the job allows"),
        InstanceStatus::Succeeded => true,
        InstanceStatus::Cancelled { .. } => {
            let cancelled = (instance.id.clone(), Expect::of(instance));
            operators.asked().cancelled.contains(&cancelled)
        }
        InstanceStatus::Replaced { by } => {
            scenario.policy == "Replace" && *by != instance.id && !is_backfilled(instance)
        }
        InstanceStatus::Failed(reason) => match reason {
            FailReason::DeadlineExceeded => scenario.deadline.is_some(),
            FailReason::TooManyRejects { .. } => must_fail,
            FailReason::Shard { fault, .. } if fault.kind == FaultKind::Input => must_fail,
            FailReason::Shard { fault, .. } | FailReason::Step(fault) => is_exhausted(fault.kind),
            FailReason::EmptyInput { .. } | FailReason::NotReady { .. } => false,
        },
        _ => false,
    };
    if may { Ok(()) } else { Err("the scenario gives no cause for that") }
}

/// The reason is this attempt's own: its shard has failed, or its deadline has passed.
fn failed_for_its_reason(world: &World, scenario: &Scenario, instance: &Instance) {
    let has_cause = match &instance.status {
        InstanceStatus::Failed(FailReason::Shard { shard, .. }) => world.shards().into_iter().any(|found| {
            found.key.run == instance.run()
                && found.key.shard.to_string() == *shard
                && matches!(found.status, ShardStatus::Failed(_))
        }),
        InstanceStatus::Failed(FailReason::DeadlineExceeded) => {
            let is_skewed = scenario.machines.iter().any(|machine| machine.skew != 0);
            is_skewed || instance.deadline.is_some_and(|deadline| instance.ended_at >= Some(deadline))
        }
        _ => true,
    };
    if !has_cause {
        world.fail(&format!("{instance:?} has failed for a reason that isn't its own"));
    }
}

/// A command that was delivered twice, or repeated after its answer was lost, acted once.
fn acted_once(world: &World, operators: &Operators, instance: &Instance) {
    let asked = operators.asked();
    let count = |ids: &[InstanceId]| ids.iter().filter(|id| **id == instance.id).count() as u64;
    let (retries, reruns) = (count(&asked.retried), count(&asked.rerun));
    if u64::from(instance.generation.0) > 1 + reruns || u64::from(instance.attempt.0) > 1 + retries {
        world.fail(&format!("{instance:?} was retried {retries} times and rerun {reruns} times"));
    }
}

/// G11 and the oracle: what is published of an instance that has succeeded.
async fn published(
    world: &World,
    scenario: &Scenario,
    instance: &Instance,
    spec: &Value,
) -> shardcron_domain::certificate::Certificate {
    let observer = world.process("observer", Character::default());
    let certificate = observer.engine.certificate(instance).await.expect("it can be read");
    let Some(certificate) = certificate else { world.fail(&format!("nothing of {} is published", instance.id)) };
    let parts = observer.engine.parts(instance, &certificate).await.expect("they can be read").concat();
    let (parts, expected) = (String::from_utf8_lossy(&parts), scenario.input.expected(spec));
    let totals = certificate.totals;
    let counted = (totals.records_in, totals.rejected, totals.records_out);
    let must_count = (expected.records, expected.rejected, expected.records - expected.rejected);
    if parts != expected.csv || counted != must_count {
        world.fail(&format!("published is\n{parts}of {counted:?} instead of\n{}of {must_count:?}", expected.csv));
    }
    let whole = instance.boundary.as_ref().map(|boundary| boundary.whole);
    let is_whole = whole.is_some_and(|whole| g11_published_is_whole(&certificate, instance, whole));
    if !is_whole || certificate.generation != instance.generation {
        world.fail(&format!("G11: {certificate:?} of {instance:?}"));
    }
    let (mut rejects, mut undone) = (0, 0);
    world.store.inspect(|items| {
        for item in items.values() {
            match item {
                Item::Reject(reject) if reject.shard.run == instance.run() => rejects += 1,
                Item::Shard(shard) if shard.key.run == instance.run() && shard.status != ShardStatus::Done => {
                    undone += 1
                }
                _ => {}
            }
        }
    });
    if rejects != expected.rejected || undone > 0 {
        world.fail(&format!("{} has {rejects} rejects, and {undone} of its shards aren't done", instance.id));
    }
    certificate
}

/// G12: two runs of one scenario under different clocks and faults have published the same.
///
/// # Errors
/// Says what differs.
pub fn same_published(one: &Ran, other: &Ran) -> Result<u64, String> {
    let mut compared = 0;
    for (of, certificate) in &one.published {
        let Some(second) = other.published.get(of).filter(|second| second.generation == certificate.generation) else {
            continue;
        };
        compared += 1;
        if !g12_time_only_moves_progress(certificate, second) {
            return Err(format!("G12: {} published\n{certificate:?}\nand\n{second:?}", of.0));
        }
    }
    Ok(compared)
}

/// How often what happened.
fn tally(world: &World, found: &Answers) -> BTreeMap<String, u64> {
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = |what: &str, times: usize| *tally.entry(what.to_owned()).or_default() += times as u64;
    for instance in &found.instances {
        count(instance.status.name(), 1);
        if let InstanceStatus::Failed(reason) = &instance.status {
            count(failed_by(reason), 1);
        }
        count("backfilled", usize::from(is_backfilled(instance)));
        count("retried", usize::from(instance.attempt.0 > 1));
        count("rerun", usize::from(instance.generation.0 > 1));
        count("steps taken over", instance.takeovers as usize);
    }
    for skip in &found.skips {
        count(&format!("skipped: {:?}", skip.reason), 1);
    }
    for shard in world.shards() {
        count("shards", 1);
        count("shards taken over", shard.takeovers as usize);
        count("shards with rows in objects", usize::from(shard.snapshot.is_some()));
        count("rejected", shard.counts.rejected as usize);
    }
    count("shards with ranges beyond a gap", usize::from(world.checker.most_ranges() > 0));
    for event in [events::SPLIT, events::FENCED, events::LEASE_OVER, events::ATTEMPT_FAILED, events::STEP_FAILED] {
        count(event, world.journal.events(event).len());
    }
    count("halves of transactions seen", world.store.halves_seen());
    count("transactions met", world.journal.text().matches(MET_A_TRANSACTION).count());
    tally
}

fn failed_by(reason: &FailReason) -> &'static str {
    match reason {
        FailReason::DeadlineExceeded => "failed by its deadline",
        FailReason::TooManyRejects { .. } => "failed by all shards' rejects",
        FailReason::Shard { fault, .. } if fault.kind == FaultKind::Input => "failed by a shard's rejects",
        FailReason::Shard { .. } => "failed by a shard's failures",
        _ => "failed by a step",
    }
}
