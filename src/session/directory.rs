//! The directory of the session files: its creation and modes, the lock that serialises writers, and
//! atomic writes into it (SPEC E1, E2).
//!
//! Owns everything here that is special to one system. Knows nothing of what is in the files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Error, Result};
use crate::private;

/// How long a writer waits for another one. Saving takes milliseconds; a process that holds the lock
/// for longer is stopped or stuck.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// How long it sleeps between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Which file the one at a path is, and in which state: equal stamps mean the same file, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: SystemTime,
    length: u64,
    inode: u64,
}

impl Stamp {
    /// The stamp of the file at `path`, if there is one.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some(Self {
            modified: metadata.modified().ok()?,
            length: metadata.len(),
            inode: system::inode(&metadata),
        })
    }
}

/// Creates the directory with its parents and makes it private, whatever the umask.
pub(super) fn prepare(directory: &Path) -> Result<()> {
    private::create_dir(directory).map_err(|error| Error::io("create", directory, error))?;
    // A directory that belongs to somebody else can't be changed; whether it is of use shows when
    // the file is written.
    let _ = system::make_private(directory, 0o700);
    Ok(())
}

/// The right to write into the directory, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
    /// Whether the file system has locks at all.
    exclusive: bool,
}

impl Lock {
    /// Removes what writers left behind that were killed: while the lock is held nobody else writes.
    pub(super) fn sweep(&self, directory: &Path) {
        if !self.exclusive {
            return;
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(is_temporary) {
                // The next sweep tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Waits for the right to write into the directory, but not for ever.
pub(super) fn lock(directory: &Path) -> Result<Lock> {
    lock_within(directory, LOCK_PATIENCE)
}

fn lock_within(directory: &Path, patience: Duration) -> Result<Lock> {
    let path = directory.join(".lock");
    let failed = |error| Error::io("lock the sessions with", &path, error);
    let mut options = private::options();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(failed)?;
    let deadline = Instant::now() + patience;
    loop {
        let exclusive = match system::try_lock(&file) {
            Ok(true) => true,
            Ok(false) if Instant::now() < deadline => {
                thread::sleep(LOCK_PAUSE);
                continue;
            }
            Ok(false) => {
                return Err(Error::Session {
                    message: format!(
                        "cannot save the session: another process holds {} and does not let go",
                        path.display()
                    ),
                    hint: Some("is another bantam stopped? `fg` or `kill` it".into()),
                });
            }
            // Some file systems have no locks; a single process at a time is safe without.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => false,
            Err(error) => return Err(failed(error)),
        };
        return Ok(Lock {
            _file: file,
            exclusive,
        });
    }
}

/// The name that this process writes files under before they are whole.
fn temporary_name() -> String {
    format!(".{}.tmp", std::process::id())
}

/// Whether some process writes files under this name.
fn is_temporary(name: &str) -> bool {
    let number = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".tmp"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// A whole file under a temporary name, until it is put in its place or dropped.
#[derive(Debug)]
pub(super) struct Temporary(PathBuf);

impl Temporary {
    /// Writes `bytes` into a private file beside the sessions, and makes sure that they are there.
    pub(super) fn write(directory: &Path, bytes: &[u8], sync: bool) -> Result<Self> {
        let path = directory.join(temporary_name());
        let temporary = Self(path);
        temporary
            .fill(bytes, sync)
            .map_err(|error| Error::io("write the session", &temporary.0, error))?;
        Ok(temporary)
    }

    fn fill(&self, bytes: &[u8], sync: bool) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private::create_new(&self.0)?;
        file.write_all(bytes)?;
        if sync {
            file.sync_all()?;
        }
        let length = file.metadata()?.len();
        if length != bytes.len() as u64 {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("only {length} of {} bytes were written", bytes.len()),
            ));
        }
        Ok(())
    }

    /// Puts the file at `path`, in place of what is there.
    pub(super) fn place(self, path: &Path) -> Result<()> {
        fs::rename(&self.0, path).map_err(|error| Error::io("replace the session", path, error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing is there after `place`.
        let _ = fs::remove_file(&self.0);
    }
}

/// Gives the file or directory at `from` the name `to`, private from then on.
pub(super) fn move_file(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| Error::io("move the session", from, error))?;
    if to.is_file() {
        let _ = system::make_private(to, 0o600);
    }
    Ok(())
}

/// Makes sure that a file written earlier outlives a loss of power.
pub(super) fn sync_file(path: &Path) -> Result<()> {
    // Windows syncs only what is open for writing.
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| Error::io("sync the session", path, error))
}

/// Makes sure that names given in the directory outlive a loss of power, where systems need that.
pub(super) fn sync_names(directory: &Path) {
    // Not every file system can; the file itself is safe by then.
    let _ = system::sync_directory(directory);
}

#[cfg(unix)]
mod system {
    use std::fs::{self, File, Metadata, Permissions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    /// Whether the lock was free. The standard library knows none on Android.
    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(Errno::NOLCK) => Err(io::ErrorKind::Unsupported.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the mode unless it is that already.
    pub(super) fn make_private(path: &Path, mode: u32) -> io::Result<()> {
        if fs::metadata(path)?.mode() & 0o7777 == mode {
            return Ok(());
        }
        fs::set_permissions(path, Permissions::from_mode(mode))
    }

    pub(super) fn inode(metadata: &Metadata) -> u64 {
        metadata.ino()
    }

    pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{File, Metadata, TryLockError};
    use std::io;
    use std::path::Path;

    /// Whether the lock was free.
    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// A profile's directory is private there by inheritance.
    pub(super) fn make_private(_: &Path, _: u32) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn inode(_: &Metadata) -> u64 {
        0
    }

    pub(super) fn sync_directory(_: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[cfg(unix)]
    #[test]
    fn e1_the_directory_and_its_files_are_private_also_those_that_were_not() {
        use std::os::unix::fs::PermissionsExt;

        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("a").join("b");
        prepare(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);

        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        prepare(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);

        let path = directory.join("x.json");
        Temporary::write(&directory, b"x", true)
            .unwrap()
            .place(&path)
            .unwrap();
        assert_eq!(mode(&path), 0o600);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let aside = directory.join("x-1.json");
        move_file(&path, &aside).unwrap();
        assert_eq!(mode(&aside), 0o600);
    }

    #[test]
    fn e2_a_file_appears_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.json");
        fs::write(&path, "old").unwrap();

        let temporary = Temporary::write(home.path(), b"new", false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(temporary);
        assert_eq!(names(home.path()), ["x.json"]);

        let temporary = Temporary::write(home.path(), b"new", false).unwrap();
        temporary.place(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(home.path()), ["x.json"]);
    }

    #[test]
    fn a_temporary_file_that_was_left_behind_is_no_hindrance() {
        let home = tempfile::tempdir().unwrap();
        std::mem::forget(Temporary::write(home.path(), b"killed", false).unwrap());
        let path = home.path().join("x.json");
        let temporary = Temporary::write(home.path(), b"new", false).unwrap();
        temporary.place(&path).unwrap();
        assert_eq!(names(home.path()), ["x.json"]);

        for name in [".1.tmp", ".x.tmp", "1.tmp"] {
            fs::write(home.path().join(name), "").unwrap();
        }
        lock(home.path()).unwrap().sweep(home.path());
        assert_eq!(names(home.path()), [".lock", ".x.tmp", "1.tmp", "x.json"]);
    }

    #[test]
    fn a_lock_that_nobody_lets_go_is_an_error_not_a_wait_without_end() {
        let home = tempfile::tempdir().unwrap();
        let held = lock(home.path()).unwrap();
        let error = lock_within(home.path(), Duration::ZERO).unwrap_err();
        assert!(
            error.to_string().contains("another process holds"),
            "{error}"
        );
        drop(held);
        lock_within(home.path(), Duration::ZERO).unwrap();
    }

    #[test]
    fn stamps_tell_files_apart() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x");
        assert_eq!(Stamp::of(&path), None);
        fs::write(&path, "a").unwrap();
        let stamp = Stamp::of(&path);
        assert!(stamp.is_some());
        fs::rename(&path, home.path().join("y")).unwrap();
        assert_eq!(Stamp::of(&home.path().join("y")), stamp);
        fs::write(&path, "ab").unwrap();
        assert_ne!(Stamp::of(&path), stamp);
    }
}
