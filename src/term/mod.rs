//! The terminal and its line editor.
