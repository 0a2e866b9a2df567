//! `extras/websearch`, and the MCP client that it shares with `context7`.

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::server::{Reply, Server};
use super::{Script, accepted, result, session, usable, welcome};

/// Generous: only a server that never answers makes anybody wait for it.
const PATIENCE: &str = "60";

fn websearch(server: &Server) -> Script {
    Script::new("websearch")
        .env("EXA_MCP_ENDPOINT", server.url("/mcp"))
        .env("MCP_TIMEOUT", PATIENCE)
}

fn stream(body: &str) -> Reply {
    Reply::http("200 OK", "text/event-stream; charset=utf-8", body)
}

#[test]
fn h1_a_search_opens_a_session_calls_the_tool_and_prints_its_text() {
    if !usable() {
        return;
    }
    let server = Server::start(session(Reply::json(&result(2, "One\n\nTwo ✓"))));
    websearch(&server).run(&["rust"]).prints("One\n\nTwo ✓\n");

    let requests = server.requests();
    let methods: Vec<Value> = requests
        .iter()
        .map(|r| r.json()["method"].clone())
        .collect();
    assert_eq!(
        methods,
        ["initialize", "notifications/initialized", "tools/call"]
    );
    for request in &requests {
        assert_eq!(request.target, "/mcp");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(
            request.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(request.json()["jsonrpc"], "2.0");
    }
    assert_eq!(requests[0].header("mcp-session-id"), None);
    assert_eq!(
        requests[0].json()["params"]["clientInfo"]["name"],
        "websearch"
    );
    assert_eq!(requests[1].json().get("id"), None);
    for request in &requests[1..] {
        // Quotes and backslashes of a server don't reach curl's configuration as such.
        assert_eq!(request.header("mcp-session-id"), Some(r#"session"7\"#));
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-03-26"));
    }
    assert_eq!(
        requests[2].json()["params"],
        json!({"name": "web_search_exa", "arguments": {"query": "rust", "numResults": 5}})
    );
}

#[test]
fn h1_arguments_arrive_intact() {
    if !usable() {
        return;
    }
    for query in [
        "it's \"quoted\" \\ $HOME `id` $(id) %s {a,b}[1-3]",
        "two\nlines\tand a tab\n",
        "Grüße, 世界 👩‍👩‍👧 \u{a0}",
        "@/etc/passwd",
        "a*",
    ] {
        let server = Server::start(session(Reply::json(&result(2, "ok"))));
        websearch(&server).run(&[query, "10"]).prints("ok\n");
        assert_eq!(
            server.requests()[2].json()["params"]["arguments"],
            json!({"query": query, "numResults": 10})
        );
    }
    let server = Server::start(session(Reply::json(&result(2, "ok"))));
    websearch(&server).run(&["--", "-1"]).prints("ok\n");
    assert_eq!(
        server.requests()[2].json()["params"]["arguments"]["query"],
        "-1"
    );
}

#[test]
fn h1_the_key_goes_into_the_url_and_nowhere_else() {
    if !usable() {
        return;
    }
    let key = "k&y=1/2 #x-71c08d5c";
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let look = move || {
        // Where there is no /proc, nothing is seen.
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            seen.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&line).into_owned());
        }
    };
    let answer = Reply::Look(Box::new(look), Box::new(Reply::json(&result(2, "ok"))));
    let server = Server::start(session(answer));
    let script = websearch(&server).env("EXA_API_KEY", key);
    script.run(&["q"]).prints("ok\n");
    for request in server.requests() {
        assert_eq!(request.target, "/mcp?api_key=k%26y%3D1%2F2%20%23x-71c08d5c");
    }
    let lines = lines.lock().unwrap();
    assert!(!lines.iter().any(|line| line.contains("71c08d5c")));
}

#[test]
fn h1_the_key_is_added_to_a_query_that_is_there() {
    if !usable() {
        return;
    }
    let server = Server::start(session(Reply::json(&result(2, "ok"))));
    let script = Script::new("websearch")
        .env("EXA_MCP_ENDPOINT", server.url("/mcp?tools=a"))
        .env("EXA_API_KEY", "key");
    script.run(&["q"]).prints("ok\n");
    assert_eq!(server.requests()[0].target, "/mcp?tools=a&api_key=key");
}

#[test]
fn h1_an_error_never_shows_the_key() {
    if !usable() {
        return;
    }
    let body = "Cannot POST /mcp?api_key=se%2Fcret for se/cret";
    let server = Server::start([Reply::http("404 Not Found", "text/plain", body)]);
    let run = websearch(&server).env("EXA_API_KEY", "se/cret").run(&["q"]);
    run.fails(1, &["HTTP 404", "api_key=**** for ****"]);
    assert!(!run.stderr.contains("cret"));

    let script = Script::new("websearch")
        .env(
            "EXA_MCP_ENDPOINT",
            "http://me:pw@127.0.0.1:1/mcp?token=hidden",
        )
        .env("EXA_API_KEY", "secret");
    let run = script.run(&["q"]);
    run.fails(1, &["http://127.0.0.1:1/mcp does not answer", "connect"]);
    assert!(!run.stderr.contains("secret") && !run.stderr.contains("hidden"));
}

#[test]
fn h1_an_event_stream_yields_the_answer_among_other_messages() {
    if !usable() {
        return;
    }
    let answer = result(2, "found");
    let spread = serde_json::to_string_pretty(&answer)
        .unwrap()
        .replace('\n', "\ndata: ");
    let other = result(99, "somebody else's");
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for body in [
        format!("event: message\ndata: {answer}\n\n"),
        format!("data:{answer}"),
        format!("event: message\r\nid: 7\r\ndata: {answer}\r\n\r\n"),
        format!(": hello\n\ndata: {notice}\n\ndata: {ping}\n\ndata: {other}\n\ndata: {answer}\n\n"),
        format!("data: {spread}\n\n"),
        format!("data:\n\ndata: [DONE]\n\n\n\ndata: {answer}\n\ndata: {notice}\n\n"),
    ] {
        let server = Server::start(session(stream(&body)));
        websearch(&server).run(&["q"]).prints("found\n");
    }
}

#[test]
fn h1_initialize_may_be_answered_by_a_stream_too_and_without_a_session() {
    if !usable() {
        return;
    }
    let welcome = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}});
    let replies = [
        Reply::Close(format!(
            "HTTP/1.1 103 Early Hints\r\nMcp-Session-Id: no\r\n\r\nHTTP/1.1 200 OK\r\n\
             Content-Type: text/event-stream\r\n\r\ndata: {welcome}\n\n"
        )),
        Reply::http("200 OK", "application/json", ""),
        Reply::json(&json!([{"jsonrpc": "2.0", "method": "x"}, result(2, "in a batch")])),
    ];
    let server = Server::start(replies);
    websearch(&server).run(&["q"]).prints("in a batch\n");
    for request in server.requests() {
        assert_eq!(request.header("mcp-session-id"), None);
    }
}

#[test]
fn h1_a_stream_that_is_never_closed_is_waited_for_no_longer_than_the_limit() {
    if !usable() {
        return;
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let answer = format!("{head}data: {}\n\n", result(2, "found"));
    let server = Server::start(session(Reply::Hold(answer)));
    let script = websearch(&server).env("MCP_TIMEOUT", "2");
    script.run(&["q"]).prints("found\n");

    let server = Server::start(session(Reply::Hold(format!("{head}: nothing yet\n\n"))));
    let script = websearch(&server).env("MCP_TIMEOUT", "2");
    script
        .run(&["q"])
        .fails(1, &["does not answer", "timed out"]);
}

#[test]
fn h1_all_texts_of_a_result_are_printed() {
    if !usable() {
        return;
    }
    let answer = json!({"jsonrpc": "2.0", "id": "2", "result": {"content": [
        {"type": "text", "text": "first"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y", "text": "second"}},
    ]}});
    let server = Server::start(session(Reply::json(&answer)));
    websearch(&server).run(&["q"]).prints("first\nsecond\n");
}

#[test]
fn h1_every_bad_answer_gives_one_line_and_a_failure() {
    if !usable() {
        return;
    }
    let error = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "bad\nquery\u{1b}[2J"}});
    let failed = json!({"jsonrpc": "2.0", "id": 2, "result": {"isError": true, "content": [
        {"type": "text", "text": "quota used up"},
    ]}});
    let page = "<!DOCTYPE html>\n<html><body>\nOops</body></html>";
    let cases: [(Reply, &[&str]); 13] = [
        (Reply::json(&error), &["refuses tools/call: bad query [2J"]),
        (stream(&format!("data: {error}\n\n")), &["bad query"]),
        (
            Reply::json(&failed),
            &["web_search_exa failed: quota used up"],
        ),
        (Reply::json(&result(2, "")), &["no text"]),
        (
            Reply::json(&json!({"jsonrpc": "2.0", "id": 2, "result": 7})),
            &["no text"],
        ),
        (Reply::json(&result(3, "another's")), &["not in MCP"]),
        (
            Reply::http("200 OK", "text/html", page),
            &["not in MCP: an HTML page"],
        ),
        (
            Reply::http("200 OK", "application/json", ""),
            &["not in MCP: nothing"],
        ),
        (
            Reply::http("502 Bad Gateway", "text/html", page),
            &["HTTP 502: an HTML page"],
        ),
        (
            Reply::http(
                "429 Too Many",
                "application/json",
                r#"{"error":{"message":"slow down"}}"#,
            ),
            &["HTTP 429: slow down"],
        ),
        (
            Reply::http(
                "401 Unauthorized",
                "application/json",
                r#"{"error":"no key"}"#,
            ),
            &["HTTP 401: no key"],
        ),
        (
            Reply::Close(
                "HTTP/1.1 307 Over There\r\nLocation: /mcp2\r\nContent-Length: 0\r\n\r\n".into(),
            ),
            &["HTTP 307", "not followed"],
        ),
        (
            Reply::Close(String::new()),
            &["does not answer", "Empty reply"],
        ),
    ];
    for (reply, parts) in cases {
        let server = Server::start(session(reply));
        websearch(&server).run(&["q"]).fails(1, parts);
    }
}

#[test]
fn h1_a_session_that_fails_to_open_is_no_search() {
    if !usable() {
        return;
    }
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}});
    let server = Server::start([Reply::json(&error)]);
    websearch(&server)
        .run(&["q"])
        .fails(1, &["refuses initialize: no"]);

    let gone = Reply::http("404 Not Found", "text/plain", "no such session");
    let server = Server::start([welcome(), gone]);
    websearch(&server)
        .run(&["q"])
        .fails(1, &["HTTP 404: no such session"]);

    let server = Server::start([welcome(), accepted()]);
    websearch(&server)
        .run(&["q"])
        .fails(1, &["does not answer"]);
}

#[test]
fn h1_wrong_usage_is_told_before_anything_is_sent() {
    let script = Script::new("websearch").env("EXA_MCP_ENDPOINT", "http://127.0.0.1:1/");
    script.run(&[]).fails(2, &["missing"]);
    script.run(&[""]).fails(2, &["missing"]);
    script.run(&["--"]).fails(2, &["missing"]);
    script
        .run(&["two", "words"])
        .fails(2, &["'words'", "number"]);
    script.run(&["q", "0"]).fails(2, &["'0'"]);
    script.run(&["q", "-3"]).fails(2, &["'-3'"]);
    script.run(&["q", "3", "4"]).fails(2, &["quotes"]);
}
