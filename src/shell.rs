//! Running commands.
