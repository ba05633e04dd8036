//! What a certificate claims, held against what there is: pure comparisons, each of which says what differs and where.
//!
//! Whoever verifies reads the table, the manifest, the input and the published parts, and asks here what doesn't hold.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::boundary::Range;
use crate::certificate::{Certificate, Part, ShardAccount, Totals};
use crate::ids::ShardId;
use crate::instance::Instance;
use crate::invariants::{g3_cover, g5_exact_effect, g11_published_is_whole};
use crate::limits::FINDINGS_MAX;
use crate::result::RejectRow;
use crate::shard::{Counts, Shard, ShardStatus};

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The certificate by itself, and against its instance.
    Certificate,
    /// The root of the manifest.
    Manifest,
    /// A page of the manifest.
    Page,
    /// An object of the boundary.
    Input,
    /// The cover of the boundary by the shards (G3).
    Cover,
    /// The account of a shard (G5).
    Shard,
    /// The sums over the shards.
    Totals,
    /// The recorded rejects.
    Rejects,
    /// A published part.
    Part,
}

/// Something that doesn't hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub check: Check,
    /// Where: an object's name, a shard's id, a line.
    pub place: String,
    /// What differs.
    pub message: String,
}

impl Finding {
    /// A finding.
    #[must_use]
    pub fn new(check: Check, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { check, place: place.into(), message: message.into() }
    }

    fn differs(check: Check, place: &str, what: &str, said: impl ToString, found: impl ToString) -> Option<Self> {
        let (said, found) = (said.to_string(), found.to_string());
        let message = || format!("{what}: the certificate says {said}, and it is {found}");
        (said != found).then(|| Self::new(check, place, message()))
    }
}

/// What was found, in the order in which it was looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The first [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// How many more there were.
    pub more: u64,
}

impl Findings {
    /// Takes one more.
    pub fn push(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Takes more.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }

    /// Whether nothing was found: what was claimed is proven, as far as it was looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.findings.len() as u64 + self.more
    }
}

/// The certificate by itself and against the instance: whose it is, of which generation, and whether its sums add up.
#[must_use]
pub fn certificate(certificate: &Certificate, instance: &Instance) -> Vec<Finding> {
    let about = |what, said: String, found: String| Finding::differs(Check::Certificate, "", what, said, found);
    let mut found: Vec<Finding> = Vec::new();
    found.extend(about("the instance", certificate.instance.0.to_string(), instance.id.to_string()));
    found.extend(about("the generation", certificate.generation.to_string(), instance.generation.to_string()));
    if let Some(boundary) = &instance.boundary {
        found.extend(about("the manifest's digest", certificate.manifest_digest.clone(), boundary.digest.clone()));
    }
    if let Some(counts) = instance.counts {
        found.extend(differing_counts(Check::Totals, "the instance", certificate.totals.counts(), counts));
    }
    let (said, sums) = (certificate.totals, Totals::of(&certificate.shards));
    for (what, said, sum) in [
        ("shards", said.shards, sums.shards),
        ("takeovers", said.takeovers, sums.takeovers),
        ("records in", said.records_in, sums.records_in),
        ("records out", said.records_out, sums.records_out),
        ("rejected", said.rejected, sums.rejected),
    ] {
        if said != sum {
            let message = format!("{what}: the totals say {said}, and the shards' accounts add up to {sum}");
            found.push(Finding::new(Check::Totals, "totals", message));
        }
    }
    let mut ids = BTreeSet::new();
    for account in &certificate.shards {
        let (id, counts) = (account.id.to_string(), account.counts());
        if !ids.insert(&account.id) {
            found.push(Finding::new(Check::Certificate, &id, "the shard is there twice"));
        }
        if counts.input != counts.output + counts.rejected {
            let Counts { input, output, rejected } = counts;
            let message = format!("{input} records in aren't {output} out and {rejected} rejected");
            found.push(Finding::new(Check::Shard, &id, message));
        }
    }
    found
}

/// The whole of what is published (G11), for when nothing in particular is wrong with it.
#[must_use]
pub fn whole(certificate: &Certificate, instance: &Instance, boundary: Range) -> Option<Finding> {
    let message = || format!("it isn't whole, or its instance isn't through: that is {}", instance.status.name());
    let is_whole = g11_published_is_whole(certificate, instance, boundary);
    (!is_whole).then(|| Finding::new(Check::Certificate, "", message()))
}

/// Where the shards leave a gap in the boundary, overlap, or go beyond it (G3).
#[must_use]
pub fn cover(certificate: &Certificate, boundary: Range) -> Vec<Finding> {
    let mut accounts: Vec<&ShardAccount> =
        certificate.shards.iter().filter(|account| !account.range.is_empty()).collect();
    accounts.sort_by(|a, b| a.range.from().partial_cmp(&b.range.from()).unwrap_or(std::cmp::Ordering::Equal));
    let mut found = Vec::new();
    let mut at = boundary.from();
    let mut before = None;
    for account in accounts {
        let ShardAccount { id, range, .. } = account;
        if range.from() > at {
            let message = format!("no shard has the part from {at} to {}", range.from());
            found.push(Finding::new(Check::Cover, id.to_string(), message));
        } else if range.from() < at {
            let whose = before.map_or_else(|| "the start".to_owned(), |id: &ShardId| format!("shard {id}"));
            let message = format!("it begins at {}, and {whose} reaches to {at}", range.from());
            found.push(Finding::new(Check::Cover, id.to_string(), message));
        }
        if range.to() > boundary.to() {
            let message = format!("it ends at {}, behind the boundary's end at {}", range.to(), boundary.to());
            found.push(Finding::new(Check::Cover, id.to_string(), message));
        }
        if range.to() > at {
            at = range.to();
        }
        before = Some(id);
    }
    if at < boundary.to() {
        let message = format!("no shard has the part from {at} to {}", boundary.to());
        found.push(Finding::new(Check::Cover, "the end", message));
    }
    let ranges: Vec<Range> = certificate.shards.iter().map(|account| account.range).collect();
    if found.is_empty() && !g3_cover(boundary, &ranges) {
        found.push(Finding::new(Check::Cover, "", format!("the shards don't tile the boundary {boundary}")));
    }
    found
}

/// A shard's account against the shard in the table.
#[must_use]
pub fn shard_in_table(account: &ShardAccount, shard: Option<&Shard>) -> Vec<Finding> {
    let id = account.id.to_string();
    let Some(shard) = shard else {
        return vec![Finding::new(Check::Shard, id, "the table has no such shard")];
    };
    let about = |what, said: String, found: String| Finding::differs(Check::Shard, &id, what, said, found);
    let mut found: Vec<Finding> = Vec::new();
    if shard.status != ShardStatus::Done {
        found.push(Finding::new(Check::Shard, &id, "it isn't done, in the table"));
    }
    found.extend(about("its range, in the table", account.range.to_string(), shard.range.to_string()));
    found.extend(about("its last token, in the table", account.token.to_string(), shard.token.to_string()));
    found.extend(about("its takeovers, in the table", account.takeovers.to_string(), shard.takeovers.to_string()));
    let effects = crate::certificate::EffectCounts::from(shard.outbox);
    let said = (account.effects.sent, account.effects.refused);
    found.extend(about("its effects sent and refused, in the table", format!("{said:?}"), {
        format!("{:?}", (effects.sent, effects.refused))
    }));
    found.extend(differing_counts(Check::Shard, &id, account.counts(), shard.counts));
    found
}

/// A shard's account against its input, read again: `again` is what that came to, `rows` how many records its rows say
/// they hold, `rejects` how many are recorded (G5).
#[must_use]
pub fn shard_in_input(
    account: &ShardAccount,
    shard: Option<&Shard>,
    again: Counts,
    rows: u64,
    rejects: u64,
) -> Vec<Finding> {
    let id = account.id.to_string();
    let mut found = Vec::new();
    for (what, said, read) in [
        ("records in", account.records_in, again.input),
        ("records out", account.records_out, again.output),
        ("rejected", account.rejected, again.rejected),
    ] {
        let what = format!("{what}, when its input is read again");
        found.extend(Finding::differs(Check::Shard, &id, &what, said, read));
    }
    found.extend(Finding::differs(Check::Rejects, &id, "recorded rejects", account.rejected, rejects));
    let exact = shard.is_none_or(|shard| g5_exact_effect(shard, rows, rejects));
    if found.is_empty() && !exact {
        let message =
            format!("its rows hold {rows} records and {rejects} rejects are recorded, which isn't its counts");
        found.push(Finding::new(Check::Shard, &id, message));
    }
    found
}

/// The next reject that was met in the input, against the next one that is recorded. `None` of both is the end.
#[must_use]
pub fn reject(shard: &ShardId, met: Option<&RejectRow>, recorded: Option<&RejectRow>) -> Option<Finding> {
    let place = |row: &RejectRow| format!("{}, line {}, {}", row.source, row.line, row.position);
    let message = match (met, recorded) {
        (None, None) => return None,
        (Some(met), None) => {
            format!("{} is rejected when it is read again ({}), and isn't recorded", place(met), met.why)
        }
        (None, Some(recorded)) => format!("{} is recorded, and isn't rejected when it is read again", place(recorded)),
        (Some(met), Some(recorded)) if met == recorded => return None,
        (Some(met), Some(recorded)) if met.position == recorded.position => {
            format!("{}: recorded is `{}`, and read again it is `{}`", place(met), recorded.why, met.why)
        }
        (Some(met), Some(recorded)) => {
            format!("read again, the next reject is {}, and recorded is {}", place(met), place(recorded))
        }
    };
    Some(Finding::new(Check::Rejects, shard.to_string(), message))
}

/// What a part is, by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, in hex.
    pub sha256: String,
}

/// A part as the certificate has it, against what is stored under its name.
#[must_use]
pub fn part_in_store(part: &Part, stored: Option<&Content>) -> Vec<Finding> {
    let Some(stored) = stored else {
        return vec![Finding::new(Check::Part, &part.name, "it isn't there, and the certificate names it")];
    };
    let bytes = Finding::differs(Check::Part, &part.name, "its bytes", part.bytes, stored.bytes);
    let digest = Finding::differs(Check::Part, &part.name, "its digest", &part.sha256, &stored.sha256);
    bytes.into_iter().chain(digest).collect()
}

/// A part as the certificate has it, against what the input comes to when it is worked on again: the part `name` with
/// that content. `differs_at` is the first line of what is stored that isn't the same, from 1.
#[must_use]
pub fn part_in_input(part: &Part, name: &str, again: &Content, differs_at: Option<u64>) -> Vec<Finding> {
    let mut found = Vec::new();
    let place = |line: u64| format!("{}, line {line}", part.name);
    if let Some(line) = differs_at {
        let message = "what is stored isn't what the input gives when it is read again, from this line on";
        found.push(Finding::new(Check::Part, place(line), message));
    }
    if part.sha256 != again.sha256 || part.bytes != again.bytes {
        let message = format!(
            "the input, read again, gives {} bytes with the digest {}, and the certificate says {} bytes with {}",
            again.bytes, again.sha256, part.bytes, part.sha256
        );
        found.push(Finding::new(Check::Part, &part.name, message));
    } else if part.name != name {
        let message = format!("by its content and its place its name is {name}");
        found.push(Finding::new(Check::Part, &part.name, message));
    }
    found
}

fn differing_counts(check: Check, place: &str, said: Counts, found: Counts) -> Vec<Finding> {
    let pairs = [
        ("records in, in the table", said.input, found.input),
        ("records out, in the table", said.output, found.output),
        ("rejected, in the table", said.rejected, found.rejected),
    ];
    pairs.into_iter().filter_map(|(what, said, found)| Finding::differs(check, place, what, said, found)).collect()
}

impl ShardAccount {
    fn counts(&self) -> Counts {
        Counts { input: self.records_in, output: self.records_out, rejected: self.rejected }
    }
}

#[cfg(test)]
mod tests;
