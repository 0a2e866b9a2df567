//! Tests: one_shot.
