use bigdecimal::{BigDecimal, Zero};
use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(text: &str) -> String {
    decimal(text).to_string()
}

#[test]
fn a_number_is_shown_plainly_without_trailing_zeros() {
    for (text, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.00", "0"),
        ("0e5", "0"),
        ("007", "7"),
        ("+7", "7"),
        ("1.50", "1.5"),
        ("100", "100"),
        ("-100.0", "-100"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-.05", "-0.05"),
        ("1.5e3", "1500"),
        ("1.5E+3", "1500"),
        ("15e-3", "0.015"),
        ("1e-3", "0.001"),
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    assert_eq!(shown("1e125").len(), 126);
    assert_eq!(shown("1e-130").len(), 132);
    assert_eq!(shown("-1.2345678901234567890123456789012345678e-130").len(), Decimal::TEXT_BYTES_MAX);
    assert_eq!(format!("{:>6}|{:<6}|", decimal("-1.5"), decimal("2")), "  -1.5|2     |");
}

#[test]
fn what_isnt_a_number_is_refused() {
    for text in [
        "", "-", "+", ".", "-.", "e5", ".e5", "1e", "1e+", "1e1.5", "1e5e5", "1..2", "1.2.3", "--1", "+-1", "1-", " 1",
        "1 ", "1\n", "1_000", "1,000", "1,5", "0x10", "NaN", "nan", "inf", "Infinity", "-inf", "NA", "１２", "٣",
        "1\0",
    ] {
        assert_eq!(Decimal::parse(text), Err(DecimalError::Syntax(text.to_owned())), "{text:?}");
    }
    let Err(DecimalError::Syntax(shown)) = Decimal::parse(&"é".repeat(1000)) else { panic!("letters aren't digits") };
    assert_eq!(shown.chars().count(), 41);
}

#[test]
fn more_than_38_digits_are_refused_and_zeros_that_change_nothing_arent_digits() {
    let nines = "9".repeat(38);
    assert_eq!(shown(&nines), nines);
    assert_eq!(Decimal::parse(&format!("{nines}9")), Err(DecimalError::Digits));
    assert_eq!(Decimal::parse(&format!("{nines}.1")), Err(DecimalError::Digits));
    assert_eq!(Decimal::parse(&format!("1{}1", "0".repeat(37))), Err(DecimalError::Digits));
    assert_eq!(Decimal::parse(&format!("{nines}9x")), Err(DecimalError::Syntax(format!("{nines}9x"))));
    assert_eq!(shown(&format!("{}{nines}.{}", "0".repeat(500), "0".repeat(500))), nines);
    assert_eq!(shown(&format!("1{}", "0".repeat(125))).len(), 126);
    assert_eq!(shown(&format!("0.{}1", "0".repeat(129))), shown("1e-130"));
}

#[test]
fn an_exponent_beyond_the_bounds_is_refused_without_expanding_it() {
    for text in [
        "1e126",
        "10e125",
        "1e-131",
        "0.1e-130",
        "1e999999999",
        "-1e-999999999",
        "1e99999999999999999999999999999999999999",
        "1e-99999999999999999999999999999999999999",
    ] {
        assert_eq!(Decimal::parse(text), Err(DecimalError::Exponent), "{text}");
    }
    for text in ["1e125", "9.9999999999999999999999999999999999999e125", "1e-130", "0.1e126", "10e-131", "1e0000000007"]
    {
        assert!(Decimal::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn zero_has_no_size_that_an_exponent_could_put_out_of_bounds() {
    for text in ["0e126", "0e-131", "0.000e-200", "-0e999999999", "0e-99999999999999999999999999999999999999"] {
        assert_eq!(Decimal::parse(text), Ok(Decimal::ZERO), "{text}");
    }
    assert!(matches!(Decimal::parse("0e"), Err(DecimalError::Syntax(_))));
}

#[test]
fn the_bounds_are_told_as_they_are() {
    let text = Decimal::parse("1e126").unwrap_err().to_string();
    assert!(text.contains("1E-130") && text.contains("9.99…E+125"), "{text}");
}

#[test]
fn a_sum_is_exact_or_an_error() {
    let sum = |a: &str, b: &str| decimal(a).checked_add(decimal(b)).map(|sum| sum.to_string());
    let nines = "9".repeat(38);
    assert_eq!(sum("0.1", "0.2"), Ok("0.3".to_owned()));
    assert_eq!(sum("1e20", "1e-17"), Ok(format!("1{}.{}1", "0".repeat(20), "0".repeat(16))));
    assert_eq!(sum("1e20", "1e-18"), Err(DecimalError::Digits));
    assert_eq!(sum("1e125", "1e-130"), Err(DecimalError::Digits));
    assert_eq!(sum(&nines, "1"), Ok(format!("1{}", "0".repeat(38))));
    assert_eq!(sum(&nines, "2"), Err(DecimalError::Digits));
    assert_eq!(sum(&nines, "0.1"), Err(DecimalError::Digits));
    assert_eq!(sum(&nines, &format!("-{nines}")), Ok("0".to_owned()));
    assert_eq!(sum("9e125", "1e125"), Err(DecimalError::Exponent));
    assert_eq!(sum("1.1e-130", "-1e-130"), Err(DecimalError::Exponent));
    // Both beyond an i128 on the way, and the sum within 38 digits.
    assert_eq!(
        sum(&format!("95{}1", "0".repeat(35)), &format!("94{}", "9".repeat(36))),
        Ok(format!("19{}", "0".repeat(37)))
    );
    assert_eq!(sum("18e37", &format!("-{}", "9".repeat(38))), Ok(format!("8{}1", "0".repeat(36))));
}

#[test]
fn a_decimal_is_text_in_json() {
    let json = serde_json::to_string(&[decimal("1.50"), decimal("-2e3")]).unwrap();
    assert_eq!(json, r#"["1.5","-2000"]"#);
    assert_eq!(serde_json::from_str::<Vec<Decimal>>(&json).unwrap(), [decimal("1.5"), decimal("-2000")]);
    assert!(serde_json::from_str::<Decimal>("1.5").is_err());
    assert!(serde_json::from_str::<Decimal>("\"x\"").is_err());
}

/// Decimals over the whole range, with many near each other's size and many with few digits.
fn decimals() -> impl Strategy<Value = String> {
    let digits =
        prop_oneof!["[0-9]{1,5}", "[0-9]{30,38}", "9{36,38}", "[1-9]0{0,36}", "(49|5|94|95)[09]{34,36}[0-9]{0,1}"];
    let exponent = prop_oneof![Just(0_i32), -3..3_i32, -40..40_i32, -167..=125_i32];
    let point = prop_oneof![Just(0_usize), 0..38_usize];
    (any::<bool>(), digits, point, exponent).prop_map(|(negative, mut digits, point, exponent)| {
        if point > 0 && point < digits.len() {
            digits.insert(point, '.');
        }
        let sign = if negative { "-" } else { "" };
        if exponent == 0 { format!("{sign}{digits}") } else { format!("{sign}{digits}e{exponent}") }
    })
}

/// What the limits say of an exact number.
fn judged(exact: &BigDecimal) -> Result<(), DecimalError> {
    if exact.is_zero() {
        return Ok(());
    }
    let normal = exact.normalized();
    let digits = normal.digits();
    let leading = digits as i64 - 1 - normal.fractional_digit_count();
    if digits > DECIMAL_DIGITS_MAX {
        return Err(DecimalError::Digits);
    }
    if (DECIMAL_EXPONENT_MIN..=DECIMAL_EXPONENT_MAX).contains(&leading) { Ok(()) } else { Err(DecimalError::Exponent) }
}

fn exact(text: &str) -> BigDecimal {
    text.parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whole_numbers_add_as_i128s_do(a in any::<i64>(), b in any::<i64>(), wide in -(1_i128 << 125)..(1_i128 << 125)) {
        let sum = Decimal::from(a).checked_add(Decimal::from(b)).unwrap();
        prop_assert_eq!(sum.to_string(), (i128::from(a) + i128::from(b)).to_string());
        let sum = decimal(&wide.to_string()).checked_add(Decimal::from(a)).unwrap();
        prop_assert_eq!(sum.to_string(), (wide + i128::from(a)).to_string());
        prop_assert_eq!(decimal(&wide.to_string()).cmp(&Decimal::from(a)), wide.cmp(&i128::from(a)));
    }

    #[test]
    fn cents_add_as_whole_numbers_do(cents in prop::collection::vec(-10_000_000_i128..10_000_000, 0..50)) {
        let text = |cents: i128| {
            format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
        };
        let sum = cents.iter().try_fold(Decimal::ZERO, |sum, &cents| sum.checked_add(decimal(&text(cents)))).unwrap();
        prop_assert_eq!(sum, decimal(&text(cents.iter().sum())));
    }

    #[test]
    fn parsing_and_adding_agree_with_exact_arithmetic(a in decimals(), b in decimals()) {
        let read = (Decimal::parse(&a), Decimal::parse(&b));
        for (text, read) in [(&a, &read.0), (&b, &read.1)] {
            if exact(text).is_zero() {
                continue; // a zero's exponent is judged as it is written
            }
            prop_assert_eq!(read.as_ref().map(|_| ()).map_err(Clone::clone), judged(&exact(text)), "{}", text);
        }
        let (Ok(left), Ok(right)) = read else { return Ok(()) };
        prop_assert_eq!(exact(&left.to_string()), exact(&a));
        prop_assert_eq!(left.cmp(&right), exact(&a).cmp(&exact(&b)));
        let sum = exact(&a) + exact(&b);
        match left.checked_add(right) {
            Ok(got) => prop_assert_eq!(exact(&got.to_string()), sum),
            Err(error) => prop_assert_eq!(Err(error), judged(&sum)),
        }
        prop_assert_eq!(left.checked_add(right), right.checked_add(left));
    }

    #[test]
    fn what_is_shown_is_read_back_and_has_no_trailing_zeros(text in decimals()) {
        let Ok(decimal) = Decimal::parse(&text) else { return Ok(()) };
        let shown = decimal.to_string();
        prop_assert!(shown.len() <= Decimal::TEXT_BYTES_MAX);
        prop_assert!(!shown.contains('.') || !shown.ends_with('0'), "{}", shown);
        prop_assert_eq!(Decimal::parse(&shown), Ok(decimal));
    }

    #[test]
    fn any_text_is_read_as_a_number_or_refused(text in "[-+0-9.eE]{0,8}|[-+]?[0-9]{0,3}[.]?[0-9]{0,3}([eE][-+]?[0-9]{0,2})?|\\PC{0,12}") {
        match Decimal::parse(&text) {
            Ok(decimal) => prop_assert_eq!(exact(&decimal.to_string()), exact(&text)),
            Err(DecimalError::Syntax(refused)) => prop_assert_eq!(&refused, &text),
            Err(error) => prop_assert_eq!(error, DecimalError::Exponent), // eight bytes hold an exponent of six digits
        }
        let read = !matches!(Decimal::parse(&text), Err(DecimalError::Syntax(_)));
        prop_assert_eq!(read, is_number(&text), "{}", text);
    }
}

/// The notation, said in another way.
fn is_number(text: &str) -> bool {
    let unsigned = |text: &str| text.strip_prefix(['-', '+']).unwrap_or(text).to_owned();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, unsigned(exponent)),
        None => (text, "0".to_owned()),
    };
    digits(&unsigned(number).replacen('.', "", 1)) && digits(&exponent)
}
