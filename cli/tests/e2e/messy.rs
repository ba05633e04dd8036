//! Files as they come: every form of CSV and NDJSON that is right, drawn from a seed.

use serde_json::{Value, json};

use crate::generate::{Draw, Entry, Oracle, plain};
use crate::harness::gzip;

/// Texts that stand for no value in the job over the CSV files. JSON has a null, so that its empty text is a text.
pub(crate) const NULLS_CSV: &[&str] = &["", "NA"];

/// The same in the job over the NDJSON files.
pub(crate) const NULLS_NDJSON: &[&str] = &["NA"];

/// Names of merchants, with all that CSV and JSON have to quote. One looks like a number, one like another's prefix.
const MERCHANTS: [&str; 12] =
    ["m1", "m10", "M1", "a,b", "say \"hi\"", "two\nlines", "dos\r\nlines", " spaces ", "Ünïcödé", "日本", "0.10", "\""];

/// A file's name and content.
pub(crate) type File = (String, Vec<u8>);

/// So many files of CSV, and what they come to.
pub(crate) fn csv(seed: u64, files: usize) -> (Vec<File>, Oracle) {
    let (mut draw, mut oracle) = (Draw::new(seed), Oracle::default());
    let written = (0..files).map(|number| {
        let content = csv_file(&mut draw, &mut oracle);
        stored(&mut draw, number, "csv", content.into_bytes())
    });
    (written.collect(), oracle)
}

/// So many files of NDJSON, and what they come to.
pub(crate) fn ndjson(seed: u64, files: usize) -> (Vec<File>, Oracle) {
    let (mut draw, mut oracle) = (Draw::new(seed), Oracle::default());
    let written = (0..files).map(|number| {
        let content = ndjson_file(&mut draw, &mut oracle);
        stored(&mut draw, number, "ndjson", content.into_bytes())
    });
    (written.collect(), oracle)
}

/// The content as it is stored: plain, as one gzip member, or as several; under a name that may be deep in directories
/// and says nothing about compression.
fn stored(draw: &mut Draw, number: usize, ending: &str, content: Vec<u8>) -> File {
    let directory = draw.pick(&["", "2026/01/", "2026/02/", "a b/"]);
    let name = format!("{directory}{number:03}.{ending}");
    match draw.below(4) {
        0 => (format!("{name}.gz"), gzip(&content)),
        1 => {
            // Members begin anywhere, also within a record; some are empty.
            let mut members = Vec::new();
            let mut rest = content.as_slice();
            while !rest.is_empty() {
                let (member, more) = rest.split_at(draw.below(rest.len() as u64 + 1) as usize);
                members.extend(gzip(member));
                rest = more;
            }
            // No member at all is an empty file.
            (name, members)
        }
        _ => (name, content),
    }
}

fn entry(draw: &mut Draw) -> Entry {
    let name = |draw: &mut Draw, of: &[&str]| (!draw.one_in(9)).then(|| (*draw.pick(of)).to_owned());
    let merchant = name(draw, &MERCHANTS);
    let currency = name(draw, &["CNY", "EUR", "JPY"]);
    let amount = (!draw.one_in(8)).then(|| number(draw));
    let fee = (!draw.one_in(3)).then(|| number(draw));
    let note = (*draw.pick(&["", "NA", "a \"note\"\nof two lines", "plain", "1,2,3", "\r"])).to_owned();
    Entry { merchant, currency, amount, fee, note }
}

/// A number, in units of 10^-8: small, whole, or of 30 digits; half of them negative.
fn number(draw: &mut Draw) -> i128 {
    let digits = |draw: &mut Draw, digits: u32| {
        let drawn = (u128::from(draw.next()) << 64) | u128::from(draw.next());
        i128::try_from(drawn % 10_u128.pow(digits)).unwrap()
    };
    let size = match draw.below(5) {
        0 => digits(draw, 30),
        1 => digits(draw, 4) * 100_000_000,
        2 => digits(draw, 9),
        3 => digits(draw, 12) * 1_000_000,
        _ => 0,
    };
    if draw.one_in(2) { -size } else { size }
}

/// A number in one of the ways in which it can be written.
fn written(draw: &mut Draw, units: i128) -> String {
    match draw.below(6) {
        0 => format!("{units}e-8"),
        1 if !units.unsigned_abs().is_multiple_of(100_000_000) => format!("{}00", plain(units)),
        2 if units == 0 => "-0.0".to_owned(),
        3 if units >= 100_000_000 => format!("{}E2", hundredth(units)),
        _ => plain(units),
    }
}

/// A hundredth of a number, in plain notation with all its places.
fn hundredth(units: i128) -> String {
    format!("{}.{:010}", units / 10_000_000_000, units % 10_000_000_000)
}

fn csv_file(draw: &mut Draw, oracle: &mut Oracle) -> String {
    if draw.one_in(10) {
        return String::new();
    }
    let mut columns = ["merchant", "currency", "amount", "fee", "note", "more, \"unused\""];
    for place in (1..columns.len()).rev() {
        columns.swap(place, draw.below(place as u64 + 1) as usize);
    }
    let end = *draw.pick(&["\n", "\r\n"]);
    let mut text = if draw.one_in(4) { "\u{feff}".to_owned() } else { String::new() };
    let header: Vec<String> = columns.iter().map(|name| quoted(draw, name)).collect();
    text.push_str(&header.join(","));
    let records = if draw.one_in(10) { 0 } else { draw.below(90) };
    for _ in 0..records {
        let entry = entry(draw);
        oracle.add(&entry);
        text.push_str(end);
        if draw.one_in(12) {
            text.push_str(end);
        }
        let fields: Vec<String> = columns.iter().map(|column| csv_value(draw, &entry, column)).collect();
        text.push_str(&fields.join(","));
    }
    if !draw.one_in(3) {
        text.push_str(end);
    }
    text
}

fn csv_value(draw: &mut Draw, entry: &Entry, column: &str) -> String {
    let value = match column {
        "merchant" => entry.merchant.clone(),
        "currency" => entry.currency.clone(),
        "amount" => entry.amount.map(|units| written(draw, units)),
        "fee" => entry.fee.map(|units| written(draw, units)),
        _ => Some(entry.note.clone()),
    };
    let value = value.unwrap_or_else(|| (*draw.pick(NULLS_CSV)).to_owned());
    quoted(draw, &value)
}

/// A CSV field, quoted where it must be and sometimes where it needn't.
fn quoted(draw: &mut Draw, text: &str) -> String {
    if draw.one_in(5) { format!("\"{}\"", text.replace('"', "\"\"")) } else { crate::generate::csv_field(text) }
}

fn ndjson_file(draw: &mut Draw, oracle: &mut Oracle) -> String {
    let end = *draw.pick(&["\n", "\r\n", " \n"]);
    let mut text = String::new();
    let records = if draw.one_in(8) { 0 } else { draw.below(90) };
    for number in 0..records {
        let mut entry = entry(draw);
        if draw.one_in(9) {
            entry.merchant = Some(String::new());
        }
        oracle.add(&entry);
        if number > 0 {
            text.push_str(end);
        }
        if draw.one_in(12) {
            text.push_str(end);
        }
        text.push_str(&ndjson_line(draw, &entry));
    }
    if !draw.one_in(3) && records > 0 {
        text.push_str(end);
    }
    text
}

fn ndjson_line(draw: &mut Draw, entry: &Entry) -> String {
    let mut fields = vec![format!("\"note\":{}", json!({ "nested": [entry.note, 1e300, Value::Null] }))];
    for (name, value) in [("merchant", &entry.merchant), ("currency", &entry.currency)] {
        fields.extend(named(draw, name, value.as_ref().map(|text| Value::from(text.as_str()).to_string())));
    }
    for (name, value) in [("amount", entry.amount), ("fee", entry.fee)] {
        let number = value.map(|units| written(draw, units));
        // As a JSON number, whose digits stay, or as text.
        let number = number.map(|text| if draw.one_in(2) { format!("\"{text}\"") } else { text });
        fields.extend(named(draw, name, number));
    }
    for place in (1..fields.len()).rev() {
        fields.swap(place, draw.below(place as u64 + 1) as usize);
    }
    format!("{{{}}}", fields.join(*draw.pick(&[",", " , "])))
}

/// A field of a JSON object; one without a value is null, absent, or one of the job's `nulls`.
fn named(draw: &mut Draw, name: &str, value: Option<String>) -> Option<String> {
    let value = match value {
        Some(value) => value,
        None => match draw.below(3) {
            0 => return None,
            1 => "null".to_owned(),
            _ => "\"NA\"".to_owned(),
        },
    };
    Some(format!("{}:{value}", Value::from(name)))
}
