use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::{conformance, read_whole};

struct Fixture {
    directory: TempDir,
    objects: LocalObjects,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let objects = LocalObjects::new(directory.path().join("objects"));
        Self { directory, objects }
    }

    /// The root of a bucket that is there.
    fn bucket(&self) -> (Root, PathBuf) {
        let path = self.directory.path().join("objects/data");
        fs::create_dir_all(&path).unwrap();
        (Root::Bucket("data".into()), path)
    }

    async fn keys(&self, root: &Root) -> Result<Vec<String>, ObjectsError> {
        let found = self.objects.list(root, "", None, 1000).await?;
        Ok(found.into_iter().map(|meta| meta.key).collect())
    }
}

fn object(root: &Root, key: &str) -> ObjectName {
    ObjectName { root: root.clone(), key: key.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_in_buckets_and_in_directories() {
    let fixture = Fixture::new();
    let objects: Arc<dyn Objects> = Arc::new(fixture.objects.clone());
    conformance::all(Arc::clone(&objects), |name| Root::Bucket(name.into())).await;
    let path = fixture.directory.path().join("elsewhere");
    conformance::all(objects, |name| Root::Directory(format!("{}/{name}", path.display()))).await;
}

#[tokio::test]
async fn a_name_cant_leave_its_root() {
    let fixture = Fixture::new();
    let (root, _) = fixture.bucket();
    fs::write(fixture.directory.path().join("objects/secret"), "x").unwrap();
    let refused = |result: Result<(), ObjectsError>| assert!(matches!(result, Err(ObjectsError::Name { .. })));
    for key in ["../secret", "/etc/passwd", "a/../../secret", ".shardcron-lock", ""] {
        let object = object(&root, key);
        refused(fixture.objects.head(&object).await.map(drop));
        refused(fixture.objects.get(&object, None, None).await.map(drop));
        refused(fixture.objects.put_if_absent(&object, Bytes::new()).await.map(drop));
        refused(fixture.objects.put_if_match(&object, &ETag("x".into()), Bytes::new()).await.map(drop));
    }
    refused(fixture.objects.list(&root, "../", None, 1).await.map(drop));
    for root in [Root::Bucket("..".into()), Root::Bucket("a/../..".into()), Root::Directory("relative".into())] {
        refused(fixture.objects.list(&root, "", None, 1).await.map(drop));
        refused(fixture.objects.head(&object(&root, "secret")).await.map(drop));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_appears_under_a_looker_is_taken_for_nothing_else() {
    let fixture = Fixture::new();
    let (root, _) = fixture.bucket();
    for round in 0..300 {
        let object = object(&root, &format!("{round}"));
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (objects, object) = (fixture.objects.clone(), object.clone());
            writers.spawn(async move { objects.put_if_absent(&object, Bytes::new()).await.unwrap() });
        }
        let written = writers.join_all().await.into_iter().filter(|put| matches!(put, Put::Written(_))).count();
        assert_eq!(written, 1);
    }
}

#[tokio::test]
async fn files_of_our_own_arent_objects() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    for file in [".shardcron-tmp-7-0", ".shardcron-lock", ".hidden", "a"] {
        fs::write(path.join(file), "").unwrap();
    }
    assert_eq!(fixture.keys(&root).await.unwrap(), [".hidden", "a"]);
}

#[tokio::test]
async fn a_put_leaves_no_file_but_the_object_behind() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    let (a, other) = (object(&root, "a"), ETag("other".into()));
    let Put::Written(_) = fixture.objects.put_if_absent(&a, Bytes::from_static(b"1")).await.unwrap() else {
        panic!("it wasn't there")
    };
    assert_eq!(fixture.objects.put_if_absent(&a, Bytes::from_static(b"2")).await.unwrap(), Put::Refused);
    assert_eq!(fixture.objects.put_if_match(&a, &other, Bytes::from_static(b"3")).await.unwrap(), Put::Refused);
    assert_eq!(fixture.objects.put_if_match(&object(&root, "b/c"), &other, Bytes::new()).await.unwrap(), Put::Refused);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
}

#[tokio::test]
async fn what_a_crash_left_is_stepped_over() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    for number in 0..50 {
        fs::write(path.join(format!(".shardcron-tmp-{}-{number}", std::process::id())), "half").unwrap();
    }
    let put = fixture.objects.put_if_absent(&object(&root, "a"), Bytes::from_static(b"whole")).await.unwrap();
    assert!(matches!(put, Put::Written(_)));
    assert_eq!(fs::read(path.join("a")).unwrap(), b"whole");
}

#[tokio::test]
async fn an_overwrite_in_place_of_the_same_length_is_refused() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    fs::write(path.join("a"), "first").unwrap();
    let a = object(&root, "a");
    let listed = fixture.objects.head(&a).await.unwrap().unwrap();
    overwrite(&path.join("a"), b"other");
    assert!(matches!(
        fixture.objects.get(&a, None, Some(&listed.etag)).await.err(),
        Some(ObjectsError::Changed { .. })
    ));
}

/// Writes into the same inode until its tag has changed: the kernel's clock may not have moved since the last write.
fn overwrite(path: &Path, content: &[u8]) {
    let before = etag(&fs::metadata(path).unwrap());
    while etag(&fs::metadata(path).unwrap()) == before {
        fs::write(path, content).unwrap();
    }
}

#[tokio::test]
async fn an_overwrite_in_place_shows_before_the_next_block_is_handed_over() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    let path = path.join("a");
    fs::write(&path, vec![1; 600_000]).unwrap();
    for blocks_before in 0..=3 {
        let mut reader = fixture.objects.get(&object(&root, "a"), None, None).await.unwrap();
        for _ in 0..blocks_before {
            assert!(reader.next().await.unwrap().is_some());
        }
        overwrite(&path, &vec![2; 600_000]);
        assert!(matches!(reader.next().await, Err(ObjectsError::Changed { .. })), "after {blocks_before} blocks");
    }
    let mut reader = fixture.objects.get(&object(&root, "a"), None, None).await.unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
    assert!(matches!(reader.next().await, Err(ObjectsError::Changed { .. })));
}

#[tokio::test]
async fn a_rename_over_the_name_leaves_an_open_reader_its_content() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    fs::write(path.join("a"), vec![1; 600_000]).unwrap();
    let mut reader = fixture.objects.get(&object(&root, "a"), None, None).await.unwrap();
    let mut content = reader.next().await.unwrap().unwrap().to_vec();
    fs::write(path.join("new"), vec![2; 600_000]).unwrap();
    fs::rename(path.join("new"), path.join("a")).unwrap();
    while let Some(bytes) = reader.next().await.unwrap() {
        content.extend_from_slice(&bytes);
    }
    assert!(content == vec![1; 600_000]);
}

#[tokio::test]
async fn links_are_followed_wherever_they_lead() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    let outside = fixture.directory.path().join("mnt");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("1.csv"), "x").unwrap();
    symlink(&outside, path.join("day")).unwrap();
    symlink(outside.join("1.csv"), path.join("one.csv")).unwrap();
    assert_eq!(fixture.keys(&root).await.unwrap(), ["day/1.csv", "one.csv"]);
    let (content, _) = read_whole(&fixture.objects, &object(&root, "day/1.csv")).await.unwrap().unwrap();
    assert_eq!(content, b"x");
    let linked = fixture.directory.path().join("linked");
    symlink(&path, &linked).unwrap();
    assert_eq!(fixture.keys(&Root::Directory(linked.display().to_string())).await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_cant_be_an_object_is_named_rather_than_left_out() {
    type Make = fn(&Path);
    let cases: [(&str, Make); 5] = [
        ("data/a/gone: is", |path| symlink("nowhere", path.join("a/gone")).unwrap()),
        ("data/a/back/", |path| symlink("..", path.join("a/back")).unwrap()),
        ("data/a/self: is", |path| symlink("self", path.join("a/self")).unwrap()),
        (r"data/a/\xff.csv", |path| fs::write(path.join(std::ffi::OsStr::from_bytes(b"a/\xff.csv")), "").unwrap()),
        ("new\nline", |path| fs::write(path.join("a/new\nline"), "").unwrap()),
    ];
    for (named, make) in cases {
        let fixture = Fixture::new();
        let (root, path) = fixture.bucket();
        fs::create_dir(path.join("a")).unwrap();
        make(&path);
        let Err(error @ ObjectsError::Name { .. }) = fixture.keys(&root).await else { panic!("{named}") };
        let named = named.trim_end_matches(": is");
        assert!(error.to_string().contains(named), "{error} names {named}");
        assert!(fixture.objects.list(&root, "b", None, 1).await.unwrap().is_empty(), "it isn't below the prefix");
    }
}

#[tokio::test]
async fn a_directory_or_a_pipe_isnt_an_object() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    fs::create_dir(path.join("directory")).unwrap();
    fs::write(path.join("file"), "").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(fixture.keys(&root).await.unwrap(), ["file"]);
    for key in ["directory", "pipe", "file/below"] {
        let object = object(&root, key);
        assert_eq!(fixture.objects.head(&object).await.unwrap(), None, "{key}");
        let read = fixture.objects.get(&object, None, None).await.err();
        assert!(matches!(read, Some(ObjectsError::NotFound { .. })), "{key}: {read:?}");
        let put = fixture.objects.put_if_absent(&object, Bytes::new()).await;
        assert!(matches!(put, Err(ObjectsError::Name { .. })), "{key}: {put:?}");
    }
    assert_eq!(fixture.keys(&root).await.unwrap(), ["file"]);
}

#[tokio::test]
async fn a_directory_of_more_entries_than_are_held_at_once_is_listed_whole() {
    let fixture = Fixture::new();
    let (root, path) = fixture.bucket();
    // More empty directories than fit a batch, before the only files.
    for number in 0..2500 {
        fs::create_dir(path.join(format!("{number:05}"))).unwrap();
    }
    for file in ["02000/x", "02499/y", "z"] {
        fs::write(path.join(file), "").unwrap();
    }
    assert_eq!(fixture.keys(&root).await.unwrap(), ["02000/x", "02499/y", "z"]);
    let page = fixture.objects.list(&root, "", Some("02000/x"), 2).await.unwrap();
    assert_eq!(page.iter().map(|meta| meta.key.as_str()).collect::<Vec<_>>(), ["02499/y", "z"]);
}

#[test]
fn errors_of_the_system_are_sorted_by_what_the_caller_can_do() {
    use rustix::io::Errno;
    for errno in [Errno::NOSPC, Errno::DQUOT, Errno::ACCESS, Errno::ROFS, Errno::FBIG] {
        let error = io_error("writing s3://b/a".into(), errno.into());
        assert!(matches!(&error, ObjectsError::Refused { .. }), "{error}");
        assert!(error.to_string().starts_with("writing s3://b/a: "), "{error}");
    }
    for errno in [Errno::IO, Errno::MFILE, Errno::STALE, Errno::TIMEDOUT] {
        assert!(matches!(io_error(String::new(), errno.into()), ObjectsError::Unavailable { .. }), "{errno}");
    }
}
