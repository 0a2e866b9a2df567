//! One text while it is read: from what is typed to the editor and on to the screen.
//!
//! Where the pure layers meet.

use super::complete::{Completion, listed};
use super::editor::{Edit, cleaned};
use super::external;
use super::history::{History, Walk};
use super::input::{Event, Input};
use super::keys::{Command, Keys, Typed};
use super::mode::{self, Mode};
use super::paint::{Painter, View};
use super::reader::{End, Kind, Reader};
use super::search::Search;

/// What is said to a Ctrl+C that has nothing to clear.
const HOW_TO_LEAVE: &str = "(Ctrl+D leaves)";

/// One text while it is read.
pub(super) struct Reading<'a> {
    reader: &'a mut Reader,
    input: &'a mut Input,
    history: &'a History,
    sign: &'a str,
    kind: Kind,
    painter: Painter,
    keys: Keys,
    walk: Walk,
    /// The text is an entry of the history as it was found: Up goes on to the one before it.
    untouched: bool,
    search: Option<Search>,
    /// How often Tab was pressed in a row.
    tabs: usize,
    /// Remarks below the prompt, until the next key.
    below: Vec<String>,
}

impl<'a> Reading<'a> {
    /// Begins a text. The terminal has to be in its mode for it.
    pub(super) fn new(
        reader: &'a mut Reader,
        input: &'a mut Input,
        history: &'a History,
        sign: &'a str,
        kind: Kind,
    ) -> Self {
        Self {
            painter: Painter::new(mode::size(), reader.habits.color),
            reader,
            input,
            history,
            sign,
            kind,
            keys: Keys::default(),
            walk: history.walk(),
            untouched: false,
            search: None,
            tabs: 0,
            below: Vec::new(),
        }
    }

    /// Reads until it is submitted, given up or no longer wanted.
    pub(super) fn until_end(&mut self, is_wanted: &dyn Fn() -> bool) -> End {
        loop {
            self.show();
            match self.take_what_is_there(is_wanted) {
                Some(end @ (End::Gone | End::Submitted(_))) => return end,
                Some(end) => {
                    self.leave();
                    return end;
                }
                None => {}
            }
        }
    }

    /// Takes in the next event and all that is there already, so that it is drawn at once.
    fn take_what_is_there(&mut self, is_wanted: &dyn Fn() -> bool) -> Option<End> {
        if !is_wanted() {
            return Some(End::Unwanted);
        }
        loop {
            let end = self.take_event(is_wanted);
            if end.is_some() || !self.input.is_pending() {
                return end;
            }
        }
    }

    fn take_event(&mut self, is_wanted: &dyn Fn() -> bool) -> Option<End> {
        match self.input.next() {
            Event::Typed(typed) => self.take_typed(typed),
            Event::Woken => (!is_wanted()).then_some(End::Unwanted),
            Event::Continued if mode::take_regained() => {
                self.begin_again();
                None
            }
            Event::Resized | Event::Continued => {
                let mut out = String::new();
                let reflows = self.reader.habits.reflows;
                self.painter.resize(mode::size(), reflows, &mut out);
                mode::write(&out);
                None
            }
            Event::Interrupted => self.interrupt(),
            Event::End | Event::Gone => Some(End::Gone),
        }
    }

    fn take_typed(&mut self, typed: Typed) -> Option<End> {
        self.below.clear();
        let tabs = std::mem::take(&mut self.tabs);
        if !matches!(typed, Typed::Key(_)) {
            self.keys.forget();
        }
        match typed {
            Typed::Text(text) => self.type_text(&text),
            Typed::Paste(text) => self.paste(&cleaned(&text)),
            Typed::Key(key) => match self.keys.command(key)? {
                Command::Insert(c) => self.type_text(&String::from(c)),
                Command::Complete if self.input.text_follows() => self.type_text("\t"),
                Command::Complete => self.complete(tabs),
                command => return self.run(command),
            },
        }
        None
    }

    fn type_text(&mut self, text: &str) {
        self.untouched = false;
        match &mut self.search {
            Some(search) => search.extend(self.history.entries(), text),
            None => self.reader.editor.type_text(text),
        }
    }

    fn paste(&mut self, text: &str) {
        self.untouched = false;
        self.accept_hit();
        self.reader.editor.insert(text);
    }

    fn run(&mut self, command: Command) -> Option<End> {
        if self.search.is_some() && self.run_in_search(command) {
            return None;
        }
        let recalled = std::mem::take(&mut self.untouched);
        match command {
            Command::Edit(edit) => self.reader.editor.apply(edit),
            Command::Insert(_) | Command::Complete => {}
            Command::Submit => return self.submit(),
            Command::Up => self.go_up(recalled),
            Command::Down => self.go_down(recalled),
            Command::SearchOlder if self.kind == Kind::Prompt => {
                self.search = Some(Search::default());
            }
            Command::SearchOlder | Command::SearchNewer | Command::Leave => {
                self.untouched = recalled;
            }
            Command::Interrupt => return self.interrupt(),
            Command::EndOrDelete if self.reader.editor.text().is_empty() => {
                return Some(End::Closed);
            }
            Command::EndOrDelete => self.reader.editor.apply(Edit::DeleteForward),
            Command::Suspend => {
                self.untouched = recalled;
                mode::ask_to_stop();
            }
            Command::ClearScreen => {
                self.untouched = recalled;
                let mut out = String::new();
                self.painter.clear_screen(&mut out);
                mode::write(&out);
            }
            Command::OpenEditor => self.open_editor(),
        }
        None
    }

    /// Does what a command means within a search; false if it ends the search and means the same as
    /// always.
    fn run_in_search(&mut self, command: Command) -> bool {
        let Some(search) = &mut self.search else {
            return false;
        };
        let entries = self.history.entries();
        match command {
            Command::SearchOlder => search.older(entries),
            Command::SearchNewer => search.newer(entries),
            Command::Edit(Edit::DeleteBack) => search.shorten(entries),
            Command::Leave | Command::Interrupt => self.search = None,
            Command::Submit => self.accept_hit(),
            _ => {
                self.accept_hit();
                return false;
            }
        }
        true
    }

    /// Ends a search: what it found is on the line now.
    fn accept_hit(&mut self) {
        let Some(search) = self.search.take() else {
            return;
        };
        if let Some((text, _)) = search.hit(self.history.entries()) {
            self.reader.editor.set_text(text);
        }
    }

    fn submit(&mut self) -> Option<End> {
        if self.input.goes_on() {
            // Part of a paste, or of lines typed ahead.
            if !self.reader.editor.text().is_empty() {
                self.reader.editor.insert("\n");
            }
            return None;
        }
        provoked_panic(self.reader.editor.text());
        self.leave();
        Some(End::Submitted(self.reader.editor.take()))
    }

    fn interrupt(&mut self) -> Option<End> {
        self.search = None;
        if self.kind == Kind::Question {
            return Some(End::Interrupted);
        }
        if self.reader.editor.text().is_empty() {
            self.below = vec![HOW_TO_LEAVE.to_owned()];
        }
        self.reader.editor.set_text("");
        self.walk = self.history.walk();
        None
    }

    fn go_up(&mut self, recalled: bool) {
        if recalled || !self.reader.editor.line_up() {
            let text = self.reader.editor.text();
            let older = self.walk.older(self.history, text).map(str::to_owned);
            self.recall(older, recalled);
        }
    }

    fn go_down(&mut self, recalled: bool) {
        if recalled || !self.reader.editor.line_down() {
            let text = self.reader.editor.text();
            let newer = self.walk.newer(self.history, text).map(str::to_owned);
            self.recall(newer, recalled);
        }
    }

    fn recall(&mut self, entry: Option<String>, recalled: bool) {
        self.untouched = (recalled || entry.is_some()) && self.walk.is_at_entry(self.history);
        if let Some(entry) = entry {
            self.reader.editor.set_text(&entry);
        }
    }

    /// Tab, after so many others.
    fn complete(&mut self, tabs: usize) {
        self.untouched = false;
        self.tabs = tabs + 1;
        self.accept_hit();
        if self.kind == Kind::Question {
            return;
        }
        let (text, cursor) = (self.reader.editor.text(), self.reader.editor.cursor());
        match self.reader.completer.complete(text, cursor) {
            Completion::Nothing => {}
            Completion::Replace(word, with) => self.reader.editor.replace(word, &with),
            Completion::Choose(candidates) => {
                if tabs > 0 {
                    let (columns, rows) = mode::size();
                    self.below = listed(&candidates, columns, (rows / 2).max(1));
                }
            }
        }
    }

    fn open_editor(&mut self) {
        self.leave();
        mode::enter(Mode::Found);
        let edited = external::edit(
            self.reader.editor.text(),
            self.reader.habits.editor.as_deref(),
        );
        mode::enter(Mode::Editing);
        self.input.take_in_lines();
        match edited {
            Ok(text) => self.reader.editor.set_text(&cleaned(&text)),
            Err(reason) => self.below = vec![reason],
        }
        self.begin_again();
    }

    /// Has the prompt be shown anew in the row where the cursor is, at the size of now.
    fn begin_again(&mut self) {
        mode::write("\r\x1b[J");
        self.painter = Painter::new(mode::size(), self.reader.habits.color);
    }

    fn show(&mut self) {
        let cursor = self.reader.editor.cursor();
        self.paint(cursor);
    }

    /// Leaves the text behind, whole and with nothing below, and goes to the row after it.
    fn leave(&mut self) {
        self.below.clear();
        self.search = None;
        self.paint(self.reader.editor.text().len());
        let mut out = String::new();
        self.painter.finish(&mut out);
        mode::write(&out);
    }

    fn paint(&mut self, cursor: usize) {
        let changed = self.reader.editor.take_changed();
        let text = self.reader.editor.text();
        let search_sign = self.search.as_ref().map(Search::sign);
        let view = if let Some(search) = &self.search {
            let hit = search.hit(self.history.entries());
            let (text, cursor) = hit.unwrap_or((text, cursor));
            View {
                sign: search_sign.as_deref().unwrap_or_default(),
                text,
                changed: Some(0),
                cursor,
                below: &self.below,
            }
        } else {
            View {
                sign: self.sign,
                text,
                changed,
                cursor,
                below: &self.below,
            }
        };
        let mut out = String::new();
        self.painter.refresh(&view, &mut out);
        mode::write_prompt(&out, self.painter.rows_below());
    }
}

/// Lets a test see what a panic does to the terminal: in a debug build, a text that is the value of
/// `BANTAM_TEST_PANIC` is one.
fn provoked_panic(text: &str) {
    let is_provoked = || std::env::var("BANTAM_TEST_PANIC").is_ok_and(|set| set == text);
    assert!(
        !cfg!(debug_assertions) || !is_provoked(),
        "provoked by a test"
    );
}
