//! CSV against an oracle that knows the whole content, and its odd cases one by one.

use proptest::prelude::*;
use shardcron_domain::limits;

use super::gzip::gzip;
use super::*;
use crate::HeaderFault;

/// A record as the oracle finds it.
#[derive(Debug)]
struct Expected {
    from: u64,
    line: u64,
    fields: Vec<Vec<u8>>,
    /// Whether text follows a closing quote.
    misquoted: bool,
}

/// Reads CSV byte by byte, with all of it at hand; false when a quote isn't closed.
fn oracle(content: &[u8]) -> (Vec<Expected>, bool) {
    let is_end = |at: usize| matches!(content.get(at), Some(b'\r' | b'\n'));
    let line_at = |at: usize| {
        let ends = |i: &usize| content[*i] == b'\n' || (content[*i] == b'\r' && content.get(i + 1) != Some(&b'\n'));
        // A CR right before a record's start ends a line even when the record starts with an LF, which it never does.
        1 + (0..at).filter(ends).count() as u64
    };
    let mut records = Vec::new();
    let mut at = if content.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    loop {
        while is_end(at) {
            at += 1;
        }
        if at == content.len() {
            return (records, true);
        }
        let from = at;
        let mut fields = vec![];
        let mut misquoted = false;
        loop {
            let mut field = vec![];
            if content.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    match (content.get(at), content.get(at + 1)) {
                        (None, _) => return (records, false),
                        (Some(b'"'), Some(b'"')) => {
                            field.push(b'"');
                            at += 2;
                        }
                        (Some(b'"'), next) => {
                            misquoted |= !matches!(next, None | Some(b',' | b'\r' | b'\n'));
                            at += 1;
                            break;
                        }
                        (Some(byte), _) => {
                            field.push(*byte);
                            at += 1;
                        }
                    }
                }
            }
            while at < content.len() && !is_end(at) && content[at] != b',' {
                field.push(content[at]);
                at += 1;
            }
            fields.push(field);
            if content.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        records.push(Expected { from: from as u64, line: line_at(from), fields, misquoted });
    }
}

fn agrees(seen: &[Seen], expected: &[Expected], columns: usize, content: &[u8]) {
    let starts: Vec<(u64, u64)> = seen.iter().map(|seen| (seen.from.1, seen.line)).collect();
    let expected_starts: Vec<(u64, u64)> = expected.iter().map(|record| (record.from, record.line)).collect();
    assert_eq!(starts, expected_starts, "{:?}", content.escape_ascii().to_string());
    for (index, (seen, record)) in seen.iter().zip(expected).enumerate() {
        assert_eq!(seen.from.2 + 1, seen.line);
        let next = expected.get(index + 1).map_or((1, 0, 0), |next| (0, next.from, next.line - 1));
        assert_eq!(seen.to, next);
        let texts: Result<Vec<String>, _> = record.fields.iter().cloned().map(String::from_utf8).collect();
        match (&seen.body, texts) {
            (Err(why), _) if record.misquoted => assert!(why.contains("after a closing quote"), "{why}"),
            (Ok(fields), Ok(texts)) if record.fields.len() == columns && !record.misquoted => {
                assert_eq!(*fields, texts.into_iter().map(Some).collect::<Vec<_>>());
            }
            (Err(why), _) if record.fields.len() != columns => {
                assert!(why.starts_with(&format!("it has {} field", record.fields.len())), "{why}");
            }
            (Err(why), Err(_)) => assert!(why.ends_with("isn't UTF-8 text"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_content_in_any_pieces_is_read_as_the_oracle_does(
        header in prop::sample::select(vec!["x,y\n", "\u{feff}x,y\r\n", "\r\n\n\"x\",y\r", "\u{feff}\"x\r\n\",\"y\"\"\"\n", "x,y"]),
        body in prop::collection::vec(prop::sample::select(vec![
            &b"a"[..], b",", b"\"", b"\n", b"\r", b"\r\n", b"a,b\n", b"\"a\r\nb\",c\r\n", "é".as_bytes(), b"\xc3", b"\xef\xbb\xbf", b"",
        ]), 0..40),
        piece in 1..12_usize,
    ) {
        let body = if header == "x,y" { vec![] } else { body };
        let content = [header.as_bytes(), &body.concat()].concat();
        let (expected, closed) = oracle(&content);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (seen, end) = runtime.block_on(read_one(&content, super::csv(), &[], piece));
        if closed {
            end.unwrap();
            agrees(&seen, &expected[1..], 2, &content);
        } else {
            let Err(InputError::Input(fault)) = end else { panic!("an open quote passes: {seen:?}") };
            prop_assert!(matches!(fault.fault, Fault::UnclosedQuote), "{fault}");
            prop_assert_eq!(seen.len(), expected.len() - 1);
        }
        // From the end of any record the rest is read as the whole was.
        for (index, record) in seen.iter().enumerate().filter(|(_, record)| record.to.0 == 0) {
            let memory = Memory::of(&[("a", &content)], piece);
            let plan = memory.plan();
            let from = Position::Object(ObjectPosition { object: 0, offset: record.to.1, line: record.to.2 });
            let (rest, _) = runtime.block_on(read(Arc::new(memory), &plan, super::csv(), &[], from));
            prop_assert_eq!(&rest, &seen[index + 1..]);
        }
    }
}

#[tokio::test]
async fn quoted_fields_keep_all_their_bytes() {
    let content = b"name,text\r\nAlice,\"line1\rline2\"\r\nBob,\"a\r\nb\n\"\"c\"\", d\"\r\n";
    let seen = records(content, super::csv(), &[]).await;
    assert_eq!(seen[0].texts(), ["Alice", "line1\rline2"]);
    assert_eq!(seen[1].texts(), ["Bob", "a\r\nb\n\"c\", d"]);
    assert_eq!((seen[0].line, seen[1].line, seen.len()), (2, 4, 2));
}

#[tokio::test]
async fn a_quote_that_doesnt_begin_a_field_is_text_and_text_after_a_closing_one_is_malformed() {
    let content = b"a,b\n5\" pipe,b\"\n \"x\",1\n\"c\"d,1\n\"a\\\"b\",2\n\"e\" ,3\n1,\"f\"\"\"\n1,\"f\"g\"\n\"\",\"\"";
    let seen = records(content, super::csv(), &[]).await;
    let why = "it has text after a closing quote; within quotes, a quote is written twice";
    let bodies: Vec<Result<Vec<&str>, &str>> = seen
        .iter()
        .map(|seen| match &seen.body {
            Ok(_) => Ok(seen.texts()),
            Err(why) => Err(why.as_str()),
        })
        .collect();
    let expected = [
        Ok(vec!["5\" pipe", "b\""]),
        Ok(vec![" \"x\"", "1"]),
        Err(why),
        Err(why),
        Err(why),
        Ok(vec!["1", "f\""]),
        Err(why),
        Ok(vec!["", ""]),
    ];
    assert_eq!(bodies, expected);
    assert_eq!(seen[4].line, 6);
}

#[tokio::test]
async fn objects_without_records_have_none() {
    for content in ["", "\n\r\n", "a,b", "a,b\n", "\u{feff}", "\u{feff}a,b\r\n\r\n"] {
        assert_eq!(records(content.as_bytes(), super::csv(), &[]).await, [], "{content:?}");
    }
}

#[tokio::test]
async fn malformed_records_say_what_is_wrong() {
    let content = b"a,b\n1\n1,2,3\n\xff,2\n1,\xc3\n\xc3,\xa9\n1,2\n";
    let seen = records(content, super::csv(), &[]).await;
    let why: Vec<&str> = seen.iter().filter_map(|seen| seen.body.as_ref().err()).map(String::as_str).collect();
    assert_eq!(
        why,
        [
            "it has 1 field, and the header has 2",
            "it has 3 fields, and the header has 2",
            "its field 1 isn't UTF-8 text",
            "its field 2 isn't UTF-8 text",
            "its field 1 isn't UTF-8 text",
        ]
    );
    assert_eq!(seen[5].texts(), ["1", "2"]);
    let wide = [b"a,b\n".to_vec(), vec![b','; 1_000_000], b"\n1,2".to_vec()].concat();
    let seen = records(&wide, super::csv(), &[]).await;
    assert_eq!(seen[0].body, Err("it has 1000001 fields, and the header has 2".to_owned()));
    assert_eq!(seen[1].texts(), ["1", "2"]);
}

#[tokio::test]
async fn a_header_without_a_needed_column_is_refused_also_where_no_record_follows() {
    let needed: Arc<[String]> = ["b".to_owned(), "a".to_owned()].into();
    let read = async |objects: &[(&str, &[u8])], first: u64| {
        let memory = Memory::of(objects, 3);
        let plan = memory.plan();
        let from = Position::Object(ObjectPosition { object: 0, offset: first, line: u64::from(first > 0) });
        let reader = ShardReader::open(Arc::new(memory), root(), &plan, &super::csv(), from).unwrap();
        let mut reader = reader.needing(Arc::clone(&needed));
        let mut records = 0;
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => records += chunk.len(),
                Ok(None) => return Ok(records),
                Err(InputError::Input(fault)) => return Err((records, fault.to_string())),
                Err(error) => panic!("{error}"),
            }
        }
    };
    let good: &[u8] = b"a,b\n1,2\n";
    for lacking in [&b"x,10"[..], b"x,10\n", b"x,10\n1,2\n", &gzip(b"x,10")] {
        let why = "s3://data/b, line 1, byte 0: its header has no column `b`; its columns are `x`, `10`";
        assert_eq!(read(&[("a", good), ("b", lacking)], 0).await, Err((1, why.to_owned())));
        // Also by whoever goes on behind the header.
        assert!(read(&[("a", lacking)], 4).await.is_err());
    }
    for lacking in ["\u{feff}x", "\u{feff}a,bb\r\n"] {
        let (_, why) = read(&[("a", lacking.as_bytes())], 0).await.unwrap_err();
        assert!(why.starts_with("s3://data/a, line 1, byte 3: its header has no column `b`; "), "{why}");
    }
    assert_eq!(read(&[("a", b""), ("b", good), ("c", b"b,c,a"), ("d", b"\n"), ("e", &gzip(b""))], 0).await, Ok(1));
}

#[tokio::test]
async fn headers_that_cant_be_used_are_refused() {
    let cases: [(&[u8], HeaderFault); 6] = [
        (b"a,\"b\"c\n1,2\n", HeaderFault::Misquoted),
        (b"a\0,b\n1,2\n", HeaderFault::Nul),
        (b"a,b,a\n1,2,3\n", HeaderFault::Duplicate("a".into())),
        (b"a,\xff\n1,2\n", HeaderFault::NotUtf8),
        (b"a,\"b\n1,2\n", HeaderFault::UnclosedQuote),
        (&vec![b'a'; limits::HEADER_BYTES_MAX + 1], HeaderFault::TooLong),
    ];
    for (content, expected) in cases {
        let (seen, end) = read_one(content, super::csv(), &[], 1000).await;
        assert_eq!(seen, []);
        let Err(InputError::Input(fault)) = end else { panic!("{expected:?} passes") };
        assert!(matches!(&fault.fault, Fault::Header(found) if *found == expected), "{fault}");
    }
}

#[tokio::test]
async fn a_quote_left_open_is_an_error_at_its_record_after_those_before_it() {
    let (seen, fault) = fault(b"a,b\n1,2\n\n3,\"4\n5,6\n", super::csv()).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].to, (0, 9, 3));
    let expected = "s3://data/a, line 4, byte 9: the record that begins here has a quote that isn't closed up to the end \
                    of the object";
    assert_eq!(fault.to_string(), expected);
}

#[tokio::test]
async fn a_record_may_be_as_long_as_the_limit_and_no_longer() {
    let row = |bytes: usize, end: &str| [b"a\n1\n", &vec![b'x'; bytes][..], end.as_bytes(), b"2\n"].concat();
    for (bytes, end) in [(limits::RECORD_BYTES_MAX, "\n"), (limits::RECORD_BYTES_MAX, "\r\n")] {
        for piece in [100_000, usize::MAX] {
            let (seen, end) = read_one(&row(bytes, end), super::csv(), &[], piece).await;
            end.unwrap();
            assert_eq!(seen.len(), 3);
        }
    }
    for piece in [100_000, usize::MAX] {
        let (seen, end) = read_one(&row(limits::RECORD_BYTES_MAX + 1, "\n"), super::csv(), &[], piece).await;
        assert_eq!(seen.len(), 1);
        let Err(InputError::Input(fault)) = end else { panic!("it passes") };
        assert!(matches!(fault.fault, Fault::RecordTooLong));
        assert_eq!(fault.at, Some(crate::Spot { line: 3, offset: 4 }));
    }
}

#[tokio::test]
async fn chunks_are_bounded_by_records_and_by_bytes() {
    let memory = Memory::of(&[("a", ("n\n".to_owned() + &"1\n".repeat(2500)).as_bytes())], 4096);
    assert_eq!(chunk_sizes(memory).await, [1024, 1024, 452]);
    let row = "x".repeat(300_000) + "\n";
    let memory = Memory::of(&[("a", ("n\n".to_owned() + &row.repeat(6)).as_bytes())], 4096);
    assert_eq!(chunk_sizes(memory).await, [4, 2]);
    let memory = Memory::of(&[("a", b"n\n1\n2\n"), ("b", b""), ("c", b"n\n"), ("d", b"m,n\n3,4")], 4096);
    assert_eq!(chunk_sizes(memory).await, [2, 1]);
}

async fn chunk_sizes(memory: Memory) -> Vec<usize> {
    let plan = memory.plan();
    let format = super::csv();
    let mut reader = ShardReader::open(Arc::new(memory), root(), &plan, &format, plan.range.from()).unwrap();
    let mut sizes = Vec::new();
    while let Some(chunk) = reader.next().await.unwrap() {
        sizes.push(chunk.len());
    }
    sizes
}
