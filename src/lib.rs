//! Bantam: a tiny AI agent for the terminal. One loop, two tools, any OpenAI-compatible endpoint.
//!
//! Data flows one way: keys → line → conversation → request bytes → response bytes → deltas →
//! events → screen. Imports point downwards only in this table (`tests/layout.rs` holds them to it):
//!
//! | layer | modules |
//! |---|---|
//! | application | [`app`], [`commands`] |
//! | loop | [`agent`], [`compact`], [`prompt`] |
//! | screen, beside the loop | [`render`], [`term`] |
//! | tools | [`tools`] |
//! | provider | [`client`], [`wire`] |
//! | owners of the outside world | [`config`], [`session`], [`shell`], [`signals`], [`trust`], [`private`] |
//! | words, without effects | [`address`], [`message`], [`repair`], [`event`], [`model`], [`usage`], [`sanitize`], [`error`] |

pub mod app;
pub mod commands;

pub mod agent;
pub mod compact;
pub mod prompt;

pub mod render;
pub mod term;

pub mod tools;

pub mod client;
pub mod wire;

pub mod config;
pub mod private;
pub mod session;
pub mod shell;
pub mod signals;
pub mod trust;

pub mod address;
pub mod error;
pub mod event;
pub mod message;
pub mod model;
pub mod repair;
pub mod sanitize;
pub mod usage;
