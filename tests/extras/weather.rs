//! `extras/weather`.

use super::server::{Reply, Server};
use super::{Script, usable};

fn weather(server: &Server) -> Script {
    // A slash at the end of the server's URL does no harm.
    Script::new("weather").env("WTTRAPI", server.url("/"))
}

fn report(text: &str) -> Reply {
    Reply::http("200 OK", "text/plain", text)
}

#[test]
fn h1_options_and_place_become_the_url() {
    if !usable() {
        return;
    }
    for (arguments, target) in [
        ([].as_slice(), "/"),
        (&["London"], "/London"),
        (&["New York"], "/New%20York"),
        (&["New", "York"], "/New%20York"),
        (&["-l", "São Paulo/#?&"], "/S%C3%A3o%20Paulo%2F%23%3F%26"),
        (&["--location=~Eiffel tower"], "/~Eiffel%20tower"),
        (&["-33.9,151.2"], "/-33.9%2C151.2"),
        (&["--", "-x"], "/-x"),
        (&["-f", "3", "New York"], "/New%20York?format=3"),
        (&["-f4", "Rome"], "/Rome?format=4"),
        (
            &["-f", "%l: %c %t\n", "Paris"],
            "/Paris?format=%25l%3A%20%25c%20%25t%0A",
        ),
        (&["--format", "j2", "Paris"], "/Paris?format=j2"),
        (&["-u", "u", "-L", "de", "Berlin"], "/Berlin?u&lang=de"),
        (
            &["Berlin", "--units=M", "--lang", "zh-cn"],
            "/Berlin?M&lang=zh-cn",
        ),
        (&["-0", "Oslo"], "/Oslo?0"),
        (&["-1", "-q", "-A"], "/?1&q&A"),
        (&["-Aq2", "Oslo"], "/Oslo?2&A&q"),
        (&["--quiet", "-u", "m"], "/?m&q"),
        (&["-u", "m", "-u", "u"], "/?u"),
    ] {
        let server = Server::start([report("fine\n")]);
        weather(&server).run(arguments).prints("fine\n");
        let request = server.requests().remove(0);
        assert_eq!(request.target, target, "{arguments:?}");
    }
}

#[test]
fn h1_a_report_comes_out_as_it_is() {
    if !usable() {
        return;
    }
    let text = "\u{1b}[38;5;226m   \\   /  \u{1b}[0m Sunny\n  %s \\n +22 °C  ";
    let server = Server::start([report(text)]);
    weather(&server).run(&[]).prints(&format!("{text}\n"));
}

#[test]
fn h1_json_is_printed_in_lines() {
    if !usable() {
        return;
    }
    let server = Server::start([report(r#"{"b":"°","a":[1]}"#)]);
    let run = weather(&server).run(&["-j", "Tokyo"]);
    run.prints("{\n  \"b\": \"°\",\n  \"a\": [\n    1\n  ]\n}\n");
    assert_eq!(server.requests()[0].target, "/Tokyo?format=j1");

    let server = Server::start([report("{\"cut")]);
    weather(&server).run(&["--json"]).fails(1, &["JSON", "cut"]);
}

#[test]
fn h1_a_redirect_is_followed() {
    if !usable() {
        return;
    }
    let over =
        "HTTP/1.1 301 Moved\r\nLocation: /there\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = Server::start([Reply::Close(over.into()), report("fine")]);
    weather(&server).run(&["x"]).prints("fine\n");
    assert_eq!(server.requests()[1].target, "/there");
}

#[test]
fn h1_every_bad_answer_gives_one_line_and_a_failure() {
    if !usable() {
        return;
    }
    let cases: [(Reply, &[&str]); 7] = [
        (report(""), &["answers nothing"]),
        (report(" \n\n"), &["answers nothing"]),
        (report("<!DOCTYPE html>\n<html>"), &["HTML page"]),
        (
            report("Unknown location; please try ~1,2"),
            &["Unknown location", "~1,2"],
        ),
        (
            Reply::http(
                "404 Not Found",
                "text/plain",
                "ERROR:\n\u{1b}[31mno such place",
            ),
            &["HTTP 404: ERROR: [31mno such place"],
        ),
        (
            Reply::http("503 Busy", "text/plain", ""),
            &["HTTP 503: nothing"],
        ),
        (
            Reply::Close(String::new()),
            &["does not answer: Empty reply"],
        ),
    ];
    for (reply, parts) in cases {
        let server = Server::start([reply]);
        weather(&server).run(&["x"]).fails(1, parts);
    }
    let script = Script::new("weather").env("WTTRAPI", "http://127.0.0.1:1");
    script
        .run(&[])
        .fails(1, &["http://127.0.0.1:1 does not answer", "connect"]);
}

#[test]
fn h1_a_server_that_says_nothing_is_left_after_the_limit() {
    if !usable() {
        return;
    }
    let server = Server::start([Reply::Hold(String::new())]);
    let script = weather(&server).env("WEATHER_TIMEOUT", "2");
    script.run(&[]).fails(1, &["does not answer", "timed out"]);
}

#[test]
fn h1_wrong_options_are_told_before_anything_is_sent() {
    let script = Script::new("weather").env("WTTRAPI", "http://127.0.0.1:1");
    for (arguments, part) in [
        (["-u", "k"].as_slice(), "'k'"),
        (&["-f", "5"], "presets"),
        (&["-f", ""], "empty"),
        (&["-l"], "value"),
        (&["-x"], "-x"),
        (&["-qx"], "-x"),
        (&["--json=yes"], "--json"),
        (&["-j", "-f", "3"], "exclude"),
    ] {
        script.run(arguments).fails(2, &[part]);
    }
    let script = script.env("WEATHER_TIMEOUT", "soon");
    script.run(&[]).fails(2, &["WEATHER_TIMEOUT", "'soon'"]);
}
