//! Finalize and publish: the account of all shards, the merged output, and the certificate, last.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use bytes::Bytes;
use futures::future::try_join_all;
use shardcron_domain::boundary::Range;
use shardcron_domain::certificate::{
    CERTIFICATE_NAME, Certificate, InstanceName, Part, ShardAccount, Standing, Totals,
};
use shardcron_domain::digest;
use shardcron_domain::ids::GroupNo;
use shardcron_domain::instance::{FailReason, Instance, Outcome};
use shardcron_domain::invariants::g3_cover;
use shardcron_domain::limits::{FINALIZE_READS_AT_ONCE, PART_BYTES_MAX};
use shardcron_domain::record::Format;
use shardcron_domain::result::OutputTable;
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::Duration;
use shardcron_objects::{ETag, ObjectName, Put, read_whole};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::held::HeldStep;
use crate::place::{in_output, part_name};
use crate::ports::stamp;

/// What finalize found.
enum Account {
    /// All shards are done: in the order of the boundary.
    Full(Vec<Shard>),
    /// Not all are: the groups that are full.
    NotFull(BTreeSet<GroupNo>),
}

/// What stands in a certificate's place.
enum Place {
    /// Nothing.
    Free,
    /// The very certificate.
    Ours,
    /// That of a lower generation, with its tag.
    Older(ETag),
}

/// Rows that are merged between two chances for the lease to be renewed.
const ROWS_AT_A_TIME: usize = 1024;

/// Lets whatever else this task does go on: a merge waits for nothing by itself.
async fn breathe() {
    let mut is_second = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_second, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

impl Engine {
    pub(crate) async fn finalize(&self, held: &mut HeldStep, spec: &LoadedSpec) -> Result<(), EngineError> {
        let instance = held.instance.clone();
        let shards = match self.keeping(held, self.account(&instance)).await?? {
            Account::Full(shards) => shards,
            Account::NotFull(groups) => {
                let next = held.instance.not_full(&stamp(&*self.clock, &*self.random), groups)?;
                return held.write(self, next).await;
            }
        };
        let rejected: u64 = shards.iter().map(|shard| shard.counts.rejected).sum();
        if rejected > spec.spec.rejects.max {
            let reason = FailReason::TooManyRejects { rejected, max: spec.spec.rejects.max };
            let next = held.instance.stop(Outcome::Failed(reason), &stamp(&*self.clock, &*self.random))?;
            held.write(self, next).await?;
            self.emit_stopping(&held.instance);
            return Ok(());
        }
        let certificate = self.keeping(held, self.write_parts(&instance, spec, &shards)).await??;
        // Before the point of no return: from there it could only wait for the place to become free.
        let name = in_output(&spec.output()?, &instance.run(), CERTIFICATE_NAME);
        self.keeping(held, self.certificate_in(&name, &certificate)).await??;
        let counts = certificate.totals.counts();
        let mut next = held.instance.publishing(&stamp(&*self.clock, &*self.random), counts)?;
        next.worked = Duration(shards.iter().fold(0, |sum: i64, shard| sum.saturating_add(shard.worked.0)));
        held.write(self, next).await?;
        self.put_certificate(held, spec, &certificate).await
    }

    /// Publishing, taken over: the parts are written again, which changes nothing, and the certificate is put.
    pub(crate) async fn publish(&self, held: &mut HeldStep, spec: &LoadedSpec) -> Result<(), EngineError> {
        let instance = held.instance.clone();
        let Account::Full(shards) = self.keeping(held, self.account(&instance)).await?? else {
            return Err(EngineError::Inconsistent(format!(
                "{} is publishing, and not all its shards are done",
                instance.id
            )));
        };
        let certificate = self.keeping(held, self.write_parts(&instance, spec, &shards)).await??;
        self.put_certificate(held, spec, &certificate).await
    }

    async fn account(&self, instance: &Instance) -> Result<Account, EngineError> {
        let boundary = instance.boundary.as_ref().ok_or_else(|| inconsistent("an instance without a boundary"))?;
        let mut full = BTreeSet::new();
        let mut all = Vec::new();
        let run = instance.run();
        let groups: Vec<GroupNo> = (0..boundary.groups()).map(GroupNo).collect();
        for some in groups.chunks(FINALIZE_READS_AT_ONCE) {
            let reads: Vec<_> = some.iter().map(|no| self.group_shards(&run, *no)).collect();
            for (no, leaves) in some.iter().zip(try_join_all(reads).await?) {
                if leaves.iter().all(|shard| shard.status == ShardStatus::Done) {
                    full.insert(*no);
                }
                all.extend(leaves);
            }
        }
        if (full.len() as u32) < boundary.groups() {
            return Ok(Account::NotFull(full));
        }
        let whole = boundary.whole;
        let ranges: Vec<Range> = all.iter().map(|shard| shard.range).collect();
        if !g3_cover(whole, &ranges) {
            return Err(EngineError::Inconsistent(format!(
                "the {} shards of {} don't tile its boundary {whole}",
                all.len(),
                instance.id
            )));
        }
        // By place, not by id: what a split has cut off lies beyond its parent, before the next shard of the manifest.
        all.sort_by(|one, other| one.range.from().partial_cmp(&other.range.from()).unwrap_or(Ordering::Equal));
        Ok(Account::Full(all))
    }

    /// Merges the results of all shards and writes the parts; the certificate that accounts for them.
    async fn write_parts(
        &self,
        instance: &Instance,
        spec: &LoadedSpec,
        shards: &[Shard],
    ) -> Result<Certificate, EngineError> {
        let work = self.works.for_instance(&spec.spec, &instance.id)?;
        let mut merge = work.merge();
        // In order, since a merge may depend on it; several at once, since each read is mostly a wait.
        for some in shards.chunks(FINALIZE_READS_AT_ONCE) {
            let reads: Vec<_> = some.iter().map(|shard| self.settled_rows(shard)).collect();
            for rows in try_join_all(reads).await? {
                for (number, row) in rows.into_iter().enumerate() {
                    merge.add(row)?;
                    if number % ROWS_AT_A_TIME == 0 {
                        breathe().await;
                    }
                }
            }
        }
        let format = spec.spec.output.format;
        let output = spec.output()?;
        let mut parts = Vec::new();
        let table = merge.finish()?;
        breathe().await;
        for (number, (content, rows)) in cut(&table, format).into_iter().enumerate() {
            breathe().await;
            let digest = digest::of(&content);
            let name = part_name(instance.generation, number, &digest, ending(format));
            let bytes = content.len() as u64;
            // Named by its content: one that is there is the same.
            self.objects.put_if_absent(&in_output(&output, &instance.run(), &name), Bytes::from(content)).await?;
            parts.push(Part { name, bytes, rows, sha256: digest });
        }
        let accounts: Vec<ShardAccount> = shards.iter().map(ShardAccount::of).collect();
        let boundary = instance.boundary.as_ref().ok_or_else(|| inconsistent("an instance without a boundary"))?;
        Ok(Certificate {
            instance: InstanceName(instance.id.clone()),
            generation: instance.generation,
            manifest_digest: boundary.digest.clone(),
            parts,
            totals: Totals::of(&accounts),
            shards: accounts,
        })
    }

    /// What stands where a certificate is to be put.
    ///
    /// # Errors
    /// [`EngineError::OutputTaken`] when it is somebody else's.
    async fn certificate_in(&self, name: &ObjectName, ours: &Certificate) -> Result<Place, EngineError> {
        let Some((found, tag)) = read_whole(&*self.objects, name).await? else { return Ok(Place::Free) };
        let taken = |why: String| EngineError::OutputTaken { place: name.to_string(), why };
        let found: Certificate = serde_json::from_slice(&found)
            .map_err(|error| taken(format!("what is there isn't a certificate ({error})")))?;
        match ours.standing_of(&found) {
            Standing::Published => Ok(Place::Ours),
            Standing::Replace => Ok(Place::Older(tag)),
            Standing::Taken => {
                let (instance, generation) = (&found.instance.0, found.generation);
                Err(taken(format!("another installation has published {instance} there, as generation {generation}")))
            }
        }
    }

    async fn put_certificate(
        &self,
        held: &mut HeldStep,
        spec: &LoadedSpec,
        certificate: &Certificate,
    ) -> Result<(), EngineError> {
        let name = in_output(&spec.output()?, &held.instance.run(), CERTIFICATE_NAME);
        let mut text = serde_json::to_string_pretty(certificate).map_err(inconsistent)?;
        text.push('\n');
        let content = Bytes::from(text);
        loop {
            match self.certificate_in(&name, certificate).await? {
                Place::Ours => break,
                Place::Free => {
                    if let Put::Written(_) = self.objects.put_if_absent(&name, content.clone()).await? {
                        break;
                    }
                }
                Place::Older(tag) => {
                    if let Put::Written(_) = self.objects.put_if_match(&name, &tag, content.clone()).await? {
                        break;
                    }
                }
            }
        }
        let next = held.instance.succeeded(&stamp(&*self.clock, &*self.random))?;
        held.end(self, next).await?;
        let run_ms = match (held.instance.started_at, held.instance.ended_at) {
            (Some(started), Some(ended)) => ended.since(started).0,
            _ => 0,
        };
        self.events.emit(
            Event::of_instance(events::ENDED, &held.instance.id)
                .with("status", held.instance.status.name())
                .with("records", certificate.totals.records_in)
                .with("takeovers", certificate.totals.takeovers)
                .with("rejected", certificate.totals.rejected)
                .with("runMs", run_ms),
        );
        Ok(())
    }
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Csv => "csv",
        Format::Ndjson => "ndjson",
    }
}

/// The table's text, cut between rows into parts of about [`PART_BYTES_MAX`], each with how many rows it has. At
/// least one part, so that an empty output can be told from none.
fn cut(table: &OutputTable, format: Format) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut from = 0;
    loop {
        let mut size = 0;
        let mut to = from;
        while to < table.rows.len() && size < PART_BYTES_MAX {
            size += table.rows[to].iter().map(|value| value.as_ref().map_or(1, |text| text.len() + 1)).sum::<usize>();
            to += 1;
        }
        let part = OutputTable { columns: table.columns.clone(), rows: table.rows[from..to].to_vec() };
        let text = match format {
            Format::Csv => part.to_csv(),
            Format::Ndjson => part.to_ndjson(),
        };
        parts.push((text, (to - from) as u64));
        if to == table.rows.len() {
            return parts;
        }
        from = to;
    }
}
