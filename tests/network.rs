//! Tests: network.
