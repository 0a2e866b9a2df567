//! The file that the history is kept in.
//!
//! One entry a line behind a header line; `\\`, `\n` and `\r` stand for a backslash, a line feed and a
//! carriage return. A file without the header is one of plain lines, as older programs left it, and is
//! rewritten before the first entry is added. Several programs may use the file at once: an entry is
//! one write at the end, and whoever rewrites the file does it under a lock. Bytes that are no UTF-8
//! stay in the file as they are.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::private;

/// How many entries are kept.
pub(super) const KEPT: usize = 1000;

/// How much of a file's end is read. What is before it is lost when the file is rewritten.
const WINDOW: u64 = 4 << 20;

const HEADER: &[u8] = b"#bantam history 1";

/// The history's file.
#[derive(Debug)]
pub(super) struct HistoryFile {
    path: PathBuf,
    /// How many entries the file has, as far as this program knows.
    entries: usize,
}

impl HistoryFile {
    /// Reads the last entries of the file at `path`, which need not exist, the oldest first. A device
    /// (`/dev/null`) has none.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<String>), Error> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let lines = match read_lines(&path) {
            Ok(lines) => lines,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io("read the history", path, error)),
        };
        let entries = lines.iter().map(|line| unescaped(line)).collect();
        let mut file = Self {
            path,
            entries: lines.len(),
        };
        if file.entries > KEPT {
            file.compact()?;
        }
        Ok((file, entries))
    }

    /// Adds an entry at the end.
    pub(super) fn append(&mut self, entry: &str) -> Result<(), Error> {
        self.try_append(entry)
            .map_err(|error| Error::io("write the history", &self.path, error))?;
        self.entries += 1;
        if self.entries > KEPT {
            self.compact()?;
        }
        Ok(())
    }

    fn try_append(&self, entry: &str) -> io::Result<()> {
        let mut file = open_locked(&self.path)?;
        if has_plain_lines(&mut file)? {
            self.rewrite(&mut file)?;
            file = open_locked(&self.path)?;
        }
        let mut written = Vec::new();
        if file.metadata()?.len() == 0 {
            written.extend_from_slice(HEADER);
            written.push(b'\n');
        } else if !ends_with_newline(&mut file)? {
            written.push(b'\n');
        }
        written.extend(escaped(entry.as_bytes()));
        written.push(b'\n');
        file.write_all(&written)
    }

    /// Drops the oldest entries of the file as it is now, whoever wrote them.
    fn compact(&mut self) -> Result<(), Error> {
        let rewritten = open_locked(&self.path).and_then(|mut file| self.rewrite(&mut file));
        self.entries =
            rewritten.map_err(|error| Error::io("write the history", &self.path, error))?;
        Ok(())
    }

    /// Puts a file with the last entries in the place of `file`, which is locked; returns how many.
    fn rewrite(&self, file: &mut File) -> io::Result<usize> {
        if !file.metadata()?.is_file() {
            return Ok(0);
        }
        let lines = lines_of(file)?;
        let kept = lines
            .get(lines.len().saturating_sub(KEPT)..)
            .unwrap_or(&lines);
        let mut content = HEADER.to_vec();
        for line in kept {
            content.push(b'\n');
            content.extend_from_slice(line);
        }
        content.push(b'\n');
        let temporary = self
            .path
            .with_file_name(format!(".bantam_history.{}", std::process::id()));
        let written = private::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .and_then(|mut new| new.write_all(&content))
            .and_then(|()| fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map(|()| kept.len())
    }
}

fn read_lines(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Opening a pipe would wait for someone at its other end.
    if !metadata.is_file() {
        return Ok(Vec::new());
    }
    lines_of(&mut File::open(path)?)
}

/// The entries of a file, escaped, the last ones if it is large.
fn lines_of(file: &mut File) -> io::Result<Vec<Vec<u8>>> {
    let plain = has_plain_lines(file)?;
    let start = file.metadata()?.len().saturating_sub(WINDOW);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(WINDOW).read_to_end(&mut bytes)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    // The first line is the header, or cut off; a plain file has no header.
    let skipped = usize::from(start > 0 || !plain);
    Ok(lines
        .skip(skipped)
        .map(|line| match line.strip_suffix(b"\r").unwrap_or(line) {
            line if plain => escaped(line),
            line => line.to_vec(),
        })
        .filter(|line| !line.trim_ascii().is_empty())
        .collect())
}

/// Whether the file has content and no header.
fn has_plain_lines(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(HEADER.len() as u64).read_to_end(&mut start)?;
    Ok(!start.is_empty() && start != HEADER)
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last)?;
    }
    Ok(last == *b"\n")
}

/// Opens the file at its end, nobody else's, and locks it for as long as it stays open. A lock that
/// nobody gives up (its holder may be suspended) is not waited for long.
fn open_locked(path: &Path) -> io::Result<File> {
    loop {
        let file = private::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        if !lock(&file, path)? {
            continue;
        }
        return Ok(file);
    }
}

/// Locks `file`; false when another has taken its place at `path` meanwhile.
#[cfg(unix)]
fn lock(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::thread;
    use std::time::Duration;

    use rustix::fs::{FlockOperation, flock};

    for _ in 0..20 {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                thread::sleep(Duration::from_millis(5));
            }
            // Locked, or on a file system without locks.
            _ => break,
        }
    }
    let (ours, there) = (file.metadata()?, fs::metadata(path)?);
    if (ours.ino(), ours.dev()) != (there.ino(), there.dev()) {
        return Ok(false);
    }
    if ours.is_file() && ours.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(true)
}

#[cfg(not(unix))]
fn lock(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

fn escaped(entry: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(entry.len());
    for byte in entry {
        match byte {
            b'\\' => escaped.extend(b"\\\\"),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            _ => escaped.push(*byte),
        }
    }
    escaped
}

/// The entry of an escaped line. An escape that is none stays as it is.
fn unescaped(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut entry = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        let escape = if c == '\\' { rest.clone().next() } else { None };
        entry.push(match escape {
            Some('\\') => '\\',
            Some('n') => '\n',
            Some('r') => '\r',
            _ => {
                entry.push(c);
                continue;
            }
        });
        rest.next();
    }
    entry
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loaded(path: &Path) -> Vec<String> {
        HistoryFile::open(path).unwrap().1
    }

    fn append(path: &Path, entries: &[&str]) {
        let (mut file, _) = HistoryFile::open(path).unwrap();
        for entry in entries {
            file.append(entry).unwrap();
        }
    }

    #[test]
    fn f4_entries_of_several_lines_come_back_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        append(&path, &["a\nb", "C:\\new\nx", "#bantam history 1"]);
        assert_eq!(loaded(&path), ["a\nb", "C:\\new\nx", "#bantam history 1"]);
        let stored = fs::read_to_string(&path).unwrap();
        assert_eq!(
            stored,
            "#bantam history 1\na\\nb\nC:\\\\new\\nx\n#bantam history 1\n"
        );
    }

    #[test]
    fn f4_a_file_of_plain_lines_is_read_as_it_is_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        fs::write(&path, "C:\\new\r\nlast, without an end").unwrap();
        assert_eq!(loaded(&path), ["C:\\new", "last, without an end"]);
        append(&path, &["x"]);
        assert_eq!(loaded(&path), ["C:\\new", "last, without an end", "x"]);
    }

    #[test]
    fn f4_invalid_bytes_are_survived_and_stay_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        fs::write(&path, b"#bantam history 1\nok\n\xff\xfe\nno end").unwrap();
        assert_eq!(loaded(&path), ["ok", "\u{fffd}\u{fffd}", "no end"]);
        append(&path, &["x"]);
        let stored = fs::read(&path).unwrap();
        assert_eq!(stored, b"#bantam history 1\nok\n\xff\xfe\nno end\nx\n");
    }

    #[test]
    fn f4_the_last_thousand_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let lines: Vec<String> = (0..1500).map(|n| format!("entry {n}")).collect();
        fs::write(&path, format!("#bantam history 1\n{}\n", lines.join("\n"))).unwrap();
        let (mut file, entries) = HistoryFile::open(&path).unwrap();
        assert_eq!(entries.len(), 1500);
        assert_eq!(loaded(&path).len(), KEPT);
        file.append("one more").unwrap();
        let entries = loaded(&path);
        assert_eq!(entries.len(), KEPT);
        assert_eq!(entries[0], "entry 501");
        assert_eq!(entries[KEPT - 1], "one more");
    }

    #[cfg(unix)]
    #[test]
    fn f4_only_its_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        for found in [None, Some(0o644)] {
            let path = directory.path().join(format!("history{found:?}"));
            if let Some(mode) = found {
                fs::write(&path, "plain\n").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            append(&path, &["x"]);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn f4_a_directory_in_its_place_is_an_error_and_not_a_crash() {
        let directory = tempfile::tempdir().unwrap();
        let error = HistoryFile::open(directory.path()).unwrap_err();
        assert!(error.to_string().starts_with("cannot read the history "));
    }

    #[test]
    fn f4_programs_that_write_at_once_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        fs::write(&path, "old\n").unwrap();
        std::thread::scope(|scope| {
            for program in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let (mut file, _) = HistoryFile::open(path).unwrap();
                    for n in 0..50 {
                        file.append(&format!("{program} {n}\nline")).unwrap();
                    }
                });
            }
        });
        let entries = loaded(&path);
        assert_eq!(entries.len(), 201);
        assert_eq!(
            entries
                .iter()
                .filter(|entry| entry.starts_with("3 "))
                .count(),
            50
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn f4_escaping_loses_nothing(entry in "[a\\\\nr\n\r日]{0,20}") {
            let line = escaped(entry.as_bytes());
            prop_assert!(!line.contains(&b'\n'));
            prop_assert_eq!(unescaped(&line), entry);
        }
    }
}
