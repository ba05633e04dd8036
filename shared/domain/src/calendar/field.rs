//! One field of a cron expression: reading it, checking it, and writing it in canonical form.
//!
//! Canonical is `*`, or the list of the field's values in order, each a plain number (Sunday is 0), then the items
//! that no list of numbers can say (`L`, `LW`, `15W`, `5#3`, `5#L`). So what croner makes of less plain forms is no
//! part of our dialects: it drops empty list items, lets a step run past the field's end, and replaces names
//! wherever their letters stand.

use std::collections::BTreeSet;

use super::CalendarError;

/// What a field can hold.
#[derive(Debug)]
pub(super) struct Spec {
    /// As errors call it.
    name: &'static str,
    first: u16,
    last: u16,
    /// Names of the values from `first` on.
    names: &'static [&'static str],
    kind: Kind,
}

/// How the values of a field are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Day,
    /// Sunday is 0, and 7 too.
    Weekday,
    /// Sunday is 1.
    EventBridgeWeekday,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

pub(super) const MINUTE: Spec = Spec { name: "minute", first: 0, last: 59, names: &[], kind: Kind::Plain };
pub(super) const HOUR: Spec = Spec { name: "hour", first: 0, last: 23, names: &[], kind: Kind::Plain };
pub(super) const DAY: Spec = Spec { name: "day-of-month", first: 1, last: 31, names: &[], kind: Kind::Day };
pub(super) const MONTH: Spec = Spec { name: "month", first: 1, last: 12, names: MONTHS, kind: Kind::Plain };
pub(super) const WEEKDAY: Spec = Spec { name: "day-of-week", first: 0, last: 6, names: WEEKDAYS, kind: Kind::Weekday };
pub(super) const EVENTBRIDGE_WEEKDAY: Spec =
    Spec { name: "day-of-week", first: 1, last: 7, names: WEEKDAYS, kind: Kind::EventBridgeWeekday };
pub(super) const YEAR: Spec = Spec { name: "year", first: 1970, last: 2199, names: &[], kind: Kind::Plain };

/// A field that was read and found right.
#[derive(Debug)]
pub(super) struct Field {
    spec: &'static Spec,
    text: String,
    /// `*`, `*/1` or `?`.
    unrestricted: bool,
    values: BTreeSet<u16>,
    /// `L`, `LW`, `15W`, `5#3`, `5#L`.
    marks: BTreeSet<String>,
}

/// Why an item of a field is wrong, and what to write instead.
struct Wrong(String, Option<String>);

impl From<String> for Wrong {
    fn from(reason: String) -> Self {
        Self(reason, None)
    }
}

impl Field {
    /// Reads the text of one field, which is ASCII and holds no white space.
    pub(super) fn parse(spec: &'static Spec, text: &str) -> Result<Self, CalendarError> {
        let mut field =
            Self { spec, text: text.to_owned(), unrestricted: false, values: BTreeSet::new(), marks: BTreeSet::new() };
        match field.read(text) {
            Ok(()) => Ok(field),
            Err(Wrong(reason, hint)) => {
                Err(CalendarError { field: "schedule", reason: format!("{}: {reason}", spec.name), hint })
            }
        }
    }

    /// Whether the field begins with `*`.
    pub(super) fn is_starred(&self) -> bool {
        self.text.starts_with('*')
    }

    /// Whether the field is `?`.
    pub(super) fn is_blank(&self) -> bool {
        self.text == "?"
    }

    /// Whether the field is `*`, `*/1` or `?`.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.unrestricted
    }

    /// The field's canonical forms: its times are those of all of them together. There are two where one of
    /// croner's can't say it: that reads `L,LW` as `LW` alone.
    pub(super) fn canonical(&self) -> Vec<String> {
        if self.unrestricted {
            return vec!["*".to_owned()];
        }
        let split = self.marks.contains("L") && self.marks.contains("LW");
        let marks = self.marks.iter().filter(|mark| !(split && *mark == "LW"));
        let items: Vec<String> = self.values.iter().map(u16::to_string).chain(marks.cloned()).collect();
        let mut forms = vec![items.join(",")];
        if split {
            forms.push("LW".to_owned());
        }
        forms
    }

    fn read(&mut self, text: &str) -> Result<(), Wrong> {
        let spec = self.spec;
        if text == "?" && spec.is_day() {
            self.unrestricted = true;
            return Ok(());
        }
        if text.contains('?') {
            return Err(if spec.is_day() {
                Wrong(format!("`?` stands alone, not in `{text}`"), Some("write ? or the list".to_owned()))
            } else {
                Wrong("`?` stands only in a day field".to_owned(), Some("write * for every value".to_owned()))
            });
        }
        let items: Vec<&str> = text.split(',').collect();
        for &item in &items {
            self.read_item(item, items.len() == 1, text)?;
        }
        if spec.kind == Kind::EventBridgeWeekday && items.len() > 1 && text.contains('#') {
            return Err(Wrong(
                format!("EventBridge allows one `#` and nothing beside it, not `{text}`"),
                Some("write five fields, which allow a list of them, or two jobs".to_owned()),
            ));
        }
        Ok(())
    }

    fn read_item(&mut self, item: &str, alone: bool, text: &str) -> Result<(), Wrong> {
        let spec = self.spec;
        if item.is_empty() {
            return Err(Wrong(format!("`{text}` has an empty list item"), Some("take a comma away".to_owned())));
        }
        if self.read_mark(item)? {
            return Ok(());
        }
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(spec.step(step, item)?)),
            None => (item, None),
        };
        let (first, last) = if base == "*" {
            if step.is_none_or(|step| step == 1) {
                if !alone && spec.is_day() {
                    return Err(Wrong(
                        format!("`{base}` in the list `{text}` leaves open whether the field is restricted"),
                        Some("write * alone, or the list without it".to_owned()),
                    ));
                }
                self.unrestricted |= alone;
            }
            (spec.first, spec.last)
        } else if base.contains('-') {
            spec.range(base)?
        } else {
            let value = spec.value(base)?;
            match step {
                None => (value, value),
                Some(_) if value > spec.last => {
                    return Err(Wrong(
                        format!("`{item}` begins beyond {}, where a step ends", spec.last),
                        Some("write Sunday as 0".to_owned()),
                    ));
                }
                Some(_) => (value, spec.last),
            }
        };
        let values = (first..=last).step_by(usize::from(step.unwrap_or(1)));
        self.values.extend(values.map(|value| spec.canonical(value)));
        Ok(())
    }

    /// Reads an item that stands for days which differ from month to month; says whether it was one.
    fn read_mark(&mut self, item: &str) -> Result<bool, Wrong> {
        let spec = self.spec;
        let upper = item.to_ascii_uppercase();
        let mark = match spec.kind {
            Kind::Plain => None,
            Kind::Day if upper == "L" || upper == "LW" => Some(upper),
            Kind::Day if upper.starts_with('L') => {
                return Err(Wrong(
                    format!("`{item}` isn't supported: only L, the last day, and LW, the last weekday, are"),
                    None,
                ));
            }
            Kind::Day => match item.strip_suffix(['W', 'w']) {
                Some(day) => Some(format!("{}W", spec.value(day)?)),
                None => None,
            },
            Kind::EventBridgeWeekday if upper == "L" => {
                // The last day of EventBridge's week.
                self.values.insert(spec.canonical(spec.last));
                return Ok(true);
            }
            Kind::Weekday if upper == "L" => {
                return Err(Wrong(
                    format!("`{item}` needs a weekday before it"),
                    Some("write 5L for the last Friday of the month, or 6 for Saturdays".to_owned()),
                ));
            }
            Kind::Weekday | Kind::EventBridgeWeekday => {
                let (day, which) = match item.split_once('#') {
                    Some(parts) => parts,
                    None => match item.strip_suffix(['L', 'l']) {
                        Some(day) => (day, "L"),
                        None => return Ok(false),
                    },
                };
                let which = which.to_ascii_uppercase();
                if !matches!(which.as_str(), "1" | "2" | "3" | "4" | "5" | "L") {
                    return Err(Wrong(
                        format!("`{item}`: a month has a first to a fifth of a weekday, so # takes 1 to 5, or L"),
                        None,
                    ));
                }
                Some(format!("{}#{which}", spec.canonical(spec.value(day)?)))
            }
        };
        let found = mark.is_some();
        self.marks.extend(mark);
        Ok(found)
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} `{}`", self.spec.name, self.text)
    }
}

impl Spec {
    /// All of its values, as a range.
    pub(super) fn every(&self) -> String {
        format!("{}-{}", self.first, self.last)
    }

    fn is_day(&self) -> bool {
        self.kind != Kind::Plain
    }

    /// The value as croner counts it: Sunday is 0.
    fn canonical(&self, value: u16) -> u16 {
        match self.kind {
            Kind::Plain | Kind::Day => value,
            Kind::Weekday => value % 7,
            Kind::EventBridgeWeekday => (value - 1) % 7,
        }
    }

    /// Reads a number or a name, which may be of any case.
    fn value(&self, text: &str) -> Result<u16, Wrong> {
        if let Some(index) = self.names.iter().position(|&name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.first + u16::try_from(index).unwrap_or_default());
        }
        let last = if self.kind == Kind::Weekday { 7 } else { self.last };
        match number(text) {
            Some(value) if (self.first..=last).contains(&value) => Ok(value),
            Some(_) => Err(format!("`{text}` isn't in {} to {last}", self.first).into()),
            None => {
                let upper = text.to_ascii_uppercase();
                let begins = |name: &&&str| upper.len() > 3 && upper.starts_with(**name);
                let hint = self.names.iter().find(begins).map(|name| format!("write {name}"));
                let names = if self.names.is_empty() { "" } else { " or a name of three letters" };
                Err(Wrong(format!("`{text}` isn't a number from {} to {last}{names}", self.first), hint))
            }
        }
    }

    /// Reads `a-b`. Only a week's range can end beyond the field's last value: on the Sunday after its Saturday.
    fn range(&self, text: &str) -> Result<(u16, u16), Wrong> {
        let (from, to) = text.split_once('-').unwrap_or((text, ""));
        if from.is_empty() || to.is_empty() {
            return Err(format!("the range `{text}` lacks one of its ends").into());
        }
        let (first, mut last) = (self.value(from)?, self.value(to)?);
        if to.eq_ignore_ascii_case("SUN") && first > self.first {
            last = self.last + 1;
        }
        if first > last {
            let hint = match (first, last) {
                // Sunday, by the number that ends a week.
                (7, 0) if self.kind == Kind::Weekday => "write 0".to_owned(),
                (7, _) if self.kind == Kind::Weekday => format!("write 0-{to}"),
                (_, 0) if self.kind == Kind::Weekday => format!("write {from}-7, where 7 is Sunday"),
                _ => format!("write {from}-{},{}-{to}", self.last, self.first),
            };
            return Err(Wrong(format!("the range `{text}` runs backwards"), Some(hint)));
        }
        Ok((first, last))
    }

    /// Reads what follows the `/` of `item`.
    fn step(&self, text: &str, item: &str) -> Result<u16, Wrong> {
        let count = self.last - self.first + 1;
        match number(text) {
            Some(0) => Err(format!("the step of `{item}` is 0").into()),
            Some(step) if step > count => Err(Wrong(
                format!("the step of `{item}` is over {count}, the number of the field's values"),
                Some("a step starts anew with each hour, day, month or week; write the values themselves".to_owned()),
            )),
            Some(step) => Ok(step),
            None => Err(format!("the step of `{item}` isn't a number").into()),
        }
    }
}

/// Reads digits, and nothing but digits; a number too great to hold is one too great for any field.
fn number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u16::MAX))
}
