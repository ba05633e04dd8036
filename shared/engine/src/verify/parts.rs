//! The published parts: as they are stored, and against what the input comes to.

use shardcron_domain::certificate::Certificate;
use shardcron_domain::digest;
use shardcron_domain::record::Format;
use shardcron_domain::result::OutputTable;
use shardcron_domain::verify::{self, Check, Content, Finding};
use shardcron_objects::{ObjectName, ObjectsError};

use super::{Verified, Verifying};
use crate::Engine;
use crate::error::EngineError;
use crate::place::{in_output, part_name};

/// A part as it is stored.
struct Stored {
    content: Content,
    /// The first line that differs from what was expected, from 1.
    differs_at: Option<u64>,
}

impl Engine {
    /// Reads a part, block by block, and holds it against what is expected of it; `None` when it isn't there.
    async fn stored(&self, name: &ObjectName, expected: Option<&str>) -> Result<Option<Stored>, EngineError> {
        let mut reader = match self.objects.get(name, None, None).await {
            Ok(reader) => reader,
            Err(ObjectsError::NotFound { .. } | ObjectsError::Name { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (mut running, mut bytes) = (digest::Running::default(), 0_usize);
        let mut line = 1_u64;
        let mut differs_at = None;
        while let Some(block) = reader.next().await? {
            running.add(&block);
            if let Some(expected) = expected.filter(|_| differs_at.is_none()) {
                let rest = expected.as_bytes().get(bytes..).unwrap_or_default();
                let same = block.iter().zip(rest).take_while(|(one, other)| one == other).count();
                line += block[..same].iter().filter(|byte| **byte == b'\n').count() as u64;
                differs_at = (same < block.len()).then_some(line);
            }
            bytes += block.len();
        }
        if expected.is_some_and(|expected| bytes < expected.len()) && differs_at.is_none() {
            differs_at = Some(line);
        }
        let content = Content { bytes: bytes as u64, sha256: running.finish() };
        Ok(Some(Stored { content, differs_at }))
    }
}

fn part_of(table: &OutputTable, rows: std::ops::Range<usize>, format: Format) -> String {
    let part = OutputTable { columns: table.columns.clone(), rows: table.rows[rows].to_vec() };
    match format {
        Format::Csv => part.to_csv(),
        Format::Ndjson => part.to_ndjson(),
    }
}

impl Verifying<'_> {
    /// The parts: as they are stored, and against what the input comes to.
    pub(super) async fn parts(mut self, certificate: &Certificate) -> Result<Verified, EngineError> {
        let is_whole = self.verified.shards_read == self.verified.shards && self.accounts.is_empty();
        let format = self.spec.spec.output.format;
        let table = if is_whole { Some(self.merge.finish()?) } else { None };
        let output = self.spec.output()?;
        let mut from = 0;
        for (number, part) in certificate.parts.iter().enumerate() {
            let again = table.as_ref().map(|table| {
                let to = usize::try_from(part.rows).unwrap_or(usize::MAX).saturating_add(from).min(table.rows.len());
                let text = part_of(table, from..to, format);
                from = to;
                text
            });
            let name = in_output(&output, &self.instance.run(), &part.name);
            let stored = self.engine.stored(&name, again.as_deref()).await?;
            let content = stored.as_ref().map(|stored| &stored.content);
            self.verified.found.extend(verify::part_in_store(part, content));
            if let Some(text) = &again {
                let content = Content { bytes: text.len() as u64, sha256: digest::of(text) };
                let ending = match format {
                    Format::Csv => "csv",
                    Format::Ndjson => "ndjson",
                };
                let name = part_name(certificate.generation, number, &content.sha256, ending);
                let differs_at = stored.and_then(|stored| stored.differs_at);
                self.verified.found.extend(verify::part_in_input(part, &name, &content, differs_at));
            }
        }
        if let Some(table) = table {
            let (rows, said) = (table.rows.len() as u64, certificate.parts.iter().map(|part| part.rows).sum::<u64>());
            if rows != said {
                let message = format!("the input, read again, gives {rows} rows, and the parts have {said}");
                self.verified.found.push(Finding::new(Check::Part, "", message));
            }
            if certificate.parts.is_empty() {
                let message = "there is none, and an output has at least one";
                self.verified.found.push(Finding::new(Check::Part, "", message));
            }
            self.verified.rows = Some(rows);
        }
        Ok(self.verified)
    }
}
