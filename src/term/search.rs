//! The search through the history (Ctrl+R).
//!
//! Pure. Lower-case letters of the query stand for either case.

/// A search under way.
#[derive(Debug, Default)]
pub(super) struct Search {
    query: String,
    /// The entry that matches, and where in it.
    hit: Option<(usize, usize)>,
    /// Nothing older or newer matched the last time.
    failed: bool,
}

impl Search {
    /// The prompt sign while it lasts.
    pub(super) fn sign(&self) -> String {
        let state = if self.failed { "no match" } else { "search" };
        format!("({state} '{}') ", self.query)
    }

    /// The entry found and where the match begins in it, in bytes.
    pub(super) fn hit<'a>(&self, entries: &'a [String]) -> Option<(&'a str, usize)> {
        let (entry, at) = self.hit?;
        Some((entries.get(entry)?, at))
    }

    /// Adds to the query; the entry found stays if it still matches.
    pub(super) fn extend(&mut self, entries: &[String], typed: &str) {
        self.query.push_str(typed);
        let newest = entries.len().saturating_sub(1);
        self.find(
            entries,
            (0..=self.hit.map_or(newest, |(entry, _)| entry)).rev(),
        );
    }

    /// Takes the query's last character away and begins with the newest entry again.
    pub(super) fn shorten(&mut self, entries: &[String]) {
        self.query.pop();
        self.hit = None;
        self.failed = false;
        self.find(entries, (0..entries.len()).rev());
    }

    /// Goes on to an older entry that matches.
    pub(super) fn older(&mut self, entries: &[String]) {
        let end = self.hit.map_or(entries.len(), |(entry, _)| entry);
        self.find(entries, (0..end).rev());
    }

    /// Goes back to a newer entry that matches.
    pub(super) fn newer(&mut self, entries: &[String]) {
        let start = self.hit.map_or(entries.len(), |(entry, _)| entry + 1);
        self.find(entries, start..entries.len());
    }

    fn find(&mut self, entries: &[String], order: impl Iterator<Item = usize>) {
        if self.query.is_empty() {
            return;
        }
        let current = self.hit.and_then(|(entry, _)| entries.get(entry));
        let found = order.into_iter().find_map(|entry| {
            let text = entries.get(entry)?;
            // The same text again would look as if nothing had happened.
            let at = position(text, &self.query)?;
            (current != Some(text) || self.hit.is_some_and(|(hit, _)| hit == entry))
                .then_some((entry, at))
        });
        self.failed = found.is_none();
        self.hit = found.or(self.hit);
    }
}

/// Where `query` is in `text` for the first time.
fn position(text: &str, query: &str) -> Option<usize> {
    if query.chars().any(char::is_uppercase) {
        return text.find(query);
    }
    text.char_indices()
        .map(|(at, _)| at)
        .find(|at| begins_with(text.get(*at..).unwrap_or_default(), query))
}

fn begins_with(text: &str, query: &str) -> bool {
    let mut rest = text.chars();
    query.chars().all(|wanted| {
        rest.next()
            .is_some_and(|c| c == wanted || c.to_lowercase().eq([wanted]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<String> {
        ["git push", "make", "git PULL", "make", "ls"]
            .map(String::from)
            .into()
    }

    #[test]
    fn f1_a_search_finds_the_newest_and_goes_on_to_older_ones() {
        let entries = entries();
        let mut search = Search::default();
        assert_eq!(search.sign(), "(search '') ");
        search.extend(&entries, "git p");
        assert_eq!(search.hit(&entries), Some(("git PULL", 0)));
        search.older(&entries);
        assert_eq!(search.hit(&entries), Some(("git push", 0)));
        search.older(&entries);
        assert_eq!(search.hit(&entries), Some(("git push", 0)));
        assert_eq!(search.sign(), "(no match 'git p') ");
        search.newer(&entries);
        assert_eq!(search.hit(&entries), Some(("git PULL", 0)));
        search.extend(&entries, "us");
        assert_eq!(search.hit(&entries), Some(("git push", 0)));
        search.shorten(&entries);
        search.shorten(&entries);
        assert_eq!(search.hit(&entries), Some(("git PULL", 0)));
    }

    #[test]
    fn f1_the_same_entry_is_not_found_twice_in_a_row() {
        let entries = entries();
        let mut search = Search::default();
        search.extend(&entries, "make");
        search.older(&entries);
        assert_eq!(search.sign(), "(no match 'make') ");
    }

    #[test]
    fn f1_a_capital_letter_is_meant() {
        let entries = entries();
        let mut search = Search::default();
        search.extend(&entries, "P");
        assert_eq!(search.hit(&entries), Some(("git PULL", 4)));
        search.extend(&entries, "us");
        assert_eq!(search.sign(), "(no match 'Pus') ");
    }

    #[test]
    fn f1_an_empty_history_is_searched_without_a_hit() {
        let mut search = Search::default();
        search.extend(&[], "x");
        search.older(&[]);
        search.newer(&[]);
        assert_eq!(search.hit(&[]), None);
    }
}
