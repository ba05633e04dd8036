//! Transactions: all of the items or none, each on its condition.

use std::sync::Arc;

use shardcron_domain::ids::Version;
use shardcron_domain::instance::Instance;
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::slot::Slot;

use super::{SlotModel, State};
use crate::fault::Fault;

/// What is written at once. A version that is `None` says that there must be no such item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// The job, and the version that it must have.
    pub job: Option<(Arc<Job>, Version)>,
    /// Instances.
    pub instances: Vec<(Arc<Instance>, Option<Version>)>,
    /// The slot.
    pub slot: Option<(Arc<Slot>, Option<Version>)>,
    /// Skips.
    pub skips: Vec<SkippedRange>,
}

impl SlotModel {
    /// Whether the job is as the transaction says it must be.
    pub(super) fn job_holds(&self, state: &State, transaction: &Transaction) -> bool {
        let holds = |(_, version): &(Arc<Job>, Version)| *version == state.job.version;
        self.fault == Some(Fault::PlanWithoutVersion) || transaction.job.as_ref().is_none_or(holds)
    }

    /// Whether it would apply.
    pub(super) fn holds(&self, state: &State, transaction: &Transaction) -> bool {
        let slot = state.slot.as_ref().map(|slot| slot.version);
        let slot_holds = transaction.slot.as_ref().is_none_or(|(_, version)| *version == slot);
        let instances_hold = transaction.instances.iter().all(|(next, version)| {
            let overwrites = version.is_none() && self.fault == Some(Fault::InstanceNotAbsent);
            overwrites || state.instances.get(&next.id.at).map(|found| found.version) == *version
        });
        let skips_hold = transaction.skips.iter().all(|skip| state.skips.iter().all(|found| found.from != skip.from));
        self.job_holds(state, transaction)
            && (slot_holds || self.fault == Some(Fault::SlotByLook))
            && instances_hold
            && skips_hold
    }

    /// Applies it, all or nothing; whether it applied.
    pub(super) fn apply(&self, state: &mut State, transaction: &Transaction) -> bool {
        if !self.holds(state, transaction) {
            return false;
        }
        if let Some((job, _)) = &transaction.job {
            state.job = Arc::clone(job);
        }
        if let Some((slot, _)) = &transaction.slot {
            state.slot = Some(Arc::clone(slot));
        }
        for (instance, version) in &transaction.instances {
            if version.is_none() {
                state.made.push(instance.id.clone());
            }
            state.instances.insert(instance.id.at, Arc::clone(instance));
        }
        state.made.sort_unstable();
        state.skips.extend(transaction.skips.iter().cloned());
        true
    }
}
