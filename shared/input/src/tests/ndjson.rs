//! NDJSON against lines split by hand, and its odd cases one by one.

use proptest::prelude::*;
use shardcron_domain::limits;

use super::*;

#[tokio::test]
async fn scalars_become_the_text_that_stands_there() {
    let content = br#"{"s":"a\"\u00e9\n","n":-0.10e+5,"t":true,"f":false,"z":null,"o":{"x": [1, 2]},"a":[ ],"m":12345678901234567890.123456789012345678901}"#;
    let seen = records(content, super::ndjson(), &["s", "n", "t", "f", "z", "o", "a", "m", "absent"]).await;
    let expected = [
        "a\"é\n",
        "-0.10e+5",
        "true",
        "false",
        "NULL",
        r#"{"x": [1, 2]}"#,
        "[ ]",
        "12345678901234567890.123456789012345678901",
        "NULL",
    ];
    assert_eq!(seen[0].texts(), expected);
}

#[tokio::test]
async fn lines_end_with_or_without_cr_and_blank_ones_are_passed_over() {
    let content = b"\xef\xbb\xbf\r\n{\"n\":1}\r\n \t\r\n\n  {\"n\":2} \n{\"n\":3}";
    let seen = records(content, super::ndjson(), &["n"]).await;
    let numbers: Vec<_> = seen.iter().map(|seen| (seen.texts().concat(), seen.from, seen.to, seen.line)).collect();
    let expected = [("1", (0, 5, 1), (0, 19, 4), 2), ("2", (0, 19, 4), (0, 30, 5), 5), ("3", (0, 30, 5), (1, 0, 0), 6)];
    assert_eq!(numbers, expected.map(|(text, from, to, line)| (text.to_owned(), from, to, line)));
}

#[tokio::test]
async fn malformed_lines_say_what_is_wrong() {
    let cases: [(&[u8], &str); 9] = [
        (b"[1]", "invalid type: sequence, expected a JSON object"),
        (b"1", "invalid type: integer `1`, expected a JSON object (column 1)"),
        (br#"{"a":1,"b":2,"a":3}"#, "it has the key `a` twice"),
        (br#"{"a":1"#, "EOF while parsing an object (column 6)"),
        (br#"{"a":1}{"a":2}"#, "trailing characters (column 8)"),
        (br#"{"a":01}"#, "invalid number (column 7)"),
        (br#"{"a":NaN}"#, "expected value (column 6)"),
        (b"{\"a\":\"\xff\"}", "its byte 6 isn't UTF-8 text"),
        (br#"{"a":"\ud800"}"#, "the value of `a` isn't text: "),
    ];
    for (line, expected) in cases {
        let content = [line, b"\n{\"a\":\"after\"}\n"].concat();
        let seen = records(&content, super::ndjson(), &["a"]).await;
        let Err(why) = &seen[0].body else { panic!("{expected} passes") };
        assert!(why.starts_with(expected), "{why}");
        assert_eq!(seen[1].texts(), ["after"]);
    }
    let deep = "{\"a\":".to_owned() + &"[".repeat(100_000) + &"]".repeat(100_000) + "}";
    assert_eq!(records(deep.as_bytes(), super::ndjson(), &["a"]).await[0].texts()[0].len(), 200_000);
}

#[tokio::test]
async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let line = |bytes: usize, end: &str| {
        let text = "x".repeat(bytes - r#"{"a":""}"#.len());
        format!("{{}}\n{{\"a\":\"{text}\"}}{end}").into_bytes()
    };
    for end in ["", "\n", "\r\n"] {
        for piece in [100_000, limits::RECORD_BYTES_MAX + 4, usize::MAX] {
            let (seen, ended) = read_one(&line(limits::RECORD_BYTES_MAX, end), super::ndjson(), &["a"], piece).await;
            ended.unwrap();
            assert_eq!(seen.len(), 2);
            let (seen, ended) =
                read_one(&line(limits::RECORD_BYTES_MAX + 1, end), super::ndjson(), &["a"], piece).await;
            assert_eq!(seen.len(), 1);
            let Err(InputError::Input(fault)) = ended else { panic!("it passes") };
            assert!(matches!(fault.fault, Fault::RecordTooLong));
            assert_eq!(fault.at, Some(crate::Spot { line: 2, offset: 3 }));
        }
    }
}

proptest! {
    #[test]
    fn any_lines_in_any_pieces_are_all_met_at_their_places(
        lines in prop::collection::vec(prop::sample::select(vec![
            r#"{"n":1}"#, r#"{"n":"é"}"#, "", "\r", " ", "{", r#"{"n":2}"#, "x", "é\r", "{\"n\":\r3}\r",
        ]), 0..30),
        is_ended: bool,
        piece in 1..12_usize,
    ) {
        let content = lines.join("\n") + if is_ended { "\n" } else { "" };
        let mut expected: Vec<(u64, u64)> = Vec::new();
        let mut offset = 0;
        for (index, line) in content.split('\n').enumerate() {
            if !line.trim().is_empty() {
                expected.push((offset, index as u64 + 1));
            }
            offset += line.len() as u64 + 1;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (seen, end) = runtime.block_on(read_one(content.as_bytes(), super::ndjson(), &["n"], piece));
        end.unwrap();
        let starts: Vec<(u64, u64)> = seen.iter().map(|seen| (seen.from.1, seen.line)).collect();
        prop_assert_eq!(starts, expected);
        prop_assert!(seen.windows(2).all(|pair| pair[0].to == pair[1].from));
        prop_assert!(seen.last().is_none_or(|last| last.to == (1, 0, 0)));
    }
}
