//! The one table of keys: what a setting is called, what it takes, its default, and whether it is
//! forwarded to the server. Everything else about settings derives from it.

use serde_json::Value;

use super::spelling::distance;

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name in files and commands.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// The value in force where none is set; empty for none.
    pub default: &'static str,
    /// Whether it goes into the request; all others never leave the machine.
    pub forwarded: bool,
    /// What it is for, in a few words.
    pub help: &'static str,
}

/// What values a key takes. An empty value is always allowed: it unsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Text that is not to be shown.
    Secret,
    /// A number, whole or not.
    Number,
    /// A time in seconds, more than none.
    Seconds,
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An ability that is named in the documentation but not built: setting it is an error.
    Unbuilt,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Key {
    Key {
        name,
        kind,
        default,
        forwarded: false,
        help,
    }
}

const fn forwarded(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        forwarded: true,
        help,
    }
}

/// Where something is done: where it fits, everywhere, nowhere.
const WHEN: Kind = Kind::Choice(&["auto", "always", "never"]);

/// All keys that are known by name (SPEC B3, B4, part K). Any other key is forwarded.
pub const KEYS: &[Key] = &[
    key(
        "endpoint",
        Kind::Text,
        "https://api.kilo.ai/api/openrouter",
        "base URL of an OpenAI-compatible API",
    ),
    forwarded(
        "model",
        Kind::Text,
        "openrouter/free",
        "the model's name at the endpoint",
    ),
    key(
        "api_key",
        Kind::Secret,
        "",
        "the key; else OPENAI_API_KEY; empty for none at all",
    ),
    forwarded(
        "temperature",
        Kind::Number,
        "0.7",
        "sampling temperature; empty: not sent",
    ),
    forwarded(
        "reasoning_effort",
        Kind::Text,
        "high",
        "how much to reason; empty: not sent",
    ),
    forwarded(
        "stream",
        Kind::Boolean,
        "true",
        "show answers while they are written",
    ),
    key(
        "timeout",
        Kind::Seconds,
        "300",
        "seconds to the first byte, and between two",
    ),
    key(
        "shell_timeout",
        Kind::Seconds,
        "120",
        "seconds a command may run",
    ),
    key(
        "max_al_iterations",
        Kind::Integer(1, u32::MAX as u64),
        "1000",
        "requests a turn may take",
    ),
    key(
        "context_window",
        Kind::Integer(1, 100_000_000),
        "200000",
        "tokens, where the server does not tell",
    ),
    key(
        "compact_at",
        Kind::Integer(0, 100),
        "60",
        "percent of the window at which to offer /compact; 0: never",
    ),
    key(
        "tool_output_limit",
        Kind::Integer(0, u32::MAX as u64),
        "50000",
        "characters of output for the model; 0: all",
    ),
    key(
        "sanitize_args",
        Kind::Boolean,
        "true",
        "strip invisible characters from tool arguments",
    ),
    key(
        "bantam_tools_dir",
        Kind::Text,
        "",
        "a directory of extra tools to tell the model of",
    ),
    key("color", WHEN, "auto", "auto, always or never"),
    key(
        "markdown",
        WHEN,
        "auto",
        "lay answers out: auto, always or never",
    ),
    key("api_mode", Kind::Unbuilt, "", ""),
    key("tools", Kind::Unbuilt, "", ""),
    key("approval", Kind::Unbuilt, "", ""),
    key("confine", Kind::Unbuilt, "", ""),
    key("theme", Kind::Unbuilt, "", ""),
    key("status_line", Kind::Unbuilt, "", ""),
    key("bell", Kind::Unbuilt, "", ""),
];

/// What the request is made of by the program itself: no setting may take its place.
const RESERVED: &[&str] = &["messages", "stream_options"];

/// The prefix of keys that add an HTTP header (SPEC B5).
pub const HEADER_PREFIX: &str = "header.";

/// How many letters a key may differ from an internal one and still be taken for its misspelling.
const MISSPELLING: usize = 2;

/// The entry of the table for `name`.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The value of `name` where none is set; empty for none, and for a key that is not in the table.
pub fn default(name: &str) -> &'static str {
    find(name).map_or("", |key| key.default)
}

/// Whether `name` is an ability that the documentation names and this version does not have.
pub fn is_unbuilt(name: &str) -> bool {
    find(name).is_some_and(|key| key.kind == Kind::Unbuilt)
}

/// Whether `name=value` may stand in the configuration; if not, why.
pub fn check(name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a key is missing before `=`".into());
    }
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` is made by the program and can't be set"));
    }
    if let Some(header) = name.strip_prefix(HEADER_PREFIX) {
        return check_header(header, value);
    }
    if let Some(key) = find(name) {
        return key
            .kind
            .check(value)
            .map_err(|wrong| format!("`{name}` {wrong}"));
    }
    match misspelled(name) {
        Some(meant) => Err(format!(
            "unknown key `{name}`, which is not sent: did you mean `{meant}`?"
        )),
        None => Ok(()),
    }
}

/// Like [`check`], for what a person enters now: an endpoint that can't be one is refused.
///
/// In a file it has to stay as it is, for another one in its place would get the conversation.
pub fn check_entered(name: &str, value: &str) -> Result<(), String> {
    check(name, value)?;
    let address = value.to_ascii_lowercase();
    let is_address = ["http://", "https://"]
        .iter()
        .any(|scheme| address.len() > scheme.len() && address.starts_with(scheme));
    if name == "endpoint" && !value.is_empty() && !is_address {
        return Err("`endpoint` takes an address that begins with http:// or https://".into());
    }
    Ok(())
}

/// The internal key that `name` seems to stand for. What nobody meant to send must not be sent.
pub(super) fn misspelled(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    if let Some((prefix, _)) = name.split_once('.')
        && distance(prefix, "header") <= MISSPELLING
    {
        return Some("header.NAME");
    }
    KEYS.iter()
        .filter(|key| !key.forwarded)
        .map(|key| key.name)
        .find(|internal| distance(&name, internal) <= MISSPELLING)
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err(format!("`{HEADER_PREFIX}{name}` names no HTTP header"));
    }
    if value.chars().any(char::is_control) {
        return Err(format!(
            "`{HEADER_PREFIX}{name}` has a control character in its value"
        ));
    }
    Ok(())
}

impl Kind {
    /// Whether `value` is one of this kind; if not, what is expected.
    fn check(self, value: &str) -> Result<(), String> {
        if self == Self::Unbuilt {
            return Err("is not built into this version; leave it out".into());
        }
        if value.is_empty() {
            return Ok(());
        }
        let number = value
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        match self {
            Self::Number if number.is_none() => Err(format!("takes a number, not `{value}`")),
            Self::Seconds if number.is_none_or(|seconds| seconds <= 0.0) => {
                Err(format!("takes a number of seconds above 0, not `{value}`"))
            }
            Self::Integer(least, most)
                if !value
                    .parse()
                    .is_ok_and(|n: u64| (least..=most).contains(&n)) =>
            {
                Err(format!(
                    "takes a whole number from {least} to {most}, not `{value}`"
                ))
            }
            Self::Boolean if !matches!(value, "true" | "false") => {
                Err(format!("takes true or false, not `{value}`"))
            }
            Self::Choice(words) if !words.contains(&value) => {
                Err(format!("takes one of {}, not `{value}`", words.join(", ")))
            }
            _ => Ok(()),
        }
    }
}

/// A forwarded value as it goes into the request: JSON where it reads as JSON, else a string.
/// `model` is a name, so that a model called `4` is not sent as a number.
pub fn request_value(name: &str, value: &str) -> Value {
    if name == "model" {
        return Value::String(value.into());
    }
    let json = serde_json::from_str(value).ok();
    json.or_else(|| plain_number(name, value))
        .unwrap_or_else(|| Value::String(value.into()))
}

/// A number that is none of JSON's (`.5`, `+1`) is one all the same where a number is wanted.
fn plain_number(name: &str, value: &str) -> Option<Value> {
    find(name).filter(|key| key.kind == Kind::Number)?;
    value.parse::<f64>().ok().map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn b4_misspelled_internal_keys_are_refused_and_other_unknown_keys_are_not() {
        for name in [
            "apikey",
            "shell_timout",
            "API_KEY",
            "endpont",
            "colour",
            "headers.X-Key",
            "heade.X",
        ] {
            assert!(check(name, "1").is_err(), "{name}");
        }
        for name in [
            "top_p",
            "top_k",
            "max_tokens",
            "seed",
            "stop",
            "user",
            "n",
            "provider",
            "tool_choice",
            "min_p",
            "store",
        ] {
            assert_eq!(check(name, "1"), Ok(()), "{name}");
        }
    }

    #[test]
    fn b4_reserved_and_unbuilt_keys_are_refused() {
        for name in [
            "messages",
            "stream_options",
            "approval",
            "tools",
            "theme",
            "",
        ] {
            assert!(check(name, "x").is_err(), "{name}");
        }
    }

    #[test]
    fn b6_every_kind_takes_its_values_and_refuses_others() {
        for (name, good, bad) in [
            ("temperature", "0", "0,7"),
            ("temperature", "1e-3", "NaN"),
            ("timeout", "0.5", "0"),
            ("shell_timeout", "120", "two"),
            ("max_al_iterations", "1", "0"),
            ("context_window", "4096", "-1"),
            ("compact_at", "0", "101"),
            ("tool_output_limit", "0", "1.5"),
            ("stream", "false", "no"),
            ("color", "always", "yes"),
        ] {
            assert_eq!(check(name, good), Ok(()), "{name}={good}");
            assert!(check(name, bad).is_err(), "{name}={bad}");
            assert_eq!(check(name, ""), Ok(()), "{name}=");
        }
    }

    #[test]
    fn b5_headers_must_be_headers() {
        assert_eq!(check("header.X-Title", "bantam"), Ok(()));
        assert!(check("header.", "x").is_err());
        assert!(check("header.a b", "x").is_err());
        assert!(check("header.A", "x\r\ny").is_err());
    }

    #[test]
    fn b4_values_are_json_where_they_parse_and_models_are_always_strings() {
        assert_eq!(request_value("top_p", "0.9"), json!(0.9));
        assert_eq!(
            request_value("provider", r#"{"sort":"price"}"#),
            json!({"sort": "price"})
        );
        assert_eq!(request_value("stop", "END"), json!("END"));
        assert_eq!(request_value("model", "4"), json!("4"));
        assert_eq!(request_value("temperature", ".5"), json!(0.5));
        assert_eq!(request_value("temperature", "+1"), json!(1.0));
    }

    #[test]
    fn every_default_is_of_its_own_kind() {
        for key in KEYS.iter().filter(|key| key.kind != Kind::Unbuilt) {
            assert_eq!(key.kind.check(key.default), Ok(()), "{}", key.name);
        }
    }
}
