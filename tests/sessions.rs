//! Conversations on disk, from the outside: what is saved when, listed, loaded and gone on with
//! (SPEC E1–E7, A3).

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::cli::{Cli, Output};
use crate::common::server::{Gate, Reply, Server};

/// The id of the session of the project in this directory.
fn project(directory: &Path) -> String {
    let path = fs::canonicalize(directory).unwrap();
    let digest = Md5::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().fold(String::new(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}

fn path(home: &Path, id: &str) -> PathBuf {
    home.join(format!(".bantam/sessions/{id}.json"))
}

#[track_caller]
fn session(home: &Path, id: &str) -> Value {
    let path = path(home, id);
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

/// The ids of all sessions below a home, in alphabetical order.
fn ids(home: &Path) -> Vec<String> {
    let mut ids: Vec<_> = fs::read_dir(home.join(".bantam/sessions"))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    ids.sort();
    ids
}

/// The contents of a session's messages without the system message.
#[track_caller]
fn said(home: &Path, id: &str) -> Vec<String> {
    contents(session(home, id)["messages"].as_array().unwrap())
}

fn contents(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// A server that answers `a1`, `a2`, … to so many requests.
fn answering(count: usize) -> Server {
    let answers = (1..=count).map(|number| Reply::answer(&format!("a{number}")));
    Server::start(answers.collect::<Vec<_>>()).history_may_change()
}

/// Runs lines in an empty directory.
#[track_caller]
fn run<'a>(server: &Server, lines: impl IntoIterator<Item = &'a str>) -> Output {
    let run = Cli::against(server).lines(lines).run();
    run.success();
    run
}

/// Runs lines where an earlier run was.
#[track_caller]
fn then<'a>(earlier: Output, lines: impl IntoIterator<Item = &'a str>) -> Output {
    let run = Cli::after(earlier).lines(lines).run();
    run.success();
    run
}

/// A session file of a prompt and an answer, as this program writes it.
fn file(id: &str, prompt: &str, updated: &str) -> String {
    json!({
        "id": id, "cwd": "/x", "model": "test-model", "title": prompt, "summary": "",
        "conversation": format!("identity of {id}"), "created": updated, "updated": updated, "count": 2,
        "messages": [
            {"role": "system", "content": "an old system prompt"},
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": format!("answer to {prompt}")},
        ],
    })
    .to_string()
}

fn home_name(id: &str) -> String {
    format!(".bantam/sessions/{id}.json")
}

// E1, E2: what is saved when

#[test]
fn e1_a_conversation_is_saved_to_the_projects_file() {
    let server = answering(1);
    let run = run(&server, ["hello\tthere"]);
    let project = project(run.directory());
    assert_eq!(ids(run.home()), [project.as_str()]);
    let text = fs::read_to_string(path(run.home(), &project)).unwrap();
    let keys = [
        "id",
        "cwd",
        "model",
        "title",
        "summary",
        "conversation",
        "created",
        "updated",
        "count",
        "messages",
    ];
    let file = session(run.home(), &project);
    assert_eq!(
        file.as_object().unwrap().keys().collect::<Vec<_>>(),
        keys,
        "{text}"
    );
    assert_eq!(file["id"], project);
    assert_eq!(file["model"], "test-model");
    assert_eq!(file["count"], 2);
    assert_eq!(
        Path::new(file["cwd"].as_str().unwrap()),
        fs::canonicalize(run.directory()).unwrap()
    );
    assert_eq!(said(run.home(), &project), ["hello\tthere", "a1"]);
}

#[test]
fn e1_directory_and_files_are_private_whatever_the_umask() {
    let server = answering(1);
    let run = Cli::against(&server)
        .through(r#"umask 000; exec "$@""#)
        .lines(["x"])
        .run();
    run.success();
    let directory = run.home().join(".bantam/sessions");
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o7777, 0o700);
    let file = path(run.home(), &project(run.directory()));
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn e1_what_others_may_read_is_made_private() {
    let server = answering(1);
    let cli = Cli::against(&server).home_file(".bantam/sessions/x", "");
    let directory = cli.home().join(".bantam/sessions");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let run = cli.lines(["x"]).run();
    run.success();
    assert_eq!(fs::metadata(directory).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn b9_the_key_is_in_no_session() {
    let server = Server::start([
        Reply::shell("cat model.cfg; echo from-$OPENAI_API_KEY"),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server)
        .config("api_key=sk-verysecretkey")
        .lines(["x"])
        .run();
    run.success();
    let text = fs::read_to_string(path(run.home(), &project(run.directory()))).unwrap();
    assert!(!text.contains("verysecret"), "{text}");
}

#[test]
fn e2_every_step_of_a_turn_is_saved() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::shell("echo step-one"),
        Reply::stream()
            .text("half")
            .hold(&gate)
            .text(" more")
            .finish("stop")
            .usage(10, 5)
            .done(),
    ]);
    let run = Cli::against(&server).lines(["x"]).start();
    gate.wait();
    let saved = said(run.home(), &project(run.directory()));
    assert_eq!(saved.len(), 3, "{saved:?}");
    assert!(saved[2].contains("step-one"), "{saved:?}");
    gate.open();
    let run = run.finish();
    run.success();
    assert_eq!(said(run.home(), &project(run.directory()))[3], "half more");
}

#[test]
fn e2_a_killed_program_loses_the_answer_in_flight_and_no_more() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::shell("echo step-one"),
        Reply::shell("echo step-two"),
        Reply::stream().text("never whole").hold(&gate),
        Reply::answer("after"),
    ])
    .history_may_change();
    let run = Cli::against(&server)
        .through(r#"exec 3<&0; "$@" <&3 & echo $! >pid; wait $!; exit 0"#)
        .lines(["x"])
        .start();
    gate.wait();
    let pid = run.wait_for_file("pid").trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let killed = run.finish();
    gate.open();

    let run = then(killed, ["/continue", "go on"]);
    let request = server.last_request();
    let results = request.contents("tool");
    assert!(
        results[0].contains("step-one") && results[1].contains("step-two"),
        "{results:?}"
    );
    assert_eq!(request.contents("user"), ["x", "go on"]);
    let roles: Vec<_> = request
        .messages()
        .iter()
        .map(|one| one["role"].clone())
        .collect();
    let before_last = &roles[roles.len() - 2];
    assert_eq!(
        before_last, "assistant",
        "no prompt follows a result: {roles:?}"
    );
    run.stdout_has("after");
}

#[test]
fn e2_a_program_that_is_killed_while_a_command_runs_has_kept_the_answer_and_the_results_so_far() {
    let first = json!({"command": "echo call-one"});
    let second = json!({"command": "echo $PPID >pid; sleep 5"});
    let calls = Reply::calls([
        ("call_1", "shell_exec", &first),
        ("call_2", "shell_exec", &second),
    ]);
    let server = Server::start([calls, Reply::answer("after")]).history_may_change();
    let run = Cli::against(&server)
        .through(r#""$@"; exit 0"#)
        .lines(["x"])
        .start();
    let pid = run.wait_for_file("pid").trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let killed = run.finish();

    then(killed, ["/continue", "go on"]);
    let results = server.last_request().contents("tool");
    assert!(results[0].contains("call-one"), "{results:?}");
    assert!(results[1].contains("no result"), "{results:?}");
}

#[test]
fn e2_sigterm_saves_what_there_is() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::shell("echo step-one"),
        Reply::stream().text("half").hold(&gate),
    ]);
    let run = Cli::against(&server).stdin_open().start();
    let mut run = run;
    run.write("x\n");
    gate.wait();
    run.signal(Signal::TERM);
    let run = run.finish();
    run.code(143);
    gate.open();
    let saved = said(run.home(), &project(run.directory()));
    assert!(saved[2].contains("step-one"), "{saved:?}");
}

#[test]
fn e2_where_nothing_can_be_saved_it_is_told_once_and_the_conversation_goes_on() {
    let server = answering(2);
    let cli = Cli::against(&server).home_file("file", "");
    let home = cli.home().join("file");
    let run = cli.env("HOME", home).lines(["one", "two"]).run();
    run.success().stdout_has("a1").stdout_has("a2");
    assert_eq!(run.stderr.matches("not saved").count(), 1, "{run}");
}

#[test]
fn e2_a_full_disk_leaves_the_old_file_whole() {
    let server = answering(2);
    let first = run(&server, ["one"]);
    let project = project(first.directory());
    let long = "long ".repeat(10_000);
    let run = Cli::after(first)
        .through(r#"ulimit -f 8; exec "$@""#)
        .lines(["/continue", &long])
        .run();
    run.success().stdout_has("a2").stderr_has("not saved");
    assert_eq!(said(run.home(), &project), ["one", "a1"]);
    assert_eq!(ids(run.home()), [project]);
    let left: Vec<_> = run
        .home_files()
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

// E3: nothing is overwritten

#[test]
fn e3_an_earlier_run_is_kept_aside_and_stays_in_the_list() {
    let server = answering(2);
    let first = run(&server, ["one"]);
    let project = project(first.directory());
    let second = then(first, ["two"]);
    assert_eq!(said(second.home(), &project), ["two", "a2"]);
    assert_eq!(said(second.home(), &format!("{project}-1")), ["one", "a1"]);
    let list = then(second, ["/list"]);
    let lines: Vec<_> = list.stdout.lines().collect();
    assert!(
        lines[0].starts_with(&format!("* {project}  ")) && lines[0].ends_with("  two"),
        "{list}"
    );
    assert!(
        lines[1].starts_with(&format!("  {project}-1  ")) && lines[1].ends_with("  one"),
        "{list}"
    );
}

#[test]
fn e3_clear_and_compact_leave_the_old_conversation_loadable() {
    let server = answering(4);
    let run = run(&server, ["one", "/clear", "two", "/compact", "three"]);
    let project = project(run.directory());
    assert_eq!(said(run.home(), &format!("{project}-1")), ["one", "a1"]);
    assert_eq!(said(run.home(), &format!("{project}-2")), ["two", "a2"]);
    assert!(said(run.home(), &project)[0].contains("a3"));
    assert_eq!(ids(run.home()).len(), 3);

    server.then([Reply::answer("again")]);
    then(run, [&*format!("/load {project}-1"), "more"]);
    assert_eq!(server.last_request().contents("user"), ["one", "more"]);
}

#[test]
fn e3_two_programs_in_one_directory_are_both_kept() {
    let server = Server::start(["b1", "c1", "b2", "c2"].map(Reply::answer)).history_may_change();
    let mut one = Cli::against(&server).stdin_open().start();
    let script = format!(r#"cd "{}"; exec "$@""#, one.directory().display());
    let mut two = Cli::against(&server)
        .env("HOME", one.home())
        .through(&script)
        .stdin_open()
        .start();
    let usage = "[test-model: ";
    for (program, prompt, answer) in [
        (0, "b", "b1"),
        (1, "c", "c1"),
        (0, "bb", "b2"),
        (1, "cc", "c2"),
    ] {
        let program = if program == 0 { &mut one } else { &mut two };
        program.write(&format!("{prompt}\n"));
        program.wait_for_stdout(&format!("{answer}\n{usage}"));
    }
    two.close_stdin();
    two.finish().success();
    one.close_stdin();
    let one = one.finish();
    one.success();
    let mut all: Vec<_> = ids(one.home())
        .iter()
        .map(|id| said(one.home(), id))
        .collect();
    all.sort();
    assert_eq!(all, [["b", "b1", "bb", "b2"], ["c", "c1", "cc", "c2"]]);
    let list = then(one, ["/list"]);
    assert_eq!(list.stdout.lines().count(), 2, "{list}");
}

#[test]
fn e3_a_run_without_a_prompt_changes_nothing() {
    let server = answering(1);
    let first = run(&server, ["one"]);
    let before = fs::read(path(first.home(), &project(first.directory()))).unwrap();
    let second = then(first, ["/help", "/clear", "/save"]);
    let project = project(second.directory());
    assert_eq!(fs::read(path(second.home(), &project)).unwrap(), before);
    assert_eq!(ids(second.home()), [project]);
}

// E4: /save

#[test]
fn e4_a_named_save_is_a_copy_with_the_models_summary() {
    let server = Server::start(["a1", "\nAbout greetings\nand more", "a2"].map(Reply::answer))
        .history_may_change();
    let run = run(&server, ["hello", "/save my.name-1", "more"]);
    run.stdout_has("About greetings");
    assert_eq!(said(run.home(), "my.name-1"), ["hello", "a1"]);
    assert_eq!(
        session(run.home(), "my.name-1")["summary"],
        "About greetings"
    );
    assert_eq!(
        said(run.home(), &project(run.directory())),
        ["hello", "a1", "more", "a2"]
    );
    let asked = &server.requests()[1];
    assert_eq!(
        asked.contents("user")[0],
        "hello",
        "the conversation's prefix is used"
    );
    assert_eq!(server.last_request().contents("user"), ["hello", "more"]);
}

#[test]
fn e4_the_file_is_there_before_the_model_is_asked() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::answer("a1"),
        Reply::stream()
            .text("late")
            .hold(&gate)
            .finish("stop")
            .done(),
    ])
    .history_may_change();
    let run = Cli::against(&server).lines(["hello", "/save n"]).start();
    gate.wait();
    assert_eq!(said(run.home(), "n"), ["hello", "a1"]);
    gate.open();
    run.finish().success();
}

#[test]
fn e4_without_the_models_summary_the_first_prompts_first_line_stands_in() {
    let failures = [
        Reply::error(503, "busy"),
        Reply::error(400, "no"),
        Reply::answer(""),
        Reply::shell("touch ran"),
    ];
    for failure in failures {
        let server = Server::start([Reply::answer("a1"), failure]).history_may_change();
        let run = run(&server, ["  the first prompt", "/save n"]);
        assert_eq!(
            session(run.home(), "n")["summary"],
            "the first prompt",
            "{run}"
        );
        assert_eq!(server.requests().len(), 2, "one attempt only");
        run.no_file("ran");
    }
}

#[test]
fn e4_names_that_are_none_are_refused() {
    let server = answering(1);
    let long = format!("/save {}", "x".repeat(300));
    let lines = [
        "one",
        "/save ../x",
        "/save a/b",
        "/save .hidden",
        "/save a b",
        "/save \u{e9}",
        &long,
    ];
    let run = Cli::against(&server).lines(lines).run();
    assert_eq!(run.stderr.matches("error: ").count(), 6, "{run}");
    assert_eq!(ids(run.home()), [project(run.directory())]);
    run.no_file("../x.json");
}

#[test]
fn e3_a_named_save_over_another_conversation_keeps_that_one() {
    let server = answering(4);
    let first = run(&server, ["one", "/save n"]);
    let second = then(first, ["two", "/save n"]);
    assert_eq!(said(second.home(), "n"), ["two", "a3"]);
    assert_eq!(said(second.home(), "n-1"), ["one", "a1"]);
    second.stderr_has("n-1");
}

// E5: /list

#[test]
fn e5_sessions_are_listed_newest_first() {
    let server = answering(0);
    let with_summary = file("s", "the title", "2023-05-06T07:08:09Z")
        .replace(r#""summary":"""#, r#""summary":"the summary""#);
    let run = Cli::against(&server)
        .home_file(
            &home_name("old"),
            file("old", "old prompt", "2021-01-01T00:00:00Z"),
        )
        .home_file(
            &home_name("new"),
            file("new", "new prompt", "2024-01-01T00:00:00Z"),
        )
        .home_file(&home_name("s"), with_summary)
        .lines(["/list"])
        .run();
    run.success().stdout_is(concat!(
        "  new                                 2024-01-01 00:00 UTC    2 messages  new prompt\n",
        "  s                                   2023-05-06 07:08 UTC    2 messages  the summary\n",
        "  old                                 2021-01-01 00:00 UTC    2 messages  old prompt\n",
    ));
}

#[test]
fn e5_files_that_are_no_sessions_are_listed_as_such() {
    let server = answering(0);
    let whole = file("cut", "x", "2021-01-01T00:00:00Z");
    let mut cli = Cli::against(&server)
        .home_file(
            &home_name("good"),
            file("good", "fine", "2021-01-01T00:00:00Z"),
        )
        .home_file(&home_name("cut"), &whole[..whole.len() - 10])
        .home_file(&home_name("dir/inside"), "x");
    fs::rename(
        cli.home().join(".bantam/sessions/dir"),
        cli.home().join(home_name("dir")),
    )
    .unwrap();
    let bad = ["", "{", "\0\0\0\0", "{}", "[1]", "null"];
    for (index, content) in bad.iter().enumerate() {
        cli = cli.home_file(&home_name(&format!("bad{index}")), content);
    }
    let run = cli.lines(["/list"]).run();
    run.success().stdout_has("  2 messages  fine\n");
    assert_eq!(
        run.stdout.matches("  unreadable: ").count(),
        bad.len() + 2,
        "{run}"
    );
}

#[test]
fn c13_names_and_titles_cannot_drive_the_terminal() {
    let server = answering(0);
    let run = Cli::against(&server)
        .home_file(
            &home_name("x"),
            file("x", "a\u{1b}]52;c;x\u{7}b\u{9b}2J", "2021-01-01T00:00:00Z"),
        )
        .home_file(&home_name("n\u{1b}[2J"), "{}")
        .lines(["/list"])
        .run();
    run.success().lacks("\u{1b}").lacks("\u{9b}").lacks("\u{7}");
}

#[test]
fn e6_resume_lists_the_twenty_newest() {
    let server = answering(0);
    let mut cli = Cli::against(&server);
    for number in 10..35 {
        let id = format!("s{number}");
        let updated = format!("2021-01-01T00:{number}:00Z");
        cli = cli.home_file(&home_name(&id), file(&id, &id, &updated));
    }
    let run = cli.lines(["/resume"]).run();
    run.success();
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 20, "{run}");
    assert!(
        lines[0].ends_with("  s34") && lines[19].ends_with("  s15"),
        "{run}"
    );
}

// E6: /load and /continue

#[test]
fn e6_load_takes_an_id_or_a_unique_beginning() {
    for id in [
        "/load plan",
        "/load plan-b",
        "/resume plan-b",
        "/load other",
    ] {
        let server = answering(1);
        let cli = Cli::against(&server)
            .home_file(
                &home_name("plan"),
                file("plan", "plan", "2021-01-01T00:00:00Z"),
            )
            .home_file(
                &home_name("plan-b1"),
                file("plan-b1", "plan-b1", "2021-01-01T00:00:00Z"),
            )
            .home_file(
                &home_name("others"),
                file("others", "others", "2021-01-01T00:00:00Z"),
            );
        let run = cli.lines([id, "more"]).run();
        run.success();
        let messages = server.last_request().messages();
        let wanted = match id.split_once(' ').unwrap().1 {
            "plan" => "plan",
            "plan-b" => "plan-b1",
            _ => "others",
        };
        assert_eq!(contents(&messages)[0], wanted);
        assert_ne!(
            messages[0]["content"], "an old system prompt",
            "the current one is sent"
        );
        let old = file(wanted, wanted, "2021-01-01T00:00:00Z");
        assert_eq!(
            fs::read_to_string(path(run.home(), wanted)).unwrap(),
            old,
            "it stays as it was"
        );
        let saved = said(run.home(), &project(run.directory()));
        assert_eq!(
            saved[2..],
            ["more", "a1"],
            "auto-save goes to the project's file"
        );
    }
}

#[test]
fn e6_what_cannot_be_loaded_is_told_and_the_conversation_stays() {
    let server = answering(2);
    let run = Cli::against(&server)
        .home_file(
            &home_name("same-a"),
            file("same-a", "x", "2021-01-01T00:00:00Z"),
        )
        .home_file(
            &home_name("same-b"),
            file("same-b", "x", "2021-01-01T00:00:00Z"),
        )
        .home_file(&home_name("bad"), "{\"messages\":[")
        .home_file("outside.json", "[]")
        .lines([
            "one",
            "/load same",
            "/load bad",
            "/load nothing",
            "/load ../../outside",
            "/load",
            "two",
        ])
        .run();
    run.stderr_has("same-a, same-b")
        .stderr_has("`bad`")
        .stderr_has("there is no session `nothing`")
        .stderr_has("there is no session `../../outside`")
        .stderr_has("usage: /load ID");
    assert_eq!(server.last_request().contents("user"), ["one", "two"]);
    assert_eq!(
        fs::read_to_string(path(run.home(), "bad")).unwrap(),
        "{\"messages\":["
    );
}

#[test]
fn e6_a_damaged_project_file_is_moved_aside_by_the_next_save() {
    let server = answering(2);
    let first = run(&server, ["one"]);
    let project = project(first.directory());
    fs::write(path(first.home(), &project), "{\"cut").unwrap();
    let second = Cli::after(first).lines(["/continue", "two"]).run();
    second.stderr_has("error: ").stderr_has(&project);
    assert_eq!(said(second.home(), &project), ["two", "a2"]);
    let aside = fs::read_to_string(path(second.home(), &format!("{project}-1"))).unwrap();
    assert_eq!(aside, "{\"cut");
}

#[test]
fn e6_continue_goes_on_with_the_projects_last_conversation() {
    let server = answering(4);
    let first = run(&server, ["one"]);
    let project = project(first.directory());
    let second = then(first, ["/cont", "two"]);
    assert_eq!(server.last_request().contents("user"), ["one", "two"]);
    assert_eq!(
        ids(second.home()),
        [project.as_str()],
        "it goes on in its file"
    );
    let third = then(second, ["three", "/continue", "four"]);
    assert_eq!(
        server.last_request().contents("user"),
        ["one", "two", "four"]
    );
    assert_eq!(said(third.home(), &project).len(), 6);
    assert_eq!(said(third.home(), &format!("{project}-2")), ["three", "a3"]);
    assert_eq!(
        ids(third.home()).len(),
        2,
        "each conversation is in one file"
    );
}

#[test]
fn e6_continue_without_anything_to_go_on_with_says_so() {
    let server = answering(1);
    let run = Cli::against(&server)
        .lines(["/continue", "one", "/cont"])
        .run();
    assert_eq!(run.stderr.matches("error: ").count(), 2, "{run}");
    assert_eq!(server.last_request().contents("user"), ["one"]);
}

#[test]
fn e6_another_model_is_named_and_the_current_one_kept() {
    let server = answering(1);
    let old = file("x", "x", "2021-01-01T00:00:00Z").replace("test-model", "old-model");
    let run = Cli::against(&server)
        .home_file(&home_name("x"), old)
        .lines(["/load x", "more"])
        .run();
    run.success().stderr_has("old-model");
    assert_eq!(server.last_request().json()["model"], "test-model");
}

#[test]
fn e1_files_of_other_programs_are_loaded_too() {
    let messages = json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
    ]);
    for content in [messages.clone(), json!({"messages": messages})] {
        let server = answering(1);
        let run = Cli::against(&server)
            .home_file(&home_name("x"), content.to_string())
            .lines(["/list", "/load x", "more"])
            .run();
        run.success().stdout_has("2 messages  hello");
        assert_eq!(server.last_request().contents("user"), ["hello", "more"]);
    }
}

// E7: repair

#[test]
fn e7_a_broken_history_is_made_valid_and_the_person_is_told() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "shell_exec", "arguments": arguments}});
    let messages = json!([
        {"role": "system", "content": "s"},
        {"role": "tool", "tool_call_id": "zz", "content": "a result without its call"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "", "tool_calls": [call("1", "{\"command\":\"ls\"}"), call("1", "oops")]},
        {"role": "tool", "tool_call_id": "1", "content": "files"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": null},
        {"role": "assistant", "content": "", "tool_calls": [call("1", "[]")]},
    ]);
    let server = answering(1);
    let run = Cli::against(&server)
        .home_file(&home_name("x"), messages.to_string())
        .lines(["/load x", "three"])
        .run();
    run.success()
        .stderr_has("2 results added")
        .stderr_has("1 empty answer removed");
    let request = server.last_request();
    assert_eq!(request.contents("user"), ["one", "two", "three"]);
    assert_eq!(request.contents("tool").len(), 3);
}

// A3: --resume

#[test]
fn a3_resume_starts_from_the_projects_session() {
    let server = answering(3);
    let first = run(&server, ["one"]);
    let second = Cli::after(first).arg("--resume").lines(["two"]).run();
    second.success();
    assert_eq!(server.last_request().contents("user"), ["one", "two"]);
    let third = Cli::after(second).arg("--resume").prompt("three").run();
    third.success();
    assert_eq!(
        server.last_request().contents("user"),
        ["one", "two", "three"]
    );
    assert_eq!(said(third.home(), &project(third.directory())).len(), 6);
    assert_eq!(ids(third.home()).len(), 1);
}

#[test]
fn a3_resume_finds_what_was_kept_aside_when_the_projects_own_file_is_gone() {
    let server = answering(4);
    let first = run(&server, ["one", "/clear", "two", "/clear", "three"]);
    let project = project(first.directory());
    fs::remove_file(path(first.home(), &project)).unwrap();
    let second = Cli::after(first).arg("--resume").lines(["four"]).run();
    second.success();
    assert_eq!(server.last_request().contents("user"), ["two", "four"]);
}

#[test]
fn a3_resume_with_a_file_goes_on_in_the_sessions_own_file() {
    for resume in [
        vec!["--resume=named"],
        vec!["--resume", "named"],
        vec!["--resume=nam"],
    ] {
        let server = answering(1);
        let run = Cli::against(&server)
            .home_file(
                &home_name("named"),
                file("named", "one", "2021-01-01T00:00:00Z"),
            )
            .args(resume)
            .prompt("two")
            .run();
        run.success();
        assert_eq!(server.last_request().contents("user"), ["one", "two"]);
        assert_eq!(
            said(run.home(), "named"),
            ["one", "answer to one", "two", "a1"]
        );
        assert_eq!(ids(run.home()), ["named"]);
    }
}

#[test]
fn a3_resume_with_an_id_and_no_file_leaves_that_session_as_it_was() {
    let server = answering(1);
    let old = file("named", "one", "2021-01-01T00:00:00Z");
    let run = Cli::against(&server)
        .home_file(&home_name("named"), &old)
        .args(["--resume", "named"])
        .lines(["two"])
        .run();
    run.success();
    assert_eq!(fs::read_to_string(path(run.home(), "named")).unwrap(), old);
    assert_eq!(said(run.home(), &project(run.directory())).len(), 4);
}

#[test]
fn a3_a_session_that_is_not_there_is_a_notice_without_a_file() {
    for resume in ["--resume", "--resume=nothing"] {
        let server = answering(1);
        let run = Cli::against(&server).arg(resume).lines(["one"]).run();
        run.success().stderr_has("session");
        assert_eq!(server.last_request().contents("user"), ["one"]);
    }
}
