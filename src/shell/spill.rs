//! The file that holds the whole output of a command where the model gets only its ends (SPEC D6).

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use crate::private;
use crate::sanitize::{Masker, Redactor};

/// How much of an output is kept, in bytes.
const LARGEST: usize = 64_000_000;
/// How much is collected before it is written: most outputs are never kept.
const BUFFER: usize = 256 * 1024;
/// How long files are kept.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The bytes of a running command's output, in memory at first, then in a file.
///
/// The file goes again unless it is kept.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    masker: Masker,
    /// How many bytes of the output were taken in.
    taken: usize,
    /// Whether there was more than is kept.
    cut: bool,
    buffer: Vec<u8>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory,
    File(File, PathBuf),
    Failed(io::Error),
}

/// What was kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    /// Whether the file ends before the output did.
    pub(super) cut: bool,
}

impl Spill {
    pub(super) fn new(directory: PathBuf, redactor: Redactor) -> Self {
        Self {
            directory,
            masker: Masker::new(redactor),
            taken: 0,
            cut: false,
            buffer: Vec::new(),
            place: Place::Memory,
        }
    }

    /// Takes the next bytes of the output in.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = LARGEST - self.taken;
        self.cut |= bytes.len() > room;
        let bytes = bytes.get(..room).unwrap_or(bytes);
        if bytes.is_empty() || matches!(self.place, Place::Failed(_)) {
            return;
        }
        self.taken += bytes.len();
        self.masker.push(bytes, &mut self.buffer);
        if self.buffer.len() >= BUFFER {
            self.write_or_fail();
        }
    }

    /// Writes what is left and keeps the file.
    pub(super) fn keep(mut self) -> io::Result<Kept> {
        // Where the output was cut, what the masker holds may be most of a secret.
        if !self.cut {
            self.masker.finish(&mut self.buffer);
        }
        self.write_or_fail();
        match mem::replace(&mut self.place, Place::Memory) {
            Place::File(_, path) => Ok(Kept {
                path,
                cut: self.cut,
            }),
            Place::Failed(error) => Err(error),
            Place::Memory => Err(io::Error::other("nothing to write")),
        }
    }

    fn write_or_fail(&mut self) {
        if let Err(error) = self.write() {
            self.discard();
            self.place = Place::Failed(error);
        }
        self.buffer.clear();
    }

    fn write(&mut self) -> io::Result<()> {
        if let Place::Memory = self.place {
            let (file, path) = create(&self.directory)?;
            self.place = Place::File(file, path);
        }
        match &mut self.place {
            Place::File(file, _) => file.write_all(&self.buffer),
            Place::Memory | Place::Failed(_) => Ok(()),
        }
    }

    fn discard(&mut self) {
        if let Place::File(_, path) = &self.place {
            // It is removed with the old ones at the latest.
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Creates a new file in `directory`, and clears the old ones away.
fn create(directory: &Path) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    private::create_dir(directory)?;
    remove_older_than(LIFETIME, directory);
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("shell-{seconds}-{}-{number}.txt", std::process::id());
        let path = directory.join(name);
        match private::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return Ok((result?, path)),
        }
    }
}

/// Removes the files of that age. What cannot be read or removed stays: it is in nobody's way.
fn remove_older_than(age: Duration, directory: &Path) {
    let Some(oldest) = SystemTime::now().checked_sub(age) else {
        return;
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_old = entry.metadata().is_ok_and(|metadata| {
            metadata.is_file() && metadata.modified().is_ok_and(|time| time < oldest)
        });
        if is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn spill(directory: &Path) -> Spill {
        let redactor = Redactor::new(Some("sk-secret-0123456789"), []);
        Spill::new(directory.join("a/b"), redactor)
    }

    #[test]
    fn d6_what_is_kept_is_the_output_byte_by_byte_but_for_secrets() {
        let home = tempfile::tempdir().unwrap();
        let mut spill = spill(home.path());
        spill.push(b"\x1b[31m\xff\0key sk-secret-");
        spill.push(b"0123456789\r\n");
        let kept = spill.keep().unwrap();
        assert!(!kept.cut);
        assert_eq!(
            fs::read(&kept.path).unwrap(),
            b"\x1b[31m\xff\0key ****6789\r\n"
        );
    }

    #[test]
    fn d6_a_large_output_is_written_while_it_comes_and_goes_when_it_is_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let mut spill = spill(home.path());
        spill.push(&vec![b'x'; BUFFER - 1]);
        assert!(files(&home.path().join("a/b")).is_empty());
        spill.push(b"x");
        assert_eq!(files(&home.path().join("a/b")).len(), 1);
        drop(spill);
        assert!(files(&home.path().join("a/b")).is_empty());
    }

    #[test]
    fn d6_at_most_64_mb_are_kept_and_half_a_secret_is_not_among_them() {
        let home = tempfile::tempdir().unwrap();
        let mut spill = spill(home.path());
        let block = vec![b'x'; 1_000_000];
        for _ in 0..63 {
            spill.push(&block);
        }
        spill.push(&block[..999_990]);
        spill.push(b"sk-secret-0123456789");
        spill.push(b"more");
        let kept = spill.keep().unwrap();
        assert!(kept.cut);
        assert_eq!(fs::metadata(&kept.path).unwrap().len(), 63_999_990);
    }

    #[test]
    fn d6_exactly_64_mb_are_all_there() {
        let home = tempfile::tempdir().unwrap();
        let mut spill = spill(home.path());
        let block = vec![b'x'; 1_000_000];
        for _ in 0..64 {
            spill.push(&block);
        }
        let kept = spill.keep().unwrap();
        assert!(!kept.cut);
        assert_eq!(fs::metadata(&kept.path).unwrap().len(), 64_000_000);
    }

    #[test]
    fn d6_a_directory_that_cannot_be_made_is_an_error_at_the_end_only() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("a"), "a file").unwrap();
        let mut spill = spill(home.path());
        spill.push(&vec![b'x'; BUFFER * 3]);
        assert!(spill.keep().is_err());
    }

    #[test]
    fn d6_files_older_than_a_week_go_when_a_new_one_is_written() {
        let home = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, age) in [("old.txt", LIFETIME), ("young.txt", LIFETIME / 2)] {
            let file = File::create(home.path().join(name)).unwrap();
            file.set_modified(now - age - Duration::from_secs(1))
                .unwrap();
        }
        let (_, path) = create(home.path()).unwrap();
        let mut left = files(home.path());
        left.sort();
        let mut expected = vec![path, home.path().join("young.txt")];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[cfg(unix)]
    #[test]
    fn d6_nobody_else_can_read_what_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let mut spill = spill(home.path());
        spill.push(b"x");
        let path = spill.keep().unwrap().path;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&home.path().join("a")), 0o700);
    }
}
