//! One session file: its format, read whole or by its head only, and written (SPEC E1).
//!
//! An object, its metadata first and `messages` last, so that a list needs only the first bytes of a
//! file. A bare array of messages and an object with `messages` alone are read too. Knows nothing of
//! which file is whose.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::time::Timestamp;
use crate::message::{Conversation, Message};

/// How far into a file its metadata is looked for before the file is read whole.
const HEAD_BYTES: u64 = 64 * 1024;

/// How much of a head is read at once; most heads are smaller.
const HEAD_CHUNK: usize = 2 * 1024;

/// Titles and summaries are cut to this many characters.
const LINE_CHARS: usize = 120;

/// What a session file says about its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// The directory that the conversation was held in.
    pub cwd: String,
    /// The model it was held with.
    pub model: String,
    /// The first line of its first prompt.
    pub title: String,
    /// A line on what it is about; empty until `/save` asked for one.
    pub summary: String,
    /// The conversation's identity; empty in files of other programs.
    pub identity: String,
    /// When the conversation began, where the file says so.
    pub created: Option<Timestamp>,
    /// When it was written last: what the file says, else the file's own time.
    pub updated: Timestamp,
    /// How many messages it has, without the system message.
    pub count: usize,
}

/// A session file's whole content.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    /// What it says about itself.
    pub meta: Meta,
    /// Its messages as they are in the file.
    pub conversation: Conversation,
}

/// Why a file is no session that can be read.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The system does not hand it over.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a directory, a pipe or the like.
    #[error("not a regular file")]
    NotAFile,
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Cut off, overwritten, or never JSON.
    #[error("not valid JSON ({0})")]
    NotJson(serde_json::Error),
    /// Its end is missing.
    #[error("its end is missing")]
    Cut,
    /// JSON, but no list of messages.
    #[error("it holds no messages")]
    NoMessages,
}

/// Reads a session file whole.
pub(super) fn read(path: &Path) -> Result<Stored, Damage> {
    let (mut file, modified) = open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    parse(&bytes, modified)
}

/// Reads what a session file says about itself, and no more of it than that takes.
pub(super) fn read_meta(path: &Path) -> Result<Meta, Damage> {
    let (file, modified) = open(path)?;
    let mut head = Head::default();
    let reader = BufReader::with_capacity(HEAD_CHUNK, (&file).take(HEAD_BYTES));
    // The visitor stops in the middle of the object, which the parser then calls an error.
    let _ = serde_json::Deserializer::from_reader(reader).deserialize_map(&mut head);
    match head.meta(modified) {
        Some(meta) if ends_like_an_object(&file)? => Ok(meta),
        Some(_) => Err(Damage::Cut),
        None => read(path).map(|stored| stored.meta),
    }
}

/// The bytes of a session file.
pub(super) fn write(
    id: &str,
    meta: &Meta,
    conversation: &Conversation,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Document<'a> {
        id: &'a str,
        cwd: &'a str,
        model: &'a str,
        title: &'a str,
        summary: &'a str,
        conversation: &'a str,
        created: String,
        updated: String,
        count: usize,
        messages: &'a [Message],
    }
    let mut bytes = serde_json::to_vec(&Document {
        id,
        cwd: &meta.cwd,
        model: &meta.model,
        title: &meta.title,
        summary: &meta.summary,
        conversation: &meta.identity,
        created: meta.created.unwrap_or(meta.updated).to_string(),
        updated: meta.updated.to_string(),
        count: meta.count,
        messages: conversation.messages(),
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// How many messages a conversation has, without the system message.
pub(super) fn count(conversation: &Conversation) -> usize {
    let counts = |message: &&Message| message.role() != "system";
    conversation.messages().iter().filter(counts).count()
}

/// The first line of the first prompt that has one; empty if none has.
pub(super) fn title(conversation: &Conversation) -> String {
    let mut prompts = conversation
        .messages()
        .iter()
        .filter(|message| message.role() == "user");
    prompts
        .find_map(|prompt| Some(one_line(&prompt.text())).filter(|line| !line.is_empty()))
        .unwrap_or_default()
}

/// The first line of `text` that is not blank, at most `LINE_CHARS` long.
pub(super) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(LINE_CHARS).collect()
}

/// Opens a regular file; anything else could block or never end.
fn open(path: &Path) -> Result<(File, Timestamp), Damage> {
    if !fs::metadata(path)?.is_file() {
        return Err(Damage::NotAFile);
    }
    let file = File::open(path)?;
    let modified = file.metadata()?.modified().map(Timestamp::from);
    Ok((file, modified.unwrap_or_default()))
}

/// Takes a file's bytes apart.
fn parse(bytes: &[u8], modified: Timestamp) -> Result<Stored, Damage> {
    if bytes.trim_ascii().is_empty() {
        return Err(Damage::Empty);
    }
    let value = serde_json::from_slice(bytes).map_err(Damage::NotJson)?;
    let (mut fields, messages) = match value {
        Value::Array(messages) => (Map::new(), messages),
        Value::Object(mut fields) => match fields.shift_remove("messages") {
            Some(Value::Array(messages)) => (fields, messages),
            _ => return Err(Damage::NoMessages),
        },
        _ => return Err(Damage::NoMessages),
    };
    let conversation = Conversation::from_messages(messages_of(messages)?);
    fields.insert("count".into(), count(&conversation).into());
    let mut meta = meta_of(&fields, modified);
    if meta.title.is_empty() {
        meta.title = title(&conversation);
    }
    Ok(Stored { meta, conversation })
}

/// The messages of a list, of which at least one must look like one unless there is none at all.
fn messages_of(values: Vec<Value>) -> Result<Vec<Message>, Damage> {
    let messages: Vec<_> = values
        .into_iter()
        .map(|value| match value {
            Value::Object(map) => Ok(Message::from(map)),
            _ => Err(Damage::NoMessages),
        })
        .collect::<Result<_, _>>()?;
    let known =
        |message: &Message| matches!(message.role(), "system" | "user" | "assistant" | "tool");
    if messages.is_empty() || messages.iter().any(known) {
        Ok(messages)
    } else {
        Err(Damage::NoMessages)
    }
}

/// The metadata among the fields of a file. Whatever is missing or of the wrong type stays empty: it
/// is no reason to give a conversation up.
fn meta_of(fields: &Map<String, Value>, modified: Timestamp) -> Meta {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let count = fields.get("count").and_then(Value::as_u64).unwrap_or(0);
    Meta {
        cwd: text("cwd").to_owned(),
        model: text("model").to_owned(),
        title: one_line(text("title")),
        summary: one_line(text("summary")),
        identity: text("conversation").to_owned(),
        created: Timestamp::parse(text("created")),
        updated: Timestamp::parse(text("updated")).unwrap_or(modified),
        count: usize::try_from(count).unwrap_or(usize::MAX),
    }
}

/// Whether a file ends like an object does: one that was cut off rarely does.
fn ends_like_an_object(mut file: &File) -> io::Result<bool> {
    const TAIL: u64 = 16;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    Ok(tail.trim_ascii_end().ends_with(b"}"))
}

/// The fields in front of a file's `messages`.
#[derive(Default)]
struct Head {
    fields: Map<String, Value>,
    complete: bool,
}

impl Head {
    /// The metadata, if the head holds all that a list shows.
    fn meta(&self, modified: Timestamp) -> Option<Meta> {
        let counted = self.fields.get("count").is_some_and(Value::is_u64);
        (self.complete && counted).then(|| meta_of(&self.fields, modified))
    }
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "messages" {
                self.complete = true;
                return Ok(());
            }
            self.fields.insert(key, map.next_value()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation() -> Conversation {
        let mut conversation = Conversation::new("be brief");
        conversation.push(Message::user("\n  first line\nsecond line"));
        conversation.push(Message::assistant("yes"));
        conversation
    }

    fn meta() -> Meta {
        Meta {
            cwd: "/tmp/\"x\"".into(),
            model: "m".into(),
            title: "first line".into(),
            summary: String::new(),
            identity: "abc".into(),
            created: Timestamp::parse("2026-01-02T03:04:05Z"),
            updated: Timestamp::parse("2026-01-02T03:04:06.5Z").unwrap(),
            count: 2,
        }
    }

    /// A directory with one file.
    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.json");
        fs::write(&path, content).unwrap();
        (directory, path)
    }

    #[test]
    fn e1_metadata_comes_first_and_messages_last() {
        let bytes = write("foo", &meta(), &conversation()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"id":"foo","cwd":"/tmp/\"x\"","model":"m","title":"first line","summary":"","#,
                r#""conversation":"abc","created":"2026-01-02T03:04:05.000Z","#,
                r#""updated":"2026-01-02T03:04:06.500Z","count":2,"messages":["#,
                r#"{"role":"system","content":"be brief"},"#,
                r#"{"role":"user","content":"\n  first line\nsecond line"},"#,
                r#"{"role":"assistant","content":"yes"}]}"#,
                "\n"
            )
        );
    }

    #[test]
    fn e1_what_is_written_is_read_again() {
        let bytes = write("foo", &meta(), &conversation()).unwrap();
        let (_directory, path) = file(&bytes);
        assert_eq!(read_meta(&path).unwrap(), meta());
        let stored = read(&path).unwrap();
        assert_eq!(stored.meta, meta());
        assert_eq!(stored.conversation, conversation());
    }

    #[test]
    fn e1_messages_come_back_to_the_byte() {
        let message = r#"{"content":null,"role":"assistant","x":1.10,"y":18446744073709551615,"tool_calls":[{"function":{"arguments":"{ }","name":"f"},"id":"1"}],"z":{"b":1,"a":[]}}"#;
        let (_directory, path) = file(format!("[{message}]").as_bytes());
        let stored = read(&path).unwrap();
        let again = serde_json::to_string(stored.conversation.messages()).unwrap();
        assert_eq!(again.replace("1.1,", "1.10,"), format!("[{message}]"));
    }

    #[test]
    fn e5_the_list_reads_the_head_only() {
        let bytes = write("foo", &meta(), &conversation()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (_directory, path) = file(text.replace("be brief", "\0").as_bytes());
        assert!(matches!(read(&path), Err(Damage::NotJson(_))));
        assert_eq!(read_meta(&path).unwrap(), meta());
    }

    #[test]
    fn e1_files_of_other_programs_are_read_too() {
        let messages = serde_json::to_value(conversation().messages()).unwrap();
        for content in [
            messages.clone(),
            json!({"messages": messages}),
            json!({"messages": messages, "count": 99, "title": null, "model": 5, "updated": "soon"}),
            json!({"title": "", "messages": messages, "extra": {"a": [1]}}),
        ] {
            let (_directory, path) = file(content.to_string().as_bytes());
            let meta = read_meta(&path).unwrap();
            assert_eq!(
                (meta.count, meta.title.as_str()),
                (2, "first line"),
                "{content}"
            );
            assert_eq!(meta.identity, "");
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            assert_eq!(meta.updated, Timestamp::from(modified));
            assert_eq!(read(&path).unwrap().conversation, conversation());
        }
    }

    #[test]
    fn metadata_longer_than_the_head_is_found_all_the_same() {
        let messages = serde_json::to_value(conversation().messages()).unwrap();
        let content = json!({"cwd": "x".repeat(200_000), "count": 2, "messages": messages});
        let (_directory, path) = file(content.to_string().as_bytes());
        assert_eq!(read_meta(&path).unwrap().count, 2);
    }

    #[test]
    fn e5_damaged_files_are_told_apart() {
        let whole = write("foo", &meta(), &conversation()).unwrap();
        let cut = &whole[..whole.len() - 30];
        let cases: [(&[u8], &str); 13] = [
            (b"", "the file is empty"),
            (b" \n", "the file is empty"),
            (b"{", "not valid JSON"),
            (b"[", "not valid JSON"),
            (&[0; 4096], "not valid JSON"),
            (b"hello", "not valid JSON"),
            (
                b"[{\"role\":\"user\",\"content\":\"\xff\"}]",
                "not valid JSON",
            ),
            (b"{}", "it holds no messages"),
            (b"{\"messages\":7}", "it holds no messages"),
            (b"[1]", "it holds no messages"),
            (b"[{\"role\":\"x\"}]", "it holds no messages"),
            (b"null", "it holds no messages"),
            (cut, "not valid JSON"),
        ];
        for (content, told) in cases {
            let (_directory, path) = file(content);
            let damage = read(&path).expect_err("damaged").to_string();
            assert!(damage.starts_with(told), "{damage}");
            let damage = read_meta(&path).expect_err("damaged").to_string();
            let told = if content == cut {
                "its end is missing"
            } else {
                told
            };
            assert!(damage.starts_with(told), "{damage}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_never_opened() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(read(directory.path()), Err(Damage::NotAFile)));
        assert!(matches!(read_meta(directory.path()), Err(Damage::NotAFile)));
        #[cfg(unix)]
        {
            let path = directory.path().join("x.json");
            let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
            assert!(matches!(read(&path), Err(Damage::NotAFile)));
        }
    }

    #[test]
    fn titles_are_one_line_and_short() {
        let mut conversation = Conversation::new("s");
        assert_eq!(title(&conversation), "");
        conversation.push(Message::user(" \n"));
        conversation.push(Message::user(&"é".repeat(1000)));
        assert_eq!(title(&conversation), "é".repeat(LINE_CHARS));
    }
}
