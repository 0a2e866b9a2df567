//! The signals the program answers to.
