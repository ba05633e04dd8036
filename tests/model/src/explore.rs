//! Exploring a model: all of it, or up to the first state in which a guarantee is broken.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

use crate::guarantee::Guarantee;

/// What an exploration came to.
#[derive(Debug)]
pub struct Explored {
    /// Steps that were tried.
    pub steps: usize,
    /// Different states.
    pub states: usize,
    /// The most steps from a beginning to a state, one being the beginning itself.
    pub depth: usize,
    /// Properties that don't hold, or states of interest that were met, each with the steps that lead there.
    pub found: BTreeMap<&'static str, Vec<String>>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, {} steps, depth {}", self.states, self.steps, self.depth)
    }
}

/// Explores all of a model.
pub fn all<M>(model: M) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Debug + Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Debug + Send + Sync + Clone + PartialEq + 'static,
{
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let checker = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    explored(&checker)
}

/// The shortest run that breaks this guarantee, as its steps; `None` when there is none.
pub fn breaks<M>(model: &M, guarantee: Guarantee) -> Option<Vec<String>>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Debug + Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Debug + Send + Sync + Clone + PartialEq + 'static,
{
    let name = guarantee.name();
    let mut shortest: Option<Vec<String>> = None;
    loop {
        let wanted = HasDiscoveries::AnyOf([name].into());
        let mut builder = model.clone().checker().finish_when(wanted);
        if let Some(found) = &shortest {
            // The checker goes on for a while after its first find: what it hands out need not be the shortest run. The
            // depth counts states, and states at the bound aren't looked at.
            builder = builder.target_max_depth(found.len() + 1);
        }
        let found = explored(&builder.spawn_bfs().join()).found.remove(name);
        if found.is_none() {
            return shortest;
        }
        shortest = found;
    }
}

fn explored<M>(checker: &impl Checker<M>) -> Explored
where
    M: Model,
    M::State: Debug + Hash + Clone + PartialEq,
    M::Action: Debug + Clone + PartialEq,
{
    let steps = |path: stateright::Path<M::State, M::Action>| {
        path.into_actions().iter().map(|action| format!("{action:?}")).collect()
    };
    Explored {
        steps: checker.state_count(),
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        found: checker.discoveries().into_iter().map(|(name, path)| (name, steps(path))).collect(),
    }
}
