//! Output of any size and kind (SPEC D6, D7).

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::{lines, mode, shell_in};
use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

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
