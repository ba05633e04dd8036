//! The reports of faults in reading that docs/field-reports.md lists under "Input".
//!
//! CSV and compressed objects aren't cut, so that the faults of a cut within one can't arise from planning; NDJSON is cut
//! where a line ends (`cut.rs`). The inputs of the reports are read whole here, in pieces as small as a network may make
//! them, and as ranges that begin and end at records, which is where a cut may be.

use std::fs;
use std::path::Path;

use shardcron_objects::local::LocalObjects;

use super::gzip::gzip;
use super::*;

#[tokio::test]
async fn newlines_within_quotes_are_text() {
    let content = "text\n".to_owned() + &"\"ABCDE FGHIJ\nKLMNOP\"\n".repeat(1041);
    let seen = records(content.as_bytes(), super::csv(), &[]).await;
    assert_eq!(seen.len(), 1041);
    assert!(seen.iter().all(|seen| seen.texts() == ["ABCDE FGHIJ\nKLMNOP"]));
    assert_eq!(seen[1040].line, 2 * 1041);
}

#[tokio::test]
async fn one_huge_line_is_one_record() {
    for end in ["", "\n"] {
        let line = format!("{{\"a\":\"{}\"}}{end}", "x".repeat(12_000_000));
        let (seen, ended) = read_one(line.as_bytes(), ndjson(), &["a"], 65_536).await;
        ended.unwrap();
        assert_eq!(seen.len(), 1);
        let rows = format!("a\n{}{end}", "x".repeat(12_000_000));
        assert_eq!(read_one(rows.as_bytes(), super::csv(), &[], 65_536).await.0.len(), 1);
    }
}

#[tokio::test]
async fn lines_that_end_in_cr_alone_are_lines() {
    let seen = records(b"a,b\r1,2\r\r3,\"4\r5\"\r6,7", super::csv(), &[]).await;
    assert_eq!(seen.iter().map(Seen::texts).collect::<Vec<_>>(), [["1", "2"], ["3", "4\r5"], ["6", "7"]]);
    assert_eq!(seen.iter().map(|seen| seen.line).collect::<Vec<_>>(), [2, 4, 6]);
}

#[tokio::test]
async fn the_header_is_left_out_once_in_each_object_and_nothing_else() {
    let content = "n\n".to_owned() + &(0..10_000).map(|n| format!("{n}\n")).collect::<String>();
    let memory = Memory::of(&[("a", content.as_bytes()), ("b", content.as_bytes())], 4096);
    let plan = memory.plan();
    let (seen, _) = read(Arc::new(memory), &plan, super::csv(), &[], plan.range.from()).await;
    let expected = (0..10_000).chain(0..10_000).map(|n| n.to_string());
    assert!(seen.iter().map(|seen| seen.texts().concat()).eq(expected));
}

#[tokio::test]
async fn a_crlf_cut_between_pieces_is_one_end() {
    let content = b"a,b\r\n1,\"x\r\ny\"\r\n2,z\r\n";
    let whole = read_one(content, super::csv(), &[], usize::MAX).await.0;
    assert_eq!(whole.iter().map(|seen| seen.line).collect::<Vec<_>>(), [2, 4]);
    for piece in 1..content.len() {
        assert_eq!(read_one(content, super::csv(), &[], piece).await.0, whole);
    }
}

#[tokio::test]
async fn ndjson_with_crlf_across_pieces_of_64_bytes() {
    let content: String = (0..1000).map(|n| format!("{{\"n\":{n}}}\r\n")).collect();
    for piece in [1, 63, 64, 65] {
        let (seen, end) = read_one(content.as_bytes(), ndjson(), &["n"], piece).await;
        end.unwrap();
        assert!(seen.iter().map(|seen| seen.texts().concat()).eq((0..1000).map(|n| n.to_string())));
    }
}

#[tokio::test]
async fn all_members_of_a_gzip_object_are_read() {
    let members: Vec<u8> = (0..1000).flat_map(|n| gzip(format!("{{\"n\":{n}}}\n").as_bytes())).collect();
    let seen = records(&members, ndjson(), &["n"]).await;
    assert!(seen.iter().map(|seen| seen.texts().concat()).eq((0..1000).map(|n| n.to_string())));
    let joined = [gzip(b"{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"), gzip(b"{\"n\":4}\n{\"n\":5}")].concat();
    assert_eq!(records(&joined, ndjson(), &["n"]).await.len(), 5);
}

#[tokio::test]
async fn zeros_may_follow_a_gzip_object_and_nothing_else() {
    let member = gzip(b"{\"n\":1}\n");
    for zeros in [1, 16, 10_000] {
        assert_eq!(records(&[member.clone(), vec![0; zeros]].concat(), ndjson(), &["n"]).await.len(), 1);
    }
    for garbage in [&b"text"[..], b"\0\0text", b"\x1f", b"\x1f\x8c", b"\x8b"] {
        let (_, fault) = fault(&[member.as_slice(), garbage].concat(), ndjson()).await;
        assert!(matches!(fault.fault, Fault::Compressed { .. }), "{fault}");
    }
    let (_, fault) = fault(&[member.clone(), vec![0; 4], member].concat(), ndjson()).await;
    assert!(matches!(fault.fault, Fault::Compressed { .. }), "{fault}");
}

#[tokio::test]
async fn a_cr_within_quotes_is_text() {
    let seen = records(b"name,text\nAlice,\"line1\rline2\"\nBob,x\n", super::csv(), &[]).await;
    assert_eq!(seen.iter().map(Seen::texts).collect::<Vec<_>>(), [["Alice", "line1\rline2"], ["Bob", "x"]]);
}

#[tokio::test]
async fn an_object_overwritten_after_planning_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("1.csv"), directory.path().join("2.csv"));
    let root = Root::Directory(directory.path().display().to_string());
    fs::write(&first, "n\n1\n2\n").unwrap();
    fs::write(&second, "n\n3\n4\n").unwrap();
    let objects: Arc<dyn Objects> = Arc::new(LocalObjects::new(directory.path().join("objects")));
    let listed = objects.list(&root, "", None, 10).await.unwrap();
    let plans = pack(listed, 1);
    // Of the same length, and until the kernel's clock has moved.
    while objects.list(&root, "2", None, 1).await.unwrap()[0].etag == plans[1].objects[0].etag {
        fs::write(&second, "n\n5\n6\n").unwrap();
    }
    for (plan, is_changed) in plans.iter().zip([false, true]) {
        let from = plan.range.from();
        let mut reader = ShardReader::open(Arc::clone(&objects), root.clone(), plan, &super::csv(), from).unwrap();
        match reader.next().await {
            Ok(Some(chunk)) => assert!(!is_changed && chunk.len() == 2),
            Err(error) => {
                assert!(is_changed && !error.is_retryable(), "{error}");
                assert!(matches!(error, InputError::Input(fault) if matches!(fault.fault, Fault::Changed)));
            }
            Ok(None) => panic!("the shard has records"),
        }
    }
}

#[tokio::test]
async fn the_flights_of_january_are_all_read_and_at_their_places() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights/data");
    let root = Root::Directory(directory.canonicalize().unwrap().display().to_string());
    let objects: Arc<dyn Objects> = Arc::new(LocalObjects::new(directory));
    let plan = pack(objects.list(&root, "2013-01.csv.gz", None, 1).await.unwrap(), u64::MAX).remove(0);
    let from = plan.range.from();
    let mut reader = ShardReader::open(objects, root, &plan, &super::csv(), from).unwrap();
    let (mut records, mut last) = (0_u64, None);
    while let Some(chunk) = reader.next().await.unwrap() {
        let hour = chunk.source().column("time_hour");
        for record in chunk.records() {
            records += 1;
            assert_eq!(record.line(), records + 1);
            assert!(matches!(record.field(&hour), Field::Text(text) if text.starts_with("2013-")));
            last = Some(place(record.to()));
        }
    }
    assert_eq!((records, last), (27_004, Some((1, 0, 0))));
}
