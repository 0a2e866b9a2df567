//! Modes, owners, links, pipes and devices as Unix has them.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{Access, Gid, OFlags, Uid};
use rustix::io::Errno;
use signal_hook::consts::SIGXFSZ;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How often a full pipe is tried again.
const TICK: Duration = Duration::from_millis(5);
/// How long a pipe may stay full before its reader is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The bits of a mode that can be set.
const MODE_BITS: u32 = 0o7777;

/// From now on a file that grows beyond the system's limit is an error, not the end of the process.
/// A handler that does nothing, unlike an ignored signal, is not passed on to child processes.
pub(crate) fn survive_size_limit() {
    static HANDLER: OnceLock<bool> = OnceLock::new();
    HANDLER.get_or_init(|| signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default()).is_ok());
}

/// Whether the file has several names: a new file would have one of them only.
pub(super) fn has_other_names(metadata: &Metadata) -> bool {
    metadata.nlink() > 1
}

/// Renaming needs no right to write the file itself; a file that says no is meant.
pub(super) fn check_writable(path: &Path, metadata: &Metadata) -> io::Result<()> {
    match rustix::fs::access(path, Access::WRITE_OK) {
        Err(Errno::ACCESS | Errno::PERM) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "it is not writable (mode {:o})",
                metadata.mode() & MODE_BITS
            ),
        )),
        Err(Errno::ROFS) => Err(Errno::ROFS.into()),
        _ => Ok(()),
    }
}

/// Makes the new file look like the old one.
pub(super) fn copy_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        rustix::fs::fchown(file, Some(owner), Some(group))?;
    }
    file.set_permissions(Permissions::from_mode(old.mode() & MODE_BITS))
}

/// Makes a rename last. Not all systems can; the file itself is safe either way.
pub(super) fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
}

/// Whether something that is neither file nor directory can be written to at all.
pub(super) fn check_special(metadata: &Metadata) -> io::Result<()> {
    if metadata.file_type().is_socket() {
        return Err(io::Error::other("it is a socket"));
    }
    Ok(())
}

/// Writes to a device or a pipe without ever waiting for long: a pipe that nobody reads is an
/// error, and so is a terminal, which is not the model's to write to.
pub(crate) async fn write_special(
    path: &Path,
    content: &[u8],
    cancel: &CancellationToken,
) -> io::Result<()> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path);
    let mut file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::NXIO.raw_os_error() => {
            io::Error::new(error.kind(), "nobody reads from this pipe")
        }
        _ => error,
    })?;
    if rustix::termios::isatty(&file) {
        return Err(io::Error::other("it is a terminal"));
    }
    let mut rest = content;
    let mut given_up = Instant::now() + PATIENCE;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                rest = rest.get(count..).unwrap_or_default();
                given_up = Instant::now() + PATIENCE;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let written = content.len() - rest.len();
                if cancel.is_cancelled() {
                    let message = format!("interrupted by the user after {written} bytes");
                    return Err(io::Error::other(message));
                }
                if Instant::now() >= given_up {
                    let message = format!("nothing is read from it any more after {written} bytes");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                sleep(TICK).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
