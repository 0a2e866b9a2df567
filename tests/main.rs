//! The tests of the whole program, by area, and of the library's parts where they meet.

mod common;

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
