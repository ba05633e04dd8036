//! Names and numbers that identify things, each a type of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::time::{ScheduledTime, TimeError};

/// Why a text isn't a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty or too long.
    #[error("a name has 1 to {max} characters, and `{name}` has {len}")]
    Length {
        /// What was given.
        name: String,
        /// Its length in bytes.
        len: usize,
        /// The most it may have.
        max: usize,
    },
    /// It has a character outside the allowed ones.
    #[error("a name is made of a-z, A-Z, 0-9, `.`, `_` and `-` and begins with a letter or digit; `{name}` isn't")]
    Character {
        /// What was given.
        name: String,
    },
}

fn check_name(name: &str, max: usize) -> Result<(), NameError> {
    if name.is_empty() || name.len() > max {
        return Err(NameError::Length { name: name.to_owned(), len: name.len(), max });
    }
    let legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if !legal || !name.as_bytes()[0].is_ascii_alphanumeric() {
        return Err(NameError::Character { name: name.to_owned() });
    }
    Ok(())
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                check_name(&name, $max)?;
                Ok(Self(name))
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::try_from(name.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// The name of a job: 1 to 63 of `a-z A-Z 0-9 . _ -`, so that it can stand in keys, paths and instance names.
    JobName,
    limits::JOB_NAME_MAX
);

name_type!(
    /// What several jobs share a slot by. Same characters as a job's name.
    ConcurrencyKey,
    limits::JOB_NAME_MAX
);

macro_rules! counter_type {
    ($(#[$doc:meta])* $name:ident($inner:ty), first = $first:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// Where it begins.
            pub const FIRST: Self = Self($first);

            /// The one after it.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

counter_type!(
    /// 1, and +1 for each deliberate rerun of an instance from scratch. Results of generations never mix.
    Generation(u32), first = 1
);
counter_type!(
    /// 1, and +1 for each retry of a failed instance on the results it has.
    Attempt(u32), first = 1
);
counter_type!(
    /// The fencing token: +1 at each claim, fence and reopening. Each write of an owner carries it and the store
    /// checks it (Kleppmann, "How to do distributed locking", 2016).
    Token(u64), first = 0
);
counter_type!(
    /// +1 at each write of an item; what a compare-and-set names.
    Version(u64), first = 1
);
counter_type!(
    /// The version of a job's spec, from 1.
    SpecVersion(u32), first = 1
);
counter_type!(
    /// A group of at most [`limits::GROUP_SHARDS_MAX`] shards of an instance, from 0.
    GroupNo(u32), first = 0
);

/// An execution's identity: the job and the scheduled time. Shown and parsed as `job:2026-08-29T16:00:00Z`.
///
/// Any offset is accepted when parsing; the identity is the UTC instant, so that a change of the job's zone can't make
/// a second identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstanceId {
    /// The job.
    pub job: JobName,
    /// The scheduled time.
    pub at: ScheduledTime,
}

/// Why a text isn't an instance's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceIdError {
    /// There is no colon between job and time.
    #[error("an instance is named `job:scheduled time`, such as `daily:2026-08-30T00:00:00+08:00`; `{0}` has no colon")]
    NoColon(String),
    /// The part before the colon isn't a job's name.
    #[error(transparent)]
    Job(#[from] NameError),
    /// The part after it isn't a time.
    #[error(transparent)]
    Time(#[from] TimeError),
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.job, self.at)
    }
}

impl FromStr for InstanceId {
    type Err = InstanceIdError;
    fn from_str(text: &str) -> Result<Self, InstanceIdError> {
        let (job, at) = text.split_once(':').ok_or_else(|| InstanceIdError::NoColon(text.to_owned()))?;
        Ok(Self { job: job.parse()?, at: at.parse()? })
    }
}

/// A shard's id, unique in its instance: `00042`, and `00042.1` for a child of a split.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShardId(String);

/// Why a text isn't a shard's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a shard is named by five or more digits, with `.n` for each split, such as `00042.1`; `{0}` isn't")]
pub struct ShardIdError(pub(crate) String);

impl ShardId {
    /// The id of a shard of the manifest, by its number from 0.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        Self(format!("{number:05}"))
    }

    /// The id of this shard's child with this number.
    #[must_use]
    pub fn child(&self, number: u32) -> Self {
        Self(format!("{}.{number}", self.0))
    }

    /// Whether it was cut from another shard.
    #[must_use]
    pub fn is_child(&self) -> bool {
        self.0.contains('.')
    }

    /// The number in the manifest of the shard, or of the one that it was split from.
    #[must_use]
    pub fn number(&self) -> u32 {
        let digits = self.0.split('.').next().unwrap_or_default();
        digits.parse().unwrap_or(u32::MAX)
    }

    /// The group that it belongs to; a child belongs to its parent's.
    #[must_use]
    pub fn group(&self) -> GroupNo {
        GroupNo(self.number() / limits::GROUP_SHARDS_MAX as u32)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ShardId {
    type Error = ShardIdError;
    fn try_from(text: String) -> Result<Self, ShardIdError> {
        let mut parts = text.split('.');
        let number = parts.next().unwrap_or_default();
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let legal = number.len() >= 5 && digits(number) && number.parse::<u32>().is_ok() && parts.all(digits);
        if legal { Ok(Self(text)) } else { Err(ShardIdError(text)) }
    }
}

impl From<ShardId> for String {
    fn from(id: ShardId) -> Self {
        id.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The generation of an instance: what results, shards and groups belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    /// The instance.
    pub instance: InstanceId,
    /// Which generation of it.
    pub generation: Generation,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generation {}", self.instance, self.generation)
    }
}

/// A shard of a generation of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardKey {
    /// The generation of the instance.
    pub run: RunId,
    /// The shard in it.
    pub shard: ShardId,
}

impl fmt::Display for ShardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.shard, self.run)
    }
}

/// Who holds a lease: drawn afresh at each claim, so that a process that comes back under the same host name, or
/// claims twice, is another owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(pub String);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Drawn afresh for each write request; tells *my write was applied* from *somebody else's* when the answer was lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriteId(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_known_by_its_utc_instant() {
        let shown: InstanceId = "daily-settlement:2026-08-30T00:00:00+08:00".parse().unwrap();
        assert_eq!(shown.to_string(), "daily-settlement:2026-08-29T16:00:00Z");
        assert_eq!(shown, "daily-settlement:2026-08-29T16:00:00Z".parse().unwrap());
    }

    #[test]
    fn names_that_could_leave_a_path_or_a_key_are_refused() {
        for bad in ["", "..", "a/b", "a:b", "a#b", "-a", "ä", &"a".repeat(64)] {
            assert!(bad.parse::<JobName>().is_err(), "{bad}");
        }
        assert!("a".repeat(63).parse::<JobName>().is_ok());
    }

    #[test]
    fn a_child_of_a_split_stays_in_its_parents_group() {
        let child = ShardId::numbered(142).child(2).child(1);
        assert_eq!(child.as_str(), "00142.2.1");
        assert_eq!(child.group(), GroupNo(1));
        assert_eq!(ShardId::try_from("00142.2.1".to_owned()), Ok(child));
        for bad in ["142", "00142.", "00142.x", "", ".1"] {
            assert!(ShardId::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
