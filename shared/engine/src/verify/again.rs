//! A shard's input, read and worked on again, and its rejects held against those that are recorded.

use std::collections::VecDeque;

use shardcron_domain::certificate::ShardAccount;
use shardcron_domain::ids::ShardKey;
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::{Counts, Shard};
use shardcron_domain::verify::{self, Check, Finding};
use shardcron_input::ShardPlan;
use shardcron_work::Room;

use super::{Verifying, about_input};
use crate::Engine;
use crate::error::{EngineError, inconsistent};
use crate::reading::Input;

/// What a shard came to when it was worked on again.
struct Again {
    counts: Counts,
    rows: Vec<ResultRow>,
}

/// A shard's recorded rejects, page by page, held against those that are met.
struct Recorded<'a> {
    engine: &'a Engine,
    shard: ShardKey,
    page: VecDeque<RejectRow>,
    /// Where the next page begins; `None` once there is none.
    next: Option<Option<String>>,
    taken: u64,
    /// The first difference; what follows it differs because of it.
    finding: Option<Finding>,
}

impl<'a> Recorded<'a> {
    fn of(engine: &'a Engine, shard: ShardKey) -> Self {
        Self { engine, shard, page: VecDeque::new(), next: Some(None), taken: 0, finding: None }
    }

    async fn take(&mut self) -> Result<Option<RejectRow>, EngineError> {
        while self.page.is_empty() {
            let Some(after) = self.next.take() else { return Ok(None) };
            let page = self.engine.store.rejects(&self.shard, after).await?;
            self.page = page.items.into();
            self.next = page.next.map(Some);
        }
        self.taken += 1;
        Ok(self.page.pop_front())
    }

    async fn compare(&mut self, met: &RejectRow) -> Result<(), EngineError> {
        let recorded = self.take().await?;
        if self.finding.is_none() {
            self.finding = verify::reject(&self.shard.shard, Some(met), recorded.as_ref());
        }
        Ok(())
    }

    /// What is recorded beyond those that were met; how many are recorded in all.
    async fn rest(&mut self) -> Result<u64, EngineError> {
        while let Some(recorded) = self.take().await? {
            if self.finding.is_none() {
                self.finding = verify::reject(&self.shard.shard, None, Some(&recorded));
            }
        }
        Ok(self.taken)
    }
}

impl Verifying<'_> {
    /// A shard's input, read and worked on again from its first record to its last.
    pub(super) async fn shard(
        &mut self,
        account: &ShardAccount,
        stored: Option<&Shard>,
        plan: ShardPlan,
    ) -> Result<(), EngineError> {
        let mut rejects = Recorded::of(self.engine, ShardKey { run: self.instance.run(), shard: account.id.clone() });
        let again = match self.work_again(plan, &mut rejects).await {
            Ok(again) => again,
            Err(error) => {
                let message = format!("its input can't be worked on again: {}", about_input(error)?);
                self.find(Check::Shard, account.id.to_string(), message);
                return Ok(());
            }
        };
        let recorded = rejects.rest().await?;
        let rows: u64 = again.rows.iter().map(|row| row.records).sum();
        self.verified.found.extend(rejects.finding.take());
        self.verified.found.extend(verify::shard_in_input(account, stored, again.counts, rows, recorded));
        self.verified.records = self.verified.records.plus(again.counts);
        for row in again.rows {
            self.merge.add(row)?;
        }
        self.verified.shards_read += 1;
        Ok(())
    }

    async fn work_again(&self, plan: ShardPlan, rejects: &mut Recorded<'_>) -> Result<Again, EngineError> {
        let range = plan.range;
        let kind = self.engine.input_kind(self.instance, self.spec, &*self.work)?;
        let mut reader = Input { plan, kind }.open(range)?;
        let stage = self.work.stage();
        let mut work = self.work.open(Vec::new())?;
        let mut counts = Counts::default();
        // Nothing is committed, so there is nothing that a commit must hold.
        let room = Room { rows: usize::MAX, bytes: usize::MAX, records: usize::MAX, rejects: usize::MAX };
        while let Some(chunk) = reader.next().await? {
            let chunk = match &stage {
                Some(stage) => stage.prepare(chunk).await?,
                None => chunk,
            };
            let mut next = 0;
            while next < chunk.len() {
                let processed = work.process(&chunk, next, room).await?;
                if processed.taken == 0 || next + processed.taken > chunk.len() {
                    let at = chunk.record(next).from();
                    return Err(inconsistent(format!("{}: the work takes no record at {at}", chunk.source().name)));
                }
                next += processed.taken;
                counts.input += processed.taken as u64;
                counts.rejected += processed.rejects.len() as u64;
                for met in &processed.rejects {
                    rejects.compare(met).await?;
                }
            }
        }
        counts.output = counts.input - counts.rejected;
        Ok(Again { counts, rows: work.rows() })
    }
}
