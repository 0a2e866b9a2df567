//! The slash commands: one table from which parsing, help, completion and "did you mean" come
//! (SPEC E10).
//!
//! Says what a line asks for. Doing it is the application's part, as is the rest of the line's
//! syntax (`!CMD`, prompts).

use std::fmt::Write as _;

use crate::config::spelling::distance;
use crate::error::{Error, Result};

/// What a line that begins with a command word asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Save under this name, else as the project's session, and ask for a summary.
    Save(Option<String>),
    /// Go on with the project's newest other conversation.
    Continue,
    /// List the sessions.
    List,
    /// Load the session of this id or unique beginning of one.
    Load(String),
    /// Load a session, or list the newest.
    Resume(Option<String>),
    /// Replace the conversation by its summary; the text says what to keep in mind.
    Compact(Option<String>),
    /// Show all settings, show one, or set one (an empty value is one, too).
    Cfg {
        /// The setting; none: all of them.
        key: Option<String>,
        /// Its new value; none: show it.
        value: Option<String>,
    },
    /// List the models of the endpoint.
    Models,
    /// List the commands.
    Help,
    /// Start over.
    Clear,
    /// End the program.
    Quit,
}

/// What the argument of a command is, for its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// It takes none.
    None,
    /// The id of a session.
    Session,
    /// The key of a setting.
    Key,
    /// Anything.
    Text,
}

/// One command of the table.
#[derive(Debug)]
pub struct Entry {
    /// Its words without the slash, the one that help shows first.
    pub words: &'static [&'static str],
    /// Its arguments as help shows them; optional ones in brackets.
    pub usage: &'static str,
    /// What its argument is.
    pub argument: Argument,
    /// What it does, on one line.
    pub help: &'static str,
    /// Makes a command of the text behind the word; `None` if it can't be without one.
    build: fn(&str) -> Option<Command>,
}

/// All commands, in the order of `/help`.
pub const TABLE: &[Entry] = &[
    Entry {
        words: &["save"],
        usage: "[NAME]",
        argument: Argument::Session,
        help: "save the conversation, under NAME or as the project's session",
        build: |text| Some(Command::Save(optional(text))),
    },
    Entry {
        words: &["continue", "cont"],
        usage: "",
        argument: Argument::None,
        help: "go on with the project's last conversation",
        build: |_| Some(Command::Continue),
    },
    Entry {
        words: &["list"],
        usage: "",
        argument: Argument::None,
        help: "list the saved sessions, the project's own marked `*`",
        build: |_| Some(Command::List),
    },
    Entry {
        words: &["load"],
        usage: "ID",
        argument: Argument::Session,
        help: "load a session by its id or the beginning of it",
        build: |text| optional(text).map(Command::Load),
    },
    Entry {
        words: &["resume"],
        usage: "[ID]",
        argument: Argument::Session,
        help: "load a session, or show the 20 newest",
        build: |text| Some(Command::Resume(optional(text))),
    },
    Entry {
        words: &["compact"],
        usage: "[TEXT]",
        argument: Argument::Text,
        help: "replace the conversation by a summary; TEXT says what to keep in mind",
        build: |text| Some(Command::Compact(optional(text))),
    },
    Entry {
        words: &["cfg"],
        usage: "[KEY [VALUE]]",
        argument: Argument::Key,
        help: "show or change settings; `/cfg KEY=` sets an empty value",
        build: setting,
    },
    Entry {
        words: &["model"],
        usage: "[VALUE]",
        argument: Argument::Text,
        help: "show or change the model",
        build: |text| Some(setting_of("model", text)),
    },
    Entry {
        words: &["endpoint"],
        usage: "[VALUE]",
        argument: Argument::Text,
        help: "show or change the endpoint",
        build: |text| Some(setting_of("endpoint", text)),
    },
    Entry {
        words: &["models"],
        usage: "",
        argument: Argument::None,
        help: "list the models of the endpoint",
        build: |_| Some(Command::Models),
    },
    Entry {
        words: &["help"],
        usage: "",
        argument: Argument::None,
        help: "show this list",
        build: |_| Some(Command::Help),
    },
    Entry {
        words: &["clear"],
        usage: "",
        argument: Argument::None,
        help: "start a new conversation",
        build: |_| Some(Command::Clear),
    },
    Entry {
        words: &["quit"],
        usage: "",
        argument: Argument::None,
        help: "leave (Ctrl+D does, too)",
        build: |_| Some(Command::Quit),
    },
];

/// What else a line can be, in the form of the table's rows.
const OTHER_LINES: &[(&str, &str)] = &[
    ("!CMD", "run a shell command; the model does not see it"),
    ("!!CMD", "run a shell command and show it to the model"),
];

impl Command {
    /// Reads a line; `None` if it is no command but a prompt: one that does not begin with a slash
    /// and nothing but letters up to the first space (`/etc/hosts has …`).
    pub fn parse(line: &str) -> Option<Result<Self>> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = word.strip_prefix('/')?;
        let is_word = !word.is_empty() && word.chars().all(char::is_alphabetic);
        is_word.then(|| match entry(word) {
            Some(entry) => entry.parse(rest.trim()),
            None => Err(unknown(word)),
        })
    }
}

impl Entry {
    /// The word that help shows first.
    fn name(&self) -> &'static str {
        self.words.first().copied().unwrap_or_default()
    }

    fn parse(&self, text: &str) -> Result<Command> {
        let word = self.name();
        let wrong = |what: &str| Error::Config {
            message: format!("`/{word}` {what}"),
            hint: Some(format!("usage: /{word} {}", self.usage).trim_end().into()),
        };
        if self.argument == Argument::None && !text.is_empty() {
            return Err(wrong("takes no argument"));
        }
        (self.build)(text).ok_or_else(|| wrong("needs an argument"))
    }
}

/// How wide the lines of the overview may become.
const OVERVIEW_COLUMNS: usize = 78;

/// The table's entry of a word, which is given without the slash.
pub fn entry(word: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.words.contains(&word))
}

/// All commands with their arguments, in a few lines of less than 80 columns.
pub fn overview() -> String {
    let commands = TABLE.iter().map(|entry| {
        let usage = format!("/{} {}", entry.name(), entry.usage);
        usage.trim_end().to_owned()
    });
    let others = OTHER_LINES.iter().map(|&(line, _)| line.to_owned());
    let mut text = String::new();
    let mut room = 0;
    for usage in commands.chain(others) {
        if room < usage.len() + 2 {
            text.push_str(if text.is_empty() { "  " } else { "\n  " });
            room = OVERVIEW_COLUMNS;
        } else {
            text.push_str("  ");
        }
        text.push_str(&usage);
        room -= usage.len() + 2;
    }
    text
}

/// The list of commands, one a line.
pub fn help() -> String {
    let commands = TABLE.iter().map(|entry| {
        let words: Vec<_> = entry.words.iter().map(|word| format!("/{word}")).collect();
        let left = format!("{} {}", words.join(", "), entry.usage);
        (left.trim_end().to_owned(), entry.help)
    });
    let others = OTHER_LINES
        .iter()
        .map(|&(line, help)| (line.to_owned(), help));
    let rows: Vec<_> = commands.chain(others).collect();
    let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    rows.iter().fold(String::new(), |mut text, (left, help)| {
        let _ = writeln!(text, "  {left:width$}  {help}");
        text
    })
}

fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// `KEY`, `KEY VALUE`, `KEY=VALUE`, `KEY=`.
fn setting(text: &str) -> Option<Command> {
    let end = text.find(|c: char| c == '=' || c.is_whitespace());
    let (key, rest) = text.split_at(end.unwrap_or(text.len()));
    let rest = rest.trim_start();
    let value = match rest.strip_prefix('=') {
        Some(value) => Some(value.trim_start().to_owned()),
        None => optional(rest),
    };
    (!key.is_empty() || value.is_none()).then(|| Command::Cfg {
        key: optional(key),
        value,
    })
}

fn setting_of(key: &str, text: &str) -> Command {
    Command::Cfg {
        key: Some(key.to_owned()),
        value: optional(text),
    }
}

fn unknown(word: &str) -> Error {
    let hint = nearest(word).map_or_else(
        || "`/help` lists the commands".to_owned(),
        |near| format!("did you mean `/{near}`?"),
    );
    Error::Config {
        message: format!("there is no command `/{word}`"),
        hint: Some(hint),
    }
}

/// The command word that is most like `word`: one that begins with it, or one that is few
/// slips of the fingers away.
fn nearest(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let slips = 1 + word.chars().count() / 3;
    let words = || TABLE.iter().flat_map(|entry| entry.words.iter().copied());
    let begun = words().find(|candidate| candidate.starts_with(&word));
    let near = || {
        words()
            .map(|candidate| (distance(&word, candidate), candidate))
            .filter(|(distance, _)| *distance <= slips)
            .min_by_key(|(distance, _)| *distance)
    };
    begun.or_else(|| near().map(|(_, candidate)| candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Command {
        Command::parse(line)
            .unwrap_or_else(|| panic!("{line:?} is no command"))
            .unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn refused(line: &str) -> (String, String) {
        let error = Command::parse(line)
            .unwrap_or_else(|| panic!("{line:?} is no command"))
            .expect_err(line);
        (
            error.to_string(),
            error.hint().unwrap_or_default().to_owned(),
        )
    }

    fn cfg(key: Option<&str>, value: Option<&str>) -> Command {
        Command::Cfg {
            key: key.map(str::to_owned),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn e10_every_command_is_read_with_its_arguments() {
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            ("/save", Command::Save(None)),
            ("/save name", Command::Save(some("name"))),
            ("/save two words ", Command::Save(some("two words"))),
            ("/continue", Command::Continue),
            ("/cont", Command::Continue),
            ("/list", Command::List),
            ("/list  ", Command::List),
            ("/load  ab", Command::Load("ab".into())),
            ("/resume", Command::Resume(None)),
            ("/resume ab", Command::Resume(some("ab"))),
            ("/compact", Command::Compact(None)),
            ("/compact the plan", Command::Compact(some("the plan"))),
            ("/compact\nthe\nplan", Command::Compact(some("the\nplan"))),
            ("/models", Command::Models),
            ("/help", Command::Help),
            ("/clear", Command::Clear),
            ("/quit\r", Command::Quit),
        ];
        for (line, command) in cases {
            assert_eq!(parsed(line), command, "{line:?}");
        }
    }

    #[test]
    fn b7_settings_are_read_in_every_form() {
        let cases = [
            ("/cfg", cfg(None, None)),
            ("/cfg top_p", cfg(Some("top_p"), None)),
            ("/cfg top_p 0.9", cfg(Some("top_p"), Some("0.9"))),
            ("/cfg top_p=0.9", cfg(Some("top_p"), Some("0.9"))),
            ("/cfg top_p = 0.9", cfg(Some("top_p"), Some("0.9"))),
            ("/cfg top_p=", cfg(Some("top_p"), Some(""))),
            ("/cfg top_p =", cfg(Some("top_p"), Some(""))),
            (
                "/cfg header.X-A b = c",
                cfg(Some("header.X-A"), Some("b = c")),
            ),
            ("/model", cfg(Some("model"), None)),
            ("/model a/b:c", cfg(Some("model"), Some("a/b:c"))),
            (
                "/endpoint http://[::1]:1/v1",
                cfg(Some("endpoint"), Some("http://[::1]:1/v1")),
            ),
        ];
        for (line, command) in cases {
            assert_eq!(parsed(line), command, "{line:?}");
        }
    }

    #[test]
    fn e10_a_prompt_that_merely_begins_with_a_slash_is_a_prompt() {
        for line in [
            "",
            "/",
            "/ help",
            " /help",
            "/etc/hosts has three lines",
            "//comment",
            "/2 of it",
            "/help?",
            "/-x",
            "help",
            "!ls",
        ] {
            assert!(Command::parse(line).is_none(), "{line:?}");
        }
    }

    #[test]
    fn e10_a_mistyped_command_gets_an_error_with_the_nearest_one() {
        for (line, near) in [
            ("/hlep", "help"),
            ("/lst", "list"),
            ("/quti", "quit"),
            ("/exit", "quit"),
            ("/HELP", "help"),
            ("/comp now", "compact"),
            ("/contine", "continue"),
            ("/modles", "models"),
            ("/sav\tx", "save"),
            ("/laod ab", "load"),
        ] {
            let (message, hint) = refused(line);
            assert!(message.contains("there is no command `/"), "{message}");
            assert_eq!(hint, format!("did you mean `/{near}`?"), "{line:?}");
        }
        let (_, hint) = refused("/тест");
        assert_eq!(hint, "`/help` lists the commands");
    }

    #[test]
    fn e10_wrong_arguments_are_refused_with_the_usage() {
        assert_eq!(
            refused("/load"),
            (
                "`/load` needs an argument".to_owned(),
                "usage: /load ID".to_owned()
            )
        );
        assert_eq!(refused("/cfg = x").0, "`/cfg` needs an argument");
        assert_eq!(
            refused("/cont x"),
            (
                "`/continue` takes no argument".to_owned(),
                "usage: /continue".to_owned()
            )
        );
    }

    #[test]
    fn e10_help_names_every_command_once() {
        let help = help();
        for entry in TABLE {
            for word in entry.words {
                let slash = format!("/{word}");
                let named = help
                    .split(|c: char| c.is_whitespace() || c == ',')
                    .filter(|text| **text == slash)
                    .count();
                assert!(named >= 1, "{slash} is missing");
            }
            assert!(help.contains(entry.help));
        }
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }

    #[test]
    fn no_word_belongs_to_two_commands() {
        let mut words: Vec<_> = TABLE.iter().flat_map(|entry| entry.words).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
