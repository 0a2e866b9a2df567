//! What the two tools do to files and processes, seen from the model's side (SPEC D).

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::DEADLINE;
use crate::common::cli::{Cli, Output, end, is_running, wait_for_end_of, wait_until};
use crate::common::server::{Gate, Reply, Server};

/// Long enough for any test here, and far shorter than the `sleep`s in it: a run that waits for
/// one of them fails.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Lets the model run one command in this directory; gives the result and the run.
#[track_caller]
fn shell_in(cli: impl FnOnce(Cli) -> Cli, command: &str) -> (String, Output) {
    call_in(cli, "shell_exec", &json!({ "command": command }))
}

#[track_caller]
fn shell(command: &str) -> String {
    shell_in(|cli| cli, command).0
}

/// Lets the model make one call; gives the result and the run.
#[track_caller]
fn call_in(cli: impl FnOnce(Cli) -> Cli, name: &str, arguments: &Value) -> (String, Output) {
    let server = Server::start([Reply::call("a", name, arguments), Reply::answer("done")]);
    let run = cli(Cli::against(&server).prompt("x")).run();
    run.success();
    (server.last_request().result(), run)
}

#[track_caller]
fn write_in(cli: impl FnOnce(Cli) -> Cli, arguments: &Value) -> (String, Output) {
    call_in(cli, "write_file", arguments)
}

/// These numbers, one a line, as `seq` prints them.
fn lines(numbers: RangeInclusive<u32>) -> String {
    numbers.fold(String::new(), |text, number| {
        text + &number.to_string() + "\n"
    })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

// D1: write_file

#[test]
fn d1_without_numbers_the_file_becomes_the_content_and_parents_are_created() {
    let call = json!({"path": "a/b/c.txt", "content": "new\n"});
    write_in(|cli| cli, &call).1.file("a/b/c.txt", "new\n");
    write_in(|cli| cli.file("a/b/c.txt", "old and longer"), &call)
        .1
        .file("a/b/c.txt", "new\n");
}

#[test]
fn d1_the_content_may_be_empty() {
    let call = json!({"path": "f", "content": ""});
    write_in(|cli| cli.file("f", "old"), &call).1.file("f", "");
}

#[test]
fn d1_with_numbers_bytes_are_spliced() {
    for (offset, deleted, expected) in [
        (json!(0), json!(0), "XYabcdef"),
        (json!(2), json!(0), "abXYcdef"),
        (json!(2), json!(3), "abXYf"),
        (json!(6), json!(0), "abcdefXY"),
        (json!(4), json!(100), "abcdXY"),
        (json!(0), json!(6), "XY"),
        (json!(1), Value::Null, "aXYbcdef"),
        (Value::Null, json!(2), "XYcdef"),
    ] {
        let mut call = json!({"path": "f", "content": "XY"});
        for (name, value) in [("offset", offset), ("del_bytes", deleted)] {
            if !value.is_null() {
                call[name] = value;
            }
        }
        write_in(|cli| cli.file("f", "abcdef"), &call)
            .1
            .file("f", expected);
    }
}

#[test]
fn d1_a_splice_touches_nothing_but_its_bytes() {
    let call = json!({"path": "f", "content": "Z", "offset": 3, "del_bytes": 1});
    write_in(|cli| cli.file("f", b"\xef\xbb\xbfa\r\nb\r\n\xff"), &call)
        .1
        .file("f", b"\xef\xbb\xbfZ\r\nb\r\n\xff");
}

#[test]
fn d1_an_offset_beyond_the_end_names_the_size_and_changes_nothing() {
    let call = json!({"path": "f", "content": "X", "offset": 7});
    let (result, run) = write_in(|cli| cli.file("f", "abcdef"), &call);
    assert!(result.contains('6'), "{result}");
    run.file("f", "abcdef");
}

#[test]
fn d1_an_offset_into_a_file_that_is_not_there_is_an_error_beyond_0() {
    let call = json!({"path": "f", "content": "X", "offset": 1});
    write_in(|cli| cli, &call).1.no_file("f");
    let call = json!({"path": "f", "content": "X", "offset": 0});
    write_in(|cli| cli, &call).1.file("f", "X");
}

#[test]
fn d1_negative_and_enormous_numbers_are_errors_and_change_nothing() {
    for (name, number) in [
        ("offset", json!(-1)),
        ("del_bytes", json!(-1)),
        ("offset", json!(u64::MAX)),
        ("offset", json!(1e300)),
    ] {
        let call = json!({"path": "f", "content": "X", name: number});
        let (result, run) = write_in(|cli| cli.file("f", "abc"), &call);
        assert!(result.contains(name) || result.contains("size"), "{result}");
        run.file("f", "abc").stderr_lacks("panicked");
    }
}

#[test]
fn d1_an_enormous_number_of_deleted_bytes_deletes_to_the_end() {
    let call = json!({"path": "f", "content": "X", "offset": 1, "del_bytes": i64::MAX});
    write_in(|cli| cli.file("f", "abc"), &call)
        .1
        .file("f", "aX");
}

#[test]
fn d1_a_cut_inside_a_character_names_the_nearest_boundaries() {
    for (offset, deleted, near) in [(2, 0, ["1", "4"]), (3, 1, ["1", "4"]), (1, 1, ["1", "4"])] {
        let call = json!({"path": "f", "content": "X", "offset": offset, "del_bytes": deleted});
        let (result, run) = write_in(|cli| cli.file("f", "a€b"), &call);
        assert!(near.iter().all(|at| result.contains(at)), "{result}");
        run.file("f", "a€b");
    }
}

#[test]
fn d1_a_file_that_is_no_text_may_be_cut_anywhere() {
    let call = json!({"path": "f", "content": "X", "offset": 2, "del_bytes": 1});
    write_in(|cli| cli.file("f", b"\xff\xe2\x82\xac"), &call)
        .1
        .file("f", b"\xff\xe2X\xac");
}

#[test]
fn d1_a_leading_tilde_means_home() {
    let call = json!({"path": "~/notes/x", "content": "in home"});
    let (_, run) = write_in(|cli| cli, &call);
    let written = fs::read_to_string(run.home().join("notes/x")).unwrap();
    assert_eq!(written, "in home");
    run.no_file("~");
}

#[test]
fn d1_paths_that_are_no_files_are_errors() {
    for path in [
        "",
        ".",
        "folder",
        "folder/",
        "new/",
        "file/below",
        "/proc/nothing/here",
    ] {
        let call = json!({"path": path, "content": "X"});
        let (result, run) = write_in(|cli| cli.file("folder/inner", "i").file("file", "f"), &call);
        assert!(!result.is_empty(), "{path:?}");
        run.file("folder/inner", "i")
            .file("file", "f")
            .no_file("new")
            .stderr_lacks("panicked");
    }
}

// D2: how it is written

#[test]
fn d2_a_changed_file_keeps_its_mode() {
    let server = Server::start([
        Reply::call(
            "a",
            "write_file",
            &json!({"path": "f", "content": "#!/bin/sh\n"}),
        ),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("f", "old").prompt("x");
    fs::set_permissions(cli.directory().join("f"), fs::Permissions::from_mode(0o751)).unwrap();
    let run = cli.run();
    run.success().file("f", "#!/bin/sh\n");
    assert_eq!(mode(&run.directory().join("f")), 0o751);
}

#[test]
fn d2_a_new_file_has_the_mode_of_the_umask() {
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let call = json!({"path": "f", "content": "x"});
        let script = format!("umask {umask}; exec \"$@\"");
        let (_, run) = write_in(|cli| cli.through(&script), &call);
        assert_eq!(mode(&run.directory().join("f")), expected);
    }
}

#[test]
fn d2_a_symlink_is_followed_and_stays_one() {
    let server = Server::start([
        Reply::call(
            "a",
            "write_file",
            &json!({"path": "link", "content": "new"}),
        ),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("real/target", "old").prompt("x");
    symlink("real/target", cli.directory().join("link")).unwrap();
    let run = cli.run();
    run.success().file("real/target", "new");
    let link = run.directory().join("link");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn d2_a_file_with_two_names_keeps_both() {
    let server = Server::start([
        Reply::call("a", "write_file", &json!({"path": "one", "content": "new"})),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("one", "old").prompt("x");
    fs::hard_link(cli.directory().join("one"), cli.directory().join("two")).unwrap();
    cli.run().success().file("one", "new").file("two", "new");
}

#[test]
fn d2_a_file_is_replaced_and_not_written_over() {
    let server = Server::start([
        Reply::call("a", "write_file", &json!({"path": "f", "content": "new"})),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("f", "old").prompt("x");
    let before = fs::metadata(cli.directory().join("f")).unwrap().ino();
    let held = fs::File::open(cli.directory().join("f")).unwrap();
    let run = cli.run();
    run.success();
    assert_ne!(
        fs::metadata(run.directory().join("f")).unwrap().ino(),
        before
    );
    assert_eq!(std::io::read_to_string(held).unwrap(), "old");
    let names = fs::read_dir(run.directory()).unwrap().count();
    assert_eq!(
        names, 3,
        "the file, the prompt and the config, and nothing left over"
    );
}

#[test]
fn d2_a_write_that_fails_leaves_the_old_file() {
    let content = "x".repeat(1_000_000);
    let call = json!({"path": "f", "content": content});
    let script = r#"ulimit -f 100; trap '' XFSZ; exec "$@""#;
    let (result, run) = write_in(|cli| cli.file("f", "old").through(script), &call);
    run.file("f", "old");
    assert!(!result.contains("created"), "{result}");
    let names: Vec<_> = fs::read_dir(run.directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "nothing is left over: {names:?}");
}

#[test]
fn d2_a_pipe_nobody_reads_is_an_error_and_no_wait() {
    let script = r#"mkfifo pipe; exec "$@""#;
    let call = json!({"path": "pipe", "content": "x"});
    let (result, _) = write_in(|cli| cli.through(script), &call);
    assert!(result.contains("pipe"), "{result}");
}

#[test]
fn d2_a_pipe_someone_reads_is_written_to() {
    let script = r#"mkfifo pipe; (cat pipe > received) & exec "$@""#;
    let call = json!({"path": "pipe", "content": "through the pipe"});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let run = Cli::against(&server).through(script).prompt("x").start();
    let directory = run.directory().to_owned();
    let received = || fs::read_to_string(directory.join("received")).unwrap_or_default();
    let arrived = wait_until(Instant::now() + DEADLINE, || {
        received() == "through the pipe"
    });
    assert!(arrived, "{}", run.stdout());
    run.finish().success();
}

#[test]
fn d2_a_device_is_written_in_place() {
    let call = json!({"path": "/dev/null", "content": "x"});
    write_in(|cli| cli, &call);
    assert!(Path::new("/dev/null").metadata().unwrap().len() == 0);
}

#[test]
fn d2_the_result_says_what_happened() {
    let call = json!({"path": "f", "content": "12345"});
    let (created, _) = write_in(|cli| cli, &call);
    assert!(
        created.contains('5') && created.contains("created"),
        "{created}"
    );
    let (changed, _) = write_in(|cli| cli.file("f", "old"), &call);
    assert!(
        changed.contains('5') && !changed.contains("created"),
        "{changed}"
    );
}

// D3: shell_exec

#[test]
fn d3_both_outputs_come_in_order_with_the_exit_code() {
    let result = shell("echo out; echo err >&2; echo out again; exit 9");
    assert_eq!(result, "out\nerr\nout again\n\n\nexit: 9");
}

#[test]
fn d3_a_command_without_output_has_an_exit_code() {
    assert_eq!(shell("true"), "\n\nexit: 0");
}

#[test]
fn d3_a_signal_gives_128_and_its_number() {
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        let result = shell(&format!("kill -{signal} $$"));
        assert!(result.contains(&format!("exit: {code}")), "{result}");
    }
}

#[test]
fn d3_the_command_runs_in_the_current_directory_with_empty_input() {
    let (result, run) = shell_in(Cli::stdin_open, "pwd -P; cat; echo read");
    let directory = fs::canonicalize(run.directory()).unwrap();
    assert_eq!(
        result,
        format!("{}\nread\n\n\nexit: 0", directory.display())
    );
}

#[test]
fn d3_the_command_has_a_session_of_its_own_and_no_terminal() {
    let result = shell("read line </dev/tty; echo \"got=$line\"");
    assert!(result.contains("got=\n"), "{result}");
}

#[test]
fn d3_sh_is_found_through_path() {
    let fake = "#!/bin/sh\necho the-fake-shell \"$1\"\n";
    let server = Server::start([Reply::shell("echo never"), Reply::answer("ok")]);
    let cli = Cli::against(&server).file("bin/sh", fake).prompt("x");
    let bin = cli.directory().join("bin");
    fs::set_permissions(bin.join("sh"), fs::Permissions::from_mode(0o755)).unwrap();
    cli.env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .run()
        .success();
    let result = server.last_request().result();
    assert!(result.starts_with("the-fake-shell -c"), "{result}");
}

#[test]
fn d3_without_any_sh_there_is_an_error_that_says_so() {
    let (result, _) = shell_in(|cli| cli.env("PATH", "/nowhere"), "echo hi");
    // A system may have one where we look without PATH; then it is used.
    assert!(
        result.contains("sh") || result == "hi\n\n\nexit: 0",
        "{result}"
    );
}

#[test]
fn d3_pagers_and_prompts_are_told_not_to_wait_but_what_the_person_set_stays() {
    let names = [
        "PAGER",
        "GIT_PAGER",
        "MANPAGER",
        "GIT_EDITOR",
        "GIT_TERMINAL_PROMPT",
    ];
    let show = "echo $PAGER $GIT_PAGER $MANPAGER $GIT_EDITOR $GIT_TERMINAL_PROMPT";
    assert_eq!(shell(show), "cat cat cat true 0\n\n\nexit: 0");
    let (result, _) = shell_in(
        |cli| {
            names
                .into_iter()
                .fold(cli, |cli, name| cli.env(name, name.to_lowercase()))
        },
        show,
    );
    assert_eq!(
        result,
        "pager git_pager manpager git_editor git_terminal_prompt\n\n\nexit: 0"
    );
}

#[test]
fn d3_commands_longer_than_the_limit_for_one_argument_work() {
    let line = "0123456789 'quoted' \"$HOME\" \\ `x`\n";
    let text = line.repeat(10_000);
    let (result, run) = shell_in(|cli| cli, &format!("cat > f <<'EOF'\n{text}EOF\nwc -c < f"));
    assert_eq!(result.trim_start(), format!("{}\n\n\nexit: 0", text.len()));
    run.file("f", text);
}

#[test]
fn d3_nothing_is_appended_to_the_command() {
    assert_eq!(shell("cat <<EOF\ntext\nEOF"), "text\n\n\nexit: 0");
    assert_eq!(shell("echo hi # a comment"), "hi\n\n\nexit: 0");
    assert_eq!(shell("echo hi \\"), "hi\n\n\nexit: 0");
    let unclosed = shell("echo 'unclosed");
    assert!(
        unclosed.ends_with("exit: 2") || unclosed.ends_with("exit: 1"),
        "{unclosed}"
    );
}

#[test]
fn d3_the_shell_is_never_a_login_shell() {
    let (result, _) = shell_in(
        |cli| cli.home_file(".profile", "echo from-profile\nexport PATH=/scrambled\n"),
        "echo $PATH",
    );
    let path = std::env::var("PATH").unwrap();
    assert_eq!(result, format!("{path}\n\n\nexit: 0"));
}

#[test]
fn d3_a_working_directory_that_is_gone_gives_a_readable_error() {
    let script = r#"mkdir gone; cd gone; rmdir ../gone; exec "$@""#;
    let server = Server::start([Reply::shell("echo hi"), Reply::answer("ok")]);
    let endpoint = format!("endpoint={}", server.url());
    let run = Cli::new()
        .through(script)
        .args(["-c", &endpoint, "-"])
        .stdin("x")
        .run();
    run.success();
    let result = server.last_request().result();
    assert!(
        result.contains("director") || result.contains("exit: 0"),
        "{result}"
    );
}

#[test]
fn d3_the_limit_of_one_call_may_be_longer_or_shorter_than_the_general_one() {
    let call = |limit: &Value| json!({"command": "sleep 2; echo ok", "timeout_s": limit});
    let (longer, _) = call_in(
        |cli| cli.config("shell_timeout=1"),
        "shell_exec",
        &call(&json!(30)),
    );
    assert_eq!(longer, "ok\n\n\nexit: 0");
    let (text, _) = call_in(
        |cli| cli.config("shell_timeout=1"),
        "shell_exec",
        &call(&json!("30")),
    );
    assert_eq!(text, "ok\n\n\nexit: 0");
    let (shorter, _) = call_in(|cli| cli, "shell_exec", &call(&json!(1)));
    assert!(shorter.ends_with("exit: 124"), "{shorter}");
}

#[test]
fn d3_odd_limits_are_clamped() {
    for limit in [json!(0), json!(-1), json!(1e12), json!(i64::MAX)] {
        let call = json!({"command": "echo ok", "timeout_s": limit});
        let (result, run) = call_in(|cli| cli, "shell_exec", &call);
        assert!(
            result.contains("ok\n") || result.contains("timeout_s"),
            "{limit}: {result}"
        );
        run.stderr_lacks("panicked");
    }
}

// D4: the limit

#[test]
fn d4_a_command_that_takes_too_long_is_ended_with_its_children_and_keeps_its_output() {
    let command = "echo begun; sleep 300 & echo $! > child; echo $$ > pid; sleep 300; echo never";
    let (result, run) = shell_in(|cli| cli.config("shell_timeout=1"), command);
    assert!(result.starts_with("begun\n"), "{result}");
    assert!(
        result.contains("timed out") && result.contains("1 s"),
        "{result}"
    );
    assert!(result.ends_with("\n\nexit: 124"), "{result}");
    assert!(!result.contains("never"), "{result}");
    for name in ["pid", "child"] {
        let pid = fs::read_to_string(run.directory().join(name)).unwrap();
        wait_for_end_of(pid.trim().parse().unwrap());
    }
}

#[test]
fn d4_a_command_that_ignores_the_friendly_signal_is_killed() {
    let command = "trap '' TERM; echo $$ > pid; sleep 60; sleep 60";
    let begun = Instant::now();
    let (result, run) = shell_in(|cli| cli.config("shell_timeout=1"), command);
    assert!(begun.elapsed() < AT_ONCE);
    assert!(result.ends_with("\n\nexit: 124"), "{result}");
    let pid = fs::read_to_string(run.directory().join("pid")).unwrap();
    wait_for_end_of(pid.trim().parse().unwrap());
}

// D5: what is left behind

#[test]
fn d5_a_background_process_does_not_hold_the_call_and_lives_on() {
    let begun = Instant::now();
    let (result, run) = shell_in(|cli| cli, "sleep 300 & echo $! > pid; echo started; exit 3");
    assert!(begun.elapsed() < AT_ONCE);
    assert!(result.starts_with("started\n"), "{result}");
    assert!(result.ends_with("\n\nexit: 3"), "{result}");
    let pid = fs::read_to_string(run.directory().join("pid")).unwrap();
    let pid = pid.trim().parse().unwrap();
    assert!(is_running(pid), "it was to live on");
    end(pid);
}

#[test]
fn d5_a_process_that_left_the_session_does_not_hold_the_call() {
    let begun = Instant::now();
    let command =
        "setsid sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do :; done; echo x";
    let (result, run) = shell_in(|cli| cli.config("shell_timeout=5"), command);
    assert!(begun.elapsed() < AT_ONCE);
    assert!(result.starts_with("x\n"), "{result}");
    let pid = fs::read_to_string(run.directory().join("pid")).unwrap();
    end(pid.trim().parse().unwrap());
}

#[test]
fn d5_a_background_process_may_keep_writing_while_the_run_goes_on() {
    let background = "(i=0; while [ $i -lt 200 ]; do echo line; i=$((i+1)); done; sleep 0.3; \
                      echo later || exit 1; echo survived > proof) & echo started";
    let server = Server::start([
        Reply::shell(background),
        Reply::shell("while [ ! -s proof ]; do sleep 0.05; done; cat proof"),
        Reply::answer("ok"),
    ]);
    Cli::against(&server)
        .config("shell_timeout=10")
        .prompt("x")
        .run()
        .success()
        .file("proof", "survived\n");
}

#[test]
fn d5_a_server_of_an_earlier_call_is_there_in_the_next_one() {
    let server = Server::start([
        Reply::shell("nohup sleep 300 >/dev/null 2>&1 & echo $! > pid"),
        Reply::shell("kill -0 $(cat pid) && echo alive"),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server).prompt("x").run();
    run.success();
    assert_eq!(
        server.last_request().contents("tool")[1],
        "alive\n\n\nexit: 0"
    );
    let pid = fs::read_to_string(run.directory().join("pid")).unwrap();
    end(pid.trim().parse().unwrap());
}

// D6: much output

#[test]
fn d6_long_output_comes_as_head_and_tail_with_the_whole_in_a_file() {
    let (result, run) = shell_in(|cli| cli, "seq 1 200000; echo FATAL-END >&2; exit 9");
    assert!(result.starts_with("1\n2\n3\n"), "{}", &result[..50]);
    assert!(
        result.ends_with("FATAL-END\n\n\nexit: 9"),
        "{}",
        &result[result.len() - 50..]
    );
    let length = result.chars().count();
    assert!((40_000..52_000).contains(&length), "{length}");
    let files: Vec<_> = run
        .home_files()
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("-artifacts/"))
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let path = run.home().join(&files[0]);
    assert!(
        result.contains(path.to_str().unwrap()),
        "{} is not named",
        path.display()
    );
    assert_eq!(mode(&path), 0o600);
    let whole = fs::read_to_string(&path).unwrap();
    let expected = lines(1..=200_000);
    assert!(whole.starts_with(&expected) && whole.contains("FATAL-END\n"));
}

#[test]
fn d6_the_limit_can_be_set_and_counts_characters() {
    let print = "printf 'é%.0s' $(seq 900)";
    let limit = |cli: Cli| cli.config("tool_output_limit=1000");
    let (within, _) = shell_in(limit, print);
    assert_eq!(within, format!("{}\n\nexit: 0", "é".repeat(900)));
    let (beyond, _) = shell_in(limit, "printf 'é%.0s' $(seq 2000)");
    assert!(beyond.matches('é').count() <= 1_000, "{beyond}");
    assert!(!beyond.contains('\u{fffd}'), "{beyond}");
    assert!(beyond.ends_with("\n\nexit: 0"), "{beyond}");
}

#[test]
fn d6_without_a_limit_the_model_gets_it_all() {
    let (result, run) = shell_in(|cli| cli.config("tool_output_limit=0"), "seq 1 20000");
    let expected = lines(1..=20_000);
    assert_eq!(result, format!("{expected}\n\nexit: 0"));
    assert!(
        run.home_files()
            .iter()
            .all(|path| !path.to_string_lossy().contains("artifacts"))
    );
}

#[test]
fn d6_a_cut_falls_between_characters_wherever_it_falls() {
    for width in 0..3 {
        let pad = "a".repeat(width);
        let command = format!("printf '{pad}'; printf '€%.0s' $(seq 5000)");
        let (result, _) = shell_in(|cli| cli.config("tool_output_limit=1001"), &command);
        assert!(!result.contains('\u{fffd}'), "{result}");
        assert!(result.starts_with(&format!("{pad}€€")), "{result}");
    }
}

#[test]
fn d6_binary_output_is_safe() {
    let (result, run) = shell_in(|cli| cli, "head -c 300000 /dev/urandom; echo; echo end");
    assert!(result.ends_with("end\n\n\nexit: 0"));
    run.lacks("\u{1b}").stderr_lacks("panicked");
}

#[test]
fn d6_a_line_without_an_end_is_safe() {
    let (result, _) = shell_in(|cli| cli, "head -c 3000000 /dev/zero | tr '\\0' x");
    assert!(result.starts_with("xxx"));
    assert!(result.ends_with("x\n\nexit: 0"));
    assert!(result.len() < 60_000);
}

#[test]
#[cfg(target_os = "linux")]
fn d6_memory_stays_bounded_however_much_is_printed() {
    let gate = Gate::new();
    // The benchmark prints 1 GB; this is as much as the slow test build gets through in a second.
    let server = Server::start([
        Reply::shell("yes | head -c 30000000"),
        Reply::stream().text("ok").hold(&gate).finish("stop").done(),
    ]);
    let run = Cli::against(&server).arg("-q").prompt("x").start();
    gate.wait();
    let peak = run.peak_memory();
    gate.open();
    run.finish().success();
    assert!(peak < 20_000_000, "{peak} bytes");
}

#[test]
fn d6_old_files_go_when_a_new_one_is_written() {
    let (_, first) = shell_in(|cli| cli, "seq 1 200000");
    let artifacts = first
        .home_files()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("-artifacts/"))
        .unwrap();
    let old = first.home().join(artifacts);
    let server = Server::start([Reply::shell("seq 1 200000"), Reply::answer("ok")]);
    let eight_days = Duration::from_secs(8 * 24 * 60 * 60);
    let file = fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(std::time::SystemTime::now() - eight_days)
        .unwrap();
    let config = format!("endpoint={}", server.url());
    let run = Cli::after(first).config(&config).prompt("x").run();
    run.success();
    assert!(!old.exists(), "{}", old.display());
}

// D7: what is shown

#[test]
fn d7_output_is_shown_while_the_command_runs_after_the_header_and_once() {
    let command = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second";
    let server = Server::start([Reply::shell(command), Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").start();
    run.wait_for_stdout("[tool result: shell_exec]\nfirst\n");
    fs::write(run.directory().join("go"), "").unwrap();
    let run = run.finish();
    run.success()
        .stdout_has("[tool result: shell_exec]\nfirst\nsecond\n\n\nexit: 0\nok\n");
    assert_eq!(run.stdout.matches("[tool result: ").count(), 1);
}

#[test]
fn d7_in_a_pipe_nothing_is_folded() {
    let (_, run) = shell_in(|cli| cli, "seq 1000 1100");
    let expected = lines(1000..=1100);
    run.stdout_has(&expected);
}

#[test]
fn d7_long_arguments_are_shortened_on_the_screen_only() {
    let content = "0123456789".repeat(1_000);
    let call = json!({"path": "f", "content": content});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().file("f", &content).stdout_lacks(&content);
    assert!(run.stdout.len() < 3_000, "{run}");
    assert!(server.request(1).text().contains(&content));
}

// Others' faults that are ours to avoid

#[test]
fn reports_31_the_key_of_the_environment_is_masked_where_a_command_shows_it() {
    let server = Server::start([Reply::shell("env"), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .env("OPENAI_API_KEY", "sk-secret-0123456789")
        .prompt("x")
        .run();
    run.success().lacks("sk-secret-0123456789");
    assert!(
        !server
            .last_request()
            .text()
            .contains("sk-secret-0123456789")
    );
}

#[test]
fn reports_26_twenty_commands_in_a_row_work() {
    let commands = (0..20).map(|_| Reply::shell("true"));
    let server = Server::start(commands.chain([Reply::answer("ok")]));
    Cli::against(&server).prompt("x").run().success();
    assert_eq!(server.last_request().contents("tool").len(), 20);
}
