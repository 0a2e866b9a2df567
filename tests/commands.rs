//! Tests: commands.
