//! The client against a server that plays a script.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::message::Message;

mod server;
mod tls;

use server::{Server, Step, answer, chunk, end, event, says, stream_head, text};

/// Nine retries without a delay.
const NO_DELAY: &[Duration] = &[Duration::ZERO; 9];

/// Events as short texts, equal neighbours of text joined.
#[derive(Default)]
struct Log {
    events: Vec<String>,
    /// Cancels when this much text has been shown.
    cancel_at: Option<(usize, CancellationToken)>,
    cancel_on_retry: Option<CancellationToken>,
    closed: bool,
    flushes: usize,
}

impl Sink for Log {
    fn event(&mut self, event: Event<'_>) {
        self.events.push(match event {
            Event::Requesting => "requesting".into(),
            Event::Replying => "replying".into(),
            Event::Retrying {
                attempt,
                of,
                delay,
                reason,
            } => {
                if let Some(cancel) = &self.cancel_on_retry {
                    cancel.cancel();
                }
                format!("retry {attempt}/{of} in {} ms: {reason}", delay.as_millis())
            }
            Event::Text(text) => {
                if let Some((at, cancel)) = &self.cancel_at
                    && text.len() >= *at
                {
                    cancel.cancel();
                }
                format!("text {text}")
            }
            Event::Reasoning(text) => format!("reasoning {text}"),
            Event::Notice(text) => format!("notice {text}"),
            Event::ReplyEnd => "end".into(),
            other => format!("{other:?}"),
        });
    }

    fn flush(&mut self) {
        self.flushes += 1;
    }

    fn closed(&self) -> bool {
        self.closed
    }
}

impl Log {
    fn has(&self, part: &str) -> bool {
        self.events.iter().any(|event| event.contains(part))
    }
}

fn settings(endpoint: String) -> Settings {
    Settings {
        endpoint,
        model: "m".into(),
        api_key: Some("sk-secret".into()),
        parameters: json!({"temperature": 0.7}).as_object().unwrap().clone(),
        stream: true,
        timeout: Duration::from_secs(20),
        ..Settings::default()
    }
}

fn client(server: &Server) -> Client {
    Client::new(settings(server.url("/v1/")), Network::default(), NO_DELAY)
}

/// Runs a test on one thread, and fails it where it hangs.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            timeout(Duration::from_secs(30), test)
                .await
                .expect("it hangs")
        })
}

async fn ask(client: &mut Client, log: &mut Log) -> Result<Reply> {
    ask_with(
        client,
        &[Message::user("hi")],
        log,
        &CancellationToken::new(),
    )
    .await
}

async fn ask_with(
    client: &mut Client,
    messages: &[Message],
    log: &mut Log,
    cancel: &CancellationToken,
) -> Result<Reply> {
    let tools = [json!({"type":"function","function":{"name":"f"}})];
    let request = Request {
        messages,
        tools: &tools,
    };
    client.complete(request, log, cancel).await
}

/// Asks once and gives the answer's text, the log, and the server's requests.
fn ask_once(script: Vec<Vec<Step>>) -> (Result<String>, Log, Vec<server::Recorded>) {
    let server = Server::start(script);
    let mut log = Log::default();
    let reply = run(ask(&mut client(&server), &mut log));
    (
        reply.map(|reply| reply.message.text()),
        log,
        server.requests(),
    )
}

#[test]
fn c1_the_request_is_what_it_should_be() {
    let server = Server::start(vec![says("hello")]);
    let mut settings = settings(server.url("/v1//"));
    settings.headers = vec![("X-Title".into(), "bantam".into())];
    let mut client = Client::new(settings, Network::default(), NO_DELAY);
    run(ask(&mut client, &mut Log::default())).unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line(), "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-secret"));
    assert_eq!(
        request.header("user-agent"),
        Some("Mozilla/5.0 (compatible; Bantam/1.0)")
    );
    assert_eq!(request.header("x-title"), Some("bantam"));
    assert_eq!(
        request.body,
        concat!(
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"#,
            r#""tools":[{"type":"function","function":{"name":"f"}}],"#,
            r#""stream":true,"stream_options":{"include_usage":true},"temperature":0.7}"#
        )
    );
}

#[test]
fn b3_an_empty_key_is_no_key() {
    let server = Server::start(vec![says("hello"), says("hello")]);
    for key in [None, Some(String::new())] {
        let mut settings = settings(server.url(""));
        settings.api_key = key;
        run(ask(
            &mut Client::new(settings, Network::default(), NO_DELAY),
            &mut Log::default(),
        ))
        .unwrap();
    }
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn c5_events_come_in_order() {
    let (reply, log, _) = ask_once(vec![says("hello")]);
    assert_eq!(reply.unwrap(), "hello");
    assert_eq!(log.events, ["requesting", "replying", "text hello", "end"]);
    assert!(log.flushes > 1);
}

#[test]
fn c3_what_may_pass_is_tried_again_with_the_same_bytes() {
    let cut = vec![stream_head(), text("hel"), Step::Close];
    let unfinished = vec![
        stream_head(),
        text("hel"),
        Step::Send(b"0\r\n\r\n".to_vec()),
    ];
    let failed = vec![
        stream_head(),
        event(r#"{"error":{"code":502,"message":"upstream"}}"#),
        Step::Close,
    ];
    let (reply, log, requests) = ask_once(vec![
        vec![answer(503, &[], r#"{"error":{"message":"busy"}}"#)],
        vec![answer(
            429,
            &[("retry-after-ms", "30")],
            r#"{"error":"slow down"}"#,
        )],
        // The first one closes the kept connection, which is no failure yet.
        vec![Step::Close],
        vec![Step::Close],
        cut,
        unfinished,
        failed,
        vec![answer(
            400,
            &[],
            r#"{"error":{"code":"tool_use_failed","message":"bad call"}}"#,
        )],
        says("hello"),
    ]);
    assert_eq!(reply.unwrap(), "hello");
    let retries: Vec<&String> = log
        .events
        .iter()
        .filter(|event| event.starts_with("retry"))
        .collect();
    let starts = [
        "retry 1/9 in 0 ms: HTTP 503: busy",
        "retry 2/9 in 30 ms: HTTP 429: slow down",
        "retry 3/9 in 0 ms: 127.0.0.1:",
        "retry 4/9 in 0 ms: the answer broke off",
        "retry 5/9 in 0 ms: the answer ended before it was finished",
        "retry 6/9 in 0 ms: the server reports 502: upstream",
        "retry 7/9 in 0 ms: HTTP 400: bad call",
    ];
    assert_eq!(retries.len(), starts.len(), "{retries:?}");
    for (retry, start) in retries.iter().zip(starts) {
        assert!(retry.starts_with(start), "{retry}");
    }
    assert!(
        requests
            .iter()
            .all(|request| request.body == requests[0].body)
    );
}

#[test]
fn c3_after_nine_retries_the_run_ends_with_the_servers_message() {
    let (reply, log, requests) =
        ask_once(vec![vec![answer(500, &[], r#"{"error":"broken"}"#)]; 12]);
    assert_eq!(
        reply.unwrap_err().to_string(),
        "HTTP 500: broken (after 9 retries)"
    );
    assert_eq!(requests.len(), 10);
    assert_eq!(
        log.events
            .iter()
            .filter(|event| event.starts_with("retry"))
            .count(),
        9
    );
}

#[test]
fn c3_what_is_final_is_asked_once() {
    for (status, body, hint) in [
        (401, r#"{"error":{"message":"bad key"}}"#, Some("api_key")),
        (404, "404 page not found", Some("model")),
        (400, r#"{"error":{"message":"no"}}"#, None),
        (
            429,
            r#"{"error":{"code":"insufficient_quota","message":"no money"}}"#,
            None,
        ),
        (402, "", None),
        (
            500,
            r#"{"error":{"message":"Jinja: roles must alternate"}}"#,
            None,
        ),
        (
            404,
            r#"{"error":{"message":"No endpoints found that support tool use."}}"#,
            Some("tools"),
        ),
    ] {
        let (reply, log, requests) = ask_once(vec![vec![answer(status, &[], body)]; 2]);
        let error = reply.unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("HTTP {status}")),
            "{error}"
        );
        assert_eq!(error.hint().is_some(), hint.is_some(), "{error:?}");
        assert!(
            hint.is_none_or(|part| error.hint().unwrap().contains(part)),
            "{error:?}"
        );
        assert_eq!((requests.len(), log.has("retry")), (1, false), "{status}");
    }
}

#[test]
fn a6_hints_tell_where_the_key_goes_and_about_v1() {
    let server = Server::start(vec![vec![answer(401, &[], "")], vec![answer(404, &[], "")]]);
    let mut settings = settings(server.url("/api"));
    settings.api_key = None;
    let mut client = Client::new(settings, Network::default(), NO_DELAY);
    let error = run(ask(&mut client, &mut Log::default())).unwrap_err();
    assert!(error.hint().unwrap().contains("OPENAI_API_KEY"));
    let error = run(ask(&mut client, &mut Log::default())).unwrap_err();
    assert!(error.hint().unwrap().contains("/v1"));
}

#[test]
fn a6_refused_on_loopback_asks_whether_the_server_is_running() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let settings = settings(format!("http://127.0.0.1:{port}/v1"));
    let mut log = Log::default();
    let error = run(ask(
        &mut Client::new(settings, Network::default(), NO_DELAY),
        &mut log,
    ))
    .unwrap_err();
    assert!(error.hint().unwrap().contains("running"), "{error:?}");
    assert_eq!(
        log.events
            .iter()
            .filter(|event| event.starts_with("retry"))
            .count(),
        9
    );
    assert!(log.has("refused"), "{:?}", log.events);
}

#[test]
fn c3_a_connection_is_used_again_and_a_dead_one_replaced_without_a_word() {
    let server = Server::start(vec![
        says("one"),
        says("two"),
        vec![Step::Close],
        says("three"),
        vec![Step::Close],
        vec![Step::Close],
        says("four"),
    ]);
    let mut client = client(&server);
    let mut log = Log::default();
    run(async {
        for _ in 0..3 {
            ask(&mut client, &mut log).await.unwrap();
        }
        assert!(!log.has("retry"), "{:?}", log.events);
        // The kept one dies unseen, and so does the new one: that is a failure like any other.
        ask(&mut client, &mut log).await.unwrap();
    });
    let connections: Vec<usize> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0, 1, 1, 2, 3]);
    assert_eq!(
        log.events
            .iter()
            .filter(|event| event.starts_with("retry"))
            .count(),
        1,
        "{:?}",
        log.events
    );
}

#[test]
fn c3_a_new_connection_that_dies_is_a_failure() {
    let close = ("connection", "close");
    let whole = r#"{"choices":[{"message":{"content":"one"},"finish_reason":"stop"}]}"#;
    let server = Server::start(vec![
        vec![answer(200, &[close], whole), Step::Close],
        vec![Step::Close],
        says("two"),
    ]);
    let mut client = client(&server);
    let mut log = Log::default();
    run(async {
        ask(&mut client, &mut log).await.unwrap();
        ask(&mut client, &mut log).await.unwrap();
    });
    assert!(log.has("retry 1/9"), "{:?}", log.events);
}

#[test]
fn c3_a_refused_parameter_goes_at_once_and_for_good() {
    let server = Server::start(vec![
        vec![answer(
            400,
            &[],
            r#"{"error":{"message":"Unrecognized request argument: stream_options"}}"#,
        )],
        vec![answer(
            400,
            &[],
            r#"{"error":{"message":"Unsupported parameter: 'temperature'"}}"#,
        )],
        says("one"),
        says("two"),
        says("three"),
    ]);
    let mut client = client(&server);
    let mut log = Log::default();
    run(async {
        ask(&mut client, &mut log).await.unwrap();
        ask(&mut client, &mut log).await.unwrap();
        let mut other = settings(server.url("/v1/"));
        other.model = "other".into();
        client.configure(other);
        ask(&mut client, &mut log).await.unwrap();
    });
    let bodies = server.bodies();
    let has = |at: usize, key: &str| bodies[at].contains(key);
    assert_eq!(
        (has(1, "stream_options"), has(1, "temperature")),
        (false, true)
    );
    assert_eq!(
        (has(2, "stream_options"), has(2, "temperature")),
        (false, false)
    );
    assert_eq!(bodies[3], bodies[2], "remembered");
    assert!(has(4, "stream_options"), "another model is another matter");
    assert!(log.has("notice `stream_options`") && log.has("notice `temperature`"));
    assert!(!log.has("retry"));
}

#[test]
fn c3_the_ladder_has_four_steps() {
    let refuse = |key: &str| {
        vec![answer(
            400,
            &[],
            &json!({"error": format!("unsupported: {key}")}).to_string(),
        )]
    };
    let server = Server::start(vec![
        refuse("stream_options"),
        refuse("a_1"),
        refuse("a_2"),
        refuse("a_3"),
        refuse("a_4"),
        says("no"),
    ]);
    let mut settings = settings(server.url(""));
    settings.parameters = json!({"a_1":1,"a_2":2,"a_3":3,"a_4":4})
        .as_object()
        .unwrap()
        .clone();
    let error = run(ask(
        &mut Client::new(settings, Network::default(), NO_DELAY),
        &mut Log::default(),
    ))
    .unwrap_err();
    assert_eq!(error.to_string(), "HTTP 400: unsupported: a_4");
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn c11_a_cancelled_request_ends_and_lets_go_of_the_connection() {
    let scripts: [Vec<Step>; 3] = [
        vec![Step::Hold],
        vec![stream_head(), text("hello"), Step::Hold],
        vec![
            Step::Send(b"HTTP/1.1 503 X\r\ncontent-length: 9\r\n\r\nhalf".to_vec()),
            Step::Hold,
        ],
    ];
    for script in scripts {
        let server = Server::start(vec![script.clone()]);
        let cancel = CancellationToken::new();
        let mut log = Log::default();
        let mut client = client(&server);
        let error = run(async {
            let canceller = async {
                while server.requests().is_empty() {
                    sleep(Duration::from_millis(1)).await;
                }
                cancel.cancel();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                reply = ask_with(&mut client, &[], &mut log, &cancel) => reply.unwrap_err(),
                () = canceller => unreachable!(),
            }
        });
        assert!(matches!(error, Error::Cancelled), "{script:?}");
        drop(client);
        server.wait_until_gone();
    }
}

#[test]
fn c11_a_cancelled_stream_and_a_cancelled_back_off_end() {
    let server = Server::start(vec![
        vec![stream_head(), text("hello"), Step::Hold],
        vec![answer(429, &[("retry-after", "100")], "")],
    ]);
    let mut client = client(&server);
    let cancel = CancellationToken::new();
    let mut log = Log {
        cancel_at: Some((5, cancel.clone())),
        ..Log::default()
    };
    let error = run(ask_with(&mut client, &[], &mut log, &cancel)).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    server.wait_until_gone();
    let cancel = CancellationToken::new();
    let mut log = Log {
        cancel_on_retry: Some(cancel.clone()),
        ..Log::default()
    };
    let error = run(ask_with(&mut client, &[], &mut log, &cancel)).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    assert!(log.has("in 100000 ms"));
}

#[test]
fn a6_an_answer_that_nobody_can_see_ends() {
    let server = Server::start(vec![vec![stream_head(), text("hello"), Step::Hold]]);
    let mut log = Log {
        closed: true,
        ..Log::default()
    };
    let error = run(ask(&mut client(&server), &mut log)).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    server.wait_until_gone();
}

fn hasty(server: &Server, millis: u64) -> Client {
    let settings = Settings {
        timeout: Duration::from_millis(millis),
        ..settings(server.url(""))
    };
    Client::new(settings, Network::default(), &[])
}

#[test]
fn c4_nothing_for_too_long_is_a_failure() {
    let comment = b"b\r\n: working\n\n\r\n".to_vec();
    for script in [
        vec![Step::Hold],
        vec![stream_head(), Step::Hold],
        vec![stream_head(), text("hello"), Step::Hold],
        vec![
            stream_head(),
            text("hello"),
            Step::Repeat(comment, Duration::from_millis(10)),
        ],
    ] {
        let server = Server::start(vec![script.clone()]);
        let error = run(ask(&mut hasty(&server, 200), &mut Log::default())).unwrap_err();
        assert!(matches!(error, Error::Transport { .. }), "{script:?}");
        assert!(error.to_string().contains("0.2 s"), "{error}");
        server.wait_until_gone();
    }
}

#[test]
fn c4_a_stream_that_moves_is_never_cut() {
    let mut script = vec![stream_head()];
    for _ in 0..12 {
        script.extend([text("a"), Step::Pause(Duration::from_millis(100))]);
    }
    // One long line that takes its time is progress too.
    script.push(chunk("data: {\"choices\":[{\"delta\":{\"content\":\""));
    for _ in 0..12 {
        script.extend([chunk("b"), Step::Pause(Duration::from_millis(100))]);
    }
    script.push(chunk("\"}}]}\n\n"));
    script.extend(end());
    let server = Server::start(vec![script]);
    let reply = run(ask(&mut hasty(&server, 1_000), &mut Log::default())).unwrap();
    assert_eq!(
        reply.message.text(),
        format!("{}{}", "a".repeat(12), "b".repeat(12))
    );
}

#[test]
fn c3_an_answer_whose_connection_stays_open_ends_all_the_same() {
    let comment = b"b\r\n: working\n\n\r\n".to_vec();
    let finish = event(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
    let usage = event(r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#);
    for (tail, prompt) in [
        (vec![event("[DONE]"), Step::Hold], None),
        (
            vec![
                event("[DONE]"),
                Step::Repeat(comment.clone(), Duration::from_millis(10)),
            ],
            None,
        ),
        (
            vec![
                finish.clone(),
                Step::Repeat(comment, Duration::from_millis(10)),
            ],
            None,
        ),
        (
            vec![
                finish.clone(),
                Step::Pause(Duration::from_millis(20)),
                usage,
                Step::Hold,
            ],
            Some(7),
        ),
    ] {
        let mut script = vec![stream_head(), text("hello")];
        script.extend(tail);
        let server = Server::start(vec![script]);
        let reply = run(ask(&mut client(&server), &mut Log::default())).unwrap();
        assert_eq!(reply.message.text(), "hello");
        assert_eq!(
            (!reply.usage.estimated).then_some(reply.usage.prompt),
            prompt
        );
    }
}

#[test]
fn b9_redirects_are_not_followed_and_the_error_names_the_target() {
    let other = Server::start(vec![says("hello")]);
    for status in [301, 302, 307, 308] {
        let (reply, _, requests) = ask_once(vec![vec![answer(
            status,
            &[("location", &other.url("/v2"))],
            "",
        )]]);
        let error = reply.unwrap_err();
        assert!(error.to_string().contains(&other.url("/v2")), "{error}");
        assert!(error.hint().is_some());
        assert_eq!((requests.len(), other.requests().len()), (1, 0));
    }
}

#[test]
fn c5_the_body_decides_how_an_answer_came() {
    let whole =
        r#"{"choices":[{"message":{"content":"hello","reasoning":"why"},"finish_reason":"stop"}]}"#;
    let (reply, log, _) = ask_once(vec![vec![answer(
        200,
        &[("content-type", "text/event-stream")],
        whole,
    )]]);
    assert_eq!(reply.unwrap(), "hello");
    assert_eq!(
        log.events,
        [
            "requesting",
            "replying",
            "reasoning why",
            "text hello",
            "end"
        ]
    );

    let server = Server::start(vec![says("hello")]);
    let settings = Settings {
        stream: false,
        ..settings(server.url(""))
    };
    let reply = run(ask(
        &mut Client::new(settings, Network::default(), NO_DELAY),
        &mut Log::default(),
    ));
    assert_eq!(reply.unwrap().message.text(), "hello");
    assert!(server.bodies()[0].contains(r#""stream":false,"temperature""#));

    let (reply, _, requests) = ask_once(vec![vec![answer(
        200,
        &[],
        "<html><title>Sign in</title></html>",
    )]]);
    let error = reply.unwrap_err();
    assert!(
        matches!(&error, Error::BadReply(message) if message.contains("Sign in")),
        "{error}"
    );
    assert_eq!(requests.len(), 1);
}

#[test]
fn c10_the_servers_words_stay_in_the_message() {
    let body = r#"{"error":{"message":"Assistant message: content or tool_calls must be set","code":"invalid_request_error"}}"#;
    let history = [Message::user("a"), Message::assistant("")];
    let server = Server::start(vec![vec![answer(400, &[], body)]]);
    let cancel = CancellationToken::new();
    let error = run(ask_with(
        &mut client(&server),
        &history,
        &mut Log::default(),
        &cancel,
    ))
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("content or tool_calls must be set")
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn e9_an_overflow_is_told_as_one_and_its_limit_learnt() {
    let body = r#"{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"context_length_exceeded"}}"#;
    let server = Server::start(vec![vec![answer(400, &[], body)]]);
    let mut client = client(&server);
    let error = run(ask(&mut client, &mut Log::default())).unwrap_err();
    assert!(error.is_context_length());
    assert_eq!(client.stated_window(), Some(4096));
    let mut other = settings(server.url("/v1/"));
    other.model = "other".into();
    client.configure(other);
    assert_eq!(client.stated_window(), None);
}

#[test]
fn c1_settings_that_cannot_be_sent_are_errors_of_the_configuration() {
    let bad = [
        Settings {
            endpoint: "localhost:8080/v1".into(),
            ..Settings::default()
        },
        Settings {
            api_key: Some("a\nb".into()),
            ..settings("http://127.0.0.1:1".into())
        },
        Settings {
            headers: vec![("a b".into(), "c".into())],
            ..settings("http://127.0.0.1:1".into())
        },
        Settings {
            headers: vec![("a".into(), "b\nc".into())],
            ..settings("http://127.0.0.1:1".into())
        },
    ];
    for settings in bad {
        let error = run(ask(
            &mut Client::new(settings, Network::default(), NO_DELAY),
            &mut Log::default(),
        ))
        .unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error:?}");
    }
}

#[test]
fn e10_models_are_listed_with_the_same_headers() {
    let server = Server::start(vec![
        vec![answer(200, &[], r#"{"data":[{"id":"b"},{"id":"a"}]}"#)],
        vec![answer(200, &[], "<html>")],
        vec![answer(401, &[], "")],
    ]);
    let client = client(&server);
    let cancel = CancellationToken::new();
    run(async {
        assert_eq!(client.models(&cancel).await.unwrap(), ["b", "a"]);
        assert!(matches!(
            client.models(&cancel).await,
            Err(Error::BadReply(_))
        ));
        assert!(client.models(&cancel).await.unwrap_err().hint().is_some());
    });
    let request = &server.requests()[0];
    assert_eq!(request.line(), "GET /v1/models HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer sk-secret"));
}

#[test]
fn b8_the_window_is_discovered_or_not_without_a_word() {
    let listed = r#"{"data":[{"id":"m","context_length":8192}]}"#;
    let unlisted = r#"{"data":[{"id":"m"}]}"#;
    let props = r#"{"default_generation_settings":{"n_ctx":4096}}"#;
    for (script, window) in [
        (vec![vec![answer(200, &[], listed)]], Some(8192)),
        (
            vec![
                vec![answer(200, &[], unlisted)],
                vec![answer(200, &[], props)],
            ],
            Some(4096),
        ),
        (
            vec![
                vec![answer(200, &[], unlisted)],
                vec![answer(200, &[], "<html>")],
            ],
            None,
        ),
        (
            vec![vec![answer(404, &[], "")], vec![answer(404, &[], "")]],
            None,
        ),
        (vec![], None),
    ] {
        let server = Server::start(script);
        assert_eq!(run(client(&server).discover_window()), window);
        let lines: Vec<String> = server
            .requests()
            .iter()
            .map(|request| request.line().to_owned())
            .collect();
        assert!(
            lines
                .iter()
                .skip(1)
                .all(|line| line == "GET /props HTTP/1.1"),
            "{lines:?}"
        );
    }
    let nowhere = Client::new(settings("nowhere".into()), Network::default(), NO_DELAY);
    assert_eq!(run(nowhere.discover_window()), None);
}

#[test]
fn b10_a_proxy_is_used_but_never_for_loopback() {
    let proxy = Server::start(vec![says("proxied")]);
    let direct = Server::start(vec![says("direct")]);
    let address = format!("http://me:pass@127.0.0.1:{}", proxy.port());
    let network =
        Network::from_env(&|name| (name == "HTTP_PROXY").then(|| address.clone())).unwrap();
    let mut client = Client::new(
        settings("http://bantam.invalid/v1".into()),
        network,
        NO_DELAY,
    );
    run(async {
        let reply = ask(&mut client, &mut Log::default()).await.unwrap();
        assert_eq!(reply.message.text(), "proxied");
        client.configure(settings(direct.url("/v1")));
        let reply = ask(&mut client, &mut Log::default()).await.unwrap();
        assert_eq!(reply.message.text(), "direct");
    });
    let request = &proxy.requests()[0];
    assert_eq!(
        request.line(),
        "POST http://bantam.invalid/v1/chat/completions HTTP/1.1"
    );
    assert_eq!(
        request.header("proxy-authorization"),
        Some("Basic bWU6cGFzcw==")
    );
}

#[test]
fn b10_no_proxy_is_obeyed() {
    let proxy = Server::start(vec![]);
    let address = proxy.url("");
    let network = Network::from_env(&|name| match name {
        "SOCKS_PROXY" => Some(format!("127.0.0.1:{}", proxy.port())),
        "HTTP_PROXY" => Some(address.clone()),
        // No packet can go there, so it fails at once where no proxy takes it.
        "NO_PROXY" => Some("example.com, 255.255.255.255".into()),
        _ => None,
    })
    .unwrap();
    let mut client = Client::new(settings("http://255.255.255.255/v1".into()), network, &[]);
    let error = run(ask(&mut client, &mut Log::default())).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot connect to 255.255.255.255"),
        "{error}"
    );
    assert!(proxy.requests().is_empty());
}

#[test]
fn b10_a_socks_proxy_resolves_the_name_and_beats_the_others() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&[5, 0]).unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        let mut name = vec![0; usize::from(head[4]) + 2];
        stream.read_exact(&mut name).unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        let body = r#"{"choices":[{"message":{"content":"through"},"finish_reason":"stop"}]}"#;
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..read]);
        }
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        (
            head[3],
            String::from_utf8(name[..name.len() - 2].to_vec()).unwrap(),
        )
    });
    let network = Network::from_env(&|name| match name {
        "socks_proxy" => Some(format!("127.0.0.1:{port}")),
        "HTTP_PROXY" => Some("http://127.0.0.1:1".into()),
        _ => None,
    })
    .unwrap();
    let mut client = Client::new(settings("http://bantam.invalid/v1".into()), network, &[]);
    let reply = run(ask(&mut client, &mut Log::default())).unwrap();
    assert_eq!(reply.message.text(), "through");
    assert_eq!(
        proxy.join().unwrap(),
        (3, "bantam.invalid".to_owned()),
        "the name goes to the proxy"
    );
}
