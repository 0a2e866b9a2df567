//! Completion: what Tab makes of the word before the cursor.

/// One thing that the word before the cursor can become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What takes the word's place.
    pub text: String,
    /// What the list of candidates says about it; may be empty.
    pub note: String,
}

impl Candidate {
    /// A candidate that needs no explanation.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            note: String::new(),
        }
    }
}

/// What knows the words that can be completed (commands, settings, sessions); paths are added here.
pub trait Complete: Send + Sync {
    /// What the word that ends at `cursor` (a byte offset) can become. The word begins after the
    /// last space before the cursor.
    fn candidates(&self, line: &str, cursor: usize) -> Vec<Candidate>;
}

/// Knows no words.
pub(super) struct Nothing;

impl Complete for Nothing {
    fn candidates(&self, _line: &str, _cursor: usize) -> Vec<Candidate> {
        Vec::new()
    }
}
