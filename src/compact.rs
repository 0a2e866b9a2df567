//! Compaction: a conversation replaced by its summary.
