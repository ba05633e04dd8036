//! Exact decimal numbers, as DynamoDB's: 38 significant digits, never rounded.
//!
//! 38 digits fit into an `i128`, so a [`Decimal`] is one with a power of ten, and needs no memory of its own. What
//! doesn't fit into 38 digits is an error, never a nearby number.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::{DECIMAL_DIGITS_MAX, DECIMAL_EXPONENT_MAX, DECIMAL_EXPONENT_MIN};

/// A decimal number of at most 38 significant digits, between 1E-130 and 9.99…E+125 in size, or zero.
///
/// `1.0` and `1` are the same number, and so are `-0` and `0`. It is shown in plain notation without trailing zeros,
/// and in serde it is that text.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// Less than 10^38 in size. May end in zeros: to keep it free of them would cost divisions at each addition.
    coefficient: i128,
    /// The number is `coefficient * 10^exponent`. At least -130 - 37, at most 125; 0 for zero.
    exponent: i16,
}

/// Why a text isn't a [`Decimal`], or a sum isn't.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text isn't a number.
    #[error("`{0}` isn't a decimal number such as -12.50 or 1.5e3")]
    Syntax(String),
    /// It has more than 38 significant digits.
    #[error("it has more than {DECIMAL_DIGITS_MAX} significant digits")]
    Digits,
    /// It is too large or, not being zero, too small.
    #[error("its size isn't from 1E{DECIMAL_EXPONENT_MIN} to 9.99…E+{DECIMAL_EXPONENT_MAX}")]
    Exponent,
}

/// The powers of ten from 10^0 to 10^38, the greatest in an `i128`.
const POWERS: [i128; DECIMAL_DIGITS_MAX as usize + 1] = {
    let mut powers = [1; DECIMAL_DIGITS_MAX as usize + 1];
    let mut place = 1;
    while place < powers.len() {
        powers[place] = powers[place - 1] * 10;
        place += 1;
    }
    powers
};

/// The first coefficient with too many digits.
const COEFFICIENT_END: i128 = POWERS[DECIMAL_DIGITS_MAX as usize];

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self { coefficient: 0, exponent: 0 };

    /// The most bytes that a decimal is shown in: 1E-130 with 37 more digits, a sign, and `0.` before it.
    pub const TEXT_BYTES_MAX: usize = (DECIMAL_DIGITS_MAX as i64 - 1 - DECIMAL_EXPONENT_MIN + 3) as usize;

    /// Reads plain (`-12.50`, `.5`, `5.`) or scientific notation (`1.5e3`, `2E-7`), with an optional sign.
    ///
    /// Nothing else may be in it: no spaces, no grouping, no comma, no names. Zeros that change nothing aren't counted
    /// as digits.
    ///
    /// # Errors
    /// [`DecimalError`].
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        match parse_short(text.as_bytes()) {
            Some(decimal) => Ok(decimal),
            None => parse_any(text),
        }
    }

    /// The sum, exactly.
    ///
    /// # Errors
    /// [`DecimalError::Digits`] when it has more than 38 digits, [`DecimalError::Exponent`] when it is too large or,
    /// not being zero, too small.
    pub fn checked_add(self, other: Self) -> Result<Self, DecimalError> {
        if self.coefficient == 0 {
            return Ok(other);
        }
        if other.coefficient == 0 {
            return Ok(self);
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let shift = i32::from(high.exponent) - i32::from(low.exponent);
        let shifted = match shift {
            0 => Some(high.coefficient),
            _ => POWERS.get(shift as usize).and_then(|power| high.coefficient.checked_mul(*power)),
        };
        match shifted.and_then(|shifted| shifted.checked_add(low.coefficient)) {
            Some(sum) => Self::new(sum, i64::from(low.exponent)),
            None => self.add_wide(other),
        }
    }

    /// The sum where the two, brought to one exponent, don't fit into an `i128`; they still may have a sum of 38 digits.
    #[cold]
    fn add_wide(self, other: Self) -> Result<Self, DecimalError> {
        // Without trailing zeros, what lies beyond an i128 at the exponents' distance has more than 38 digits.
        let (a, b) = (self.normal(), other.normal());
        let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        let exponent = i64::from(low.exponent);
        let shift = i64::from(high.exponent) - exponent;
        // The sum as tens and ones at the lower exponent: the tens have the room that the whole lacks.
        let parts = if shift == 0 {
            Some((high.coefficient / 10 + low.coefficient / 10, high.coefficient % 10 + low.coefficient % 10))
        } else {
            POWERS
                .get(shift as usize - 1)
                .and_then(|power| high.coefficient.checked_mul(*power))
                .and_then(|tens| tens.checked_add(low.coefficient / 10))
                .map(|tens| (tens, low.coefficient % 10))
        };
        let (tens, ones) = parts.ok_or(DecimalError::Digits)?;
        let (tens, ones) = (tens + ones / 10, ones % 10);
        if ones == 0 {
            return Self::new(tens, exponent + 1);
        }
        let sum = tens.checked_mul(10).and_then(|sum| sum.checked_add(ones)).ok_or(DecimalError::Digits)?;
        Self::new(sum, exponent)
    }

    /// The number `coefficient * 10^exponent`, if it is one.
    fn new(coefficient: i128, exponent: i64) -> Result<Self, DecimalError> {
        let (mut coefficient, mut exponent) = (coefficient, exponent);
        while coefficient.abs() >= COEFFICIENT_END {
            if coefficient % 10 != 0 {
                return Err(DecimalError::Digits);
            }
            coefficient /= 10;
            exponent += 1;
        }
        if coefficient == 0 {
            return Ok(Self::ZERO);
        }
        let leading = exponent + i64::from(coefficient.unsigned_abs().ilog10());
        if !(DECIMAL_EXPONENT_MIN..=DECIMAL_EXPONENT_MAX).contains(&leading) {
            return Err(DecimalError::Exponent);
        }
        // The digits after the leading one are 37 at most.
        Ok(Self { coefficient, exponent: exponent as i16 })
    }

    /// The same number without trailing zeros in the coefficient.
    fn normal(self) -> Self {
        let Self { mut coefficient, mut exponent } = self;
        if coefficient == 0 {
            return Self::ZERO;
        }
        while coefficient % 10 == 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Self { coefficient, exponent }
    }

    /// The exponent of the leading digit, and the digits as a whole number of 38 of them. Not for zero.
    fn leading(self) -> (i32, u128) {
        let size = self.coefficient.unsigned_abs();
        let places = size.ilog10();
        let missing = POWERS[DECIMAL_DIGITS_MAX as usize - 1 - places as usize].unsigned_abs();
        (i32::from(self.exponent) + places as i32, size * missing)
    }
}

/// Reads what most numbers are: up to 18 bytes of plain notation, which fit into a `u64` whatever they are. `None` is
/// for [`parse_any`] to judge.
fn parse_short(bytes: &[u8]) -> Option<Decimal> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_u64;
    let mut point = None;
    for (place, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && digits.len() > 1 => point = Some(place),
            _ => return None,
        }
    }
    if value == 0 {
        return Some(Decimal::ZERO);
    }
    let coefficient = if negative { -i128::from(value) } else { i128::from(value) };
    let fraction = point.map_or(0, |place| digits.len() - place - 1);
    Some(Decimal { coefficient, exponent: -(fraction as i16) })
}

/// Reads any text. Its time and memory don't depend on the exponent.
fn parse_any(text: &str) -> Result<Decimal, DecimalError> {
    let syntax = || DecimalError::Syntax(shortened(text));
    let (negative, bytes) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let end = bytes.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(bytes.len());
    let scale = match &bytes[end..] {
        [] => 0,
        [_, scale @ ..] => parse_exponent(scale).ok_or_else(syntax)?,
    };
    let mut coefficient = 0_i128;
    let mut places = 0; // of the coefficient
    let mut zeros = 0; // after it, which count once another digit follows
    let mut fraction = 0_i64;
    let (mut digits, mut point, mut too_many) = (false, false, false);
    for byte in &bytes[..end] {
        match byte {
            b'.' if !point => {
                point = true;
                continue;
            }
            b'0' if places == 0 => {}
            b'0' => zeros += 1,
            b'1'..=b'9' => {
                let more = zeros + 1;
                too_many |= places + more > DECIMAL_DIGITS_MAX as usize;
                if !too_many {
                    coefficient = coefficient * POWERS[more] + i128::from(byte - b'0');
                    places += more;
                    zeros = 0;
                }
            }
            _ => return Err(syntax()),
        }
        digits = true;
        fraction += i64::from(point);
    }
    if !digits {
        return Err(syntax());
    }
    if too_many {
        return Err(DecimalError::Digits);
    }
    // Zero has no size, so that no exponent is too large for it.
    if coefficient == 0 {
        return Ok(Decimal::ZERO);
    }
    let exponent = scale + zeros as i64 - fraction;
    Decimal::new(if negative { -coefficient } else { coefficient }, exponent)
}

/// The exponent of scientific notation; one beyond all bounds stays beyond them, whatever the digits before it.
fn parse_exponent(bytes: &[u8]) -> Option<i64> {
    const BEYOND: i64 = i64::MAX / 4;
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits
        .iter()
        .fold(0_i64, |size, digit| size.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(BEYOND));
    Some(if negative { -size } else { size })
}

/// A text short enough for an error's line.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;
    fn from_str(text: &str) -> Result<Self, DecimalError> {
        Self::parse(text)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self { coefficient: i128::from(value), exponent: 0 }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient.cmp(&other.coefficient);
        }
        let signs = self.coefficient.signum().cmp(&other.coefficient.signum());
        if signs != Ordering::Equal || self.coefficient == 0 {
            return signs;
        }
        let sizes = self.leading().cmp(&other.leading());
        if self.coefficient < 0 { sizes.reverse() } else { sizes }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { coefficient, exponent } = self.normal();
        let digits = coefficient.unsigned_abs().to_string();
        let size = match usize::try_from(-exponent) {
            Ok(0) => digits,
            Ok(fraction) if fraction < digits.len() => {
                let (whole, fraction) = digits.split_at(digits.len() - fraction);
                format!("{whole}.{fraction}")
            }
            Ok(fraction) => format!("0.{digits:0>fraction$}"),
            Err(_) => format!("{digits}{:0<zeros$}", "", zeros = usize::from(exponent.unsigned_abs())),
        };
        f.pad_integral(coefficient >= 0, "", &size)
    }
}

impl Serialize for Decimal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
