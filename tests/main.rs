//! The tests of the whole program, by area, and of the library's parts where they meet.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "everything here is a test; the exemption for tests does not reach their shared functions"
)]

mod common;

mod agent;
mod commands;
mod config;
mod extras;
mod layout;
mod markdown;
mod network;
mod one_shot;
mod piped;
mod provider;
mod sessions;
mod terminal;
mod tools;
mod turns;
