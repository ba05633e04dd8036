//! Locations with times in them, such as `s3://ledger/tx/{window.start:%Y/%m/%d}/`.
//!
//! A placeholder is a time, and after a colon how it is written: a format of `strftime`'s directives, in the job's
//! zone. The times are
//!
//! | name | meaning |
//! | --- | --- |
//! | `window.start` | where the instance's window begins |
//! | `window.end` | where it ends |
//! | `time` | the instance's scheduled time |
//!
//! Without a format a time is written in UTC, as `2026-08-29T16:00:00Z`: the form that names an instance's output, so
//! that `s3://ledger/settled/daily-settlement@{time}/` is where another job of the same times has published.
//!
//! `{{` and `}}` stand for braces.

use jiff::fmt::strtime::{BrokenDownTime, Config};
use jiff::tz::TimeZone;

use crate::job::nearest;
use crate::time::ScheduledTime;

/// A text with placeholders for times. Made by [`Template::parse`], so every placeholder can be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Time { name: Name, format: Option<String> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    WindowStart,
    WindowEnd,
    Time,
}

const NAMES: &[(&str, Name)] =
    &[("window.start", Name::WindowStart), ("window.end", Name::WindowEnd), ("time", Name::Time)];

/// Why a text isn't a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A placeholder begins and doesn't end.
    #[error("`{0}` opens a placeholder that nothing closes")]
    Unclosed(String),
    /// A brace closes what none has opened.
    #[error("the `}}` at byte {0} closes nothing")]
    Unopened(usize),
    /// There is no time of this name.
    #[error("there is no `{0}` to fill in")]
    Unknown(String),
    /// The format isn't one of `strftime`'s.
    #[error("`{format}` isn't a format of a time: {reason}")]
    Format {
        /// The format.
        format: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl TemplateError {
    /// What to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unclosed(_) => Some("close it with `}`, or write `{{` for a brace".to_owned()),
            Self::Unopened(_) => Some("write `}}` for a brace".to_owned()),
            Self::Unknown(given) => Some(match nearest(given, NAMES.iter().map(|(name, _)| *name)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "the times are `window.start`, `window.end` and `time`; write `{{` for a brace".to_owned(),
            }),
            Self::Format { .. } => Some("write a format such as `%Y/%m/%d`, or `%%` for a percent sign".to_owned()),
        }
    }
}

/// What a template is filled with.
#[derive(Clone, Copy, Debug)]
pub struct TemplateTimes<'a> {
    /// Where the instance's window begins.
    pub window_start: ScheduledTime,
    /// Where it ends.
    pub window_end: ScheduledTime,
    /// The instance's scheduled time.
    pub time: ScheduledTime,
    /// The job's zone.
    pub zone: &'a TimeZone,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`] when a brace stands alone, a placeholder names no time, or its format isn't one.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..];
            if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
                literal.push_str(&brace[..1]);
                rest = after;
            } else if let Some(inside) = brace.strip_prefix('{') {
                let (placeholder, after) =
                    inside.split_once('}').ok_or_else(|| TemplateError::Unclosed(brace.to_owned()))?;
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::parse(placeholder)?);
                rest = after;
            } else {
                return Err(TemplateError::Unopened(text.len() - brace.len()));
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The template as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, if it is the same at all times: there is no placeholder in it.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let literals = self.parts.iter().map(|part| match part {
            Part::Literal(literal) => Some(literal.as_str()),
            Part::Time { .. } => None,
        });
        literals.collect()
    }

    /// The text with its placeholders filled.
    #[must_use]
    pub fn render(&self, times: &TemplateTimes<'_>) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Time { name, format } => {
                    let at = match name {
                        Name::WindowStart => times.window_start,
                        Name::WindowEnd => times.window_end,
                        Name::Time => times.time,
                    };
                    match format {
                        Some(format) => text.push_str(&written(at, times.zone, format)),
                        None => text.push_str(&at.to_string()),
                    }
                }
            }
        }
        text
    }

    /// The text for some instance: what to check the form of a location by.
    #[must_use]
    pub fn sample(&self) -> String {
        let at = sample_time();
        self.render(&TemplateTimes { window_start: at, window_end: at, time: at, zone: &TimeZone::UTC })
    }
}

impl Part {
    fn parse(placeholder: &str) -> Result<Self, TemplateError> {
        let (given, format) = match placeholder.split_once(':') {
            Some((name, format)) => (name, Some(format)),
            None => (placeholder, None),
        };
        let Some((_, name)) = NAMES.iter().find(|(name, _)| *name == given) else {
            return Err(TemplateError::Unknown(given.to_owned()));
        };
        let refuse = |format: &str, reason: String| TemplateError::Format { format: format.to_owned(), reason };
        match format {
            None => {}
            Some("") => return Err(refuse("", "it is empty".to_owned())),
            Some(format) => {
                // Which directives there are doesn't depend on the time, so one that formats stands for all.
                let sample = BrokenDownTime::from(&sample_time().timestamp().to_zoned_datetime(TimeZone::UTC));
                sample.to_string(format).map_err(|error| refuse(format, error.to_string()))?;
            }
        }
        Ok(Self::Time { name: *name, format: format.map(str::to_owned) })
    }
}

fn written(at: ScheduledTime, zone: &TimeZone, format: &str) -> String {
    let zoned = at.timestamp().to_zoned_datetime(zone.clone());
    #[expect(clippy::expect_used, reason = "lenient formatting writes what it can't format as it stands")]
    BrokenDownTime::from(&zoned)
        .to_string_with_config(&Config::new().lenient(true), format)
        .expect("lenient formatting doesn't fail")
}

fn sample_time() -> ScheduledTime {
    #[expect(clippy::expect_used, reason = "the second lies within the years 0000 to 9999")]
    ScheduledTime::from_second(951_782_400).expect("2000-02-29T00:00:00Z is a scheduled time")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::ZoneRules;

    fn rendered(text: &str, zone: &str) -> String {
        let zone = ZoneRules::bundled().zone(zone).unwrap();
        let time = |text: &str| text.parse().unwrap();
        Template::parse(text).unwrap().render(&TemplateTimes {
            window_start: time("2026-08-28T16:00:00Z"),
            window_end: time("2026-08-29T16:00:00Z"),
            time: time("2026-08-29T16:30:00Z"),
            zone: zone.time_zone(),
        })
    }

    #[test]
    fn times_are_written_in_the_jobs_zone() {
        let text = "s3://b/{window.start:%Y/%m/%d}/{window.end:%F}/{time:%H:%M}/";
        assert_eq!(rendered(text, "Asia/Shanghai"), "s3://b/2026/08/29/2026-08-30/00:30/");
        assert_eq!(rendered(text, "UTC"), "s3://b/2026/08/28/2026-08-29/16:30/");
    }

    #[test]
    fn a_time_without_a_format_is_the_form_that_names_an_output() {
        assert_eq!(rendered("up@{time}/", "Asia/Shanghai"), "up@2026-08-29T16:30:00Z/");
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(rendered("{{time}}{{{time:%Y}}}", "UTC"), "{time}{2026}");
        assert_eq!(rendered("", "UTC"), "");
    }

    #[test]
    fn what_cant_be_filled_is_refused_with_a_hint() {
        let hint = |text: &str| Template::parse(text).unwrap_err().hint().unwrap();
        assert_eq!(hint("a/{windowstart}/"), "did you mean `window.start`?");
        assert_eq!(hint("a/{Time:%Y}/"), "did you mean `time`?");
        assert!(hint("a/{partition}/").contains("window.end"));
        assert_eq!(Template::parse("a/{time:%Y"), Err(TemplateError::Unclosed("{time:%Y".to_owned())));
        assert_eq!(Template::parse("ab}"), Err(TemplateError::Unopened(2)));
        for format in ["%", "%!", "%Y-%", ""] {
            let refused = Template::parse(&format!("{{time:{format}}}"));
            assert!(matches!(refused, Err(TemplateError::Format { .. })), "{format}: {refused:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_renders(text in "[{}a-z:.%]{0,20}|\\PC{0,20}") {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(template.as_str(), &text);
                let _ = template.sample();
            }
        }

        #[test]
        fn a_text_with_its_braces_doubled_is_itself(text in "\\PC{0,30}") {
            let template = Template::parse(&text.replace('{', "{{").replace('}', "}}")).unwrap();
            prop_assert_eq!(template.sample(), text);
        }
    }
}
