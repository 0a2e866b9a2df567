//! Commands, their limits, and what they leave behind (SPEC D3–D5).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::json;

use super::{AT_ONCE, call_in, shell, shell_in};
use crate::common::DEADLINE;
use crate::common::cli::Cli;
use crate::common::process::{end, is_running, wait_for_end_of, wait_until};
use crate::common::server::{Reply, Server};

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
    let server = Server::start([
        Reply::shell("rm -r \"$(pwd -P)\""),
        Reply::shell("echo hi"),
        Reply::answer("ok"),
    ]);
    Cli::against(&server).prompt("x").run().success();
    let result = server.last_request().contents("tool").remove(1);
    assert!(result.contains("working directory"), "{result}");
}

#[test]
fn d3_the_limit_of_one_call_may_be_longer_or_shorter_than_the_general_one() {
    let limited = |cli: Cli| cli.config("shell_timeout=1");
    let call = json!({"command": "sleep 1.3; echo ok", "timeout_s": 30});
    let (longer, _) = call_in(limited, "shell_exec", &call);
    assert_eq!(longer, "ok\n\n\nexit: 0");
    let call = json!({"command": "sleep 60; echo ok", "timeout_s": "1"});
    let (shorter, _) = call_in(|cli| cli, "shell_exec", &call);
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
#[cfg(target_os = "linux")]
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
fn d5_a_background_process_may_keep_writing_after_the_run() {
    let background = "(while [ ! -s go ]; do sleep 0.05; done; i=0; \
                      while [ $i -lt 20000 ]; do echo line || exit 1; i=$((i+1)); done; \
                      echo survived > proof) & echo started";
    let (_, run) = shell_in(|cli| cli, background);
    fs::write(run.directory().join("go"), "now").unwrap();
    let proof = run.directory().join("proof");
    let survived = wait_until(Instant::now() + DEADLINE, || {
        fs::read_to_string(&proof).is_ok_and(|text| text == "survived\n")
    });
    assert!(survived);
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

#[test]
fn b9_the_key_of_the_environment_is_masked_where_a_command_shows_it() {
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
fn d3_twenty_commands_in_a_row_work() {
    let commands = (0..20).map(|_| Reply::shell("true"));
    let server = Server::start(commands.chain([Reply::answer("ok")]));
    Cli::against(&server).prompt("x").run().success();
    assert_eq!(server.last_request().contents("tool").len(), 20);
}

#[test]
fn d3_the_signals_of_a_command_are_as_a_shell_expects_them() {
    assert_eq!(shell("yes | head -n 1"), "y\n\n\nexit: 0");
    let caught = shell("trap 'echo caught' INT TERM; kill -INT $$; kill -TERM $$");
    assert_eq!(caught, "caught\ncaught\n\n\nexit: 0");
}

#[test]
#[cfg(target_os = "linux")]
fn d3_a_command_gets_none_of_our_connections() {
    let sockets = shell("ls -l /proc/$$/fd | grep -c socket; exit 0");
    assert_eq!(sockets, "0\n\n\nexit: 0");
}
