//! What came of a run, and checks of it that show the whole run when they fail.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What came of a run.
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) home: TempDir,
    pub(crate) directory: TempDir,
}

impl Output {
    /// The directory of the run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The home of the run.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Checks exit code and both streams as a whole.
    #[track_caller]
    pub(crate) fn is(&self, code: i32, stdout: &str, stderr: &str) -> &Self {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.as_str()),
            (code, stdout, stderr),
            "\n{self}"
        );
        self
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "the exit code is wrong\n{self}");
        self
    }

    /// Checks for exit code 0.
    #[track_caller]
    pub(crate) fn success(&self) -> &Self {
        self.code(0)
    }

    /// Checks the whole of standard output.
    #[track_caller]
    pub(crate) fn stdout_is(&self, text: &str) -> &Self {
        assert_eq!(self.stdout, text, "standard output is wrong\n{self}");
        self
    }

    /// Checks the whole of standard error.
    #[track_caller]
    pub(crate) fn stderr_is(&self, text: &str) -> &Self {
        assert_eq!(self.stderr, text, "standard error is wrong\n{self}");
        self
    }

    /// Checks that standard output contains this.
    #[track_caller]
    pub(crate) fn stdout_has(&self, text: &str) -> &Self {
        let found = self.stdout.contains(text);
        assert!(found, "no {text:?} on standard output\n{self}");
        self
    }

    /// Checks that standard error contains this.
    #[track_caller]
    pub(crate) fn stderr_has(&self, text: &str) -> &Self {
        let found = self.stderr.contains(text);
        assert!(found, "no {text:?} on standard error\n{self}");
        self
    }

    /// Checks that standard output does not contain this.
    #[track_caller]
    pub(crate) fn stdout_lacks(&self, text: &str) -> &Self {
        let found = self.stdout.contains(text);
        assert!(!found, "{text:?} on standard output\n{self}");
        self
    }

    /// Checks that standard error does not contain this.
    #[track_caller]
    pub(crate) fn stderr_lacks(&self, text: &str) -> &Self {
        let found = self.stderr.contains(text);
        assert!(!found, "{text:?} on standard error\n{self}");
        self
    }

    /// Checks that neither stream contains this.
    #[track_caller]
    pub(crate) fn lacks(&self, text: &str) -> &Self {
        self.stdout_lacks(text).stderr_lacks(text)
    }

    /// Checks a file of the directory.
    #[track_caller]
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let found = fs::read(self.directory.path().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}\n{self}"));
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(content.as_ref()),
            "{name} is wrong\n{self}"
        );
        self
    }

    /// Checks that the directory has no such file.
    #[track_caller]
    pub(crate) fn no_file(&self, name: &str) -> &Self {
        let there = self.directory.path().join(name).exists();
        assert!(!there, "{name} is there\n{self}");
        self
    }

    /// All files below the home, as paths relative to it, sorted.
    pub(crate) fn home_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_files(self.home.path(), self.home.path(), &mut found);
        found.sort();
        found
    }
}

fn collect_files(root: &Path, directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_files(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = format!("exit code {}", self.code);
        formatter.write_str(&shown(&state, &self.stdout, &self.stderr))
    }
}

/// A state of a run, for messages.
pub(crate) fn shown(state: &str, stdout: &str, stderr: &str) -> String {
    format!("({state})\n--- standard output\n{stdout}\n--- standard error\n{stderr}\n---")
}
