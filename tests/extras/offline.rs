//! The offline trial (SPEC H3).

use super::example;
use crate::common::cli::Cli;

/// A run of `offline` whose temporary directory is in its own.
fn offline() -> Option<Cli> {
    let cli = Cli::new().program(example("offline")?);
    let temporary = cli.directory().to_owned();
    Some(cli.env("TMPDIR", temporary))
}

#[test]
fn h3_it_reasons_calls_both_tools_and_answers_without_a_network() {
    let Some(offline) = offline() else { return };
    let run = offline.lines(["Hello!"]).run();
    run.success()
        .stdout_has("--- reasoning start ---\n")
        .stdout_has("[tool call: write_file(")
        .stdout_has("[tool call: shell_exec(")
        .stdout_has("83 89 97 \n\n\nexit: 0")
        .stdout_has("| step | tool | what happened |\n")
        .stdout_has("[offline: ");
    // Neither the home nor the directory it was started in is touched.
    assert!(run.home_files().is_empty());
    run.no_file("primes.sh");
}

#[test]
fn h3_arguments_go_to_bantam() {
    let Some(offline) = offline() else { return };
    let run = offline.arg("--version").run();
    run.is(0, concat!("bantam ", env!("CARGO_PKG_VERSION"), "\n"), "");
}
