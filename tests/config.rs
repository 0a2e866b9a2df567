//! Tests: config.
