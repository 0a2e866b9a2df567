//! What a person sees: answers, traces and messages.

pub mod text;
