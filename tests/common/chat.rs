//! The chat completions dialect of the scripted server: whole answers, and the pieces of streams.

use serde_json::{Value, json};

use super::reply::Reply;

impl Reply {
    /// A whole streamed answer of text: usage 10 + 5.
    pub(crate) fn answer(text: &str) -> Self {
        Self::stream().text(text).finish("stop").usage(10, 5).done()
    }

    /// A whole streamed answer with one call: usage 10 + 5.
    pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::calls([(id, name, arguments)])
    }

    /// A whole streamed answer with several calls: usage 10 + 5.
    pub(crate) fn calls<'a>(
        calls: impl IntoIterator<Item = (&'a str, &'a str, &'a Value)>,
    ) -> Self {
        calls
            .into_iter()
            .enumerate()
            .fold(Self::stream(), |reply, (index, (id, name, arguments))| {
                reply.tool_call(index, id, name, &arguments.to_string())
            })
            .finish("tool_calls")
            .usage(10, 5)
            .done()
    }

    /// A whole streamed answer that runs a shell command: usage 10 + 5.
    pub(crate) fn shell(command: &str) -> Self {
        Self::call("call_1", "shell_exec", &json!({ "command": command }))
    }

    /// A whole answer as one JSON object, for requests without streaming: usage 10 + 5.
    pub(crate) fn completion(message: &Value, finish_reason: &str) -> Self {
        Self::json(&json!({
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "test-model",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }))
    }

    /// A list of models as `GET …/models` gives it.
    pub(crate) fn models(entries: &Value) -> Self {
        Self::json(&json!({"object": "list", "data": entries}))
    }

    /// A piece of the answer.
    pub(crate) fn text(self, text: &str) -> Self {
        self.delta(&json!({ "content": text }))
    }

    /// A piece of the reasoning.
    pub(crate) fn reasoning(self, text: &str) -> Self {
        self.delta(&json!({ "reasoning_content": text }))
    }

    /// A tool call, or a first piece of one.
    pub(crate) fn tool_call(self, index: usize, id: &str, name: &str, arguments: &str) -> Self {
        self.delta(&json!({"tool_calls": [{
            "index": index,
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }]}))
    }

    /// A further piece of the arguments of a call.
    pub(crate) fn arguments(self, index: usize, piece: &str) -> Self {
        self.delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    }

    /// A chunk with this delta.
    pub(crate) fn delta(self, delta: &Value) -> Self {
        self.choices(&json!([{"index": 0, "delta": delta, "finish_reason": null}]))
    }

    /// The chunk that says why the answer ended.
    pub(crate) fn finish(self, reason: &str) -> Self {
        self.choices(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]))
    }

    /// A chunk with these choices.
    pub(crate) fn choices(self, choices: &Value) -> Self {
        self.data(&chunk(choices, None))
    }

    /// The chunk with the token figures.
    pub(crate) fn usage(self, prompt: u64, completion: u64) -> Self {
        self.usage_json(&json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }))
    }

    /// The chunk with token figures of any shape.
    pub(crate) fn usage_json(self, usage: &Value) -> Self {
        self.data(&chunk(&json!([]), Some(usage)))
    }

    /// The sentinel at the end.
    pub(crate) fn done(self) -> Self {
        self.event("[DONE]")
    }

    /// An event of any JSON.
    pub(crate) fn data(self, data: &Value) -> Self {
        self.event(&data.to_string())
    }
}

fn chunk(choices: &Value, usage: Option<&Value>) -> Value {
    let mut chunk = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model",
        "choices": choices,
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage.clone();
    }
    chunk
}
