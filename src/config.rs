//! The configuration: the one table of keys.
