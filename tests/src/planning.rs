//! What planning must have come to: each scheduled time of the calendar has exactly one answer.

use std::collections::BTreeSet;

use shardcron_domain::ids::{JobName, SpecVersion};
use shardcron_domain::instance::{Instance, Origin};
use shardcron_domain::invariants::g2_unanswered;
use shardcron_domain::plan::SkippedRange;
use shardcron_domain::time::ScheduledTime;
use shardcron_store::Item;

use crate::process::Character;
use crate::world::World;

/// What a job's times were answered with.
#[derive(Debug, Default)]
pub struct Answers {
    /// Its instances, by time.
    pub instances: Vec<Instance>,
    /// Its skips.
    pub skips: Vec<SkippedRange>,
}

/// Reads a job's instances and skips.
#[must_use]
pub fn answers(world: &World, job: &JobName) -> Answers {
    let mut answers = Answers::default();
    for item in world.store.snapshot() {
        match item {
            Item::Instance(instance) if instance.id.job == *job => answers.instances.push(*instance),
            Item::Skip(skip) if skip.job == *job => answers.skips.push(skip),
            _ => {}
        }
    }
    answers
}

/// Asserts that the times of the job's calendar, each under the version of the spec that says it counts from before it,
/// have each exactly one answer, and that nothing else was planned.
pub async fn assert_planned(world: &World, job: &JobName) -> Answers {
    world.assert_sound();
    let observer = world.process("observer", Character::default());
    let stored = observer.engine.job(job).await.expect("it can be read").expect("the job is there");
    let mut since = Vec::new();
    for item in world.store.snapshot() {
        if let Item::Spec(record) = item
            && record.job == *job
        {
            since.push((record.since, record.version));
        }
    }
    since.sort();
    let mut expected: Vec<(ScheduledTime, SpecVersion)> = Vec::new();
    for (place, (from, version)) in since.iter().enumerate() {
        let through = since.get(place + 1).map_or(stored.planned_through, |(next, _)| *next);
        let spec = observer.engine.spec(&stored, *version).await.expect("it can be read");
        let mut at = *from;
        while let Some(next) = spec.calendar.after(at).filter(|next| *next <= through) {
            expected.push((next, *version));
            at = next;
        }
    }
    let answers = answers(world, job);
    let times: BTreeSet<ScheduledTime> = answers.instances.iter().map(|instance| instance.id.at).collect();
    let missing = g2_unanswered(expected.iter().map(|(at, _)| *at), &times, &answers.skips);
    if !missing.is_empty() {
        world.fail(&format!("G2: {missing:?} have no answer; the specs count since {since:?}"));
    }
    for instance in &answers.instances {
        if instance.origin == Origin::Schedule && !expected.contains(&(instance.id.at, instance.spec)) {
            let (id, spec) = (&instance.id, instance.spec);
            world.fail(&format!("{id} under spec {spec} isn't of the calendar; the specs count since {since:?}"));
        }
    }
    let skipped: u64 = answers.skips.iter().map(|skip| skip.count).sum();
    if times.len() as u64 + skipped != expected.len() as u64 {
        world.fail(&format!("{} instances and {skipped} skips for {} times", times.len(), expected.len()));
    }
    answers
}
