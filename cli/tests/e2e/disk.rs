//! A small file system in memory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::skipped;

/// Unmounted on drop.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Mounts one, where that is allowed.
    pub(crate) fn mount(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            other => {
                skipped(&format!("a file system can't be mounted here: {other:?}"));
                None
            }
        }
    }

    pub(crate) fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success(), "{options}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, as a process of a failed test may still be there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
