//! An error as it is kept on an item: short, and with what a person needs to mend it.

use serde::{Deserialize, Serialize};

use crate::limits::{ERROR_SUMMARY_MAX, INPUT_ERROR_SUMMARY_MAX};

/// Characters of where an error was, such as a file's path, that are kept at least: of a path, they are mostly its last
/// parts.
const PLACE_MIN: usize = 40;

/// What begins behind the place in an error's text.
const BEHIND_PLACE: [&str; 3] = [", line ", ", byte ", ": "];

/// An error as it is kept on an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fault {
    /// What can mend it.
    pub kind: FaultKind,
    /// The text, at most [`INPUT_ERROR_SUMMARY_MAX`] characters where only other input mends it, and at most
    /// [`ERROR_SUMMARY_MAX`] else; the attempt log has all of it.
    #[serde(rename = "text")]
    summary: String,
}

/// What can mend a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// Another try may.
    Retryable,
    /// Another try can't: only other input, another job, or whoever mends what is stored can.
    Input,
    /// The process died, or was paused beyond its lease, without a word.
    Crash,
}

impl Fault {
    /// A fault with this text. Of one that is too long the middle is left out, first of the place that it begins with, such
    /// as a file's path, then of what follows: so the line, what is wrong and what to do stay.
    #[must_use]
    pub fn new(kind: FaultKind, text: &str) -> Self {
        let most = match kind {
            FaultKind::Input => INPUT_ERROR_SUMMARY_MAX,
            FaultKind::Retryable | FaultKind::Crash => ERROR_SUMMARY_MAX,
        };
        Self { kind, summary: summary(text, most) }
    }

    /// The text.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }
}

fn summary(text: &str, most: usize) -> String {
    if length(text) <= most {
        return text.to_owned();
    }
    let behind = BEHIND_PLACE.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(0);
    let (place, reason) = text.split_at(behind);
    let reason = without_middle(reason, most - length(place).min(PLACE_MIN), (3, 5));
    // A path is known by its end.
    let place = without_middle(place, most - length(&reason), (1, 5));
    format!("{place}{reason}")
}

/// A text of at most `most` characters, which is at least 1: of a longer one this share of them is its beginning, and the
/// rest, but for the mark of what is left out, its end.
fn without_middle(text: &str, most: usize, (share, of): (usize, usize)) -> String {
    let all = length(text);
    if all <= most {
        return text.to_owned();
    }
    let first = (most - 1) * share / of;
    let last = most - 1 - first;
    text.chars().take(first).chain(['…']).chain(text.chars().skip(all - last)).collect()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        Fault::new(FaultKind::Input, text).summary().to_owned()
    }

    #[test]
    fn a_long_path_loses_its_middle_and_nothing_else_is_lost() {
        let directory = "d".repeat(300);
        let why = ", line 1234567, byte 123456789: column `amount`: `twelve` isn't a decimal number such as -12.50";
        let text = shown(&format!("/data/{directory}/2026-01.csv{why}"));
        assert!(text.starts_with("/data/") && text.ends_with(&format!("d/2026-01.csv{why}")), "{text}");
        assert_eq!(length(&text), INPUT_ERROR_SUMMARY_MAX);
        let text = shown(&format!("reading /data/{directory}/2026-01.csv: No space left on device"));
        assert!(
            text.starts_with("reading /data/d") && text.ends_with("d/2026-01.csv: No space left on device"),
            "{text}"
        );
    }

    #[test]
    fn a_long_reason_keeps_its_place_its_beginning_and_its_end() {
        let list = "`column`, ".repeat(100);
        let text = shown(&format!("in/a.csv, line 1, byte 0: its header has no column `city`; {list}what to do"));
        assert!(text.starts_with("in/a.csv, line 1, byte 0: its header has no column `city`; "), "{text}");
        assert!(text.ends_with("`column`, what to do"), "{text}");
    }

    #[test]
    fn a_text_that_fits_is_kept() {
        for text in ["", "gone", "in/a.csv: gone", &"x".repeat(INPUT_ERROR_SUMMARY_MAX)] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(length(&shown(&"x".repeat(INPUT_ERROR_SUMMARY_MAX + 1))), INPUT_ERROR_SUMMARY_MAX);
    }

    proptest! {
        #[test]
        fn no_text_is_over_the_bound(place in "\\PC{0,200}", mark in "(, line )?(: )?", reason in "\\PC{0,400}") {
            let text = format!("{place}{mark}{reason}");
            let shown = shown(&text);
            prop_assert_eq!(length(&shown), length(&text).min(INPUT_ERROR_SUMMARY_MAX));
            let retryable = Fault::new(FaultKind::Retryable, &text);
            prop_assert_eq!(length(retryable.summary()), length(&text).min(ERROR_SUMMARY_MAX));
        }
    }
}
