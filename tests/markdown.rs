//! Tests: markdown.
