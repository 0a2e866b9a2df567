//! Tests: piped.
