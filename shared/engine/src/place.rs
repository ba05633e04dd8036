//! Where things stand: manifests in the installation's own place, outputs in the job's.

use shardcron_domain::ids::{Generation, RunId, ShardKey};
use shardcron_domain::location::Location;
use shardcron_objects::ObjectName;

/// Keys of path parts hold no colon, so that they are file names everywhere: `20260829T160000Z`.
fn compact(at: shardcron_domain::time::ScheduledTime) -> String {
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
