//! The loop: ask, append, dispatch, repeat.
