//! Schedules as they are written: which dialect, and what it says.

use super::CalendarError;
use super::field::{self, Field};
use crate::limits::SCHEDULE_BYTES_MAX;

/// What a schedule says.
#[derive(Debug)]
pub(super) enum Schedule {
    /// Every so many seconds.
    Rate(i64),
    Cron(CronSchedule),
}

/// A cron expression that was read and found right.
#[derive(Debug)]
pub(super) struct CronSchedule {
    /// Canonical patterns of seven fields (second to year); the times are those of all of them together.
    pub(super) patterns: Vec<String>,
    /// Whether there is a year field, whose years are 1970 to 2199.
    pub(super) has_years: bool,
    /// Whether the minute or the hour field begins with `*`.
    pub(super) starred: bool,
    /// The fields that choose the date, for errors.
    date: String,
}

const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const FIVE_FIELDS: &str = "write five fields: minute hour day-of-month month day-of-week";

impl Schedule {
    pub(super) fn parse(text: &str) -> Result<Self, CalendarError> {
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !c.is_ascii()) {
            return Err(refuse(format!("`{c}` at byte {at} isn't ASCII"), "write ASCII digits, letters and signs"));
        }
        if text.len() > SCHEDULE_BYTES_MAX {
            return Err(refuse(
                format!("it has {} bytes; {SCHEDULE_BYTES_MAX} is the most", text.len()),
                "write ranges and steps",
            ));
        }
        let text = text.trim_ascii();
        let upper = text.to_ascii_uppercase();
        if text.is_empty() {
            return Err(refuse("it is empty", FIVE_FIELDS));
        }
        if text.starts_with('@') {
            return word(text).and_then(five_fields).map(Self::Cron);
        }
        if upper.starts_with("TZ=") || upper.starts_with("CRON_TZ=") {
            return Err(refuse("a zone in the schedule isn't taken", "set timeZone instead"));
        }
        if let Some((name, _)) = text.split_once('(') {
            return eventbridge(name, text);
        }
        five_fields(text).map(Self::Cron)
    }
}

impl CronSchedule {
    /// The error for an expression that no date matches.
    pub(super) fn never(&self) -> CalendarError {
        refuse(format!("it can never fire: no date has {}", self.date), "take a date that exists")
    }

    /// Puts the fields together; `year` may be missing.
    fn of(
        minute: &Field,
        hour: &Field,
        day: &Field,
        month: &Field,
        weekday: &Field,
        year: Option<&Field>,
    ) -> Result<Self, CalendarError> {
        // All but the day of the month have one form.
        let form = |field: &Field| field.canonical().join(",");
        // EventBridge's years end, whether they are named or not.
        let years = match year {
            None => "*".to_owned(),
            Some(year) if year.is_unrestricted() => field::YEAR.every(),
            Some(year) => form(year),
        };
        let (minutes, hours, months, weekdays) = (form(minute), form(hour), form(month), form(weekday));
        let pattern = |days: String| format!("0 {minutes} {hours} {days} {months} {weekdays} {years}");
        let restricted = [Some(day), Some(month), Some(weekday), year];
        let restricted = restricted.into_iter().flatten().filter(|field| !field.is_unrestricted());
        Ok(Self {
            patterns: day.canonical().into_iter().map(pattern).collect(),
            has_years: year.is_some(),
            starred: minute.is_starred() || hour.is_starred(),
            date: restricted.map(Field::to_string).collect::<Vec<_>>().join(" in "),
        })
    }
}

/// What an `@` word stands for.
fn word(text: &str) -> Result<&'static str, CalendarError> {
    if let Some((_, fields)) = WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(fields);
    }
    let (first, rest) = text.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""));
    let lower = first.to_ascii_lowercase();
    if lower == "@every" {
        return Err(refuse(
            "`@every` isn't a word of this dialect",
            "write rate(5 minutes), rate(1 hour) or rate(1 day)",
        ));
    }
    if lower == "@reboot" {
        return Err(refuse("`@reboot` means nothing to a job that runs on no machine of its own", FIVE_FIELDS));
    }
    match WORDS.iter().find(|(word, _)| *word == lower) {
        Some((word, _)) if !rest.is_empty() => {
            Err(refuse(format!("`{word}` stands alone, without fields"), "take either of the two away"))
        }
        Some((word, _)) => Err(refuse(format!("`{text}` isn't in lower case"), format!("write {word}"))),
        None => {
            let words = WORDS.map(|(word, _)| word).join(", ");
            Err(refuse(format!("`{first}` isn't one of the words {words}"), FIVE_FIELDS))
        }
    }
}

fn five_fields(text: &str) -> Result<CronSchedule, CalendarError> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else {
        let reason = match fields.len() {
            6 => "it has six fields, and whether the sixth is seconds or a year differs from tool to tool".to_owned(),
            count => format!("it has {count} field{}, not five", if count == 1 { "" } else { "s" }),
        };
        return Err(refuse(reason, format!("{FIVE_FIELDS}, or cron(...) with a year as the sixth")));
    };
    CronSchedule::of(
        &Field::parse(&field::MINUTE, minute)?,
        &Field::parse(&field::HOUR, hour)?,
        &Field::parse(&field::DAY, day)?,
        &Field::parse(&field::MONTH, month)?,
        &Field::parse(&field::WEEKDAY, weekday)?,
        None,
    )
}

/// Reads `cron(...)` or `rate(...)`; `name` is what stands before the parenthesis.
fn eventbridge(name: &str, text: &str) -> Result<Schedule, CalendarError> {
    let lower = name.trim_ascii().to_ascii_lowercase();
    if !matches!(lower.as_str(), "cron" | "rate") {
        let hint = if lower == "at" { "send a trigger for a single run" } else { FIVE_FIELDS };
        return Err(refuse(format!("`{name}(...)` isn't a schedule: cron(...) and rate(...) are"), hint));
    }
    if name != lower {
        return Err(refuse(format!("`{name}(` isn't in lower case without spaces"), format!("write {lower}(...)")));
    }
    let Some(inner) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')')) else {
        return Err(refuse(format!("`{name}(` isn't closed at the end"), format!("write {name}(...)")));
    };
    if name == "rate" { rate(inner).map(Schedule::Rate) } else { six_fields(inner).map(Schedule::Cron) }
}

fn six_fields(inner: &str) -> Result<CronSchedule, CalendarError> {
    const SIX_FIELDS: &str = "write cron(minute hour day-of-month month day-of-week year)";
    let fields: Vec<&str> = inner.split_ascii_whitespace().collect();
    let &[minute, hour, day, month, weekday, year] = fields.as_slice() else {
        return Err(refuse(format!("cron(...) has {} fields here, not six", fields.len()), SIX_FIELDS));
    };
    let (day, weekday) = (Field::parse(&field::DAY, day)?, Field::parse(&field::EVENTBRIDGE_WEEKDAY, weekday)?);
    // EventBridge's rule: a value, or `*`, in one of the two, and `?` in the other.
    match (day.is_blank(), weekday.is_blank()) {
        (true, false) | (false, true) => {}
        (false, false) => {
            let reason = "day-of-month, day-of-week: EventBridge needs `?` in one of the two";
            return Err(refuse(reason, "write ? in the one that doesn't matter"));
        }
        (true, true) => {
            let reason = "day-of-month, day-of-week: EventBridge allows `?` in one of the two only";
            return Err(refuse(reason, "write * in one of them for every day"));
        }
    }
    CronSchedule::of(
        &Field::parse(&field::MINUTE, minute)?,
        &Field::parse(&field::HOUR, hour)?,
        &day,
        &Field::parse(&field::MONTH, month)?,
        &weekday,
        Some(&Field::parse(&field::YEAR, year)?),
    )
}

/// Reads what stands in `rate(...)`; the answer is in seconds. EventBridge's rule: a positive whole number, and a
/// unit that is singular for 1 and plural for any other.
fn rate(inner: &str) -> Result<i64, CalendarError> {
    const RATE: &str = "write rate(5 minutes), rate(1 hour) or rate(2 days)";
    let parts: Vec<&str> = inner.split_ascii_whitespace().collect();
    let &[value, unit] = parts.as_slice() else {
        return Err(refuse(format!("rate: `{inner}` isn't a number and a unit"), RATE));
    };
    let singular = unit.strip_suffix('s').unwrap_or(unit);
    let seconds = match singular {
        "minute" => 60,
        "hour" => 3_600,
        "day" => 86_400,
        _ => return Err(refuse(format!("rate: `{unit}` isn't minutes, hours or days"), RATE)),
    };
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let Some(value) = digits.then(|| value.parse::<i64>().unwrap_or(i64::MAX)).filter(|&value| value > 0) else {
        return Err(refuse(format!("rate: `{value}` isn't a positive whole number"), RATE));
    };
    if (value == 1) != (unit == singular) {
        let right = if value == 1 { singular.to_owned() } else { format!("{singular}s") };
        let reason = format!("rate: the unit is singular for 1 and plural otherwise, not `{value} {unit}`");
        return Err(refuse(reason, format!("write rate({value} {right})")));
    }
    Ok(value.saturating_mul(seconds))
}

fn refuse(reason: impl Into<String>, hint: impl Into<String>) -> CalendarError {
    CalendarError { field: "schedule", reason: reason.into(), hint: Some(hint.into()) }
}
