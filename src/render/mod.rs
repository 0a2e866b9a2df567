//! What a person sees: answers, traces and messages.
