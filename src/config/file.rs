//! A configuration file as text: `key=value` lines that can be read and changed in place.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::private;

/// One setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line it stands on, from 1.
    pub line: usize,
    /// What is before the first `=`, without spaces around; `None` for a line without `=`.
    pub key: Option<String>,
    /// What is after it, without spaces around; the whole line where there is no `=`.
    pub value: String,
}

/// All settings of a text, in order (SPEC B2).
pub fn parse(text: &str) -> Vec<Entry> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let settings = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    settings
        .map(|(index, line)| {
            let (key, value) = match line.split_once('=') {
                Some((key, value)) => (Some(key.trim().to_owned()), value),
                None => (None, line),
            };
            Entry {
                line: index + 1,
                key,
                value: value.trim().to_owned(),
            }
        })
        .collect()
}

/// The text with `key` set to `value`: in the place of its last line, or at the end. All else stays.
pub fn set(text: &str, key: &str, value: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = format!("{key}={value}");
    let last = parse(text)
        .into_iter()
        .rfind(|entry| entry.key.as_deref() == Some(key));
    let Some(entry) = last else {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            newline
        };
        return format!("{text}{gap}{line}{newline}");
    };
    let mut result = String::with_capacity(text.len() + line.len());
    for (index, old) in text.split_inclusive('\n').enumerate() {
        if index + 1 == entry.line {
            let end = old.trim_end_matches(['\r', '\n']).len();
            if index == 0 && old.starts_with('\u{feff}') {
                result.push('\u{feff}');
            }
            result.push_str(&line);
            result.push_str(old.get(end..).unwrap_or_default());
        } else {
            result.push_str(old);
        }
    }
    result
}

/// Writes `text` to `path` so that a reader or a crash sees the old file or the new one, readable by
/// its owner alone, for it may hold a key. A symbolic link stays one.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write_private(&temporary, text).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Whether others than the owner may read the file.
pub fn is_open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Vec<(usize, Option<String>, String)> {
        parse(text)
            .into_iter()
            .map(|entry| (entry.line, entry.key, entry.value))
            .collect()
    }

    #[test]
    fn b2_spaces_comments_bom_crlf_and_equals_signs() {
        let text =
            "\u{feff}# a comment\r\n\r\n model = a#b \r\nprovider={\"a\"=\"b\"}\r\nnonsense\r\n";
        assert_eq!(
            settings(text),
            [
                (3, Some("model".into()), "a#b".into()),
                (4, Some("provider".into()), "{\"a\"=\"b\"}".into()),
                (5, None, "nonsense".into()),
            ]
        );
    }

    #[test]
    fn b7_setting_a_key_keeps_comments_order_and_line_ends() {
        for (before, after) in [
            ("", "k=v\n"),
            ("a=1", "a=1\nk=v\n"),
            ("# c\nk = old # x\nb=2\n", "# c\nk=v\nb=2\n"),
            ("k=1\r\nk=2\r\nb=3", "k=1\r\nk=v\r\nb=3"),
            ("\u{feff}k=1\nb=2\n", "\u{feff}k=v\nb=2\n"),
            ("#k=1\n", "#k=1\nk=v\n"),
        ] {
            assert_eq!(set(before, "k", "v"), after, "{before:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn b7_files_are_written_private_and_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!is_open_to_others(&target));
    }
}
