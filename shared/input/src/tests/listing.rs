//! What a location holds.

use shardcron_objects::Location;

use super::*;
use crate::list_objects;
use crate::listing::list_at_most;

fn location(prefix: &str) -> Location {
    Location { root: root(), prefix: prefix.into() }
}

async fn keys(memory: &Memory, prefix: &str) -> Vec<String> {
    let found = list_objects(memory, &location(prefix)).await.unwrap();
    found.into_iter().map(|meta| meta.key).collect()
}

#[tokio::test]
async fn a_place_of_many_holds_all_below_it_and_a_name_that_one() {
    let keys_there = ["data/1", "data/1.csv", "data/10.csv", "data/2/x", "data/2/y", "database"];
    let memory = Memory::of(&keys_there.map(|key| (key, &b"x"[..])), 1);
    assert_eq!(keys(&memory, "").await, keys_there);
    assert_eq!(keys(&memory, "data/").await, keys_there[..5]);
    assert_eq!(keys(&memory, "data/1").await, ["data/1"]);
    assert_eq!(keys(&memory, "data/2").await, ["data/2/x", "data/2/y"]);
    assert_eq!(keys(&memory, "data").await, keys_there[..5]);
    assert_eq!(keys(&memory, "dat").await, [""; 0]);
    assert_eq!(keys(&memory, "none/").await, [""; 0]);
}

#[tokio::test]
async fn folders_of_the_console_arent_input() {
    let memory = Memory::of(&[("data/", b""), ("data/empty.csv", b""), ("data/sub/", b"")], 1);
    assert_eq!(keys(&memory, "data/").await, ["data/empty.csv"]);
}

#[tokio::test]
async fn all_pages_are_read_and_the_bound_is_kept() {
    for count in [999, 1000, 1001, 2000] {
        let names: Vec<String> = (0..count).map(|n| format!("{n:05}")).collect();
        let objects: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        let memory = Memory::of(&objects, 1);
        assert_eq!(keys(&memory, "").await, names);
        assert_eq!(list_at_most(&memory, &location(""), count).await.unwrap().len(), count);
        let Err(InputError::Input(fault)) = list_at_most(&memory, &location(""), count - 1).await else {
            panic!("{count} objects pass")
        };
        assert!(matches!(fault.fault, Fault::TooManyObjects));
    }
}
