//! The application: one prompt or command from start to end.
