//! The loop with a scripted model: what the screen is told and what the conversation becomes.

use bantam::agent::{Agent, End, INTERRUPTED, Turn};
use bantam::error::{ApiError, ApiErrorKind, Error};
use bantam::message::{Conversation, Message};
use bantam::model::{BoxFuture, Finish};
use bantam::sanitize::Redactor;
use bantam::tools::{Context, Registry, Tool, ToolOutput};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::common::model::{Answer, Recorded, RecordingSink, ScriptedModel};

/// A tool that says what it was given, piece by piece.
struct Echo {
    spec: Value,
}

impl Echo {
    fn new() -> Self {
        let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let function = json!({"name": "echo", "description": "", "parameters": parameters});
        Self {
            spec: json!({"type": "function", "function": function}),
        }
    }
}

impl Tool for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn spec(&self) -> &Value {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: Context<'a>,
    ) -> BoxFuture<'a, ToolOutput> {
        let text = arguments["text"].as_str().unwrap().to_owned();
        (context.on_output)(&text);
        let text = if context.cancel.is_cancelled() {
            format!("{text}\n{INTERRUPTED}")
        } else {
            text
        };
        Box::pin(std::future::ready(ToolOutput {
            text,
            failed: false,
            streamed: true,
        }))
    }
}

/// What is left when a turn is over.
struct Outcome {
    turn: Turn,
    events: Vec<Recorded>,
    conversation: Conversation,
    model: ScriptedModel,
    steps: usize,
}

impl Outcome {
    /// The conversation behind the system message, a role and a text each.
    fn told(&self) -> Vec<(String, String)> {
        let messages = self.conversation.messages().iter().skip(1);
        messages
            .map(|message| (message.role().to_owned(), message.text()))
            .collect()
    }

    fn notices(&self) -> usize {
        self.events
            .iter()
            .filter(|event| matches!(event, Recorded::Warning(_)))
            .count()
    }
}

fn told(messages: &[(&str, &str)]) -> Vec<(String, String)> {
    messages
        .iter()
        .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
        .collect()
}

fn run_with(
    history: &[Message],
    script: Vec<Answer>,
    mut sink: RecordingSink,
    cancel: &CancellationToken,
) -> Outcome {
    let mut conversation = Conversation::new("system");
    for message in history {
        conversation.push(message.clone());
    }
    let tools = Registry::new(vec![Box::new(Echo::new())], true, Redactor::default());
    let mut agent = Agent {
        model: ScriptedModel::new(script),
        tools,
        max_iterations: 3,
    };
    let mut steps = 0;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let turn = runtime.block_on(async {
        let mut on_step = |_: &Conversation| steps += 1;
        agent
            .run_turn(
                &mut conversation,
                Message::user("go"),
                &mut sink,
                cancel,
                &mut on_step,
            )
            .await
    });
    assert_eq!(agent.model.left(), 0, "the whole script was asked for");
    Outcome {
        turn,
        events: sink.events,
        conversation,
        model: agent.model,
        steps,
    }
}

fn run(script: Vec<Answer>) -> Outcome {
    run_with(&[], script, RecordingSink::new(), &CancellationToken::new())
}

/// Runs it and interrupts it at the first event of which `when` is true.
fn interrupt(script: Vec<Answer>, when: fn(&Recorded) -> bool) -> Outcome {
    let cancel = CancellationToken::new();
    run_with(
        &[],
        script,
        RecordingSink::interrupting(&cancel, when),
        &cancel,
    )
}

fn echo(id: &'static str) -> (&'static str, &'static str, &'static str) {
    (id, "echo", r#"{"text":"said"}"#)
}

fn api_error(message: &str) -> Error {
    Error::Api(ApiError {
        status: Some(400),
        code: None,
        message: message.into(),
        kind: ApiErrorKind::BadRequest,
        retry_after: None,
        hint: None,
    })
}

#[test]
fn c7_a_call_is_traced_run_traced_again_and_answered() {
    let outcome = run(vec![Answer::calls([echo("1")]), Answer::text("done")]);
    assert_eq!(
        outcome.events,
        [
            Recorded::Requesting,
            Recorded::ReplyEnd,
            Recorded::Call {
                name: "echo".into(),
                arguments: r#"{"text":"said"}"#.into()
            },
            Recorded::Output {
                name: "echo".into(),
                chunk: "said".into()
            },
            Recorded::Result {
                name: "echo".into(),
                text: "said".into(),
                failed: false,
                streamed: true
            },
            Recorded::Requesting,
            Recorded::Replying,
            Recorded::Text("done".into()),
            Recorded::ReplyEnd,
        ]
    );
    assert_eq!(
        outcome.told(),
        told(&[
            ("user", "go"),
            ("assistant", ""),
            ("tool", "said"),
            ("assistant", "done")
        ])
    );
    assert!(matches!(outcome.turn.end, End::Answered) && !outcome.turn.taken_back);
    assert_eq!(
        outcome.steps, 4,
        "E2: the prompt, the call, its result and the answer can be saved"
    );
    let usage = outcome.turn.usage.unwrap();
    assert_eq!(
        (usage.total.prompt, usage.total.completion, usage.context),
        (20, 10, 10),
        "c14"
    );
}

#[test]
fn c2_the_earlier_messages_and_the_tools_stay_the_same() {
    let outcome = run(vec![
        Answer::calls([echo("1"), echo("2")]),
        Answer::text("done"),
    ]);
    let [first, second] = outcome.model.requests.as_slice() else {
        panic!("two requests")
    };
    assert_eq!(second[..first.len()], first[..]);
    assert_eq!(outcome.model.tools[0], outcome.model.tools[1]);
}

#[test]
fn c8_what_a_call_does_wrong_is_its_result_and_the_loop_goes_on() {
    let calls = [
        ("1", "nonsense", "{}"),
        ("2", "echo", "[1"),
        ("3", "echo", "{}"),
        ("4", "echo", r#"{"text":1}"#),
    ];
    let outcome = run(vec![Answer::calls(calls), Answer::text("sorry")]);
    let failed = |event: &&Recorded| matches!(event, Recorded::Result { failed: true, .. });
    assert_eq!(outcome.events.iter().filter(failed).count(), 4);
    assert_eq!(outcome.conversation.messages().len(), 8);
}

#[test]
fn c9_the_loop_ends_after_its_limit_with_the_calls_run_and_the_turn_closed() {
    let outcome = run(vec![
        Answer::calls([echo("1")]),
        Answer::calls([echo("2")]),
        Answer::calls([echo("3")]),
    ]);
    assert!(matches!(outcome.turn.end, End::Stopped));
    assert_eq!(outcome.notices(), 1);
    let messages = outcome.told();
    assert_eq!(messages.len(), 8);
    assert_eq!(
        (messages[6].0.as_str(), messages[7].0.as_str()),
        ("tool", "assistant")
    );
}

#[test]
fn c9_the_text_of_an_answer_cut_by_length_stays_and_its_calls_are_not_run() {
    let mut cut = Answer::calls([echo("1")]).finish(Finish::Length);
    if let Answer::Reply(_, reply) = &mut cut {
        reply
            .message
            .as_map_mut()
            .insert("content".into(), json!("half"));
    }
    let outcome = run(vec![cut]);
    assert_eq!(
        outcome.told(),
        told(&[("user", "go"), ("assistant", "half")])
    );
    assert_eq!(outcome.notices(), 1);
    assert!(matches!(outcome.turn.end, End::Answered));

    let outcome = run(vec![Answer::empty().finish(Finish::Filtered)]);
    assert!(matches!(outcome.turn.end, End::Stopped) && outcome.turn.taken_back);
}

#[test]
fn c10_an_empty_answer_is_asked_for_again_and_never_kept() {
    let outcome = run(vec![Answer::empty(), Answer::empty(), Answer::text("here")]);
    assert_eq!(
        outcome.told(),
        told(&[("user", "go"), ("assistant", "here")])
    );

    let outcome = run(vec![Answer::empty(), Answer::empty(), Answer::empty()]);
    assert_eq!(outcome.told(), told(&[]));
    assert!(matches!(outcome.turn.end, End::Stopped) && outcome.turn.taken_back);
    assert_eq!(outcome.notices(), 1);
}

#[test]
fn c10_refused_empty_messages_are_removed_once_a_turn() {
    let refused = || {
        Answer::error(api_error(
            "Invalid assistant message: content or tool_calls must be set",
        ))
    };
    let run = |history: &[Message], script| {
        run_with(
            history,
            script,
            RecordingSink::new(),
            &CancellationToken::new(),
        )
    };

    let history = [
        Message::user("a"),
        Message::assistant(""),
        Message::user("b"),
        Message::assistant("c"),
    ];
    let outcome = run(&history, vec![refused(), Answer::text("fine")]);
    let kept = [
        ("user", "a"),
        ("user", "b"),
        ("assistant", "c"),
        ("user", "go"),
        ("assistant", "fine"),
    ];
    assert_eq!(outcome.told(), told(&kept));

    let history = [Message::user("a"), Message::assistant("b")];
    let outcome = run(&history, vec![refused(), Answer::text("fine")]);
    assert_eq!(
        outcome.told(),
        told(&[("user", "a"), ("user", "go"), ("assistant", "fine")])
    );

    let outcome = run(&history, vec![refused(), refused()]);
    assert!(matches!(outcome.turn.end, End::Failed(_)) && outcome.turn.taken_back);
    assert_eq!(outcome.told(), told(&[("user", "a")]));
}

#[test]
fn c11_an_interrupt_before_anything_was_completed_takes_the_prompt_back() {
    let outcome = interrupt(vec![Answer::hang("half an ans")], |event| {
        matches!(event, Recorded::Text(_))
    });
    assert!(matches!(outcome.turn.end, End::Interrupted) && outcome.turn.taken_back);
    assert_eq!(outcome.told(), told(&[]));
    assert_eq!(outcome.events.last(), Some(&Recorded::Interrupted));
}

#[test]
fn c11_calls_that_did_not_run_to_their_end_get_a_result_and_the_turn_is_closed() {
    let script = vec![Answer::calls([echo("1"), echo("2")])];
    let outcome = interrupt(script, |event| matches!(event, Recorded::Output { .. }));
    assert!(matches!(outcome.turn.end, End::Interrupted) && !outcome.turn.taken_back);
    let messages = outcome.told();
    assert_eq!(messages[2], ("tool".into(), format!("said\n{INTERRUPTED}")));
    assert_eq!(messages[3], ("tool".into(), INTERRUPTED.into()));
    assert_eq!(messages[4].0, "assistant");
    let ran = |event: &&Recorded| matches!(event, Recorded::Call { .. });
    assert_eq!(
        outcome.events.iter().filter(ran).count(),
        1,
        "the second call was not begun"
    );
}

#[test]
fn c11_completed_steps_stay_when_a_later_request_is_interrupted_or_fails() {
    let script = vec![Answer::calls([echo("1")]), Answer::hang("half")];
    let outcome = interrupt(script, |event| matches!(event, Recorded::Text(_)));
    let roles: Vec<String> = outcome.told().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);

    let outcome = run(vec![
        Answer::calls([echo("1")]),
        Answer::error(api_error("no")),
    ]);
    let roles: Vec<String> = outcome.told().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert!(matches!(outcome.turn.end, End::Failed(_)) && !outcome.turn.taken_back);
}

#[test]
fn a6_a_turn_that_nobody_can_see_any_more_is_interrupted() {
    let mut sink = RecordingSink::new();
    sink.closed = true;
    let outcome = run_with(
        &[],
        vec![Answer::calls([echo("1")])],
        sink,
        &CancellationToken::new(),
    );
    assert!(matches!(outcome.turn.end, End::Interrupted));
}
