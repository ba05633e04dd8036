//! What every adapter of the port must do, as tests to run on it. They panic where it doesn't.
//!
//! Each takes a root that is its own and empty, and may be run on any store: none relies on what the local adapter or
//! the memory of one process could see beyond the port.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "panics are how a test suite reports")]

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::{ETag, ObjectName, Objects, ObjectsError, Put, Root, read_whole};
use shardcron_domain::limits::{SINGLE_PUT_BYTES_MAX, UPLOAD_PART_BYTES};

/// Runs all of the suite, each part under a root that `root` makes from the part's name.
pub async fn all(objects: Arc<dyn Objects>, root: impl Fn(&str) -> Root) {
    all_but_large_races(Arc::clone(&objects), &root).await;
    of_racing_large_puts_one_wins(objects, root("race-large")).await;
}

/// All but the races of large contents: for a store that is known to decide those wrongly.
pub async fn all_but_large_races(objects: Arc<dyn Objects>, root: impl Fn(&str) -> Root) {
    put_and_read(&*objects, &root("put-and-read")).await;
    ranges(&*objects, &root("ranges")).await;
    large_contents_are_as_small_ones(&*objects, &root("large")).await;
    a_changed_object_is_refused(&*objects, &root("changed")).await;
    listings_are_in_key_order(&*objects, &root("order")).await;
    listings_go_on_where_they_ended(&*objects, &root("paging")).await;
    an_absent_root_is_empty(&*objects, &root("absent")).await;
    of_racing_puts_if_absent_one_wins(Arc::clone(&objects), root("race-absent")).await;
    of_racing_puts_if_match_one_wins(Arc::clone(&objects), root("race-match")).await;
}

fn name(root: &Root, key: &str) -> ObjectName {
    ObjectName { root: root.clone(), key: key.to_owned() }
}

/// Puts an object that isn't there yet.
async fn put(objects: &dyn Objects, root: &Root, key: &str, content: &[u8]) -> ETag {
    match objects.put_if_absent(&name(root, key), Bytes::copy_from_slice(content)).await.unwrap() {
        Put::Written(tag) => tag,
        Put::Refused => panic!("{key} is there already"),
    }
}

async fn read(objects: &dyn Objects, object: &ObjectName, range: Option<std::ops::Range<u64>>) -> Vec<u8> {
    let mut reader = objects.get(object, range, None).await.unwrap();
    let mut content = Vec::new();
    while let Some(bytes) = reader.next().await.unwrap() {
        content.extend_from_slice(&bytes);
    }
    content
}

async fn keys(objects: &dyn Objects, root: &Root, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    objects.list(root, prefix, after, limit).await.unwrap().into_iter().map(|meta| meta.key).collect()
}

/// An object is there as it was put; a second put-if-absent changes nothing; a put-if-match needs the tag.
pub async fn put_and_read(objects: &dyn Objects, root: &Root) {
    let object = name(root, "a/b/c.csv");
    assert_eq!(objects.head(&object).await.unwrap(), None);
    assert_eq!(read_whole(objects, &object).await.unwrap(), None);
    assert!(matches!(objects.get(&object, None, None).await.err(), Some(ObjectsError::NotFound { .. })));
    let nothing = ETag("\"nothing\"".to_owned());
    assert_eq!(objects.put_if_match(&object, &nothing, Bytes::from_static(b"x")).await.unwrap(), Put::Refused);
    assert_eq!(objects.head(&object).await.unwrap(), None);

    let first = put(objects, root, &object.key, b"first").await;
    let meta = objects.head(&object).await.unwrap().unwrap();
    assert_eq!((meta.key.as_str(), meta.size, &meta.etag), ("a/b/c.csv", 5, &first));
    assert_eq!(objects.list(root, "", None, 10).await.unwrap(), [meta]);
    assert_eq!(objects.put_if_absent(&object, Bytes::from_static(b"second")).await.unwrap(), Put::Refused);
    assert_eq!(read_whole(objects, &object).await.unwrap(), Some((b"first".to_vec(), first.clone())));

    assert_eq!(objects.put_if_match(&object, &nothing, Bytes::from_static(b"x")).await.unwrap(), Put::Refused);
    let replaced = objects.put_if_match(&object, &first, Bytes::from_static(b"third")).await.unwrap();
    let Put::Written(third) = replaced else { panic!("the tag is the object's") };
    assert_ne!(first, third);
    assert_eq!(read_whole(objects, &object).await.unwrap(), Some((b"third".to_vec(), third)));
    assert_eq!(objects.put_if_match(&object, &first, Bytes::from_static(b"late")).await.unwrap(), Put::Refused);

    put(objects, root, "empty", b"").await;
    assert_eq!(read(objects, &name(root, "empty"), None).await, b"");
}

/// Ranges are half-open and clipped at the object's end.
pub async fn ranges(objects: &dyn Objects, root: &Root) {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    put(objects, root, "large", &content).await;
    let object = name(root, "large");
    assert!(read(objects, &object, None).await == content);
    for (from, to) in [(0, 1), (1, 2), (999_999, 1_000_000), (262_143, 262_145), (0, 1_000_000), (300_000, 2_000_000)] {
        let expected = &content[from as usize..(to as usize).min(content.len())];
        assert!(read(objects, &object, Some(from..to)).await == expected, "{from}..{to}");
    }
    for (from, to) in [(5, 5), (1_000_000, 1_000_001), (2_000_000, u64::MAX)] {
        assert_eq!(read(objects, &object, Some(from..to)).await, b"", "{from}..{to}");
    }
}

/// Bytes of a content that the S3 adapter uploads in parts, the last of them one byte long.
const LARGE: usize = 24 * 1024 * 1024 + 1;
const _: () = assert!(LARGE as u64 > SINGLE_PUT_BYTES_MAX && LARGE as u64 % UPLOAD_PART_BYTES == 1);

/// A large content of this writer's, of which no two stretches are alike.
fn large_content_of(writer: u8) -> Bytes {
    (0..LARGE as u64).map(|place| (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ writer).collect()
}

/// What holds for small contents holds for those that an adapter writes in another way.
pub async fn large_contents_are_as_small_ones(objects: &dyn Objects, root: &Root) {
    let object = name(root, "deep/er/large");
    let first = put(objects, root, "deep/er/large", &large_content_of(1)).await;
    assert_eq!(objects.put_if_absent(&object, large_content_of(2)).await.unwrap(), Put::Refused);
    let nothing = ETag("\"nothing\"".to_owned());
    for key in ["deep/er/large", "absent"] {
        let put = objects.put_if_match(&name(root, key), &nothing, large_content_of(3)).await.unwrap();
        assert_eq!(put, Put::Refused, "{key}");
    }
    let (content, tag) = read_whole(objects, &object).await.unwrap().unwrap();
    assert!(content == large_content_of(1), "what was refused has changed nothing");
    assert_eq!(tag, first);

    let replaced = objects.put_if_match(&object, &first, large_content_of(4)).await.unwrap();
    let Put::Written(second) = replaced else { panic!("the tag is the object's") };
    assert_eq!(objects.put_if_match(&object, &first, large_content_of(5)).await.unwrap(), Put::Refused);
    let (content, tag) = read_whole(objects, &object).await.unwrap().unwrap();
    assert!(content == large_content_of(4), "the content is the one of the last put that was written");
    assert_eq!(tag, second);
    assert_eq!(keys(objects, root, "", None, 10).await, ["deep/er/large"]);
}

/// Of writers of large contents that race, one wins, and the object is its.
pub async fn of_racing_large_puts_one_wins(objects: Arc<dyn Objects>, root: Root) {
    let object = name(&root, "contended");
    let put_of = |writer: u8| {
        let (objects, object) = (Arc::clone(&objects), object.clone());
        async move { (writer, objects.put_if_absent(&object, large_content_of(writer)).await.unwrap()) }
    };
    let puts = (1..=3).map(put_of).collect::<JoinSet<_>>().join_all().await;
    let won = |(writer, put)| if let Put::Written(tag) = put { Some((writer, tag)) } else { None };
    let winners: Vec<(u8, ETag)> = puts.into_iter().filter_map(won).collect();
    let [(winner, tag)] = &winners[..] else { panic!("of racing puts-if-absent one wins: {winners:?}") };
    let (content, now) = read_whole(&*objects, &object).await.unwrap().unwrap();
    assert!(content == large_content_of(*winner), "the content is the winner's");
    assert_eq!(&now, tag);
}

/// A read on condition of a tag never gives another content than the tag's.
pub async fn a_changed_object_is_refused(objects: &dyn Objects, root: &Root) {
    let object = name(root, "a");
    let first = put(objects, root, "a", b"first").await;
    assert!(objects.get(&object, None, Some(&first)).await.is_ok());
    objects.put_if_match(&object, &first, Bytes::from_static(b"other")).await.unwrap();
    for range in [None, Some(0..2)] {
        let refused = objects.get(&object, range, Some(&first)).await.err();
        assert!(matches!(refused, Some(ObjectsError::Changed { .. })), "{refused:?}");
    }
}

/// Keys that are met in another order by a walk through directories, by characters or by UTF-16 units.
const KEYS: [&str; 13] =
    ["A", "a-b/x", "a-c", "a.csv", "a/b-c/1", "a/b.csv", "a/b/1", "a/b/10", "a/b/2", "a0", "b c", "é", "\u{1F600}"];

/// Listings are in the order of the keys' bytes, from all levels, of a prefix that needn't end at a `/`.
pub async fn listings_are_in_key_order(objects: &dyn Objects, root: &Root) {
    for key in KEYS.iter().rev() {
        put(objects, root, key, key.as_bytes()).await;
    }
    assert_eq!(keys(objects, root, "", None, 1000).await, KEYS);
    for prefix in ["a", "a/", "a/b", "a/b/", "a/b/1", "a-", "a.csv", "a.csv/", "b", "zzz", "a/b/1/", "é"] {
        let expected: Vec<&str> = KEYS.into_iter().filter(|key| key.starts_with(prefix)).collect();
        assert_eq!(keys(objects, root, prefix, None, 1000).await, expected, "{prefix}");
    }
    let sizes: Vec<u64> = objects.list(root, "a/", None, 10).await.unwrap().iter().map(|meta| meta.size).collect();
    assert_eq!(sizes, [7, 7, 5, 6, 5]);
}

/// A listing goes on after any key, whether it is there or not, and a short page is the last one.
pub async fn listings_go_on_where_they_ended(objects: &dyn Objects, root: &Root) {
    for key in KEYS {
        put(objects, root, key, b"").await;
    }
    for limit in 1..=KEYS.len() + 1 {
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = keys(objects, root, "", found.last().map(String::as_str), limit).await;
            let is_last = page.len() < limit;
            found.extend(page);
            if is_last {
                break;
            }
        }
        assert_eq!(found, KEYS, "in pages of {limit}");
    }
    for after in ["", "0", "a", "a-", "a-b/", "a-b/x/y", "a/", "a/b", "a/b/", "a/b/11", "a/b/99", "a0", "zzz", "ÿ"] {
        for prefix in ["", "a/", "a/b/1"] {
            let expected: Vec<&str> = KEYS.into_iter().filter(|key| key.starts_with(prefix) && *key > after).collect();
            assert_eq!(keys(objects, root, prefix, Some(after), 1000).await, expected, "{prefix} after {after}");
        }
    }
    assert_eq!(keys(objects, root, "", None, 0).await, [""; 0]);
}

/// A root that isn't there has no objects.
pub async fn an_absent_root_is_empty(objects: &dyn Objects, root: &Root) {
    assert_eq!(keys(objects, root, "", None, 10).await, [""; 0]);
    assert_eq!(keys(objects, root, "a/b", None, 10).await, [""; 0]);
}

/// What the writer with this number puts: long enough to be written in many steps, and the same byte throughout.
fn content_of(writer: u8) -> Bytes {
    Bytes::from(vec![writer; 300_000])
}

/// Asserts that an object is one writer's content, and says whose.
fn writer_of(content: &[u8]) -> u8 {
    assert_eq!(content.len(), 300_000, "an object is there whole or not at all");
    assert!(content.iter().all(|byte| *byte == content[0]), "an object is of one writer");
    content[0]
}

/// Of 100 writers one wins, whose content all readers see, whole, from its first moment on.
pub async fn of_racing_puts_if_absent_one_wins(objects: Arc<dyn Objects>, root: Root) {
    let object = name(&root, "deep/er/contended");
    let mut writers = JoinSet::new();
    for writer in 0..100 {
        let (objects, object) = (Arc::clone(&objects), object.clone());
        writers.spawn(async move {
            let put = objects.put_if_absent(&object, content_of(writer)).await.unwrap();
            let seen = read_whole(&*objects, &object).await.unwrap().map(|(content, tag)| (writer_of(&content), tag));
            (writer, put, seen)
        });
    }
    let mut winners = Vec::new();
    let mut all_seen = Vec::new();
    while let Some(ended) = writers.join_next().await {
        let (writer, put, seen) = ended.unwrap();
        all_seen.push(seen.unwrap());
        if let Put::Written(tag) = put {
            winners.push((writer, tag));
        }
    }
    assert_eq!(winners.len(), 1, "of racing puts-if-absent one wins");
    assert!(all_seen.iter().all(|seen| *seen == winners[0]), "all see the winner's: {winners:?}, {all_seen:?}");
    assert_eq!(keys(&*objects, &root, "", None, 1000).await, ["deep/er/contended"]);
}

/// Each round has one winner, and a reader sees one whole content at each moment.
pub async fn of_racing_puts_if_match_one_wins(objects: Arc<dyn Objects>, root: Root) {
    let object = name(&root, "contended");
    let mut tag = put(&*objects, &root, "contended", &content_of(0)).await;
    for round in 0..5 {
        let mut writers = JoinSet::new();
        for writer in 1..=20 {
            let (objects, object, tag) = (Arc::clone(&objects), object.clone(), tag.clone());
            writers.spawn(async move {
                let put = objects.put_if_match(&object, &tag, content_of(round * 20 + writer)).await.unwrap();
                let (content, _) = read_whole(&*objects, &object).await.unwrap().unwrap();
                writer_of(&content);
                match put {
                    Put::Written(tag) => Some((round * 20 + writer, tag)),
                    Put::Refused => None,
                }
            });
        }
        let ended = writers.join_all().await;
        let winners: Vec<_> = ended.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "of racing puts-if-match one wins: {winners:?}");
        let (content, now) = read_whole(&*objects, &object).await.unwrap().unwrap();
        assert_eq!((writer_of(&content), now.clone()), winners[0]);
        tag = now;
    }
}
