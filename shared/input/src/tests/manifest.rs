//! The boundary as data.

use proptest::prelude::*;
use shardcron_domain::boundary::Range;
use shardcron_domain::ids::{Generation, ShardId};
use shardcron_domain::limits;

use super::*;
use crate::{Built, Manifest, ManifestError, ManifestHead, ManifestPage};

fn listing(sizes: &[u64]) -> Vec<ObjectMeta> {
    let meta =
        |(n, size): (usize, &u64)| ObjectMeta { key: format!("{n:06}.csv"), size: *size, etag: ETag(n.to_string()) };
    sizes.iter().enumerate().map(meta).collect()
}

fn packed(sizes: &[u64], target: u64) -> Vec<Vec<u64>> {
    let shards = pack(listing(sizes), target);
    shards.into_iter().map(|plan| plan.objects.into_iter().map(|object| object.size).collect()).collect()
}

fn build(sizes: &[u64], target: u64) -> Built {
    let head = ManifestHead {
        job: "daily".parse().unwrap(),
        at: "2026-08-29T16:00:00Z".parse().unwrap(),
        generation: Generation::FIRST,
    };
    let key = |number: u32, digest: &str| format!("m/{number}-{}", &digest[..8]);
    let objects = listing(sizes).into_iter().map(Into::into).collect();
    Manifest::build(head, cut_objects(root(), objects, target), key).unwrap()
}

#[test]
fn small_objects_share_a_shard_and_large_ones_have_their_own() {
    assert_eq!(packed(&[], 10), Vec::<Vec<u64>>::new());
    assert_eq!(packed(&[4, 6, 1], 10), [vec![4, 6], vec![1]]);
    assert_eq!(packed(&[1, 50, 1, 1], 10), [vec![1], vec![50], vec![1, 1]]);
    assert_eq!(packed(&[0, 50, 0, 0, 7], 10), [vec![0], vec![50, 0, 0], vec![7]].map(|shard| shard));
    assert_eq!(packed(&[0, 0], 10), [vec![0, 0]]);
    assert_eq!(packed(&[1, 0, 1], 0), [vec![1, 0], vec![1]]);
    assert_eq!(packed(&[u64::MAX, u64::MAX], u64::MAX), [vec![u64::MAX], vec![u64::MAX]]);
    assert_eq!(packed(&vec![0; 2 * limits::SHARD_OBJECTS_MAX + 1], 10).len(), 3);
}

proptest! {
    #[test]
    fn shards_tile_the_boundary_and_have_each_object_once(
        sizes in prop::collection::vec(0..100_u64, 0..300),
        target in 0..300_u64,
    ) {
        let Built { manifest, pages } = build(&sizes, target);
        let bytes = manifest.encode().unwrap();
        let read = Manifest::decode_verified(&bytes, &Manifest::digest(&bytes)).unwrap();
        prop_assert_eq!(&read, &manifest);
        let mut shards: Vec<ShardPlan> = Vec::new();
        for (number, page) in pages.iter().enumerate() {
            shards.extend(manifest.decode_page(number as u32, &page.bytes).unwrap().shards);
        }
        prop_assert_eq!(shards.len(), manifest.shards as usize);
        let ranges: Vec<Range> = shards.iter().map(|plan| plan.range).collect();
        prop_assert!(sizes.is_empty() || shardcron_domain::invariants::g3_cover(manifest.boundary.range(), &ranges));
        let found: Vec<u64> = shards.iter().flat_map(|plan| &plan.objects).map(|object| object.size).collect();
        prop_assert_eq!(found, sizes);
        let is_over = |plan: &ShardPlan| plan.bytes() > target && plan.objects.iter().filter(|object| object.size > 0).count() > 1;
        prop_assert!(!shards.iter().any(is_over));
    }
}

#[test]
fn the_same_listing_makes_the_same_bytes() {
    let (one, other) = (build(&[5; 250], 1), build(&[5; 250], 1));
    assert_eq!(one, other);
    assert_eq!(one.manifest.pages.iter().map(|page| page.shards).collect::<Vec<_>>(), [100, 100, 50]);
    let changed = build(&[&[5; 249][..], &[6]].concat(), 1);
    assert_ne!(
        Manifest::digest(&one.manifest.encode().unwrap()),
        Manifest::digest(&changed.manifest.encode().unwrap())
    );
    let small = build(&[1, 2], 10);
    let expected = r#"{"version":1,"job":"daily","at":"2026-08-29T16:00:00Z","generation":1,"boundary":{"objects":{"root":{"bucket":"data"},"objects":2,"bytes":3}},"shards":1,"target":10,"pages":[{"#;
    assert!(String::from_utf8(small.manifest.encode().unwrap()).unwrap().starts_with(expected));
    let expected = r#"{"firstShard":0,"shards":[{"id":"00000","range":{"from":{"object":{"o":0,"b":0,"l":0}},"to":{"object":{"o":2,"b":0,"l":0}}},"objects":[{"index":0,"key":"000000.csv","size":1,"etag":"0"},{"index":1,"key":"000001.csv","size":2,"etag":"1"}]}]}"#;
    assert_eq!(String::from_utf8(small.pages[0].bytes.clone()).unwrap(), expected);
}

#[test]
fn what_was_changed_since_it_was_written_is_refused() {
    let Built { manifest, pages } = build(&[5; 250], 1);
    let mut bytes = pages[1].bytes.clone();
    *bytes.last_mut().unwrap() = b' ';
    assert!(matches!(manifest.decode_page(1, &bytes), Err(ManifestError::Digest { .. })));
    assert!(matches!(manifest.decode_page(1, &pages[0].bytes), Err(ManifestError::Digest { .. })));
    assert!(matches!(manifest.decode_page(3, &pages[0].bytes), Err(ManifestError::Inconsistent(_))));
    let root = manifest.encode().unwrap();
    assert!(matches!(Manifest::decode_verified(&root, "00"), Err(ManifestError::Digest { .. })));
    assert!(matches!(Manifest::decode(b"{}"), Err(ManifestError::Malformed(_))));
    assert!(matches!(Manifest::decode(br#"{"version":2,"else":1}"#), Err(ManifestError::Version { found: 2 })));
    let fewer = Manifest { shards: 249, ..manifest };
    assert!(matches!(Manifest::decode(&fewer.encode().unwrap()), Err(ManifestError::Inconsistent(_))));
}

#[test]
fn a_shard_and_its_children_are_found_on_its_groups_page() {
    let Built { manifest, pages } = build(&[5; 250], 1);
    let child = ShardId::numbered(142).child(2);
    assert_eq!(manifest.page_of(&child), Some(&manifest.pages[1]));
    let page = ManifestPage::decode_verified(&pages[1].bytes, &manifest.pages[1].digest).unwrap();
    assert_eq!(page.plan_of(&child).unwrap().id, ShardId::numbered(142));
    assert_eq!(page.plan_of(&ShardId::numbered(99)), None);
    assert_eq!(manifest.page_of(&ShardId::numbered(300)), None);
}

#[test]
fn a_part_of_a_shard_has_the_objects_that_it_meets() {
    let plan = pack(listing(&[10; 4]), 100).remove(0);
    let at = |object, offset| Position::Object(ObjectPosition { object, offset, line: 0 });
    let part = |from, to| {
        let part = plan.part(ShardId::numbered(0).child(1), Range::new(from, to).unwrap()).unwrap();
        assert!(part.covers_its_range());
        part.objects.iter().map(|object| object.index).collect::<Vec<_>>()
    };
    assert_eq!(part(at(0, 0), at(4, 0)), [0, 1, 2, 3]);
    assert_eq!(part(at(1, 0), at(2, 0)), [1]);
    assert_eq!(part(at(1, 5), at(3, 5)), [1, 2, 3]);
    assert_eq!(part(at(2, 5), at(2, 8)), [2]);
    assert_eq!(part(at(2, 5), at(2, 5)), [0; 0]);
    let beyond = Range::new(at(3, 0), at(5, 0)).unwrap();
    assert!(matches!(plan.part(ShardId::numbered(1), beyond), Err(ManifestError::Range { .. })));
}
