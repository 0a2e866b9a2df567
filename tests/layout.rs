//! Tests: layout.
