//! Tool calls put together from their pieces.
//!
//! Servers disagree about what tells one call from another: the index, the id, both, neither. The
//! rules here are those under which every known variant comes out right.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::arguments::{Arguments, is_empty_object, is_object};
use super::chunk::{Entry, Function};

/// What a call without a name is called in the history, which must have one.
const NAMELESS: &str = "unknown";

/// The calls of one answer.
#[derive(Debug)]
pub(super) struct Slots {
    list: Vec<Slot>,
    /// The slot touched last.
    current: Option<usize>,
    /// The names of the tools the model was offered.
    known: Vec<String>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: Arguments,
    extra: Option<Value>,
}

/// What a piece says about the call it belongs to.
struct Piece<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: &'a str,
}

impl Slots {
    pub(super) fn new(known: Vec<String>) -> Self {
        Self {
            list: Vec::new(),
            current: None,
            known,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many bytes have come, for an estimate of tokens.
    pub(super) fn size(&self) -> usize {
        self.list
            .iter()
            .map(|slot| slot.name.len() + slot.arguments.as_str().len())
            .sum()
    }

    /// Takes a piece of a call in, or a whole one.
    pub(super) fn take(&mut self, entry: Entry<'_>) {
        let id = entry.id.written();
        let function = entry.function.unwrap_or_default();
        let arguments = function.arguments.written();
        let piece = Piece {
            index: entry.index.number(),
            id: id.as_deref().map(str::trim).filter(|id| !id.is_empty()),
            name: function.name.text().filter(|name| !name.is_empty()),
            arguments: arguments.as_deref().unwrap_or_default(),
        };
        let at = self.place(&piece).unwrap_or_else(|| {
            self.list.push(Slot::default());
            self.list.len() - 1
        });
        self.current = Some(at);
        let known = &self.known;
        if let Some(slot) = self.list.get_mut(at) {
            slot.merge(&piece, known);
            if entry.extra_content.is_some() {
                slot.extra = entry.extra_content;
            }
        }
    }

    /// Takes a piece of the legacy single call in.
    pub(super) fn take_legacy(&mut self, function: Function<'_>) {
        self.take(Entry {
            function: Some(function),
            ..Entry::default()
        });
    }

    /// Which slot a piece belongs to; `None` where it begins a new call.
    fn place(&self, piece: &Piece<'_>) -> Option<usize> {
        let with_index = piece
            .index
            .and_then(|index| self.list.iter().rposition(|slot| slot.index == Some(index)));
        let candidate = if piece.index.is_some() {
            with_index
        } else {
            self.current
        };
        let slot = candidate.and_then(|at| self.list.get(at));
        let Some(id) = piece.id else {
            return match slot {
                Some(slot) if slot.is_followed_by(piece, &self.known) => None,
                Some(_) => candidate,
                // An index that drifts in the middle of a call.
                None if piece.name.is_none() => self.current,
                None => None,
            };
        };
        let same_id = |slot: &Slot| slot.id.as_deref() == Some(id);
        if let Some(at) = self.list.iter().rposition(same_id) {
            let repeats = self.list.get(at).is_some_and(|slot| slot.is_other(piece));
            return (!repeats).then_some(at);
        }
        let belongs = slot.is_some_and(|slot| match slot.id {
            None => !slot.is_followed_by(piece, &self.known),
            Some(_) => slot.goes_on_with(piece) || piece.is_tail(),
        });
        candidate.filter(|_| belongs)
    }

    /// The calls in the form of the chat completions API.
    ///
    /// Ids that are missing or `used` already are replaced, but for `fixed` ones, which other
    /// fields of the message refer to. `whole_only` leaves out calls whose arguments were cut.
    pub(super) fn finish(
        self,
        mut used: HashSet<String>,
        fixed: &HashSet<String>,
        whole_only: bool,
    ) -> Vec<Value> {
        let salt = used.len();
        let mut calls = Vec::new();
        for slot in self.list {
            let name = slot.name.split("<|").next().unwrap_or_default().trim();
            let name = if name.is_empty() { NAMELESS } else { name };
            let mut arguments = slot.arguments.into_string();
            let is_blank = matches!(arguments.trim(), "" | "null");
            if (slot.name.trim().is_empty() && is_blank) || (whole_only && !is_object(&arguments)) {
                continue;
            }
            if is_blank {
                arguments = "{}".into();
            }
            let id = slot
                .id
                .filter(|id| fixed.contains(id) || !used.contains(id))
                .unwrap_or_else(|| own_id(&format!("{salt} {name} {arguments}"), &used));
            used.insert(id.clone());
            let mut call = Map::new();
            call.insert("id".into(), id.into());
            call.insert("type".into(), "function".into());
            call.insert(
                "function".into(),
                json!({"name": name, "arguments": arguments}),
            );
            if let Some(extra) = slot.extra {
                call.insert("extra_content".into(), extra);
            }
            calls.push(Value::Object(call));
        }
        calls
    }
}

impl Piece<'_> {
    /// Whether it is the empty piece that some servers end a call with.
    fn is_tail(&self) -> bool {
        self.name.is_none() && self.arguments.is_empty()
    }
}

impl Slot {
    /// Whether a piece without a known id begins another call than this one.
    fn is_followed_by(&self, piece: &Piece<'_>, known: &[String]) -> bool {
        let Some(name) = piece.name else {
            return false;
        };
        if self.name.is_empty() {
            return false;
        }
        let is_known = |name: &str| known.iter().any(|known| known == name);
        if name != self.name && is_known(name) && is_known(&self.name) {
            return true;
        }
        is_object(piece.arguments)
            && self.arguments.is_complete()
            && (!self.arguments.is_empty_object() || is_empty_object(piece.arguments))
    }

    /// Whether a piece with this slot's id is a whole other call nevertheless.
    fn is_other(&self, piece: &Piece<'_>) -> bool {
        piece.name.is_some()
            && is_object(piece.arguments)
            && self.arguments.is_complete()
            && !self.arguments.is_empty_object()
            && self.arguments.as_str() != piece.arguments
    }

    /// Whether a piece with a new id is a piece of this call: some servers give each an id.
    fn goes_on_with(&self, piece: &Piece<'_>) -> bool {
        let continues = match piece.name {
            None => true,
            Some(name) => {
                name == self.name
                    && !self.arguments.as_str().is_empty()
                    && !piece.arguments.is_empty()
                    && !piece.arguments.starts_with('{')
            }
        };
        continues && !self.arguments.is_complete()
    }

    fn merge(&mut self, piece: &Piece<'_>, known: &[String]) {
        self.index = self.index.or(piece.index);
        if self.id.is_none() {
            self.id = piece.id.map(str::to_owned);
        }
        if let Some(name) = piece.name
            && name != self.name
            && !known.contains(&self.name)
        {
            if name.starts_with(&self.name) {
                self.name.clear();
            }
            self.name.push_str(name);
        }
        let arguments = piece.arguments;
        if arguments.is_empty() {
            return;
        }
        if self.arguments.is_empty_object() {
            self.arguments.replace(arguments);
        } else if !(arguments == self.arguments.as_str() && self.arguments.is_complete()) {
            self.arguments.push(arguments);
        }
    }
}

/// An id of ours that is not `used`: the same answer gets the same one again.
fn own_id(seed: &str, used: &HashSet<String>) -> String {
    let mut id = short_id(seed);
    while used.contains(&id) {
        id = short_id(&id);
    }
    id
}

/// Nine letters and digits, which every server takes for an id, made from any text.
pub(super) fn short_id(text: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // FNV-1a: the ids must be the same in every run of the program, for the provider's cache.
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut id = String::with_capacity(9);
    for _ in 0..9 {
        let digit = usize::try_from(hash % 62).unwrap_or_default();
        id.push(char::from(DIGITS.get(digit).copied().unwrap_or(b'0')));
        hash /= 62;
    }
    id
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds lists of `tool_calls`, one a delta, and gives (id, name, arguments) of what they form.
    fn assemble(deltas: &[&str]) -> Vec<(String, String, String)> {
        let mut slots = Slots::new(vec!["f".into(), "g".into(), "shell_exec".into()]);
        for delta in deltas {
            let entries: Vec<Entry<'_>> = serde_json::from_str(delta).unwrap();
            for entry in entries {
                slots.take(entry);
            }
        }
        finish(slots)
    }

    fn finish(slots: Slots) -> Vec<(String, String, String)> {
        let text = |call: &Value, path: &str| call.pointer(path).unwrap().as_str().unwrap().into();
        slots
            .finish(HashSet::new(), &HashSet::new(), false)
            .iter()
            .map(|call| {
                (
                    text(call, "/id"),
                    text(call, "/function/name"),
                    text(call, "/function/arguments"),
                )
            })
            .collect()
    }

    /// The variants of the notes (2.1): the deltas, and the calls they form (`*`: an id of ours).
    type Variant = (
        &'static str,
        &'static [&'static str],
        &'static [[&'static str; 3]],
    );
    const VARIANTS: &[Variant] = &[
        (
            "T1 standard",
            &[
                r#"[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T1 two in parallel, interleaved",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                r#"[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\":1}"}},{"index":1,"function":{"arguments":"{\"y\":"}}]"#,
                r#"[{"index":1,"function":{"arguments":"2}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#], ["b", "g", r#"{"y":2}"#]],
        ),
        (
            "T2 whole call in one chunk",
            &[r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#],
            &[["a", "f", "{}"]],
        ),
        (
            "T3 no index, no type",
            &[
                r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#], ["b", "f", r#"{"x":2}"#]],
        ),
        (
            "T4 all index 0, different ids",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#], ["b", "f", r#"{"x":2}"#]],
        ),
        (
            "T4 in pieces",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"f","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\":2}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#], ["b", "f", r#"{"x":2}"#]],
        ),
        (
            "T5 whole calls with index 0 and no id",
            &[
                r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
                r#"[{"index":0,"function":{"name":"g","arguments":"{}"}}]"#,
            ],
            &[
                ["*", "f", r#"{"x":1}"#],
                ["*", "f", r#"{"x":2}"#],
                ["*", "g", "{}"],
            ],
        ),
        (
            "T6 head index 0, tail index 1",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":1,"function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T7 first index is 1",
            &[
                r#"[{"index":1,"id":"a","function":{"name":"f","arguments":"{"}}]"#,
                r#"[{"index":1,"function":{"arguments":"}"}}]"#,
            ],
            &[["a", "f", "{}"]],
        ),
        (
            "T8 empty id on continuation",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"","type":"function","function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T9 null id and name on continuation",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":null,"function":{"name":null,"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T11 name repeated in each chunk",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"name":"f","arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T11 with the id repeated and an empty last piece (llama-cpp-python)",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T12 name split over chunks",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"shell_","arguments":""}}]"#,
                r#"[{"index":0,"function":{"name":"exec","arguments":"{}"}}]"#,
            ],
            &[["a", "shell_exec", "{}"]],
        ),
        (
            "T12 name growing",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"shell"}}]"#,
                r#"[{"index":0,"function":{"name":"shell_exec","arguments":"{}"}}]"#,
            ],
            &[["a", "shell_exec", "{}"]],
        ),
        (
            "T13 id repeated",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T14 blank id on continuation",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":" ","function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T16 arguments as an object",
            &[r#"[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]"#],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T17 no arguments",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                r#"[{"index":1,"id":"b","function":{"name":"f","arguments":null}}]"#,
                r#"[{"index":2,"id":"c","function":{"name":"f"}}]"#,
            ],
            &[["a", "f", "{}"], ["b", "f", "{}"], ["c", "f", "{}"]],
        ),
        (
            "T18 arguments before name and id",
            &[
                r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T19 whole arguments once more at the end",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "T21 empty call",
            &[
                r#"[{"index":0,"id":"","function":{"name":"","arguments":""}}]"#,
                r#"[{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
            ],
            &[["a", "f", "{}"]],
        ),
        (
            "T29 the same id for different whole calls",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#], ["*", "f", r#"{"x":2}"#]],
        ),
        (
            "T31 a prefix that is whole already",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"function":{"arguments":" "}}]"#,
            ],
            &[["a", "f", "{\"x\":1} "]],
        ),
        (
            "T32 no object",
            &[r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"[]"}}]"#],
            &[["a", "f", "[]"]],
        ),
        (
            "arguments without a name",
            &[r#"[{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}]"#],
            &[["a", "unknown", r#"{"x":1}"#]],
        ),
        (
            "a new id with each delta",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"b","function":{"arguments":":1"}}]"#,
                r#"[{"index":0,"id":"c","function":{"name":"f","arguments":"}"}}]"#,
                r#"[{"index":0,"id":"d","function":{"arguments":""}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "an id that comes late",
            &[
                r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "an index that comes late",
            &[
                r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "a placeholder before the arguments",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            ],
            &[["a", "f", r#"{"x":1}"#]],
        ),
        (
            "a channel marker in the name",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f<|channel|>commentary","arguments":"{}"}}]"#,
            ],
            &[["a", "f", "{}"]],
        ),
        (
            "neither index nor id",
            &[
                r#"[{"function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"function":{"arguments":":1}"}}]"#,
                r#"[{"function":{"name":"g","arguments":"{}"}}]"#,
            ],
            &[["*", "f", r#"{"x":1}"#], ["*", "g", "{}"]],
        ),
    ];

    #[test]
    fn c6_every_variant_of_tool_call_deltas_forms_its_calls() {
        for (variant, deltas, expected) in VARIANTS {
            let calls = assemble(deltas);
            assert_eq!(calls.len(), expected.len(), "{variant}: {calls:?}");
            for ((id, name, arguments), [want_id, want_name, want_arguments]) in
                calls.iter().zip(*expected)
            {
                assert_eq!([name, arguments], [want_name, want_arguments], "{variant}");
                if *want_id == "*" {
                    assert_eq!(id.len(), 9, "{variant}");
                    assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{variant}");
                } else {
                    assert_eq!(id, want_id, "{variant}");
                }
            }
        }
    }

    #[test]
    fn c7_ids_that_are_used_or_missing_are_replaced_once_and_for_all() {
        let build = |used: &[&str], fixed: &[&str]| {
            let mut slots = Slots::new(Vec::new());
            for _ in 0..2 {
                slots.take(
                    serde_json::from_str(
                        r#"{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}"#,
                    )
                    .unwrap(),
                );
            }
            slots.take(
                serde_json::from_str(r#"{"index":1,"id":"a","function":{"name":"f"}}"#).unwrap(),
            );
            let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
            slots
                .finish(set(used), &set(fixed), false)
                .iter()
                .map(|call| call["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let ids = build(&["a"], &[]);
        assert_eq!(ids.len(), 3);
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3);
        assert!(!ids.contains(&"a".to_owned()));
        assert_eq!(ids, build(&["a"], &[]), "the same answer gets the same ids");
        assert_eq!(build(&["a"], &["a"])[2], "a", "other fields refer to it");
    }

    #[test]
    fn c9_calls_that_were_cut_are_left_out_of_a_cut_answer() {
        let mut slots = Slots::new(Vec::new());
        for call in [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"f","arguments":"{\"x\":"}}"#,
            r#"{"index":2,"id":"c","function":{"name":"f","arguments":""}}"#,
        ] {
            slots.take(serde_json::from_str(call).unwrap());
        }
        let calls = slots.finish(HashSet::new(), &HashSet::new(), true);
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0]["id"], "a");
    }

    #[test]
    fn what_a_server_attaches_to_a_call_stays_with_it() {
        let mut slots = Slots::new(Vec::new());
        for call in [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}}"#,
            r#"{"index":0,"extra_content":null}"#,
            r#"{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ] {
            slots.take(serde_json::from_str(call).unwrap());
        }
        let calls = slots.finish(HashSet::new(), &HashSet::new(), false);
        assert_eq!(
            calls[0]["extra_content"]["google"]["thought_signature"],
            "S"
        );
        assert_eq!(calls[1].get("extra_content"), None);
    }

    proptest! {
        #[test]
        fn c6_arguments_cut_anywhere_come_out_whole(
            texts in prop::collection::vec("[ -~é\u{1f600}]{0,40}", 1..4),
            cut in 1usize..7,
            repeat_name in any::<bool>(),
            repeat_id in any::<bool>(),
        ) {
            let mut slots = Slots::new(vec!["f".into()]);
            let mut expected = Vec::new();
            for (index, text) in texts.iter().enumerate() {
                let arguments = json!({"command": text}).to_string();
                let chars: Vec<char> = arguments.chars().collect();
                for (n, piece) in chars.chunks(cut).enumerate() {
                    let piece: String = piece.iter().collect();
                    let mut entry = json!({"index": index, "function": {"arguments": piece}});
                    if n == 0 || repeat_name {
                        entry["function"]["name"] = json!("f");
                    }
                    if n == 0 || repeat_id {
                        entry["id"] = json!(format!("id{index}"));
                    }
                    let entry = entry.to_string();
                    slots.take(serde_json::from_str(&entry).unwrap());
                }
                expected.push((format!("id{index}"), "f".to_owned(), arguments));
            }
            prop_assert_eq!(finish(slots), expected);
        }
    }
}
