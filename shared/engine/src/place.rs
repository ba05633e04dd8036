//! Where things stand: manifests in the installation's own place, outputs in the job's.

use shardcron_domain::certificate::CERTIFICATE_NAME;
use shardcron_domain::ids::{Generation, JobName, RunId, ShardKey};
use shardcron_domain::location::Location;
use shardcron_domain::time::ScheduledTime;
use shardcron_objects::ObjectName;

/// Keys of path parts hold no colon, so that they are file names everywhere: `20260829T160000Z`.
fn compact(at: ScheduledTime) -> String {
    at.to_string().replace(['-', ':'], "")
}

fn below(location: &Location, key: &str) -> ObjectName {
    ObjectName { root: location.root.clone(), key: format!("{}{key}", location.prefix) }
}

/// The place of a generation's manifest and its pages, without what follows it.
pub(crate) fn manifest_stem(run: &RunId) -> String {
    format!("manifests/{}/{}/g{}", run.instance.job, compact(run.instance.at), run.generation)
}

/// The key of a snapshot of a shard's rows.
pub(crate) fn snapshot_key(shard: &ShardKey, name: &str) -> String {
    let RunId { instance, generation } = &shard.run;
    format!("results/{}/{}/g{generation}/{}/{name}.ndjson", instance.job, compact(instance.at), shard.shard)
}

/// An object in the installation's own place.
pub(crate) fn in_state(state: &Location, key: &str) -> ObjectName {
    below(state, key)
}

/// An object of an instance's output: `<output>/<job>@<utc>/<name>`.
pub(crate) fn in_output(output: &Location, run: &RunId, name: &str) -> ObjectName {
    below(output, &format!("{}@{}/{name}", run.instance.job, run.instance.at))
}

/// The name of a part, relative to the instance's place: its content's digest is in it.
pub(crate) fn part_name(generation: Generation, number: usize, digest: &str, ending: &str) -> String {
    format!("g{generation}/part-{number:05}-{}.{ending}", &digest[..16])
}

/// Whether `key` is that of an object which some instance of this job has published: its certificate or a part, at
/// whatever depth below some place.
pub(crate) fn is_published_by(job: &JobName, key: &str) -> bool {
    let mut rest = key;
    while let Some((part, below)) = rest.split_once('/') {
        let at = part.strip_prefix(job.as_str()).and_then(|part| part.strip_prefix('@'));
        if at.is_some_and(|at| at.parse::<ScheduledTime>().is_ok()) && is_of_output(below) {
            return true;
        }
        rest = below;
    }
    false
}

/// Whether a key, relative to an instance's place, is one that is published there.
fn is_of_output(key: &str) -> bool {
    let part = key.strip_prefix('g').and_then(|key| key.split_once("/part-"));
    key == CERTIFICATE_NAME || part.is_some_and(|(generation, _)| generation.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_has_published_is_known_by_its_place() {
        let job: JobName = "rows".parse().unwrap();
        for key in [
            "rows@2026-01-05T00:00:00Z/_certificate.json",
            "rows@2026-01-05T00:00:00Z/g2/part-00000-05c679953fe3e02f.csv",
            "a/b/rows@2026-01-05T00:00:00Z/_certificate.json",
        ] {
            assert!(is_published_by(&job, key), "{key}");
        }
        for key in [
            "_certificate.json",
            "g1/part-00000-05c679953fe3e02f.csv",
            "rows@2026-01-05T00:00:00Z/a.csv",
            "rows@2026-01-05T00:00:00Z/gx/part-1.csv",
            "rows2@2026-01-05T00:00:00Z/_certificate.json",
            "rows@today/_certificate.json",
        ] {
            assert!(!is_published_by(&job, key), "{key}");
        }
    }
}
