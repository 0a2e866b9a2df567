//! What the model can call: the tools themselves, and the registry that stands between them and the
//! model. What the model says is checked before a tool sees it, what a tool says is made harmless
//! before the model does.
//!
//! A fault that the model can mend is an ordinary result. Nothing here knows the conversation.

mod arguments;
mod file;
pub mod shell_exec;
pub mod write_file;

use std::borrow::Cow;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::message::Message;
use crate::model::BoxFuture;
use crate::sanitize::{self, Redactor};
use arguments::Arguments;

/// What a call has besides its arguments.
pub struct Context<'a> {
    /// Cancelled when the person interrupts; a tool then returns soon with what it has.
    pub cancel: &'a CancellationToken,
    /// Takes what the person should see while the tool runs.
    pub on_output: &'a mut dyn FnMut(&str),
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// What goes to the model.
    pub text: String,
    /// Whether the tool could not do its work (a command with a non-zero exit code is done).
    pub failed: bool,
    /// Whether the person has seen it all while the tool ran.
    pub streamed: bool,
}

impl ToolOutput {
    /// The result of a tool that has done its work.
    pub fn done(text: String) -> Self {
        Self {
            text,
            failed: false,
            streamed: false,
        }
    }

    /// An error, for the model to mend.
    pub fn error(message: impl std::fmt::Display) -> Self {
        Self {
            text: format!("error: {message}"),
            failed: true,
            streamed: false,
        }
    }
}

/// Something the model can call.
pub trait Tool {
    /// The name it is called by.
    fn name(&self) -> &str;

    /// Its definition in the form of the chat completions API; always the same.
    fn spec(&self) -> &Value;

    /// The parameters whose text matters to the letter: the result says when sanitising took
    /// characters from one.
    fn literal_parameters(&self) -> &[&str] {
        &[]
    }

    /// Does its work. The arguments have passed the check against [`Tool::spec`]: required ones
    /// are there, integers are integers, and an optional one that was null is absent.
    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: Context<'a>,
    ) -> BoxFuture<'a, ToolOutput>;
}

/// The tools of a run, always in the same order: the request must not change.
pub struct Registry {
    tools: Vec<Box<dyn Tool>>,
    specs: Vec<Value>,
    sanitize_args: bool,
    redactor: Redactor,
}

impl Registry {
    /// `sanitize_args` false hands arguments on as they came; results are always sanitised.
    pub fn new(tools: Vec<Box<dyn Tool>>, sanitize_args: bool, redactor: Redactor) -> Self {
        Self {
            specs: tools.iter().map(|tool| tool.spec().clone()).collect(),
            tools,
            sanitize_args,
            redactor,
        }
    }

    /// The definitions for the request.
    pub fn specs(&self) -> &[Value] {
        &self.specs
    }

    /// Masks the known secrets in an answer that is to be kept: a server or a model may give back
    /// what it was given (SPEC B9).
    pub fn mask(&self, message: &mut Message) {
        let values = message.as_map_mut().values_mut();
        values.for_each(|value| self.mask_value(value));
    }

    fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.redactor.mask(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask_value(field)),
            _ => {}
        }
    }

    /// Runs the tool `name` with `arguments`, the JSON text as the model wrote it. Whatever is
    /// wrong with either is told in the result (SPEC C8).
    pub async fn call(&self, name: &str, arguments: &str, context: Context<'_>) -> ToolOutput {
        let mut output = self.call_raw(name, arguments, context).await;
        let text = sanitize::result(&output.text);
        output.text = self.redactor.mask(&text).into_owned();
        output
    }

    async fn call_raw(&self, name: &str, arguments: &str, context: Context<'_>) -> ToolOutput {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == name) else {
            return ToolOutput::error(self.unknown(name));
        };
        let arguments = match Arguments::read(arguments, tool.spec(), self.sanitize_args) {
            Ok(arguments) => arguments,
            Err(message) => return ToolOutput::error(message),
        };
        let context = Context {
            cancel: context.cancel,
            on_output: &mut |text| (context.on_output)(text),
        };
        let mut output = tool.call(&arguments.values, context).await;
        for (parameter, count) in arguments.removed {
            if !output.failed && tool.literal_parameters().contains(&parameter.as_str()) {
                output.text += &removal(&parameter, count);
            }
        }
        output
    }

    fn unknown(&self, name: &str) -> String {
        let name = arguments::shortened(name);
        let known: Vec<String> = self
            .tools
            .iter()
            .map(|tool| format!("`{}`", tool.name()))
            .collect();
        format!(
            "there is no tool `{name}`; the tools are {}",
            known.join(", ")
        )
    }
}

fn removal(parameter: &str, count: usize) -> String {
    let characters = if count == 1 {
        "character"
    } else {
        "characters"
    };
    format!(
        "\n{count} {characters} of {parameter} left out (control characters, special spaces and \
         invisible characters do not pass)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Says what it was called with.
    struct Echo(Value);

    impl Echo {
        fn new() -> Self {
            Self(
                json!({"type": "function", "function": {"name": "echo", "parameters": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
                    "required": ["text"],
                }}}),
            )
        }
    }

    impl Tool for Echo {
        fn name(&self) -> &'static str {
            "echo"
        }

        fn spec(&self) -> &Value {
            &self.0
        }

        fn literal_parameters(&self) -> &[&str] {
            &["text"]
        }

        fn call<'a>(
            &'a self,
            arguments: &'a Map<String, Value>,
            _context: Context<'a>,
        ) -> BoxFuture<'a, ToolOutput> {
            let text = Value::Object(arguments.clone()).to_string();
            Box::pin(async move { ToolOutput::done(text) })
        }
    }

    async fn call(sanitize_args: bool, name: &str, arguments: &str) -> ToolOutput {
        let redactor = Redactor::new(Some("sk-secret-0123456789"), []);
        let registry = Registry::new(vec![Box::new(Echo::new())], sanitize_args, redactor);
        let context = Context {
            cancel: &CancellationToken::new(),
            on_output: &mut |_| {},
        };
        registry.call(name, arguments, context).await
    }

    #[tokio::test]
    async fn c8_an_unknown_tool_is_told_the_known_ones() {
        let output = call(true, "bash\x1b[2J", "{}").await;
        assert!(output.failed);
        assert_eq!(
            output.text,
            "error: there is no tool `bash`; the tools are `echo`"
        );
        let output = call(true, &"x".repeat(100_000), "{}").await;
        assert!(output.text.len() < 200, "{}", output.text);
    }

    #[tokio::test]
    async fn c8_a_fault_in_the_arguments_is_told_and_nothing_runs() {
        let output = call(true, "echo", "").await;
        assert!(output.failed);
        assert_eq!(
            output.text,
            "error: the parameter `text` (a string) is missing"
        );
    }

    #[tokio::test]
    async fn c8_the_tool_gets_what_was_meant() {
        let output = call(true, "echo", r#"{"text":"x","times":"10"}"#).await;
        assert_eq!(output.text, r#"{"text":"x","times":10}"#);
        assert!(!output.failed && !output.streamed);
    }

    #[tokio::test]
    async fn c12_a_result_says_how_many_characters_a_literal_parameter_lost() {
        let output = call(true, "echo", r#"{"text":"a\r\nb\u00a0"}"#).await;
        assert!(
            output
                .text
                .starts_with("{\"text\":\"a\\nb\"}\n2 characters of text left out")
        );
        let output = call(true, "echo", r#"{"text":"\u200b"}"#).await;
        assert!(output.text.contains("\n1 character of text left out"));
        let output = call(false, "echo", r#"{"text":"a\r\nb"}"#).await;
        assert_eq!(output.text, r#"{"text":"a\r\nb"}"#);
    }

    #[tokio::test]
    async fn c12_b9_a_result_is_sanitised_and_masked_whatever_the_tool_says() {
        let output = call(
            false,
            "echo",
            "{\"text\":\"\u{202e}sk-sec\u{200b}ret-0123456789\"}",
        )
        .await;
        assert_eq!(output.text, r#"{"text":"****6789"}"#);
    }
}
