//! What there is of modes, links and devices on Windows.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use tokio_util::sync::CancellationToken;

/// Nothing on Windows: a full disk is an error anyway.
pub(crate) fn survive_size_limit() {}

/// The standard library cannot tell; a file with several names is rare here.
pub(super) fn has_other_names(_metadata: &Metadata) -> bool {
    false
}

/// A file that says it is read-only is meant.
pub(super) fn check_writable(_path: &Path, metadata: &Metadata) -> io::Result<()> {
    if metadata.permissions().readonly() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is read-only",
        ));
    }
    Ok(())
}

/// Nothing on Windows: the directory decides.
pub(super) fn copy_owner_and_mode(_file: &File, _old: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Nothing on Windows: a directory cannot be synced.
pub(super) fn sync_directory(_path: &Path) {}

/// Whatever it is, opening it will tell.
pub(super) fn check_special(_metadata: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Writes to a device.
pub(crate) async fn write_special(
    path: &Path,
    content: &[u8],
    _cancel: &CancellationToken,
) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(content)
}
