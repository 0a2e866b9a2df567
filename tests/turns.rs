//! Tests: turns.
