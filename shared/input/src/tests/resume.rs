//! Going on from any place gives the rest, and nothing else.

use shardcron_domain::boundary::Range;
use shardcron_domain::ids::ShardId;

use super::gzip::gzip;
use super::*;

fn position(place: Place) -> Position {
    Position::Object(ObjectPosition { object: place.0, offset: place.1, line: place.2 })
}

/// Objects of all kinds, with records of all kinds, and some with none.
fn csv_objects() -> Vec<(&'static str, Vec<u8>)> {
    let text = "\u{feff}\r\nid,text\r\n1,a\r\n\r\n\n2,\"b\r\n\"\"b\"\r\n3\r\n4,é\n5,e\r6,\"f\rf\"\r\n\r\n";
    let split = text.find("b\r\n").unwrap();
    let many: String = (0..3000).map(|n| format!("{n},\"{n}\n\"\n")).collect();
    vec![
        ("a", text.as_bytes().to_vec()),
        ("b", Vec::new()),
        ("c", b"id,text\n".to_vec()),
        ("d", gzip(text.as_bytes())),
        ("e", [gzip(&text.as_bytes()[..split]), gzip(&text.as_bytes()[split..]), vec![0; 16]].concat()),
        ("f", format!("id,text\n{many}").into_bytes()),
        ("g", b"\n\n".to_vec()),
    ]
}

fn ndjson_objects() -> Vec<(&'static str, Vec<u8>)> {
    let text = "\u{feff}{\"id\":1}\r\n\n  \n{\"id\":2\n{\"id\":\"é\"}\r\n{\"id\":4}";
    vec![
        ("a", text.as_bytes().to_vec()),
        ("b", b"\n".to_vec()),
        ("c", [gzip(&text.as_bytes()[..20]), gzip(&text.as_bytes()[20..])].concat()),
        ("d", b"{\"id\":5}\n".repeat(1500)),
    ]
}

fn memory(objects: &[(&'static str, Vec<u8>)]) -> Memory {
    let objects: Vec<(&str, &[u8])> = objects.iter().map(|(key, content)| (*key, content.as_slice())).collect();
    Memory::of(&objects, 997)
}

async fn goes_on_from_anywhere(memory: Memory, format: InputFormat) {
    let plan = memory.plan();
    let objects: Arc<dyn Objects> = Arc::new(memory);
    let (all, end) = read(Arc::clone(&objects), &plan, format, &["id"], plan.range.from()).await;
    end.unwrap();
    for pair in all.windows(2) {
        // Within an object the records tile; from one to the next the header lies in between.
        assert!(pair[0].to == pair[1].from || pair[0].to == (pair[0].from.0 + 1, 0, 0), "{pair:?}");
    }
    for (index, record) in all.iter().enumerate() {
        // Of the many that are alike, some around the ends of chunks will do.
        if index % 1024 > 30 && all.len() - index > 30 {
            continue;
        }
        let (rest, end) = read(Arc::clone(&objects), &plan, format, &["id"], position(record.to)).await;
        end.unwrap();
        assert!(rest == all[index + 1..], "after {record:?}");
        let (rest, end) = read(Arc::clone(&objects), &plan, format, &["id"], position(record.from)).await;
        end.unwrap();
        assert!(rest == all[index..], "from {record:?}");
    }
    let (rest, end) = read(objects, &plan, format, &["id"], plan.range.to()).await;
    end.unwrap();
    assert_eq!(rest, []);
}

#[tokio::test]
async fn csv_goes_on_after_any_record() {
    goes_on_from_anywhere(memory(&csv_objects()), super::csv()).await;
}

#[tokio::test]
async fn ndjson_goes_on_after_any_record() {
    goes_on_from_anywhere(memory(&ndjson_objects()), super::ndjson()).await;
}

/// A shard may end, and another begin, at any record's start within an object: together they have each record once.
#[tokio::test]
async fn two_parts_of_a_shard_cut_at_any_record_make_the_whole() {
    for (objects, format) in [(csv_objects(), super::csv()), (ndjson_objects(), super::ndjson())] {
        let objects: Vec<_> = objects.into_iter().filter(|(_, content)| content.len() < 1000).collect();
        let memory = memory(&objects);
        let plan = memory.plan();
        let objects: Arc<dyn Objects> = Arc::new(memory);
        let (all, _) = read(Arc::clone(&objects), &plan, format, &["id"], plan.range.from()).await;
        for cut in all.iter().flat_map(|record| [record.from, record.to]) {
            let mut both = Vec::new();
            for range in [(plan.range.from(), position(cut)), (position(cut), plan.range.to())] {
                let range = Range::new(range.0, range.1).unwrap();
                let part = plan.part(ShardId::numbered(0).child(1), range).unwrap();
                let (seen, end) = read(Arc::clone(&objects), &part, format, &["id"], range.from()).await;
                end.unwrap();
                assert!(seen.iter().all(|seen| range.spans(position(seen.from)) && range.spans(position(seen.to))));
                both.extend(seen);
            }
            assert_eq!(both, all, "cut at {cut:?}");
        }
    }
}

#[tokio::test]
async fn a_broken_connection_is_worth_another_try_on_the_same_reader() {
    let objects = csv_objects();
    let whole = memory(&objects);
    let plan = whole.plan();
    let (all, _) = read(Arc::new(whole), &plan, super::csv(), &[], plan.range.from()).await;
    for breaks_after in [0, 5, 30, 2000, 30_000] {
        let broken = Memory { breaks_after: Some(breaks_after), breaks: 3.into(), ..memory(&objects) };
        let format = super::csv();
        let mut reader = ShardReader::open(Arc::new(broken), root(), &plan, &format, plan.range.from()).unwrap();
        let (mut seen, mut errors) = (Vec::new(), 0);
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => {
                    let columns: Vec<Column> = (0..2).map(Column::At).collect();
                    seen.extend(chunk.records().map(|record| Seen::of(record, &columns)));
                }
                Ok(None) => break,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    errors += 1;
                }
            }
        }
        assert!(seen == all, "broken after {breaks_after}");
        assert!(errors <= 3);
    }
}

#[tokio::test]
async fn an_object_that_ends_before_its_size_is_no_end() {
    let short = Memory::of(&[("a", b"n\n1\n2\n")], 3);
    let mut plan = short.plan();
    plan.objects[0].size += 2;
    let (seen, end) = read(Arc::new(short), &plan, super::csv(), &[], plan.range.from()).await;
    assert_eq!(seen.len(), 1);
    assert!(end.unwrap_err().is_retryable());
}

#[tokio::test]
async fn places_that_arent_the_shards_are_refused() {
    let objects = [("a", b"n\n1\n".to_vec())];
    let plan = memory(&objects).plan();
    let beyond = [Position::Key(0), position((2, 0, 0)), position((1, 1, 0))];
    for from in beyond {
        let format = super::csv();
        let refused = ShardReader::open(Arc::new(memory(&objects)), root(), &plan, &format, from).err();
        assert!(matches!(refused, Some(InputError::Plan { .. })), "{from}: {refused:?}");
    }
    let (_, end) = read(Arc::new(memory(&objects)), &plan, super::csv(), &[], position((0, 99, 7))).await;
    assert!(matches!(end, Err(InputError::Input(fault)) if matches!(fault.fault, Fault::TooShort)));
    let compressed = [("a", gzip(b"n\n1\n"))];
    let plan = memory(&compressed).plan();
    let (_, end) = read(Arc::new(memory(&compressed)), &plan, super::csv(), &[], position((0, 99, 7))).await;
    assert!(matches!(end, Err(InputError::Input(fault)) if matches!(fault.fault, Fault::TooShort)));
}
