//! Puts new content in the place of a file's old one, so that nobody ever sees half of it.
//!
//! A file is replaced by renaming a finished one over it. Where that would break something (hard
//! links, a foreign owner) or cannot be done (a directory that takes no new files) it is written in
//! place, and put back as it was when that fails.

#[cfg(unix)]
#[path = "file/unix.rs"]
mod os;
#[cfg(windows)]
#[path = "file/windows.rs"]
mod os;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::private;

pub(super) use os::{survive_size_limit, write_special};

/// The largest file whose content is read, in bytes. A splice of a larger one is the shell's work.
const LARGEST: u64 = 256 * 1024 * 1024;
/// How many symbolic links are followed one after the other, as by Linux.
const LINKS: usize = 40;

/// What a path leads to, symbolic links followed.
#[derive(Debug)]
pub(super) enum Target {
    /// Nothing yet.
    New(PathBuf),
    /// A regular file.
    File(PathBuf, Metadata),
    /// A device or a pipe.
    Special(PathBuf),
}

impl Target {
    /// Whether there is a file already.
    pub(super) fn exists(&self) -> bool {
        !matches!(self, Self::New(_))
    }
}

/// Finds out what `path` leads to. Directories and sockets are errors.
pub(super) fn find(path: &Path) -> io::Result<Target> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => Ok(Target::File(fs::canonicalize(path)?, metadata)),
        Ok(metadata) => {
            os::check_special(&metadata)?;
            Ok(Target::Special(path.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Target::New(follow(path.to_owned())?))
        }
        Err(error) => Err(error),
    }
}

/// Where a chain of symbolic links ends that leads to nothing.
fn follow(mut path: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = directory(&path).join(target);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The directory that `path` is in.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The whole content; nothing where there is no file.
pub(super) fn read(target: &Target) -> io::Result<Vec<u8>> {
    match target {
        Target::File(path, metadata) if metadata.len() <= LARGEST => fs::read(path),
        Target::File(..) => Err(io::Error::other(format!(
            "it is larger than {} MB, change it with the shell",
            LARGEST / (1024 * 1024)
        ))),
        Target::New(_) | Target::Special(_) => Ok(Vec::new()),
    }
}

/// Makes `content` the content of the file, and creates the directories above a new one.
///
/// # Errors
///
/// When the file could not be written. It is then as it was.
pub(super) fn replace(target: &Target, content: &[u8]) -> io::Result<()> {
    match target {
        Target::New(path) => {
            fs::create_dir_all(directory(path))?;
            replace_whole(path, None, content).map_err(Failure::into_error)
        }
        Target::File(path, metadata) => {
            os::check_writable(path, metadata)?;
            if os::has_other_names(metadata) {
                return write_in_place(path, content);
            }
            match replace_whole(path, Some(metadata), content) {
                Err(Failure::NotThisWay(_)) => write_in_place(path, content),
                result => result.map_err(Failure::into_error),
            }
        }
        Target::Special(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Why a file was not replaced as a whole.
enum Failure {
    /// Writing it in place may succeed.
    NotThisWay(io::Error),
    /// Nothing will.
    Final(io::Error),
}

impl Failure {
    fn into_error(self) -> io::Error {
        match self {
            Self::NotThisWay(error) | Self::Final(error) => error,
        }
    }
}

/// Writes a new file beside the old one and renames it.
fn replace_whole(path: &Path, old: Option<&Metadata>, content: &[u8]) -> Result<(), Failure> {
    let (mut file, temporary) =
        create_beside(path, old.is_some()).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Failure::NotThisWay(error)
            }
            _ => Failure::Final(error),
        })?;
    file.write_all(content).map_err(Failure::Final)?;
    if let Some(old) = old {
        os::copy_owner_and_mode(&file, old).map_err(Failure::NotThisWay)?;
    }
    file.sync_all().map_err(Failure::Final)?;
    drop(file);
    fs::rename(&temporary.0, path).map_err(Failure::NotThisWay)?;
    std::mem::forget(temporary);
    os::sync_directory(directory(path));
    Ok(())
}

/// A file that goes again unless it is forgotten.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // There is nothing better to do about a file that cannot be removed.
        let _ = fs::remove_file(&self.0);
    }
}

fn create_beside(path: &Path, is_private: bool) -> io::Result<(File, Temporary)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".bantam-{}-{number}.tmp", std::process::id());
        let temporary = directory(path).join(name);
        // Until it has its mode, what was readable by few must not be readable by more.
        let mut options = if is_private {
            private::options()
        } else {
            OpenOptions::new()
        };
        match options.write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return Ok((result?, Temporary(temporary))),
        }
    }
}

/// Overwrites the file itself. What may fail for want of room comes first, and everything is put
/// back when something fails.
fn write_in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let length = file.metadata()?.len();
    let old = if length <= LARGEST {
        fs::read(path).ok()
    } else {
        None
    };
    let written = overwrite(&mut file, length, content);
    if written.is_err() {
        // The first error counts; a second one while putting things back changes nothing about it.
        let _ = file.set_len(length);
        if let Some(old) = old {
            let _ = write_at(&mut file, 0, &old);
        }
    }
    written
}

fn overwrite(file: &mut File, length: u64, content: &[u8]) -> io::Result<()> {
    let inside = usize::try_from(length)
        .unwrap_or(usize::MAX)
        .min(content.len());
    let (head, tail) = content.split_at(inside);
    if !tail.is_empty() {
        write_at(file, length, tail)?;
    }
    write_at(file, 0, head)?;
    if tail.is_empty() && length > content.len() as u64 {
        file.set_len(content.len() as u64)?;
    }
    file.sync_all()
}

fn write_at(file: &mut File, position: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(position))?;
    file.write_all(bytes)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
