//! The figures of SPEC G: `cargo bench` takes them all and prints them as a Markdown table.
//!
//! Every figure stands beside a floor that is measured in the same run, in turns with it, so that
//! the ratio means something on any machine. Arguments that are files are peers to be measured
//! too; other arguments choose figures by a part of their name:
//!
//! ```text
//! cargo bench -- start stream /path/to/peer
//! ```
//!
//! A peer is a program (a small script around one, mostly) that answers the prompt in its one
//! argument by way of the endpoint in `OPENAI_BASE_URL`, the key in `OPENAI_API_KEY` and the model
//! in `OPENAI_MODEL`, and prints the answer.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers: it may end wherever something is amiss"
)]

#[cfg(target_os = "linux")]
mod figures;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod pty;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod table;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the figures are taken on Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    let mut peers = Vec::new();
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1).filter(|word| word != "--bench") {
        match std::fs::canonicalize(&argument) {
            Ok(path) if path.is_file() => peers.push(path),
            _ => wanted.push(argument),
        }
    }
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part));

    println!("{}\n\n{}", table::machine(), table::HEAD);
    for (name, take) in figures::ALL {
        if chosen(name) {
            eprintln!("taking: {name}");
            for row in take(&peers) {
                println!("{row}");
            }
        }
    }
}
