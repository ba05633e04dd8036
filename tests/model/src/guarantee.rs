//! Which guarantees a run has broken.

use stateright::{Model, Property};

/// The guarantees that the models check; `shardcron_domain::invariants` says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "their names are in `name`")]
pub enum Guarantee {
    G1,
    G2,
    G3,
    G4,
    G5,
    G6,
    G7,
    G8,
    G9,
    G10,
    G11,
    /// A state from which nothing goes on is one in which all has ended.
    Ends,
}

impl Guarantee {
    /// The property's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::G1 => "G1 one identity",
            Self::G2 => "G2 answered once",
            Self::G3 => "G3 cover",
            Self::G4 => "G4 one owner that counts",
            Self::G5 => "G5 exact effect",
            Self::G6 => "G6 checkpoint never ahead",
            Self::G7 => "G7 overlap policy",
            Self::G8 => "G8 limits",
            Self::G9 => "G9 stopped is fenced",
            Self::G10 => "G10 finished is final",
            Self::G11 => "G11 published is whole",
            Self::Ends => "all runs end",
        }
    }
}

/// Those that were broken on the way to a state. Kept in the state: a guarantee about a change can't be read off the items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken(u16);

impl Broken {
    /// Notes that a guarantee was broken, unless it holds.
    pub fn unless(&mut self, holds: bool, guarantee: Guarantee) {
        if !holds {
            self.0 |= 1 << guarantee as u16;
        }
    }

    /// Whether it was broken.
    #[must_use]
    pub fn has(self, guarantee: Guarantee) -> bool {
        self.0 & (1 << guarantee as u16) != 0
    }

    /// Whether any was.
    #[must_use]
    pub fn any(self) -> bool {
        self.0 != 0
    }
}

/// A model whose states say what was broken and whether all has ended.
pub trait Checked: Model {
    /// What was broken on the way here.
    fn broken(state: &Self::State) -> Broken;

    /// Whether all has ended.
    fn has_ended(state: &Self::State) -> bool;
}

/// The properties of a model: the guarantees, and that a state without a next one is an end.
#[must_use]
pub fn properties<M: Checked>() -> Vec<Property<M>> {
    macro_rules! always {
        ($($guarantee:ident),*) => {
            vec![$(Property::always(Guarantee::$guarantee.name(), |_: &M, state: &M::State| {
                !M::broken(state).has(Guarantee::$guarantee)
            })),*]
        };
    }
    let mut all = always![G1, G2, G3, G4, G5, G6, G7, G8, G9, G10, G11];
    all.push(Property::always(Guarantee::Ends.name(), |model: &M, state: &M::State| {
        M::has_ended(state) || {
            let mut actions = Vec::new();
            model.actions(state, &mut actions);
            !actions.is_empty()
        }
    }));
    all
}
