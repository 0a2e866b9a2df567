//! The slash commands: one table from which parsing, help and completion come.
