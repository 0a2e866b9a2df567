//! `extras/context7`. What it shares with `websearch` is tested there.

use serde_json::json;

use super::server::{Reply, Server};
use super::{Script, accepted, result, session, usable, welcome};

const CANDIDATES: &str = "Available Libraries:\n\n- Title: Express\n\
    - Context7-compatible library ID: /expressjs/express\n- Description: see /docs/x\n\
    ----------\n- Title: Other\n- Context7-compatible library ID: /other/one\n";

fn context7(server: &Server) -> Script {
    Script::new("context7").env("CONTEXT7_MCP_ENDPOINT", server.url("/mcp"))
}

#[test]
fn h1_resolve_lists_the_candidates() {
    if !usable() {
        return;
    }
    let server = Server::start(session(Reply::json(&result(
        2,
        "React: /reactjs/react.dev",
    ))));
    let run = context7(&server).run(&["resolve", "React", "hooks"]);
    run.prints("React: /reactjs/react.dev\n");
    let requests = server.requests();
    assert_eq!(
        requests[2].json()["params"],
        json!({"name": "resolve-library-id", "arguments": {"query": "hooks", "libraryName": "React"}})
    );
    assert_eq!(requests[0].header("x-context7-api-key"), None);

    let server = Server::start(session(Reply::json(&result(2, "ok"))));
    context7(&server)
        .run(&["resolve", "a \"b\"\nc"])
        .prints("ok\n");
    assert_eq!(
        server.requests()[2].json()["params"]["arguments"],
        json!({"query": "a \"b\"\nc", "libraryName": "a \"b\"\nc"})
    );
}

#[test]
fn h1_query_prints_the_documentation_of_an_id() {
    if !usable() {
        return;
    }
    let server = Server::start(session(Reply::json(&result(2, "# useEffect"))));
    let run = context7(&server).run(&["query", "/reactjs/react.dev", "useEffect cleanup"]);
    run.prints("# useEffect\n");
    assert_eq!(
        server.requests()[2].json()["params"],
        json!({"name": "query-docs", "arguments":
            {"libraryId": "/reactjs/react.dev", "query": "useEffect cleanup"}})
    );
}

#[test]
fn h1_docs_takes_the_first_candidate_and_names_it_on_standard_error() {
    if !usable() {
        return;
    }
    for (candidates, chosen) in [
        (CANDIDATES, "/expressjs/express"),
        (
            "see https://a.b/c/d or \"/org/project/v1\", /x/y",
            "/org/project/v1",
        ),
    ] {
        let server = Server::start([
            welcome(),
            accepted(),
            Reply::json(&result(2, candidates)),
            Reply::json(&result(3, "the docs")),
        ]);
        let run = context7(&server).run(&["docs", "Express", "error handling"]);
        assert_eq!((run.code, run.stdout.as_str()), (0, "the docs\n"));
        assert_eq!(run.stderr, format!("context7: using {chosen}\n"));
        let requests = server.requests();
        assert_eq!(
            requests[3].json()["params"]["arguments"],
            json!({"libraryId": chosen, "query": "error handling"})
        );
        assert_eq!(requests[3].header("mcp-session-id"), Some(r#"session"7\"#));
    }
}

#[test]
fn h1_docs_of_an_unknown_library_is_a_failure() {
    if !usable() {
        return;
    }
    let server = Server::start(session(Reply::json(&result(2, "No libraries found."))));
    let run = context7(&server).run(&["docs", "Nothing", "x"]);
    run.fails(1, &["no library found", "Nothing"]);
}

#[test]
fn h1_the_key_is_a_header_of_every_request() {
    if !usable() {
        return;
    }
    let server = Server::start(session(Reply::json(&result(2, "ok"))));
    let script = context7(&server).env("CONTEXT7_API_KEY", "ctx7\"sk\\1");
    script.run(&["query", "/a/b", "c"]).prints("ok\n");
    for request in server.requests() {
        assert_eq!(request.header("x-context7-api-key"), Some("ctx7\"sk\\1"));
        assert_eq!(request.target, "/mcp");
    }

    let body = r#"{"message": "ctx7sk1 is no key"}"#;
    let server = Server::start([Reply::http("401 Unauthorized", "application/json", body)]);
    let script = context7(&server).env("CONTEXT7_API_KEY", "ctx7sk1");
    let run = script.run(&["query", "/a/b", "c"]);
    run.fails(1, &["HTTP 401: **** is no key"]);
}

#[test]
fn h1_wrong_commands_are_told() {
    let script = Script::new("context7").env("CONTEXT7_MCP_ENDPOINT", "http://127.0.0.1:1/");
    script.run(&[]).fails(2, &["command"]);
    script.run(&["find", "x"]).fails(2, &["'find'"]);
    script.run(&["resolve"]).fails(2, &["NAME"]);
    script.run(&["query", "/a/b"]).fails(2, &["QUERY"]);
    script.run(&["query", "react", "x"]).fails(2, &["slash"]);
    script.run(&["docs", "a", "b", "c"]).fails(2, &["quotes"]);
    script.run(&["docs", "a", ""]).fails(2, &["empty"]);
}
