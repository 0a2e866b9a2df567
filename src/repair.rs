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
            (self.results_moved, "result", "moved to its call"),
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
