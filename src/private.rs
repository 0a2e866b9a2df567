//! Files and directories that nobody but their owner can look into: the one place that knows how a
//! system is told so. What is in them is their users' business.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Options under which a file that is created is its owner's alone (mode 0600).
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    system::make_file_private(&mut options);
    options
}

/// Creates a file to write to, which must not exist yet.
pub fn create_new(path: &Path) -> io::Result<File> {
    let file = options().write(true).create_new(true).open(path)?;
    system::give_to_owner(&file)?;
    Ok(file)
}

/// Creates a directory, and what is missing above it (mode 0700). One that exists stays as it is.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    system::make_directory_private(&mut builder);
    builder.recursive(true).create(path)
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

    pub(super) fn make_file_private(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    pub(super) fn make_directory_private(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    /// The umask may have taken the owner's rights away.
    pub(super) fn give_to_owner(file: &File) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(0o600))
    }
}

/// The directory of a user's profile keeps others out there.
#[cfg(not(unix))]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions};
    use std::io;

    pub(super) fn make_file_private(_: &mut OpenOptions) {}

    pub(super) fn make_directory_private(_: &mut DirBuilder) {}

    pub(super) fn give_to_owner(_: &File) -> io::Result<()> {
        Ok(())
    }
}
