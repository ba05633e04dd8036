//! What happens to wall-clock times that a zone skips or repeats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job's policy for the hours that a zone skips and repeats. A member that is given applies to every schedule;
/// one that isn't takes the default of the schedule's form.
///
/// * A *wall-clock* schedule, where neither the minute nor the hour field begins with `*`, means times of day: by
///   default each runs once a day, so `gap` is [`Gap::Next`] and `overlap` [`Overlap::First`].
/// * A schedule whose minute or hour field begins with `*` means a rhythm: by default it follows elapsed time, so
///   `gap` is [`Gap::Skip`] and `overlap` [`Overlap::Both`].
///
/// `rate(...)` counts elapsed time and takes no notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    description = "The policy for the hours that the zone skips and repeats. A member that isn't given takes the \
    default of the schedule's form."
)]
pub struct Dst {
    /// For times that the zone skips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// For times that the zone repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
}

/// What becomes of a wall-clock time that a zone skips, when its clocks go forward by at most three hours.
///
/// A greater jump (a calendar day skipped at the date line, say) isn't filled under either: its times are skipped.
/// The bound is cronie's, which treats a greater change of the clock as a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Gap {
    /// It runs at the first instant after the gap. Several such times are one run, as is one that meets a regular
    /// time there.
    Next,
    /// It doesn't run.
    Skip,
}

/// Which of two equal wall-clock times runs, when a zone's clocks go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// The earlier one.
    First,
    /// The later one.
    Last,
    /// Both.
    Both,
}

/// A [`Dst`] with the defaults filled in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) gap: Gap,
    pub(super) overlap: Overlap,
}

impl Policy {
    /// The policy of a schedule whose minute or hour field begins with `*` (`starred`), or of one where neither does.
    pub(super) fn of(dst: Dst, starred: bool) -> Self {
        let (gap, overlap) = if starred { (Gap::Skip, Overlap::Both) } else { (Gap::Next, Overlap::First) };
        Self { gap: dst.gap.unwrap_or(gap), overlap: dst.overlap.unwrap_or(overlap) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_and_written_in_lower_case_without_what_is_not_given() {
        let dst: Dst = serde_json::from_str(r#"{"gap":"skip"}"#).unwrap();
        assert_eq!(dst, Dst { gap: Some(Gap::Skip), overlap: None });
        assert_eq!(serde_json::to_string(&dst).unwrap(), r#"{"gap":"skip"}"#);
        assert_eq!(serde_json::to_string(&Dst::default()).unwrap(), "{}");
        for wrong in [r#"{"gap":"Skip"}"#, r#"{"gap":"both"}"#, r#"{"overlap":"next"}"#, r#"{"gaps":"skip"}"#] {
            assert!(serde_json::from_str::<Dst>(wrong).is_err(), "{wrong}");
        }
    }
}
