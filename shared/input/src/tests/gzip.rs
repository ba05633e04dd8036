//! Compressed objects: whole ones of any making, and broken ones of any kind.

use std::io::Write;

use flate2::{Compression as Level, GzBuilder, write::GzEncoder};

use super::*;
use crate::CompressedFault;

pub(super) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

const TEXT: &[u8] = b"n,t\n1,one\n2,\"two\n2\"\n3,three\n";

#[tokio::test]
async fn it_is_known_by_its_bytes_and_read_as_the_plain_content() {
    let plain = records(TEXT, super::csv(), &[]).await;
    assert_eq!(plain.len(), 3);
    assert_eq!(records(&gzip(TEXT), super::csv(), &[]).await, plain);
    let halves = [gzip(&TEXT[..13]), gzip(b""), gzip(&TEXT[13..])].concat();
    assert_eq!(records(&halves, super::csv(), &[]).await, plain);
    let each: Vec<u8> = TEXT.iter().flat_map(|byte| gzip(&[*byte])).collect();
    assert_eq!(records(&each, super::csv(), &[]).await, plain);
    let gzip_only = InputFormat { compression: Compression::Gzip, ..super::csv() };
    assert_eq!(records(&gzip(TEXT), gzip_only, &[]).await, plain);
    assert!(matches!(
        fault(TEXT, gzip_only).await.1.fault,
        Fault::Compressed { why: CompressedFault::NotGzip, compressed_offset: 1 }
    ));
    let none = InputFormat { compression: Compression::None, ..super::csv() };
    assert!(matches!(fault(&gzip(TEXT), none).await.1.fault, Fault::Header(_)));
}

#[tokio::test]
async fn all_that_a_members_header_may_have_is_passed_over() {
    let builder = GzBuilder::new().filename("a.csv").comment("of tests").extra(vec![0, 1, 2]).mtime(7);
    let mut encoder = builder.write(Vec::new(), Level::fast());
    encoder.write_all(TEXT).unwrap();
    let member = encoder.finish().unwrap();
    let plain = records(TEXT, super::csv(), &[]).await;
    assert_eq!(records(&member, super::csv(), &[]).await, plain);

    // With a checksum of the header, which flate2 doesn't write.
    let mut checked = gzip(TEXT);
    checked[3] |= 1 << 1;
    let mut crc = flate2::Crc::new();
    crc.update(&checked[..10]);
    let check = (crc.sum() as u16).to_le_bytes();
    checked.splice(10..10, check);
    assert_eq!(records(&checked, super::csv(), &[]).await, plain);
    checked[10] ^= 1;
    assert!(matches!(
        fault(&checked, super::csv()).await.1.fault,
        Fault::Compressed { why: CompressedFault::Header(_), .. }
    ));
}

/// Cut after a whole member, what is left is a whole object of fewer members: that can't be told from one that never
/// had more, so the cuts here are within members.
#[tokio::test]
async fn cut_off_at_any_byte_it_is_an_error() {
    let first = gzip(&TEXT[..13]);
    let whole = [first.clone(), gzip(&TEXT[13..])].concat();
    for cut in (1..whole.len()).filter(|cut| *cut != first.len()) {
        let (_, fault) = fault(&whole[..cut], super::csv()).await;
        let Fault::Compressed { compressed_offset, why: CompressedFault::Truncated } = fault.fault else {
            panic!("cut at {cut}: {fault}")
        };
        assert_eq!(compressed_offset, cut as u64);
    }
    assert_eq!(records(&whole[..first.len()], ndjson(), &[]).await.len(), 3);
}

/// Some bits have no part in the content: those of the time and the system, and the last ones before the checksum, which
/// pad the data to whole bytes.
#[tokio::test]
async fn a_flipped_bit_is_an_error_or_has_no_part_in_the_content() {
    let whole = gzip(TEXT);
    let plain = records(TEXT, super::csv(), &[]).await;
    let mut harmless = 0;
    for at in 2..whole.len() {
        for bit in 0..8 {
            let mut broken = whole.clone();
            broken[at] ^= 1 << bit;
            let (seen, end) = read_one(&broken, super::csv(), &[], 5).await;
            if end.is_ok() {
                assert_eq!(seen, plain, "byte {at}, bit {bit}");
                harmless += 1;
            }
        }
    }
    assert!((49..=56).contains(&harmless), "{harmless}");
}

#[tokio::test]
async fn a_bomb_is_read_in_bounded_memory_and_refused_where_its_record_is_too_long() {
    let mut encoder = GzEncoder::new(Vec::new(), Level::best());
    encoder.write_all(b"n\n").unwrap();
    for _ in 0..64 {
        encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let (_, fault) = fault(&bomb, super::csv()).await;
    assert!(matches!(fault.fault, Fault::RecordTooLong), "{fault}");
}

#[tokio::test]
async fn a_fault_says_where_it_is() {
    let mut broken = gzip(TEXT);
    let length = broken.len();
    broken[length - 8] ^= 1;
    let (_, fault) = fault(&broken, super::csv()).await;
    let expected = format!(
        "s3://data/a, line 6, byte {}: it can't be decompressed: the data is damaged (its checksum isn't the one that it \
         was compressed with) (after {length} bytes of the compressed object)",
        TEXT.len()
    );
    assert_eq!(fault.to_string(), expected);
}
