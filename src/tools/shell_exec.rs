//! The tool `shell_exec`: a command, its output, its exit code (SPEC D3).

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Context, Tool, ToolOutput};
use crate::model::BoxFuture;
use crate::shell::{self, Limits};

const NAME: &str = "shell_exec";
const DESCRIPTION: &str = if cfg!(windows) {
    "Run a command with cmd /C in the working directory. Returns stdout and stderr as one text, \
     then the exit code."
} else {
    "Run a command with sh -c in the working directory. Returns stdout and stderr as one text, \
     then the exit code."
};
/// The longest time the model may ask for, in seconds.
const LONGEST: u64 = 3600;

/// Runs commands.
pub struct ShellExec {
    spec: Value,
    limits: Limits,
}

impl ShellExec {
    /// Commands get these limits; a call may ask for a time limit of its own.
    pub fn new(limits: Limits) -> Self {
        let spec = json!({"type": "function", "function": {
            "name": NAME,
            "description": DESCRIPTION,
            "parameters": {
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "timeout_s": {
                        "type": "integer",
                        "description": "time limit in seconds for a slow command, at most 3600",
                    },
                },
                "required": ["command"],
            },
        }});
        Self { spec, limits }
    }

    async fn run(&self, arguments: &Map<String, Value>, context: Context<'_>) -> ToolOutput {
        let command = arguments.get("command").and_then(Value::as_str);
        let mut limits = self.limits.clone();
        if let Some(seconds) = arguments.get("timeout_s").and_then(Value::as_i64) {
            limits.timeout = timeout(seconds);
        }
        let command = command.unwrap_or_default();
        match shell::run(command, &limits, context.cancel, context.on_output).await {
            Ok(outcome) => ToolOutput {
                text: outcome.text,
                failed: false,
                streamed: true,
            },
            Err(error) => ToolOutput::error(format!("the command was not run: {error}")),
        }
    }
}

/// The time limit for a call that asks for so many seconds.
fn timeout(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0).clamp(1, LONGEST))
}

impl Tool for ShellExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> &Value {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: Context<'a>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.run(arguments, context))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::sanitize::Redactor;
    use crate::tools::Registry;
    use tokio_util::sync::CancellationToken;

    fn registry(sanitize_args: bool) -> Registry {
        let limits = Limits {
            timeout: Duration::from_secs(1),
            output_chars: 50_000,
            spill_dir: None,
            redactor: Redactor::default(),
        };
        let tool = Box::new(ShellExec::new(limits));
        Registry::new(vec![tool], sanitize_args, Redactor::default())
    }

    async fn call(registry: &Registry, arguments: Value) -> (ToolOutput, String) {
        let mut shown = String::new();
        let context = Context {
            cancel: &CancellationToken::new(),
            on_output: &mut |text| shown.push_str(text),
        };
        let arguments = arguments.to_string();
        let output = registry.call(NAME, &arguments, context).await;
        (output, shown)
    }

    #[tokio::test]
    async fn d3_a_command_that_fails_is_no_failure_of_the_tool() {
        let (output, shown) = call(&registry(true), json!({"command": "echo a; exit 2"})).await;
        assert_eq!(output.text, "a\n\n\nexit: 2");
        assert_eq!(shown, output.text);
        assert!(output.streamed && !output.failed);
    }

    #[tokio::test]
    async fn d3_a_call_may_ask_for_more_time() {
        let registry = registry(true);
        let slow = "sleep 1.5; echo ok";
        let (output, _) = call(&registry, json!({"command": slow, "timeout_s": 1})).await;
        assert!(output.text.ends_with("exit: 124"), "{}", output.text);
        let (output, _) = call(&registry, json!({"command": slow, "timeout_s": "5"})).await;
        assert_eq!(output.text, "ok\n\n\nexit: 0");
    }

    #[test]
    fn d3_the_time_is_clamped() {
        for (asked, seconds) in [(i64::MIN, 1), (-1, 1), (0, 1), (1, 1), (5, 5), (3600, 3600)] {
            assert_eq!(timeout(asked).as_secs(), seconds, "{asked}");
        }
        assert_eq!(timeout(3601).as_secs(), 3600);
        assert_eq!(timeout(i64::MAX).as_secs(), 3600);
    }

    #[tokio::test]
    async fn c12_a_nul_goes_with_the_other_control_characters_or_is_an_error() {
        let command = json!({"command": "echo a\0b"});
        let (output, _) = call(&registry(true), command.clone()).await;
        assert_eq!(output.text, "ab\n\n\nexit: 0");
        let (output, shown) = call(&registry(false), command).await;
        assert!(
            output.failed && output.text.contains("NUL"),
            "{}",
            output.text
        );
        assert_eq!(shown, "");
    }
}
