//! Folding: a long body shows its first lines as they come and its last ones at the end (SPEC D7).
//!
//! Owns the count of lines and the few that are held back; memory is bounded whatever comes.

use std::collections::VecDeque;

/// How many lines are shown as they come.
const HEAD: usize = 30;
/// How many lines of the end are shown.
const TAIL: usize = 10;
/// How many bytes of one held line are kept at most.
const LINE_LIMIT: usize = 8 * 1024;

/// A body of text that is being folded.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Whole lines shown so far.
    shown: usize,
    /// The last lines after those, without newlines; the newest may still grow.
    tail: VecDeque<String>,
    /// Whether the newest line of the tail is not ended yet.
    open: bool,
    left_out: usize,
}

impl Fold {
    /// Takes a piece of the body in and hands what is to be shown at once to `show`.
    pub(super) fn push(&mut self, text: &str, show: &mut dyn FnMut(&str)) {
        let mut head = 0;
        for line in text.split_inclusive('\n') {
            if self.shown < HEAD {
                head += line.len();
                self.shown += usize::from(line.ends_with('\n'));
            } else {
                self.hold(line);
            }
        }
        if let Some(head) = text.get(..head).filter(|head| !head.is_empty()) {
            show(head);
        }
    }

    /// Hands the notice and the held lines over.
    pub(super) fn finish(&mut self, show: &mut dyn FnMut(&str)) {
        if self.left_out > 0 {
            let lines = if self.left_out == 1 { "line" } else { "lines" };
            show(&format!("… {} {lines} left out …\n", self.left_out));
        }
        let open = self.open;
        let mut lines = self.tail.drain(..).peekable();
        while let Some(mut line) = lines.next() {
            if lines.peek().is_some() || !open {
                line.push('\n');
            }
            show(&line);
        }
    }

    fn hold(&mut self, line: &str) {
        let content = line.strip_suffix('\n').unwrap_or(line);
        if !self.open {
            let mut next = String::new();
            if self.tail.len() == TAIL {
                self.left_out += 1;
                next = self.tail.pop_front().unwrap_or_default();
                next.clear();
            }
            self.tail.push_back(next);
        }
        if let Some(last) = self.tail.back_mut() {
            append_within(last, content, LINE_LIMIT);
        }
        self.open = content.len() == line.len();
    }
}

/// Appends what of `text` fits into `limit` bytes, and an ellipsis where something does not.
fn append_within(line: &mut String, text: &str, limit: usize) {
    if line.len() >= limit {
        return;
    }
    let room = limit - line.len();
    let fits = |end: &usize| *end <= room;
    let ends = text.char_indices().map(|(start, c)| start + c.len_utf8());
    let end = ends.take_while(fits).last().unwrap_or(0);
    line.push_str(text.get(..end).unwrap_or_default());
    if end < text.len() {
        line.push('…');
        // No more of this line is taken in.
        line.extend(std::iter::repeat_n(' ', limit.saturating_sub(line.len())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(pieces: &[&str]) -> (String, String) {
        let mut fold = Fold::default();
        let (mut live, mut end) = (String::new(), String::new());
        for piece in pieces {
            fold.push(piece, &mut |text| live.push_str(text));
        }
        fold.finish(&mut |text| end.push_str(text));
        (live, end)
    }

    fn numbers(range: std::ops::RangeInclusive<usize>) -> String {
        use std::fmt::Write as _;
        range.fold(String::new(), |mut text, number| {
            let _ = writeln!(text, "{number}");
            text
        })
    }

    #[test]
    fn d7_forty_lines_are_not_folded() {
        let body = numbers(1..=40);
        assert_eq!(folded(&[&body]), (numbers(1..=30), numbers(31..=40)));
        let (live, end) = folded(&[body.trim_end()]);
        assert_eq!(live + &end, body.trim_end());
    }

    #[test]
    fn d7_beyond_forty_lines_the_first_thirty_and_the_last_ten_are_shown() {
        let (live, end) = folded(&[&numbers(1..=100)]);
        assert_eq!(live, numbers(1..=30));
        assert_eq!(
            end,
            "… 60 lines left out …\n".to_owned() + &numbers(91..=100)
        );
    }

    #[test]
    fn d7_pieces_do_not_matter() {
        let body = numbers(1..=57);
        let pieces: Vec<&str> = body.split_inclusive(['3', '\n']).collect();
        assert_eq!(folded(&pieces), folded(&[&body]));
    }

    #[test]
    fn an_endless_line_is_held_only_in_part() {
        let mut body = numbers(1..=30);
        body.push_str(&"日".repeat(100_000));
        let (_, end) = folded(&[&body]);
        assert!(end.len() < 2 * LINE_LIMIT && end.starts_with("日日"));
    }
}
