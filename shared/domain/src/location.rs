//! Where objects live, as a job names it: `s3://bucket/prefix/`, or a path.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::BUCKET_NAME;

/// What keys are relative to: a bucket or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Root {
    /// An S3 bucket.
    Bucket(String),
    /// A directory of the machine, by its absolute path.
    Directory(String),
}

impl Root {
    /// How a person names the object or prefix `key` under this root.
    #[must_use]
    pub fn join(&self, key: &str) -> String {
        match self {
            Self::Bucket(bucket) => format!("s3://{bucket}/{key}"),
            Self::Directory(path) => format!("{}/{key}", path.trim_end_matches('/')),
        }
    }
}

/// A place for or of objects: a root and the prefix that their keys begin with.
///
/// A place of many objects has a prefix that is empty or ends in `/`; one that names a single object doesn't.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    /// The bucket or directory.
    pub root: Root,
    /// The prefix of the keys.
    pub prefix: String,
}

/// Why a text isn't a location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// There is nothing in it.
    #[error("it is empty; write `s3://bucket/prefix/` or a path")]
    Empty,
    /// Another scheme than `s3`.
    #[error("`{0}` has a scheme that isn't known; write `s3://bucket/prefix/` or a path")]
    Scheme(String),
    /// The bucket's name isn't one.
    #[error("`{0}` isn't a bucket's name (3 to 63 of a-z, 0-9, `.` and `-`)")]
    Bucket(String),
    /// A part of the key is `.` or `..`, or there is an empty one, or a control character.
    #[error("`{0}` has a part that is empty, `.` or `..`, or a control character; name the place directly")]
    Part(String),
}

impl Location {
    /// Reads `s3://bucket/prefix/`, or a path; a relative path is taken relative to `base`, an absolute directory.
    ///
    /// A path's last part is the prefix when the path doesn't end in `/`, so that `data/2013-01.csv` names one file and
    /// `data/` what is below it.
    ///
    /// # Errors
    /// [`LocationError`].
    pub fn parse(text: &str, base: &str) -> Result<Self, LocationError> {
        if text.is_empty() {
            return Err(LocationError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(LocationError::Part(text.to_owned()));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            if scheme != "s3" {
                return Err(LocationError::Scheme(text.to_owned()));
            }
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let legal = BUCKET_NAME.contains(&bucket.len())
                && bucket.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-')
                && !bucket.contains("..")
                && bucket.as_bytes()[0].is_ascii_alphanumeric();
            if !legal {
                return Err(LocationError::Bucket(bucket.to_owned()));
            }
            check_parts(prefix, text)?;
            return Ok(Self { root: Root::Bucket(bucket.to_owned()), prefix: prefix.to_owned() });
        }
        let absolute = if text.starts_with('/') { text.to_owned() } else { format!("{base}/{text}") };
        let mut parts: Vec<&str> = Vec::new();
        for part in absolute.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let is_directory = text.ends_with('/') || text.ends_with("/.") || text == "." || text.ends_with("..");
        let prefix = if is_directory { "" } else { parts.pop().unwrap_or("") };
        Ok(Self { root: Root::Directory(format!("/{}", parts.join("/"))), prefix: prefix.to_owned() })
    }

    /// Whether it names a place of many objects: its prefix is empty or ends in `/`.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.prefix.is_empty() || self.prefix.ends_with('/')
    }

    /// Whether a listing of this location can show what lies in `other`. One that names a single object counts as the place
    /// whose `/` was left out, which is what it is taken as where there is no such object.
    ///
    /// By their names alone: a link, or a bucket that is a directory, may lead to the same place by another name.
    #[must_use]
    pub fn holds(&self, other: &Self) -> bool {
        let as_place = |location: &Self| format!("{}/", location.to_string().trim_end_matches('/'));
        as_place(other).starts_with(&as_place(self))
    }
}

fn check_parts(prefix: &str, whole: &str) -> Result<(), LocationError> {
    let body = prefix.strip_suffix('/').unwrap_or(prefix);
    let legal = prefix.is_empty() || body.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if legal { Ok(()) } else { Err(LocationError::Part(whole.to_owned())) }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root.join(&self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str) -> Root {
        Root::Directory(path.to_owned())
    }

    #[test]
    fn a_bucket_and_a_prefix() {
        let location = Location::parse("s3://ledger/tx/2026/", "/jobs").unwrap();
        assert_eq!(location, Location { root: Root::Bucket("ledger".into()), prefix: "tx/2026/".into() });
        assert_eq!(location.to_string(), "s3://ledger/tx/2026/");
        assert!(Location::parse("s3://ledger", "/jobs").unwrap().is_directory());
    }

    #[test]
    fn a_path_is_relative_to_the_jobs_file() {
        let data = Location::parse("data/", "/jobs").unwrap();
        assert_eq!(data, Location { root: directory("/jobs/data"), prefix: String::new() });
        let file = Location::parse("../in/2013-01.csv.gz", "/jobs").unwrap();
        assert_eq!(file, Location { root: directory("/in"), prefix: "2013-01.csv.gz".into() });
        assert_eq!(Location::parse("/a/b/", "/jobs").unwrap().root, directory("/a/b"));
    }

    #[test]
    fn a_place_holds_what_lies_below_its_name_also_without_its_slash() {
        let holds = |one: &str, other: &str| {
            let parsed = |text: &str| Location::parse(text, "/jobs").unwrap();
            parsed(one).holds(&parsed(other))
        };
        for (one, other) in
            [("in/", "in/out/"), ("in", "in/out/"), ("in", "in/"), ("in/", "/jobs/in/out/"), ("/", "x/")]
        {
            assert!(holds(one, other), "{one} {other}");
        }
        for (one, other) in [("in/out/", "in/"), ("in", "in2/"), ("s3://a-b/in", "in/"), ("s3://a-b", "s3://a-b-c/")] {
            assert!(!holds(one, other), "{one} {other}");
        }
        assert!(holds("s3://a-b", "s3://a-b/out/") && holds("s3://a-b/in", "s3://a-b/in/out/"));
    }

    #[test]
    fn places_that_would_surprise_are_refused() {
        for bad in ["", "s3://", "s3://A_b/x", "gs://x/y", "s3://ledger/a/../b", "s3://ledger//a", "s3://ledger/a\n"] {
            assert!(Location::parse(bad, "/jobs").is_err(), "{bad}");
        }
    }
}
