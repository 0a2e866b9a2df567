//! Tests: provider.
