//! What the keys do: the one table from keys to commands.
//!
//! Pure. Every spelling that a terminal may have for a key ends here; a key that is not in the table
//! does nothing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::Edit;

/// Something that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Printable text, as much of it as came together.
    Text(String),
    /// Any other key.
    Key(KeyEvent),
    /// The content of a bracketed paste, as the terminal sent it.
    Paste(String),
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// A change of the text or the cursor.
    Edit(Edit),
    /// A character that is typed with modifiers (`AltGr` on Windows).
    Insert(char),
    /// Enter.
    Submit,
    /// The line above, or the entry before this one in the history.
    Up,
    /// The line below, or the entry after this one.
    Down,
    /// Tab.
    Complete,
    /// Ctrl+R: search the history for older entries.
    SearchOlder,
    /// Ctrl+S: within a search, for newer ones.
    SearchNewer,
    /// Esc or Ctrl+G: leave whatever was begun. At the prompt nothing is.
    Leave,
    /// Ctrl+C.
    Interrupt,
    /// Ctrl+D: the end at an empty prompt, otherwise deletes forward.
    EndOrDelete,
    /// Ctrl+Z.
    Suspend,
    /// Ctrl+L.
    ClearScreen,
    /// Ctrl+X Ctrl+E: the text in an editor of the person's choice.
    OpenEditor,
}

/// Reads keys one after the other, for some commands take two.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Ctrl+X was the last key.
    prefixed: bool,
}

impl Keys {
    /// Text came in between: what a key before it had begun is over.
    pub(super) fn forget(&mut self) {
        self.prefixed = false;
    }

    /// The command of `key`, if it has one.
    pub(super) fn command(&mut self, key: KeyEvent) -> Option<Command> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if std::mem::take(&mut self.prefixed) {
            let opens = ctrl && key.code == KeyCode::Char('e');
            return opens.then_some(Command::OpenEditor);
        }
        self.prefixed = ctrl && key.code == KeyCode::Char('x');
        match key.code {
            KeyCode::Char(c) => match (ctrl, alt) {
                (true, true) if !c.is_ascii_lowercase() => Some(Command::Insert(c)),
                (true, false) => ctrl_command(c.to_ascii_lowercase()),
                (false, true) => alt_command(c).map(Command::Edit),
                (false, false) => Some(Command::Insert(c)),
                (true, true) => None,
            },
            code => named_command(code, key.modifiers),
        }
    }
}

fn ctrl_command(c: char) -> Option<Command> {
    Some(match c {
        'a' => Command::Edit(Edit::LineStart),
        'b' => Command::Edit(Edit::Left),
        'c' => Command::Interrupt,
        'd' => Command::EndOrDelete,
        'e' => Command::Edit(Edit::LineEnd),
        'f' => Command::Edit(Edit::Right),
        'g' => Command::Leave,
        'h' => Command::Edit(Edit::DeleteBack),
        'j' => Command::Edit(Edit::Break),
        'k' => Command::Edit(Edit::CutToLineEnd),
        'l' => Command::ClearScreen,
        'n' => Command::Down,
        'p' => Command::Up,
        'r' => Command::SearchOlder,
        's' => Command::SearchNewer,
        't' => Command::Edit(Edit::Transpose),
        'u' => Command::Edit(Edit::CutToLineStart),
        'w' => Command::Edit(Edit::CutBlankWordBack),
        'y' => Command::Edit(Edit::PutBack),
        'z' => Command::Suspend,
        // Ctrl+_ is told as Ctrl+7, for they are one byte.
        '7' | '_' | '/' => Command::Edit(Edit::Undo),
        _ => return None,
    })
}

fn alt_command(c: char) -> Option<Edit> {
    Some(match c {
        'b' | 'B' => Edit::WordLeft,
        'f' | 'F' => Edit::WordRight,
        'd' | 'D' => Edit::CutWord,
        '<' => Edit::TextStart,
        '>' => Edit::TextEnd,
        _ => return None,
    })
}

fn named_command(code: KeyCode, held: KeyModifiers) -> Option<Command> {
    let ctrl = held.contains(KeyModifiers::CONTROL);
    let alt = held.contains(KeyModifiers::ALT);
    let by_word = ctrl || alt;
    let edit = match code {
        KeyCode::Enter if held.is_empty() => return Some(Command::Submit),
        KeyCode::Enter => Edit::Break,
        KeyCode::Tab => return Some(Command::Complete),
        KeyCode::Esc => return Some(Command::Leave),
        KeyCode::Up => return Some(Command::Up),
        KeyCode::Down => return Some(Command::Down),
        KeyCode::Left if by_word => Edit::WordLeft,
        KeyCode::Left => Edit::Left,
        KeyCode::Right if by_word => Edit::WordRight,
        KeyCode::Right => Edit::Right,
        KeyCode::Home if ctrl => Edit::TextStart,
        KeyCode::Home => Edit::LineStart,
        KeyCode::End if ctrl => Edit::TextEnd,
        KeyCode::End => Edit::LineEnd,
        KeyCode::Backspace if by_word => Edit::CutWordBack,
        KeyCode::Backspace => Edit::DeleteBack,
        KeyCode::Delete if by_word => Edit::CutWord,
        KeyCode::Delete => Edit::DeleteForward,
        _ => return None,
    };
    Some(Command::Edit(edit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(code: KeyCode, modifiers: KeyModifiers) -> Option<Command> {
        Keys::default().command(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn f1_ctrl_j_breaks_the_line_and_enter_submits() {
        let break_line = Some(Command::Edit(Edit::Break));
        assert_eq!(
            command(KeyCode::Char('j'), KeyModifiers::CONTROL),
            break_line
        );
        assert_eq!(command(KeyCode::Enter, KeyModifiers::ALT), break_line);
        assert_eq!(command(KeyCode::Enter, KeyModifiers::SHIFT), break_line);
        assert_eq!(
            command(KeyCode::Enter, KeyModifiers::NONE),
            Some(Command::Submit)
        );
    }

    #[test]
    fn f1_undo_comes_in_several_spellings() {
        for c in ['7', '_'] {
            assert_eq!(
                command(KeyCode::Char(c), KeyModifiers::CONTROL),
                Some(Command::Edit(Edit::Undo))
            );
        }
    }

    #[test]
    fn f1_an_altgr_character_is_typed_and_ctrl_space_is_nothing() {
        let altgr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        assert_eq!(
            command(KeyCode::Char('@'), altgr),
            Some(Command::Insert('@'))
        );
        assert_eq!(command(KeyCode::Char('a'), altgr), None);
        assert_eq!(command(KeyCode::Char(' '), KeyModifiers::CONTROL), None);
        assert_eq!(command(KeyCode::F(1), KeyModifiers::NONE), None);
    }

    #[test]
    fn f1_ctrl_x_ctrl_e_is_one_command_and_ctrl_x_alone_none() {
        let ctrl = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        let mut keys = Keys::default();
        assert_eq!(keys.command(ctrl('x')), None);
        assert_eq!(keys.command(ctrl('e')), Some(Command::OpenEditor));
        assert_eq!(keys.command(ctrl('x')), None);
        assert_eq!(keys.command(ctrl('a')), None);
        assert_eq!(
            keys.command(ctrl('a')),
            Some(Command::Edit(Edit::LineStart))
        );
    }
}
