//! What the bytes of a terminal mean: text, keys, pastes.
//!
//! Pure. The keys are told in crossterm's words, which the Windows console uses too, but crossterm's
//! own reader is not used where there are bytes: it hides which bytes came together (the burst rule
//! needs that), loses some sequences, and spins when the terminal hangs up.

use std::collections::VecDeque;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::keys::Typed;

const ESC: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";

/// No sequence of a keyboard is longer; what is, is nothing that we know.
const LONGEST_SEQUENCE: usize = 64;

/// No answer of a terminal is longer.
const LONGEST_ANSWER: usize = 4096;

/// Turns bytes into what was typed, whatever the pieces in which they come.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Bytes that don't make a whole key yet.
    rest: Vec<u8>,
    /// The paste that has begun and not ended.
    paste: Option<Vec<u8>>,
}

/// What the first bytes of the input are.
enum Step {
    /// More bytes are needed to tell.
    Incomplete,
    /// So many bytes that mean nothing.
    Skip(usize),
    /// One character in so many bytes.
    Char(usize, char),
    /// One key in so many bytes.
    Key(usize, KeyEvent),
    /// The beginning of a paste, in so many bytes.
    Paste(usize),
}

impl Decoder {
    /// Takes bytes that came together and appends what they amount to.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut VecDeque<Typed>) {
        let mut input = std::mem::take(&mut self.rest);
        input.extend_from_slice(bytes);
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            let used = if let Some(paste) = self.paste.take() {
                self.continue_paste(paste, rest, out)
            } else {
                match step(rest) {
                    Step::Incomplete => {
                        self.rest = rest.to_vec();
                        return;
                    }
                    Step::Skip(used) => used,
                    Step::Char(used, c) => {
                        push_char(out, c);
                        used
                    }
                    Step::Key(used, key) => {
                        out.push_back(Typed::Key(key));
                        used
                    }
                    Step::Paste(used) => {
                        self.paste = Some(Vec::new());
                        used
                    }
                }
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// Whether something has begun that is another thing if nothing more comes soon.
    pub(super) fn is_waiting(&self) -> bool {
        self.paste.is_some() || self.rest.first() == Some(&ESC)
    }

    /// Whether a paste has begun and not ended.
    pub(super) fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Takes what has begun for what it is, for nothing more came: a lone ESC is the key.
    pub(super) fn settle(&mut self, out: &mut VecDeque<Typed>) {
        if let Some(paste) = self.paste.take() {
            out.push_back(Typed::Paste(String::from_utf8_lossy(&paste).into_owned()));
        }
        if self.rest.first() != Some(&ESC) {
            return;
        }
        match std::mem::take(&mut self.rest).as_slice() {
            [ESC] | [ESC, ESC] => out.push_back(Typed::Key(plain(KeyCode::Esc))),
            [ESC, byte] if byte.is_ascii_graphic() => out.push_back(Typed::Key(with(
                KeyCode::Char(char::from(*byte)),
                KeyModifiers::ALT,
            ))),
            _ => {}
        }
    }

    /// Adds `bytes` to a paste, up to its end if that is among them; returns how many it used.
    fn continue_paste(
        &mut self,
        mut paste: Vec<u8>,
        bytes: &[u8],
        out: &mut VecDeque<Typed>,
    ) -> usize {
        let before = paste.len();
        let searched = before.saturating_sub(PASTE_END.len() - 1);
        paste.extend_from_slice(bytes);
        let Some(end) = find(paste.get(searched..).unwrap_or_default(), PASTE_END) else {
            self.paste = Some(paste);
            return bytes.len();
        };
        let end = searched + end;
        paste.truncate(end);
        out.push_back(Typed::Paste(String::from_utf8_lossy(&paste).into_owned()));
        end + PASTE_END.len() - before
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn push_char(out: &mut VecDeque<Typed>, c: char) {
    if let Some(Typed::Text(text)) = out.back_mut() {
        text.push(c);
    } else {
        out.push_back(Typed::Text(c.into()));
    }
}

fn plain(code: KeyCode) -> KeyEvent {
    with(code, KeyModifiers::NONE)
}

fn with(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [] => Step::Incomplete,
        [ESC, ESC, ESC, ..] => Step::Skip(1),
        [ESC, rest @ ..] => after_escape(rest).shifted(1),
        [b'\r', b'\n', ..] => Step::Key(2, plain(KeyCode::Enter)),
        [byte @ (0x00..=0x1f | 0x7f), ..] => Step::Key(1, control(*byte)),
        _ => character(bytes),
    }
}

impl Step {
    /// The same with `more` bytes in front.
    fn shifted(self, more: usize) -> Self {
        match self {
            Self::Incomplete => Self::Incomplete,
            Self::Skip(used) => Self::Skip(used + more),
            Self::Char(used, c) => Self::Char(used + more, c),
            Self::Key(used, key) => Self::Key(used + more, key),
            Self::Paste(used) => Self::Paste(used + more),
        }
    }

    /// The same with Alt held.
    fn with_alt(self) -> Self {
        match self {
            Self::Char(used, c) => Self::Key(used, with(KeyCode::Char(c), KeyModifiers::ALT)),
            Self::Key(used, key) => {
                Self::Key(used, with(key.code, key.modifiers | KeyModifiers::ALT))
            }
            other => other,
        }
    }
}

/// Control characters are told as crossterm tells them: 0x1c to 0x1f as Ctrl+4 to Ctrl+7.
fn control(byte: u8) -> KeyEvent {
    let ctrl = |c: u8| with(KeyCode::Char(char::from(c)), KeyModifiers::CONTROL);
    match byte {
        b'\r' => plain(KeyCode::Enter),
        b'\t' => plain(KeyCode::Tab),
        0x7f => plain(KeyCode::Backspace),
        0x00 => ctrl(b' '),
        0x01..=0x1a => ctrl(byte - 1 + b'a'),
        _ => ctrl(byte.wrapping_sub(0x1c) % 4 + b'4'),
    }
}

/// The first character of `bytes`, which begin with a printable one or with a byte that is none.
fn character(bytes: &[u8]) -> Step {
    let longest = bytes.get(..4).unwrap_or(bytes);
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(longest.get(..error.valid_up_to()).unwrap_or_default())
                .unwrap_or_default()
        }
        Err(error) => return error.error_len().map_or(Step::Incomplete, Step::Skip),
    };
    match valid.chars().next() {
        Some(c) if c.is_control() => Step::Skip(c.len_utf8()),
        Some(c) => Step::Char(c.len_utf8(), c),
        None => Step::Skip(1),
    }
}

fn after_escape(bytes: &[u8]) -> Step {
    match bytes {
        [] | [ESC | b'[' | b'O' | b']' | b'P' | b'_' | b'^'] => Step::Incomplete,
        [ESC, rest @ ..] => after_escape(rest).shifted(1).with_alt(),
        [b'[', rest @ ..] => control_sequence(rest).shifted(1),
        [b'O', rest @ ..] => single_shift(rest).shifted(1),
        [
            b']' | b'P' | b'_' | b'^',
            b'0'..=b'9' | b'>' | b'!' | b'$' | b'+' | b'?' | b'G',
            ..,
        ] => control_string(bytes),
        [b'\r' | b'\n', ..] => Step::Key(1, with(KeyCode::Enter, KeyModifiers::ALT)),
        [0x08 | 0x7f, ..] => Step::Key(1, with(KeyCode::Backspace, KeyModifiers::ALT)),
        _ => step(bytes).with_alt(),
    }
}

/// What a terminal answers to some other program's question, up to its end (BEL or ESC \).
fn control_string(bytes: &[u8]) -> Step {
    let bell = find(bytes, b"\x07").map(|at| at + 1);
    let terminator = find(bytes, b"\x1b\\").map(|at| at + 2);
    match bell.into_iter().chain(terminator).min() {
        Some(end) => Step::Skip(end),
        None if bytes.len() > LONGEST_ANSWER => Step::Skip(bytes.len()),
        None => Step::Incomplete,
    }
}

/// `ESC O x`: arrows and friends of the application mode, and rxvt's Ctrl+arrows.
fn single_shift(bytes: &[u8]) -> Step {
    let digits = bytes
        .iter()
        .take_while(|byte| matches!(byte, b'0'..=b'9' | b';'))
        .count();
    let (parameters, rest) = bytes.split_at(digits);
    let Some(letter) = rest.first() else {
        return if digits > LONGEST_SEQUENCE {
            Step::Skip(digits)
        } else {
            Step::Incomplete
        };
    };
    let held = modifiers(last_parameter(parameters));
    let key = match letter {
        b'a'..=b'd' => {
            arrow(letter.to_ascii_uppercase()).map(|code| with(code, KeyModifiers::CONTROL))
        }
        b'M' => Some(with(KeyCode::Enter, held)),
        b'w' => Some(with(KeyCode::End, held)),
        _ => arrow(*letter).map(|code| with(code, held)),
    };
    finished(digits + 1, *letter, key)
}

/// `ESC [ parameters final`, known or not.
fn control_sequence(bytes: &[u8]) -> Step {
    match bytes {
        // The Linux console's function keys.
        [b'['] => return Step::Incomplete,
        [b'[', _, ..] => return Step::Skip(2),
        // PuTTY's End in its rxvt mode; nothing else begins so, for we never ask for focus reports.
        [b'O', b'w', ..] => return Step::Key(2, plain(KeyCode::End)),
        _ => {}
    }
    let count = |range: std::ops::RangeInclusive<u8>, bytes: &[u8]| {
        bytes.iter().take_while(|byte| range.contains(byte)).count()
    };
    let (parameters, rest) = bytes.split_at(count(0x30..=0x3f, bytes));
    // rxvt ends Shift+key with a dollar sign, which begins no answer but those with a `?` in front.
    if rest.first() == Some(&b'$') && !parameters.starts_with(b"?") {
        let key = numbered(parameters, KeyModifiers::SHIFT);
        return finished(parameters.len() + 1, b'$', key);
    }
    let length = parameters.len() + count(0x20..=0x2f, rest);
    match bytes.get(length) {
        None if length > LONGEST_SEQUENCE => Step::Skip(length),
        None => Step::Incomplete,
        Some(b'~') if parameters == b"200" => Step::Paste(length + 1),
        Some(last) => finished(length + 1, *last, sequence_key(parameters, *last)),
    }
}

/// A whole sequence: its key, or nothing. A byte that can't end one begins something new.
fn finished(used: usize, last: u8, key: Option<KeyEvent>) -> Step {
    match key {
        Some(key) => Step::Key(used, key),
        None if matches!(last, 0x20..=0x7e) => Step::Skip(used),
        None => Step::Skip(used - 1),
    }
}

fn sequence_key(parameters: &[u8], letter: u8) -> Option<KeyEvent> {
    let held = modifiers(last_parameter(parameters));
    match letter {
        b'~' => match parameter(parameters, 0)? {
            // xterm's modifyOtherKeys: 27 ; modifiers ; character.
            27 => unicode_key(
                parameter(parameters, 2)?,
                modifiers(parameter(parameters, 1)),
            ),
            _ => numbered(parameters, modifiers(parameter(parameters, 1))),
        },
        b'^' => numbered(parameters, KeyModifiers::CONTROL),
        b'@' => numbered(parameters, KeyModifiers::CONTROL | KeyModifiers::SHIFT),
        b'u' => unicode_key(
            parameter(parameters, 0)?,
            modifiers(parameter(parameters, 1)),
        ),
        b'Z' => Some(plain(KeyCode::BackTab)),
        b'a'..=b'd' => {
            arrow(letter.to_ascii_uppercase()).map(|code| with(code, KeyModifiers::SHIFT))
        }
        _ => arrow(letter).map(|code| with(code, held)),
    }
}

fn arrow(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        _ => return None,
    })
}

/// The keys that are told by their number: `ESC [ 3 ~`.
fn numbered(parameters: &[u8], held: KeyModifiers) -> Option<KeyEvent> {
    let code = match parameter(parameters, 0)? {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        _ => return None,
    };
    Some(with(code, held))
}

/// A key told by the character on it.
fn unicode_key(character: u32, held: KeyModifiers) -> Option<KeyEvent> {
    let code = match character {
        8 | 127 => KeyCode::Backspace,
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        _ => match char::from_u32(character)? {
            c if c.is_control() => return None,
            c => KeyCode::Char(c),
        },
    };
    Some(with(code, held))
}

/// The number at `index` of parameters like `1;5`; what follows a colon within it is left out.
fn parameter(parameters: &[u8], index: usize) -> Option<u32> {
    let field = parameters.split(|byte| *byte == b';').nth(index)?;
    let number = field.split(|byte| *byte == b':').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The modifiers of `1;5C` and of the older `5C` alike.
fn last_parameter(parameters: &[u8]) -> Option<u32> {
    parameter(parameters, 1).or_else(|| parameter(parameters, 0))
}

/// Terminals tell modifiers as one more than the sum of Shift 1, Alt 2, Ctrl 4, Meta 8 and others.
/// Meta is what some of them call the Alt key.
fn modifiers(number: Option<u32>) -> KeyModifiers {
    let bits = number.unwrap_or(1).saturating_sub(1);
    let mut held = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::ALT),
    ] {
        if bits & bit != 0 {
            held |= modifier;
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<Typed> {
        let mut decoder = Decoder::default();
        let mut out = VecDeque::new();
        decoder.feed(bytes, &mut out);
        decoder.settle(&mut out);
        out.into()
    }

    fn text(text: &str) -> Typed {
        Typed::Text(text.to_owned())
    }

    fn ctrl(c: char) -> Typed {
        Typed::Key(with(KeyCode::Char(c), KeyModifiers::CONTROL))
    }

    #[test]
    fn f1_every_spelling_of_a_key_is_understood() {
        use KeyCode::{
            BackTab, Backspace, Delete, Down, End, Enter, Esc, Home, Left, Right, Tab, Up,
        };
        let none = KeyModifiers::NONE;
        let (ctrl, alt, shift) = (
            KeyModifiers::CONTROL,
            KeyModifiers::ALT,
            KeyModifiers::SHIFT,
        );
        for (bytes, code, modifiers) in [
            ("\x1b[A", Up, none),
            ("\x1bOA", Up, none),
            ("\x1b[B", Down, none),
            ("\x1b[C", Right, none),
            ("\x1bOD", Left, none),
            ("\x1b[H", Home, none),
            ("\x1bOH", Home, none),
            ("\x1b[1~", Home, none),
            ("\x1b[7~", Home, none),
            ("\x1b[F", End, none),
            ("\x1bOF", End, none),
            ("\x1b[4~", End, none),
            ("\x1b[8~", End, none),
            ("\x1b[Ow", End, none),
            ("\x1bOw", End, none),
            ("\x1b[3~", Delete, none),
            ("\x1b[1;5C", Right, ctrl),
            ("\x1b[5C", Right, ctrl),
            ("\x1bOc", Right, ctrl),
            ("\x1bO5C", Right, ctrl),
            ("\x1b[1;3C", Right, alt),
            ("\x1b\x1b[C", Right, alt),
            ("\x1b\x1bOC", Right, alt),
            ("\x1b[1;5D", Left, ctrl),
            ("\x1b[5D", Left, ctrl),
            ("\x1bOd", Left, ctrl),
            ("\x1b[1;3D", Left, alt),
            ("\x1b\x1b[D", Left, alt),
            ("\x1b[1;5H", Home, ctrl),
            ("\x1b[1;5F", End, ctrl),
            ("\x1b[7^", Home, ctrl),
            ("\x1b[8^", End, ctrl),
            ("\x1b[7$", Home, shift),
            ("\x1b[3;5~", Delete, ctrl),
            ("\x1bb", KeyCode::Char('b'), alt),
            ("\x1b\x7f", Backspace, alt),
            ("\x1b\x08", Backspace, alt),
            ("\x1b\r", Enter, alt),
            ("\x1b\n", Enter, alt),
            ("\x1b[13;2u", Enter, shift),
            ("\x1b[27;2;13~", Enter, shift),
            ("\x1b[97;5u", KeyCode::Char('a'), ctrl),
            ("\x1bOM", Enter, none),
            ("\r", Enter, none),
            ("\r\n", Enter, none),
            ("\t", Tab, none),
            ("\x1b[Z", BackTab, none),
            ("\x7f", Backspace, none),
            ("\x08", KeyCode::Char('h'), ctrl),
            ("\n", KeyCode::Char('j'), ctrl),
            ("\x00", KeyCode::Char(' '), ctrl),
            ("\x1f", KeyCode::Char('7'), ctrl),
            ("\x1b", Esc, none),
            ("\x1b\x1b", Esc, none),
            ("\x1bO", KeyCode::Char('O'), alt),
            ("\x1bé", KeyCode::Char('é'), alt),
        ] {
            let key = Typed::Key(with(code, modifiers));
            assert_eq!(decoded(bytes.as_bytes()), [key], "{bytes:?}");
        }
    }

    #[test]
    fn f1_unknown_sequences_are_swallowed_whole() {
        for unknown in [
            "\x1b[1;9P",
            "\x1b[99~",
            "\x1b[[A",
            "\x1bOP",
            "\x1b[?2026;2$y",
            "\x1b[12;34R",
            "\x1b[I",
            "\x1b]11;rgb:0/0/0\x07",
            "\x1b]11;rgb:0/0/0\x1b\\",
            "\x1bP1$r0m\x1b\\",
            "\x1b_Gi=1;OK\x1b\\",
            "\x1b[<0;1;2M",
            "\u{85}",
        ] {
            let bytes = format!("a{unknown}b");
            assert_eq!(decoded(bytes.as_bytes()), [text("ab")], "{unknown:?}");
        }
    }

    #[test]
    fn f1_a_sequence_that_breaks_off_does_not_eat_the_next_key() {
        assert_eq!(decoded(b"\x1b[1;\x03"), [ctrl('c')]);
        assert_eq!(decoded(b"\x1bO\x03"), [ctrl('c')]);
        assert_eq!(decoded("\x1b[é".as_bytes()), [text("é")]);
    }

    #[test]
    fn bytes_that_are_no_utf8_are_dropped() {
        assert_eq!(decoded(b"a\xff\xc3Ab\xe6\x97"), [text("aAb")]);
        assert_eq!(decoded("日本".as_bytes()), [text("日本")]);
    }

    #[test]
    fn a_character_whose_bytes_come_apart_is_waited_for() {
        let mut decoder = Decoder::default();
        let mut out = VecDeque::new();
        decoder.feed(b"\xe6\x97", &mut out);
        decoder.settle(&mut out);
        decoder.feed(b"\xa5", &mut out);
        assert_eq!(out, [text("日")]);
    }

    #[test]
    fn f2_a_paste_comes_as_one_and_what_follows_are_keys() {
        let paste = Typed::Paste("a\r\n\x1b[Ab".to_owned());
        assert_eq!(
            decoded(b"x\x1b[200~a\r\n\x1b[Ab\x1b[201~\ry\x1b[201~"),
            [
                text("x"),
                paste,
                Typed::Key(plain(KeyCode::Enter)),
                text("y")
            ]
        );
    }

    #[test]
    fn f2_a_paste_that_never_ends_is_given_out_when_settled() {
        assert_eq!(
            decoded(b"\x1b[200~abc\x1b[2"),
            [Typed::Paste("abc\u{1b}[2".to_owned())]
        );
    }

    #[test]
    fn many_escapes_and_pastes_in_one_read_are_survived() {
        assert_eq!(decoded(&vec![ESC; 100_000]).len(), 1);
        assert_eq!(decoded(&b"\x1b[200~\x1b[201~".repeat(10_000)).len(), 10_000);
        assert_eq!(
            decoded(&[b"\x1b[".as_slice(), &[b'1'; 10_000]].concat()),
            []
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_pieces_in_which_bytes_come_do_not_matter(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "é", "日", "\x1b[A", "\x1b[1;5D", "\x1bb", "\x1b[200~x\ry\x1b[201~", "\x1bOd",
                    "\x03", "\x1b[13;2u", "\x1b]0;t\x07",
                ]),
                0..12,
            ),
            cuts in prop::collection::vec(0usize..80, 0..6),
        ) {
            let bytes = parts.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let mut out = VecDeque::new();
            for piece in cuts.windows(2) {
                decoder.feed(&bytes[piece[0]..piece[1]], &mut out);
            }
            prop_assert!(!decoder.is_waiting());
            prop_assert_eq!(Vec::from(out), decoded(&bytes));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            decoded(&bytes);
        }
    }
}
