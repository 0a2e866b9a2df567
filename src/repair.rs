//! Making a history valid for the API (SPEC E7).
//!
//! One bad message makes a server refuse every later request of a conversation, so the whole history
//! is put right when it is loaded, not only its tail. The work is deterministic, and a valid history
//! comes out as it went in. Owns what "valid" means; knows nothing of files.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Value, json};

use crate::message::{Conversation, Message};

/// The result that a call without one gets.
pub const NO_RESULT: &str =
    "error: no result of this call was recorded; whether it ran to its end is unknown";

/// What stands for a result that holds no text.
const NO_CONTENT: &str = "(no output was recorded)";

/// How much a repair had to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repairs {
    /// Calls without a result that were given one.
    pub results_added: usize,
    /// Results without a call, and second results of one call, that were dropped.
    pub results_removed: usize,
    /// Results that stood elsewhere than right behind their call, in the order of the calls.
    pub results_moved: usize,
    /// Assistant messages with neither text nor calls that were dropped.
    pub answers_removed: usize,
    /// Calls that name no function and were dropped.
    pub calls_removed: usize,
    /// Arguments that were no JSON object and became `{}`.
    pub arguments_replaced: usize,
    /// Calls whose id was missing or used before and that got a new one.
    pub ids_replaced: usize,
    /// Messages of an unknown role, without content, or with the role `system` in the middle.
    pub messages_replaced: usize,
}

impl Repairs {
    /// Whether nothing had to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Repairs {
    /// For example `2 results added, 1 empty answer removed`; empty when nothing was changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.results_added, "result", "added"),
            (self.results_removed, "result", "removed"),
            (self.results_moved, "result", "moved"),
            (self.answers_removed, "empty answer", "removed"),
            (self.calls_removed, "call without a name", "removed"),
            (self.arguments_replaced, "broken argument", "emptied"),
            (self.ids_replaced, "call id", "replaced"),
            (self.messages_replaced, "unusable message", "put right"),
        ];
        let mut separator = "";
        for (count, what, done) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            let what = match (count, what) {
                (1, _) => what.to_owned(),
                (_, "call without a name") => "calls without a name".to_owned(),
                _ => format!("{what}s"),
            };
            write!(f, "{separator}{count} {what} {done}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Makes `conversation` valid: every call has exactly one result, right behind it and in the order
/// of the calls; no result is without its call; ids are unique; arguments are JSON objects; no
/// assistant message is empty; only the first message may have the role `system`.
pub fn repair(conversation: &mut Conversation) -> Repairs {
    let messages = std::mem::take(conversation).into_messages();
    let mut repair = Repair::new(&messages);
    for message in messages {
        repair.take(message);
    }
    repair.end_block();
    *conversation = Conversation::from_messages(repair.done);
    repair.repairs
}

/// Ends the turn with a short answer, `note`, where it ends with the results of calls: some servers
/// refuse a user message behind them. Says whether it had to.
pub fn close_turn(conversation: &mut Conversation, note: &str) -> bool {
    let open = conversation
        .last()
        .is_some_and(|last| last.role() == "tool");
    if open {
        conversation.push(Message::assistant(note));
    }
    open
}

/// A call of the assistant message whose results are being collected.
struct Slot {
    /// The id that it had and that its result still has.
    was: String,
    /// The id that it has now.
    id: String,
    result: Option<Message>,
}

/// The state of one repair: a walk over the messages from the first to the last.
struct Repair {
    done: Vec<Message>,
    /// The calls of the last assistant message, until something else than a result follows.
    slots: Vec<Slot>,
    /// How many results of the current block came in another order than their calls.
    last_slot: usize,
    /// Where in `done` the stand-in of a call's missing result is, by the id the call had, for the
    /// result that comes too late. `None`: that id was used more than once, so nobody can tell.
    missing: HashMap<String, Option<usize>>,
    /// Ids that calls have now.
    used: HashSet<String>,
    /// Ids that calls have or had: no new id may be one of them.
    taken: HashSet<String>,
    fresh: usize,
    repairs: Repairs,
}

impl Repair {
    fn new(messages: &[Message]) -> Self {
        let taken = messages
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.id.to_owned())
            .collect();
        Self {
            done: Vec::with_capacity(messages.len()),
            slots: Vec::new(),
            last_slot: 0,
            missing: HashMap::new(),
            used: HashSet::new(),
            taken,
            fresh: 0,
            repairs: Repairs::default(),
        }
    }

    fn take(&mut self, message: Message) {
        match message.role() {
            "tool" => self.result(message),
            "assistant" => self.answer(message),
            "system" | "user" => self.said(message),
            _ => self.repairs.messages_replaced += 1,
        }
    }

    /// A system or user message.
    fn said(&mut self, mut message: Message) {
        self.end_block();
        if !has_content(&message) {
            self.repairs.messages_replaced += 1;
            return;
        }
        if message.role() == "system" && !self.done.is_empty() {
            self.repairs.messages_replaced += 1;
            message.as_map_mut().insert("role".into(), json!("user"));
        }
        self.done.push(message);
    }

    fn answer(&mut self, mut message: Message) {
        self.end_block();
        let map = message.as_map_mut();
        match map.get("content") {
            None | Some(Value::Null | Value::String(_) | Value::Array(_)) => {}
            Some(_) => {
                map.insert("content".into(), json!(""));
                self.repairs.messages_replaced += 1;
            }
        }
        self.calls(map);
        if message.is_empty_assistant() {
            self.repairs.answers_removed += 1;
        } else {
            self.done.push(message);
        }
    }

    /// Puts the calls of an assistant message right and opens a slot for each.
    fn calls(&mut self, message: &mut Map<String, Value>) {
        let Some(calls) = message.get_mut("tool_calls") else {
            return;
        };
        if let Value::Array(calls) = calls {
            calls.retain_mut(|call| {
                let named = self.call(call).is_some();
                self.repairs.calls_removed += usize::from(!named);
                named
            });
        }
        if calls.as_array().is_none_or(Vec::is_empty) {
            message.shift_remove("tool_calls");
        }
    }

    /// Puts one call right; `None` if it names no function.
    fn call(&mut self, call: &mut Value) -> Option<()> {
        let call = call.as_object_mut()?;
        let function = call.get_mut("function")?.as_object_mut()?;
        function
            .get("name")?
            .as_str()
            .filter(|name| !name.is_empty())?;
        self.arguments(function);
        call.entry("type").or_insert_with(|| json!("function"));

        let was = call
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let mut id = was.clone();
        if id.is_empty() || self.used.contains(&id) {
            self.repairs.ids_replaced += 1;
            self.missing.insert(was.clone(), None);
            id = self.fresh_id();
            call.insert("id".into(), json!(id));
        }
        self.used.insert(id.clone());
        self.slots.push(Slot {
            was,
            id,
            result: None,
        });
        Some(())
    }

    fn arguments(&mut self, function: &mut Map<String, Value>) {
        let text = match function.get("arguments") {
            Some(Value::String(text))
                if serde_json::from_str::<Map<String, Value>>(text).is_ok() =>
            {
                return;
            }
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => {
                self.repairs.arguments_replaced += 1;
                "{}".to_owned()
            }
        };
        function.insert("arguments".into(), json!(text));
    }

    /// An id of nine letters and digits, for some servers accept no other form.
    fn fresh_id(&mut self) -> String {
        loop {
            self.fresh += 1;
            let id = format!("repair{:03}", self.fresh);
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }

    fn result(&mut self, mut message: Message) {
        if !has_content(&message) {
            message
                .as_map_mut()
                .insert("content".into(), json!(NO_CONTENT));
            self.repairs.messages_replaced += 1;
        }
        let was = message.tool_call_id();
        let open = |slot: &Slot| slot.result.is_none() && slot.was == was;
        if let Some(index) = self.slots.iter().position(open) {
            self.repairs.results_moved += usize::from(index < self.last_slot);
            self.last_slot = index;
            let slot = &mut self.slots[index];
            set_call_id(&mut message, &slot.id);
            slot.result = Some(message);
        } else if let Some(&Some(index)) = self.missing.get(was) {
            self.missing.remove(was);
            self.repairs.results_added -= 1;
            self.repairs.results_moved += 1;
            self.done[index] = message;
        } else {
            self.repairs.results_removed += 1;
        }
    }

    /// Closes the block of results behind an assistant message: all of them, in the order of the calls.
    fn end_block(&mut self) {
        self.last_slot = 0;
        for slot in std::mem::take(&mut self.slots) {
            let result = slot.result.unwrap_or_else(|| {
                self.repairs.results_added += 1;
                self.missing
                    .entry(slot.was)
                    .or_insert(Some(self.done.len()));
                Message::tool(&slot.id, NO_RESULT)
            });
            self.done.push(result);
        }
    }
}

/// Whether a message holds a content that servers take: a text or a list of parts.
fn has_content(message: &Message) -> bool {
    matches!(
        message.as_map().get("content"),
        Some(Value::String(_) | Value::Array(_))
    )
}

fn set_call_id(message: &mut Message, id: &str) {
    if message.tool_call_id() != id {
        message
            .as_map_mut()
            .insert("tool_call_id".into(), json!(id));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn conversation(value: Value) -> Conversation {
        Conversation::from_messages(serde_json::from_value(value).expect("messages"))
    }

    fn messages(conversation: &Conversation) -> Value {
        serde_json::to_value(conversation.messages()).expect("JSON")
    }

    fn call(id: &str, arguments: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
    }

    fn calls(ids: &[&str]) -> Value {
        let calls: Vec<_> = ids.iter().map(|id| call(id, "{}")).collect();
        json!({"role": "assistant", "content": "", "tool_calls": calls})
    }

    fn result(id: &str, text: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": text})
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    #[track_caller]
    fn check(before: &Value, after: &Value, told: &str) {
        let mut conversation = conversation(before.clone());
        let repairs = repair(&mut conversation);
        assert_eq!(&messages(&conversation), after);
        assert_eq!(repairs.to_string(), told);
        assert_eq!(violations(conversation.messages()), Vec::<String>::new());
    }

    #[test]
    fn e7_a_call_without_a_result_gets_one_that_says_so() {
        check(
            &json!([user("a"), calls(&["1", "2"]), result("2", "two"), user("b")]),
            &json!([
                user("a"),
                calls(&["1", "2"]),
                result("1", NO_RESULT),
                result("2", "two"),
                user("b")
            ]),
            "1 result added",
        );
        check(
            &json!([user("a"), calls(&["1", "2"])]),
            &json!([
                user("a"),
                calls(&["1", "2"]),
                result("1", NO_RESULT),
                result("2", NO_RESULT)
            ]),
            "2 results added",
        );
    }

    #[test]
    fn e7_results_without_calls_and_second_results_go() {
        check(
            &json!([
                result("9", "?"),
                user("a"),
                calls(&["1"]),
                result("1", "x"),
                result("1", "again"),
                result("", "?"),
                user("b"),
                result("1", "late")
            ]),
            &json!([user("a"), calls(&["1"]), result("1", "x"), user("b")]),
            "4 results removed",
        );
    }

    #[test]
    fn e7_a_result_that_came_late_or_in_another_order_is_moved_to_its_call() {
        check(
            &json!([
                calls(&["1", "2"]),
                result("2", "two"),
                result("1", "one"),
                calls(&["3"]),
                user("b"),
                result("3", "three")
            ]),
            &json!([
                calls(&["1", "2"]),
                result("1", "one"),
                result("2", "two"),
                calls(&["3"]),
                result("3", "three"),
                user("b")
            ]),
            "2 results moved",
        );
    }

    #[test]
    fn e7_empty_assistant_messages_go() {
        let empty = |content: Value| json!({"role": "assistant", "content": content});
        check(
            &json!([
                user("a"),
                empty(json!("")),
                empty(Value::Null),
                {"role": "assistant"},
                {"role": "assistant", "content": "", "tool_calls": []},
                {"role": "assistant", "content": null, "reasoning": "hm"},
                user("b")
            ]),
            &json!([user("a"), user("b")]),
            "5 empty answers removed",
        );
    }

    #[test]
    fn e7_arguments_that_are_no_object_become_empty_ones() {
        for broken in [
            "",
            "{",
            "[]",
            "null",
            "\"x\"",
            "{\"a\":1} {",
            "{\"a\":\"\\ud800\"}",
        ] {
            let message = json!({"role": "assistant", "tool_calls": [call("1", broken)]});
            let mended = json!({"role": "assistant", "tool_calls": [call("1", "{}")]});
            check(
                &json!([message, result("1", "x")]),
                &json!([mended, result("1", "x")]),
                "1 broken argument emptied",
            );
        }
        let mut object = call("1", "");
        object["function"]["arguments"] = json!({"b": 1, "a": 2});
        check(
            &json!([{"role": "assistant", "tool_calls": [object]}, result("1", "x")]),
            &json!([
                {"role": "assistant", "tool_calls": [call("1", "{\"b\":1,\"a\":2}")]},
                result("1", "x")
            ]),
            "",
        );
    }

    #[test]
    fn e7_an_id_used_twice_gets_a_new_one_and_its_result_follows() {
        check(
            &json!([
                calls(&["1"]),
                result("1", "first"),
                calls(&["1", "1", ""]),
                result("1", "second"),
                result("1", "third"),
                result("", "fourth"),
                calls(&["repair001"]),
                result("repair001", "taken")
            ]),
            &json!([
                calls(&["1"]),
                result("1", "first"),
                calls(&["repair002", "repair003", "repair004"]),
                result("repair002", "second"),
                result("repair003", "third"),
                result("repair004", "fourth"),
                calls(&["repair001"]),
                result("repair001", "taken")
            ]),
            "3 call ids replaced",
        );
    }

    #[test]
    fn what_no_server_takes_is_put_right_or_removed() {
        let no_name = json!({"id": "2", "type": "function", "function": {"arguments": "{}"}});
        check(
            &json!([
                {"role": "system", "content": "s"},
                {"role": "system", "content": "t"},
                {"role": "user"},
                {"role": "alien", "content": "x"},
                {"content": "x"},
                {"role": "assistant", "content": "hi", "tool_calls": [no_name, 7, null]},
                {"role": "assistant", "content": 5, "tool_calls": [
                    {"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1"},
            ]),
            &json!([
                {"role": "system", "content": "s"},
                user("t"),
                {"role": "assistant", "content": "hi"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "1", "function": {"name": "f", "arguments": "{}"}, "type": "function"}]},
                result("1", NO_CONTENT),
            ]),
            "3 calls without a name removed, 6 unusable messages put right",
        );
    }

    #[test]
    fn a_turn_that_ends_with_results_is_closed_once() {
        let mut open = conversation(json!([user("a"), calls(&["1"]), result("1", "x")]));
        assert!(close_turn(&mut open, "(ended)"));
        assert!(!close_turn(&mut open, "(ended)"));
        assert_eq!(open.last(), Some(&Message::assistant("(ended)")));
        assert!(!close_turn(&mut Conversation::default(), "(ended)"));
    }

    /// Everything that a strict server would refuse, written down apart from the repair.
    fn violations(messages: &[Message]) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut expected: Vec<String> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let map = message.as_map();
            let mut complain = |what: &str| found.push(format!("message {index}: {what}"));
            if message.role() == "tool" {
                if expected.is_empty() || expected.remove(0) != message.tool_call_id() {
                    complain("a result that is not the next call's");
                }
            } else if !expected.is_empty() {
                complain("a call without a result before it");
                expected.clear();
            }
            let content = map.get("content");
            let is_content =
                content.is_some_and(|content| content.is_string() || content.is_array());
            match message.role() {
                "system" if index > 0 => complain("a system message that is not the first"),
                "system" | "user" | "tool" if !is_content => complain("no content"),
                "assistant" if message.is_empty_assistant() => complain("empty"),
                "assistant" if content.is_some_and(|c| !c.is_null()) && !is_content => {
                    complain("a content of the wrong type");
                }
                "system" | "user" | "tool" | "assistant" => {}
                _ => complain("an unknown role"),
            }
            let Some(calls) = map
                .get("tool_calls")
                .filter(|_| message.role() == "assistant")
            else {
                continue;
            };
            let calls = calls.as_array().cloned().unwrap_or_default();
            if calls.is_empty() {
                complain("tool_calls that is no list of calls");
            }
            for call in calls {
                let id = call["id"].as_str().unwrap_or_default().to_owned();
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                if id.is_empty() || !seen.insert(id.clone()) {
                    complain("an id that is empty or used before");
                }
                if call["function"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty()
                {
                    complain("a call without a name");
                }
                if !arguments.is_object() {
                    complain("arguments that are no object");
                }
                expected.push(id);
            }
        }
        if !expected.is_empty() {
            found.push("a call without a result at the end".to_owned());
        }
        found
    }

    /// Any value that may stand for a content, an id, a name.
    fn anything() -> impl Strategy<Value = Value> {
        prop_oneof![
            4 => "[ab]{0,2}".prop_map(Value::from),
            1 => Just(Value::Null),
            1 => Just(json!(1)),
            1 => Just(json!({"text": "x"})),
            1 => Just(json!([{"type": "text", "text": "x"}])),
            1 => Just(json!([])),
        ]
    }

    fn any_call() -> impl Strategy<Value = Value> {
        let arguments = prop_oneof![Just("{}"), Just("{\"a\":[1]}"), Just("{"), Just("[]")];
        let function = (anything(), arguments)
            .prop_map(|(name, arguments)| json!({"name": name, "arguments": arguments}));
        prop_oneof![
            8 => (anything(), function).prop_map(|(id, function)| json!({"id": id, "function": function})),
            1 => anything(),
            1 => Just(json!({"function": null})),
            1 => Just(json!({"id": "a", "function": {"name": "f"}})),
            1 => Just(json!({"id": "a", "function": {"name": "f", "arguments": {"b": {}}}})),
        ]
    }

    fn any_message() -> impl Strategy<Value = Value> {
        let calls = proptest::collection::vec(any_call(), 0..4).prop_map(Value::from);
        prop_oneof![
            1 => anything().prop_map(|content| json!({"role": "system", "content": content})),
            2 => anything().prop_map(|content| json!({"role": "user", "content": content})),
            4 => (anything(), calls).prop_map(|(content, calls)| {
                json!({"role": "assistant", "content": content, "tool_calls": calls})
            }),
            1 => (anything(), anything()).prop_map(|(content, calls)| {
                json!({"role": "assistant", "content": content, "tool_calls": calls})
            }),
            6 => (anything(), anything()).prop_map(|(id, content)| {
                json!({"role": "tool", "tool_call_id": id, "content": content})
            }),
            1 => anything().prop_map(|role| json!({"role": role})),
        ]
    }

    /// A turn that every server takes: a prompt, steps with one to three calls, an answer.
    fn valid_turn() -> impl Strategy<Value = Vec<Vec<String>>> {
        let names = proptest::collection::vec("[a-z]{1,3}", 1..4);
        proptest::collection::vec(names, 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn e7_whatever_comes_in_a_valid_history_comes_out(
            list in proptest::collection::vec(any_message(), 0..12)
        ) {
            let mut mended = conversation(Value::from(list));
            let first = repair(&mut mended);
            prop_assert_eq!(violations(mended.messages()), Vec::<String>::new());
            prop_assert_eq!(first.is_empty(), first.to_string().is_empty());

            let once = mended.clone();
            prop_assert!(repair(&mut mended).is_empty(), "a second repair changes nothing");
            prop_assert_eq!(once, mended);
        }

        #[test]
        fn e7_a_valid_history_is_unchanged_to_the_byte(
            turns in proptest::collection::vec(valid_turn(), 0..4)
        ) {
            let mut list = vec![json!({"content": "s", "role": "system"})];
            for (turn, steps) in turns.iter().enumerate() {
                list.push(json!({"role": "user", "content": "u", "name": "n"}));
                for (step, names) in steps.iter().enumerate() {
                    let id = |index| format!("c{turn}-{step}-{index}");
                    let calls: Vec<_> = names.iter().enumerate().map(|(index, name)| json!({
                        "index": index,
                        "function": {"arguments": format!(" {{\"{name}\": 1.0}}"), "name": name},
                        "id": id(index),
                        "type": "function",
                    })).collect();
                    list.push(json!({
                        "reasoning": "r", "tool_calls": calls, "role": "assistant", "content": null
                    }));
                    list.extend((0..names.len()).map(|index| json!({
                        "content": "x", "role": "tool", "tool_call_id": id(index)
                    })));
                }
                list.push(json!({"role": "assistant", "content": "done", "_origin": {"model": "m"}}));
            }
            let mut history = conversation(Value::from(list));
            prop_assert_eq!(violations(history.messages()), Vec::<String>::new());
            let before = serde_json::to_string(history.messages()).unwrap();
            prop_assert!(repair(&mut history).is_empty());
            prop_assert_eq!(serde_json::to_string(history.messages()).unwrap(), before);
        }
    }
}
