//! Tests: extras.
