//! Tests: sessions.
