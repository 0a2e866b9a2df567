//! Commands that behave, and commands that don't.

use super::process::{ENVIRONMENT, end_groups, running_groups};
use super::*;
use std::path::Path;
use std::process::Command;
use std::{env, fs};
use tokio::time::timeout;

/// The longest argument Linux takes, in bytes.
const LONGEST: usize = 128 * 1024 - 1;
/// Generous: it only keeps a failing test from hanging.
const PATIENCE: Duration = Duration::from_secs(20);

fn limits() -> Limits {
    Limits {
        timeout: PATIENCE,
        output_chars: 50_000,
        spill_dir: None,
        redactor: Redactor::default(),
    }
}

fn seconds(timeout: u64) -> Limits {
    Limits {
        timeout: Duration::from_secs(timeout),
        ..limits()
    }
}

/// Runs to the end, and holds what was shown against what is returned where nothing was cut.
async fn outcome_of(command: &str, limits: &Limits) -> Outcome {
    let mut shown = String::new();
    let mut show = |text: &str| shown.push_str(text);
    let cancel = CancellationToken::new();
    let run = run(command, limits, &cancel, &mut show);
    let outcome = timeout(PATIENCE, run).await.unwrap().unwrap();
    if limits.output_chars == 0 || shown.chars().count() < limits.output_chars {
        assert_eq!(shown, outcome.text);
    }
    outcome
}

async fn text_of(command: &str) -> String {
    outcome_of(command, &limits()).await.text
}

/// Runs `command` and cancels as soon as `cue` was shown.
async fn interrupted_at(cue: &str, command: &str) -> Outcome {
    let cancel = CancellationToken::new();
    let mut shown = String::new();
    let mut show = |text: &str| {
        shown.push_str(text);
        if shown.contains(cue) {
            cancel.cancel();
        }
    };
    let limits = limits();
    let run = run(command, &limits, &cancel, &mut show);
    timeout(PATIENCE, run).await.unwrap().unwrap()
}

/// The process id that `command` prints in a line `pid=N`.
fn pid_in(text: &str) -> u32 {
    let (_, rest) = text.split_once("pid=").unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Whether the process exists and has not merely not been waited for.
fn is_alive(pid: u32) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output();
    let stat = String::from_utf8(output.unwrap().stdout).unwrap();
    !stat.trim().is_empty() && !stat.trim().starts_with('Z')
}

async fn until_dead(pid: u32) {
    let deadline = Instant::now() + PATIENCE;
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "process {pid} lives on");
        sleep(TICK).await;
    }
}

fn kill(pid: u32) {
    Group::led_by(pid).unwrap().kill();
}

#[tokio::test]
async fn d3_a_result_is_the_output_and_the_exit_code() {
    for (command, text) in [
        ("echo hi", "hi\n\n\nexit: 0"),
        ("printf hi", "hi\n\nexit: 0"),
        ("true", "\n\nexit: 0"),
        ("exit 3", "\n\nexit: 3"),
        ("no-such-command-here 2>/dev/null", "\n\nexit: 127"),
        ("kill -9 $$", "\n\nexit: 137"),
        ("kill -TERM $$", "\n\nexit: 143"),
        (
            "echo out; echo err >&2; echo out",
            "out\nerr\nout\n\n\nexit: 0",
        ),
        ("cat; echo done", "done\n\n\nexit: 0"),
        ("echo $0", "sh\n\n\nexit: 0"),
        ("cat <<EOF\nx\nEOF", "x\n\n\nexit: 0"),
        ("echo a # comment", "a\n\n\nexit: 0"),
        ("false; (exit 5)", "\n\nexit: 5"),
    ] {
        assert_eq!(text_of(command).await, text, "{command}");
    }
}

#[tokio::test]
async fn d3_an_unclosed_quote_is_the_shells_business() {
    let text = text_of("echo 'a").await;
    assert!(
        text.ends_with("\n\nexit: 2") || text.ends_with("\n\nexit: 1"),
        "{text}"
    );
}

#[tokio::test]
async fn d3_a_nul_is_an_error() {
    let cancel = CancellationToken::new();
    let error = run("echo a\0b", &limits(), &cancel, &mut |_| {})
        .await
        .unwrap_err();
    assert!(error.to_string().contains("NUL"), "{error}");
}

#[tokio::test]
async fn d3_nothing_waits_for_a_key() {
    let value = |&(name, value): &(&str, &str)| env::var(name).unwrap_or(value.to_owned());
    let expected = ENVIRONMENT.iter().map(value).collect::<Vec<_>>().join("\n");
    let command = "for n in PAGER GIT_PAGER MANPAGER GIT_EDITOR GIT_TERMINAL_PROMPT; do eval echo \\$$n; done";
    assert_eq!(text_of(command).await, format!("{expected}\n\n\nexit: 0"));
}

#[tokio::test]
async fn d3_a_command_has_no_terminal_and_a_session_of_its_own() {
    let text = text_of("read x </dev/tty || echo none").await;
    assert!(text.contains("none"), "{text}");
    let text = text_of("ps -o sid=,pgid=,pid= -p $$").await;
    let ids: Vec<&str> = text.split_whitespace().take(3).collect();
    assert!(ids[0] == ids[2] && ids[1] == ids[2], "{text}");
}

#[tokio::test]
async fn d3_a_command_may_be_longer_than_an_argument() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("out");
    let body = "0123456789abcde\n".repeat(20_000);
    let command = format!(
        "cat >{} <<'EOF'\n{body}EOF\nread x; echo \"$x$?\"; exit 4",
        file.display()
    );
    assert_eq!(text_of(&command).await, "1\n\n\nexit: 4");
    assert_eq!(fs::read_to_string(&file).unwrap(), body);
    let unclosed = format!("cat <<'EOF' | wc -c\n{body}EOF");
    assert_eq!(text_of(&unclosed).await.trim_start(), "320000\n\n\nexit: 0");
}

#[tokio::test]
async fn d3_every_length_around_the_limit_of_an_argument_works() {
    for length in LONGEST - 1..=LONGEST + 1 {
        let command = format!("echo ok #{}", "x".repeat(length - 9));
        assert_eq!(text_of(&command).await, "ok\n\n\nexit: 0", "{length}");
    }
}

#[tokio::test]
async fn d4_a_command_is_ended_after_its_time() {
    let outcome = outcome_of(
        "echo a; sh -c 'echo pid=$$; sleep 99' & sleep 98",
        &seconds(2),
    )
    .await;
    assert_eq!(outcome.end, End::TimedOut(Duration::from_secs(2)));
    assert!(outcome.text.starts_with("a\npid="), "{}", outcome.text);
    assert!(
        outcome.text.contains("timed out: ended after 2 s."),
        "{}",
        outcome.text
    );
    assert!(outcome.text.contains("timeout_s"), "{}", outcome.text);
    assert!(outcome.text.ends_with("\n\nexit: 124"), "{}", outcome.text);
    until_dead(pid_in(&outcome.text)).await;
}

#[tokio::test]
async fn d4_a_command_that_ignores_the_request_is_killed() {
    let command = "trap '' TERM; echo pid=$$; while :; do sleep 1; done";
    let outcome = outcome_of(command, &seconds(2)).await;
    assert!(outcome.text.ends_with("exit: 124"), "{}", outcome.text);
    until_dead(pid_in(&outcome.text)).await;
}

#[tokio::test]
async fn d4_a_command_may_clean_up_and_say_so() {
    let command = "trap 'echo cleaned; exit 0' TERM; echo a; sleep 30 & wait";
    let outcome = outcome_of(command, &seconds(2)).await;
    assert!(
        outcome.text.starts_with("a\ncleaned\n\n\ntimed out"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn d4_a_command_that_stopped_itself_is_ended_too() {
    let outcome = outcome_of("echo pid=$$; kill -STOP $$", &seconds(2)).await;
    assert!(outcome.text.ends_with("exit: 124"), "{}", outcome.text);
    until_dead(pid_in(&outcome.text)).await;
}

#[tokio::test]
async fn d4_a_flood_does_not_keep_the_time_from_running_out() {
    let outcome = outcome_of("yes", &seconds(1)).await;
    assert!(outcome.text.starts_with("y\ny\n"));
    assert!(outcome.text.ends_with("\n\nexit: 124"));
}

#[tokio::test]
async fn d5_a_process_in_the_background_does_not_hold_the_shell_up_and_lives_on() {
    let text = text_of("sleep 97 & echo pid=$!; exit 3").await;
    assert!(text.ends_with("\n\n\nexit: 3"), "{text}");
    let pid = pid_in(&text);
    assert!(is_alive(pid));
    let alive = text_of(&format!("kill -0 {pid} && echo alive; kill {pid}")).await;
    assert_eq!(alive, "alive\n\n\nexit: 0");
    until_dead(pid).await;
}

#[tokio::test]
async fn d5_a_process_left_behind_may_go_on_writing() {
    let home = tempfile::tempdir().unwrap();
    let done = home.path().join("done");
    let command = format!(
        "(while [ ! -e {0}.go ]; do sleep 0.05; done; yes | head -c 500000; echo $? >{0}) & echo a",
        done.display()
    );
    assert_eq!(text_of(&command).await, "a\n\n\nexit: 0");
    fs::write(home.path().join("done.go"), "").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while fs::read_to_string(&done).unwrap_or_default() != "0\n" {
        assert!(Instant::now() < deadline, "it could not write on");
        sleep(TICK).await;
    }
}

#[tokio::test]
async fn d5_a_process_that_left_the_group_cannot_hang_the_agent() {
    let command = "setsid sh -c 'echo pid=$$; sleep 96' & sleep 95";
    let outcome = outcome_of(command, &seconds(2)).await;
    assert!(outcome.text.ends_with("exit: 124"), "{}", outcome.text);
    kill(pid_in(&outcome.text));
    let home = tempfile::tempdir().unwrap();
    let command = format!(
        "setsid sh -c 'echo pid=$$; : >{0}; sleep 94' & until [ -e {0} ]; do sleep 0.05; done; echo x",
        home.path().join("started").display()
    );
    let text = text_of(&command).await;
    assert!(text.ends_with("x\n\n\nexit: 0"), "{text}");
    kill(pid_in(&text));
}

#[tokio::test]
async fn d5_what_was_written_before_the_end_is_all_there_however_slowly_it_is_shown() {
    let mut shown = 0;
    let mut slowly = |text: &str| {
        shown += text.len();
        thread::sleep(Duration::from_millis(3));
    };
    let cancel = CancellationToken::new();
    let limits = Limits {
        output_chars: 0,
        ..limits()
    };
    let command = "i=0; while [ $i -lt 300 ]; do echo 'a line of some length'; i=$((i+1)); done";
    let outcome = run(command, &limits, &cancel, &mut slowly).await.unwrap();
    assert_eq!(outcome.text.len(), 300 * 22 + "\n\nexit: 0".len());
    assert_eq!(shown, outcome.text.len());
}

#[tokio::test]
async fn d6_a_long_output_keeps_its_ends_and_lies_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let limits = Limits {
        spill_dir: Some(home.path().to_owned()),
        ..limits()
    };
    let outcome = outcome_of("seq 1 200000; echo FATAL >&2; exit 9", &limits).await;
    assert!(outcome.text.starts_with("1\n2\n3\n"));
    assert!(outcome.text.ends_with("200000\nFATAL\n\n\nexit: 9"));
    let numbers = (1..=200_000)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join("\n")
        + "\n";
    let missing = numbers.len() + "FATAL\n".len() - 50_000;
    let notice = format!("[{missing} characters are left out here; the whole output is in ");
    let (_, rest) = outcome.text.split_once(&notice).unwrap();
    let path = Path::new(rest.split_once(']').unwrap().0);
    assert_eq!(fs::read_to_string(path).unwrap(), numbers + "FATAL\n");
}

#[tokio::test]
async fn d6_binary_output_is_harmless() {
    let text = text_of("printf 'a\\000b\\377\\033[31mc\\033]0;t\\007\\r\\nd'").await;
    assert_eq!(text, "ab\u{fffd}c\nd\n\nexit: 0");
}

#[tokio::test]
async fn d7_output_is_shown_while_the_command_runs_even_without_a_newline() {
    let outcome = interrupted_at("question? ", "printf 'question? '; sleep 93").await;
    assert_eq!(outcome.text, "question? \n\ninterrupted by the user");
}

#[tokio::test]
async fn c11_an_interrupt_ends_the_whole_group_and_keeps_the_output() {
    let command = "echo one; sh -c 'echo pid=$$; sleep 92' & sleep 91";
    let outcome = interrupted_at("pid=", command).await;
    assert_eq!(outcome.end, End::Interrupted);
    assert!(outcome.text.starts_with("one\npid="), "{}", outcome.text);
    assert!(
        outcome.text.ends_with("\n\ninterrupted by the user"),
        "{}",
        outcome.text
    );
    until_dead(pid_in(&outcome.text)).await;
}

#[tokio::test]
async fn c11_an_interrupt_does_not_wait_for_a_command_that_ignores_it_but_ends_it() {
    let command = "trap '' TERM; echo pid=$$; while :; do sleep 0.1; done";
    let outcome = interrupted_at("pid=", command).await;
    assert_eq!(outcome.end, End::Interrupted);
    until_dead(pid_in(&outcome.text)).await;
}

#[tokio::test]
async fn c11_a_flood_does_not_hold_an_interrupt_up() {
    let outcome = interrupted_at("y\ny\n", "yes").await;
    assert_eq!(outcome.end, End::Interrupted);
}

#[tokio::test]
async fn c11_after_an_interrupt_nothing_is_started() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = run("echo never", &limits(), &cancel, &mut |_| {})
        .await
        .unwrap();
    assert_eq!(outcome.text, "interrupted by the user");
}

#[tokio::test]
async fn c11_a_command_whose_future_is_dropped_is_ended() {
    let cancel = CancellationToken::new();
    let (sender, mut pid) = mpsc::unbounded_channel();
    let mut show = |text: &str| sender.send(pid_in(text)).unwrap();
    let limits = limits();
    let run = run("echo pid=$$; sleep 90", &limits, &cancel, &mut show);
    let pid = tokio::select! {
        _ = run => unreachable!("it sleeps"),
        pid = pid.recv() => pid.unwrap(),
    };
    until_dead(pid).await;
}

#[tokio::test]
async fn c11_the_end_of_the_program_ends_what_runs() {
    let mut pids = Vec::new();
    let mut groups = Vec::new();
    for command in ["trap '' TERM; while :; do sleep 0.1; done", "sleep 89"] {
        let command = format!("echo pid=$$; {command}");
        let Started {
            process,
            mut output,
            pipe: _pipe,
        } = start(&command).unwrap();
        let block = output.recv().await.unwrap();
        pids.push(pid_in(&String::from_utf8(block).unwrap()));
        groups.push(process.group);
        assert!(running_groups().contains(&process.group));
        // Forgotten, as by a program that leaves.
        std::mem::forget(process);
    }
    end_groups(&groups, Duration::from_millis(50));
    for pid in pids {
        until_dead(pid).await;
    }
    running_groups().retain(|group| !groups.contains(group));
}

#[tokio::test]
async fn a_script_is_removed_when_its_command_has_ended() {
    let command = format!("echo $0 #{}", "x".repeat(200_000));
    let text = text_of(&command).await;
    let (path, _) = text.split_once('\n').unwrap();
    assert!(Path::new(path).is_absolute(), "{path}");
    assert!(!Path::new(path).exists());
}

#[test]
fn d8_c11_a_command_on_the_terminal_tells_its_exit_code_and_ends_with_the_program() {
    assert_eq!(run_on_terminal("exit 6").unwrap(), 6);
    assert_eq!(run_on_terminal("kill -9 $$").unwrap(), 137);
    assert!(run_on_terminal("a\0b").is_err());
    assert!(!terminal_is_handed_over());

    let running = thread::spawn(|| run_on_terminal("exec sleep 88"));
    let deadline = Instant::now() + PATIENCE;
    while !matches!(*terminal(), Terminal::HandedOver(Some(_))) {
        assert!(Instant::now() < deadline, "it does not start");
        thread::sleep(TICK);
    }
    assert!(terminal_is_handed_over());
    end_command_on_terminal();
    assert_eq!(running.join().unwrap().unwrap(), 143);
    assert!(!terminal_is_handed_over());
}
