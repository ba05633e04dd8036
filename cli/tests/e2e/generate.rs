//! Input that is drawn from a seed, and what its aggregate must be, computed in another way than the product's.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

/// Draws numbers: SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// A record of a ledger: what its aggregate needs.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) merchant: Option<String>,
    pub(crate) currency: Option<String>,
    /// In units of 10^-8.
    pub(crate) amount: Option<i128>,
    /// In units of 10^-8.
    pub(crate) fee: Option<i128>,
    pub(crate) note: String,
}

/// 10^-8 in the numbers of an [`Entry`].
const PLACES: usize = 8;

/// A number of 10^-8 units in plain notation, with no zeros at its end.
pub(crate) fn plain(units: i128) -> String {
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = PLACES + 1);
    let (whole, fraction) = digits.split_at(digits.len() - PLACES);
    let fraction = fraction.trim_end_matches('0');
    let sign = if units < 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// What a group comes to.
#[derive(Default)]
struct Totals {
    count: u64,
    sums: [Option<i128>; 2],
    least: Option<i128>,
    greatest: Option<i128>,
}

/// The aggregate of entries by merchant and currency.
#[derive(Default)]
pub(crate) struct Oracle {
    groups: BTreeMap<(Option<String>, Option<String>), Totals>,
    pub(crate) records: u64,
}

impl Oracle {
    pub(crate) fn add(&mut self, entry: &Entry) {
        let totals = self.groups.entry((entry.merchant.clone(), entry.currency.clone())).or_default();
        self.records += 1;
        totals.count += 1;
        for (sum, value) in totals.sums.iter_mut().zip([entry.amount, entry.fee]) {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0) + value);
            }
        }
        if let Some(amount) = entry.amount {
            totals.least = Some(totals.least.map_or(amount, |least| least.min(amount)));
            totals.greatest = Some(totals.greatest.map_or(amount, |greatest| greatest.max(amount)));
        }
    }

    /// The job's `work`.
    pub(crate) fn work() -> Value {
        json!({ "aggregate": {
            "groupBy": ["merchant", "currency"], "count": true, "sum": ["amount", "fee"], "min": ["amount"], "max": ["amount"],
        } })
    }

    /// What the job publishes as CSV.
    pub(crate) fn csv(&self) -> String {
        let mut text = "merchant,currency,count,sum_amount,sum_fee,min_amount,max_amount\n".to_owned();
        for ((merchant, currency), totals) in &self.groups {
            let name = |name: &Option<String>| csv_field(name.as_deref().unwrap_or_default());
            write!(text, "{},{},{}", name(merchant), name(currency), totals.count).unwrap();
            for number in [totals.sums[0], totals.sums[1], totals.least, totals.greatest] {
                write!(text, ",{}", number.map(plain).unwrap_or_default()).unwrap();
            }
            text.push('\n');
        }
        text
    }

    /// What the job publishes as NDJSON, as values: all text, and `null` where there is nothing.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let number = |number: Option<i128>| number.map(plain);
        let rows = self.groups.iter().map(|((merchant, currency), totals)| {
            json!({
                "merchant": merchant, "currency": currency, "count": totals.count.to_string(),
                "sum_amount": number(totals.sums[0]), "sum_fee": number(totals.sums[1]),
                "min_amount": number(totals.least), "max_amount": number(totals.greatest),
            })
        });
        rows.collect()
    }
}

/// A CSV field, quoted where it must be.
pub(crate) fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A simple ledger for runs that are long enough to be hit: `files` CSV files of `records` each, and their aggregate.
pub(crate) fn ledger(draw: &mut Draw, files: usize, records: usize, groups: u64) -> (Vec<(String, String)>, Oracle) {
    let mut oracle = Oracle::default();
    let mut written = Vec::new();
    for file in 0..files {
        let mut text = "merchant,currency,amount,fee,note\n".to_owned();
        for _ in 0..records {
            let entry = Entry {
                merchant: Some(format!("m{:03}", draw.below(groups))),
                currency: Some((*draw.pick(&["CNY", "EUR"])).to_owned()),
                amount: Some(i128::from(draw.below(2_000_000_000)) * 1_000_000 - 1_000_000_000_000_000),
                fee: Some(i128::from(draw.below(1_000_000))),
                note: "x".repeat(draw.below(40) as usize),
            };
            oracle.add(&entry);
            let [amount, fee] = [entry.amount, entry.fee].map(|number| number.map(plain).unwrap_or_default());
            let [merchant, currency] =
                [&entry.merchant, &entry.currency].map(|name| name.as_deref().unwrap_or_default());
            writeln!(text, "{merchant},{currency},{amount},{fee},{}", entry.note).unwrap();
        }
        written.push((format!("{file:03}.csv"), text));
    }
    (written, oracle)
}
