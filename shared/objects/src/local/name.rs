//! Which names can be a file's, and which are our own.

use shardcron_domain::limits::{FILE_NAME_BYTES_MAX, OBJECT_KEY_BYTES_MAX};

/// How the names of files that are being written begin.
pub(super) const TEMPORARY: &str = ".shardcron-tmp-";

/// The name of the file that put-if-match locks.
pub(super) const LOCK: &str = ".shardcron-lock";

/// Whether a file is ours rather than an object.
pub(super) fn is_ours(name: &str) -> bool {
    name == LOCK || name.starts_with(TEMPORARY)
}

/// Checks a key; the error says what is wrong with it.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    if key.len() > OBJECT_KEY_BYTES_MAX {
        return Err(format!("a key has at most {OBJECT_KEY_BYTES_MAX} bytes, and this one has {}", key.len()));
    }
    key.split('/').try_for_each(check_part)
}

/// Checks a bucket's name, or one part of a key.
pub(super) fn check_part(part: &str) -> Result<(), String> {
    match part {
        "" => return Err("it has an empty part".to_owned()),
        "." | ".." => return Err(format!("it has the part `{part}`, which could leave its root")),
        _ => {}
    }
    if part.contains('/') {
        return Err(format!("`{part}` has a `/`"));
    }
    if part.chars().any(char::is_control) {
        return Err(format!("its part {part:?} has a control character"));
    }
    if part.len() > FILE_NAME_BYTES_MAX {
        return Err(format!("a part of it has {} bytes, and a file's name at most {FILE_NAME_BYTES_MAX}", part.len()));
    }
    if is_ours(part) {
        return Err(format!("`{part}` is a name that is kept for shardcron's own files"));
    }
    Ok(())
}

/// Checks a prefix. Its last part may be the beginning of a name; those before it are names of directories.
pub(super) fn check_prefix(prefix: &str) -> Result<(), String> {
    match prefix.rsplit_once('/') {
        Some((directories, _)) => directories.split('/').try_for_each(check_part),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_cant_leave_its_root_or_name_what_a_file_cant_be() {
        let long = "a".repeat(256);
        let deep = "a/".repeat(512) + "a";
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\nb", "a\0", &long, &deep] {
            assert!(check_key(bad).is_err(), "{bad:?}");
        }
        for bad in [".shardcron-tmp-1", "a/.shardcron-lock", ".shardcron-tmp-x/y"] {
            assert!(check_key(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b.csv", "..a", "a..", ".hidden", "ä/中", "a b", &"a".repeat(255)] {
            assert!(check_key(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn a_prefix_may_end_within_a_name() {
        for good in ["", "a", "a/", "a/b", "..", "a/."] {
            assert!(check_prefix(good).is_ok(), "{good:?}");
        }
        for bad in ["/", "/a", "../", "a/../b", "a//"] {
            assert!(check_prefix(bad).is_err(), "{bad:?}");
        }
    }
}
