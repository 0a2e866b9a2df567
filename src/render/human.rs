//! The sink for people: a conversation as it happens.
//!
//! Owns the order of things on the screen: which section is open, the lines that begin and end it,
//! and that nothing of ours starts in the middle of a row. How answers are laid out is the business
//! of the Markdown renderer.

use std::io::{self, Write};
use std::rc::Rc;

use crate::error::Error;
use crate::event::{Event, Sink};
use crate::render::fold::Fold;
use crate::render::markdown::{Markdown, Width};
use crate::render::messages::Messages;
use crate::render::theme::Role;
use crate::render::{Look, Screen, Stream};
use crate::sanitize::{Masker, ScreenFilter, screen, screen_line};

/// How many characters of a call's arguments a terminal shows (SPEC D7).
const ARGUMENTS_SHOWN: usize = 2_000;

/// What is being written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    None,
    Reasoning,
    Answer,
    Body,
    Command,
}

/// The sink of the interactive loop and of one-shot runs.
pub(super) struct Human<'a, O, E> {
    out: Stream<O>,
    messages: Messages<E>,
    look: Look,
    width: Width<'a>,
    /// Lays answers out, where they are.
    markdown: Option<Markdown<'a>>,
    section: Section,
    /// Makes the section's text harmless, whatever way it is cut into pieces.
    filter: ScreenFilter,
    /// Masks keys in the section's text, also where a piece ends within one.
    masker: Masker,
    /// The harmless form of the last piece, kept for its allocation.
    clean: String,
    /// What of it may be shown, likewise.
    shown: String,
    /// Shortens the body that is open, on a terminal.
    fold: Option<Fold>,
    /// What the body that is open is.
    body: Role,
}

impl<'a, O: Write, E: Write> Human<'a, O, E> {
    pub(super) fn new(out: O, err: E, look: Look, width: Box<dyn Fn() -> usize + 'a>) -> Self {
        let width: Width<'a> = Rc::from(width);
        Self {
            out: Stream::new(out, look.color),
            markdown: look.markdown.then(|| Markdown::new(Rc::clone(&width))),
            messages: Messages::new(
                err,
                look.error_terminal,
                look.error_color,
                look.redactor.clone(),
            ),
            look,
            width,
            section: Section::None,
            filter: ScreenFilter::default(),
            masker: Masker::default(),
            clean: String::new(),
            shown: String::new(),
            fold: None,
            body: Role::Body,
        }
    }

    /// Ends the section that is open unless it is `section`, and opens that.
    fn enter(&mut self, section: Section) {
        if self.section == section {
            return;
        }
        self.end_section();
        self.section = section;
        self.filter = ScreenFilter::default();
        self.masker = Masker::new(self.look.redactor.clone());
        if section == Section::Reasoning {
            self.our_line("--- reasoning start ---", Role::Marker);
        }
    }

    fn end_section(&mut self) {
        self.messages.clear_status();
        self.shown.clear();
        self.masker.finish_str(&mut self.shown);
        self.write_shown();
        let ended = std::mem::replace(&mut self.section, Section::None);
        match (ended, &mut self.markdown) {
            (Section::Body, _) => self.end_body(),
            (Section::Answer, Some(markdown)) => markdown.finish(&mut self.out.page),
            _ => {}
        }
        self.out.page.end_line();
        if ended == Section::Reasoning {
            self.our_line("--- reasoning end ---", Role::Marker);
        }
    }

    fn our_line(&mut self, text: &str, role: Role) {
        self.out.page.end_line();
        self.out.put_line(text, role.style());
    }

    /// Adds a piece to the open section.
    fn add(&mut self, text: &str) {
        self.clean.clear();
        self.filter.push(text, &mut self.clean);
        self.shown.clear();
        self.masker.push_str(&self.clean, &mut self.shown);
        self.write_shown();
    }

    fn write_shown(&mut self) {
        if self.shown.is_empty() {
            return;
        }
        let (out, text) = (&mut self.out, &self.shown);
        let style = match self.section {
            Section::Reasoning => Role::Reasoning.style(),
            Section::Body => self.body.style(),
            _ => Role::Plain.style(),
        };
        match (self.section, &mut self.markdown, &mut self.fold) {
            (Section::Answer, Some(markdown), _) => {
                markdown.push(text, &mut out.page);
                out.flush_if_full();
            }
            (_, _, Some(fold)) => fold.push(text, &mut |text| out.put(text, style)),
            _ => out.put(text, style),
        }
    }

    fn call(&mut self, name: &str, arguments: &str) {
        self.end_section();
        let name = screen_line(name);
        let arguments = screen_line(&self.look.redactor.mask(arguments));
        let shown = shortened(&arguments, ARGUMENTS_SHOWN);
        self.our_line(&format!("[tool call: {name}({shown})]"), Role::Call);
    }

    fn begin_body(&mut self, name: &str, role: Role) {
        self.body = role;
        if self.section == Section::Body {
            return;
        }
        self.enter(Section::Body);
        let header = format!("[tool result: {}]", screen_line(name));
        self.our_line(&header, Role::ResultHeader);
        self.fold = self.look.terminal.then(Fold::default);
    }

    fn end_body(&mut self) {
        let (out, style) = (&mut self.out, self.body.style());
        if let Some(mut fold) = self.fold.take() {
            fold.finish(&mut |text| out.put(text, style));
        }
    }

    fn result(&mut self, name: &str, text: &str, failed: bool, streamed: bool) {
        if !streamed || self.section != Section::Body {
            let role = if failed { Role::Failure } else { Role::Body };
            self.begin_body(name, role);
            self.add(text);
        }
        self.end_section();
    }

    /// Ends everything that is open and writes it out, before something goes to standard error.
    fn settle(&mut self) {
        self.end_section();
        self.out.flush();
    }
}

impl<O: Write, E: Write> Sink for Human<'_, O, E> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Reasoning("") | Event::Text("") | Event::Output { chunk: "", .. } => return,
            Event::Reasoning(text) => {
                self.enter(Section::Reasoning);
                self.add(text);
                return;
            }
            Event::Text(text) => {
                self.enter(Section::Answer);
                self.add(text);
                return;
            }
            Event::Output { name, chunk } => {
                self.begin_body(name, Role::Body);
                self.add(chunk);
            }
            Event::Requesting => {
                self.settle();
                self.messages.show_status((self.width)());
            }
            Event::Replying => self.messages.clear_status(),
            Event::ReplyEnd => self.end_section(),
            Event::Call { name, arguments } => self.call(name, arguments),
            Event::Result {
                name,
                text,
                failed,
                streamed,
            } => self.result(name, text, failed, streamed),
            Event::Usage(line) => {
                self.end_section();
                self.our_line(&screen_line(line), Role::Plain);
            }
            Event::Retrying {
                attempt,
                of,
                delay,
                reason,
            } => {
                self.settle();
                self.messages.retrying(attempt, of, delay, reason);
            }
            Event::Notice(text) => {
                self.settle();
                self.messages.notice(text);
            }
            Event::Warning(text) => {
                self.settle();
                self.messages.warning(text);
            }
            Event::Interrupted => {
                self.settle();
                self.messages.interrupted();
            }
        }
        self.out.flush();
    }

    fn flush(&mut self) {
        self.out.flush();
    }

    fn closed(&self) -> bool {
        self.out.is_broken_pipe()
    }
}

impl<O: Write, E: Write> Screen for Human<'_, O, E> {
    fn line(&mut self, text: &str) {
        self.end_section();
        let text = screen(&self.look.redactor.mask(text));
        self.our_line(text.strip_suffix('\n').unwrap_or(&text), Role::Plain);
        self.out.flush();
    }

    fn command_output(&mut self, chunk: &str) {
        self.enter(Section::Command);
        self.add(chunk);
        self.out.flush();
    }

    fn end_line(&mut self) {
        self.settle();
    }

    fn error(&mut self, error: &Error) {
        self.settle();
        self.messages.error(error);
    }

    fn set_look(&mut self, look: Look) {
        self.settle();
        self.out.page.set_color(look.color);
        self.messages.set_look(&look);
        self.markdown = look.markdown.then(|| Markdown::new(Rc::clone(&self.width)));
        self.look = look;
    }

    fn finish(&mut self) -> io::Result<()> {
        self.settle();
        self.out.failure.take().map_or(Ok(()), Err)
    }
}

/// The first `limit` characters, with a note on how many are left out.
fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (head, rest) = text.split_at(end);
            format!("{head}… ({} more characters)", rest.chars().count())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::render::screen as screen_for;

    /// Both streams in one place, each write marked with the stream it went to.
    #[derive(Clone, Default)]
    struct Both(Rc<RefCell<Vec<(char, String)>>>);

    struct Side(char, Both);

    impl Write for Side {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).expect("text");
            self.1.0.borrow_mut().push((self.0, text));
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Both {
        fn of(&self, side: char) -> String {
            let writes = self.0.borrow();
            let of_side = writes.iter().filter(|(of, _)| *of == side);
            of_side.map(|(_, text)| text.as_str()).collect()
        }
    }

    fn shown(look: Look, events: &[Event<'_>]) -> Both {
        let both = Both::default();
        let (out, err) = (Side('o', both.clone()), Side('e', both.clone()));
        let mut screen = screen_for(out, err, look, Box::new(|| 80));
        for event in events {
            screen.event(*event);
        }
        screen.finish().expect("written");
        drop(screen);
        both
    }

    fn piped() -> Look {
        Look::default()
    }

    fn on_terminal() -> Look {
        Look {
            terminal: true,
            error_terminal: true,
            ..Look::default()
        }
    }

    fn colored() -> Look {
        Look {
            color: true,
            error_color: true,
            ..on_terminal()
        }
    }

    #[test]
    fn b7_a_changed_setting_shows_in_the_next_answer() {
        let both = Both::default();
        let (out, err) = (Side('o', both.clone()), Side('e', both.clone()));
        let mut screen = screen_for(out, err, on_terminal(), Box::new(|| 80));
        for markdown in [false, true, false] {
            screen.set_look(Look {
                markdown,
                ..on_terminal()
            });
            screen.event(Event::Text("*so*"));
            screen.event(Event::ReplyEnd);
        }
        assert_eq!(both.of('o'), "*so*\nso\n*so*\n");
    }

    const TURN: &[Event<'_>] = &[
        Event::Requesting,
        Event::Replying,
        Event::Reasoning("Hm"),
        Event::Reasoning("m."),
        Event::Text("Let me "),
        Event::Text("look."),
        Event::ReplyEnd,
        Event::Call {
            name: "shell_exec",
            arguments: "{\"command\":\"ls\"}",
        },
        Event::Output {
            name: "shell_exec",
            chunk: "a\nb",
        },
        Event::Output {
            name: "shell_exec",
            chunk: "\n\nexit: 0",
        },
        Event::Result {
            name: "shell_exec",
            text: "a\nb\n\nexit: 0",
            failed: false,
            streamed: true,
        },
        Event::Requesting,
        Event::Replying,
        Event::Text("Two files.\n"),
        Event::ReplyEnd,
        Event::Usage("[m: 1 prompt + 1 completion | context: 1/10 (10.0%)]"),
    ];

    const TURN_SHOWN: &str = "\
--- reasoning start ---
Hmm.
--- reasoning end ---
Let me look.
[tool call: shell_exec({\"command\":\"ls\"})]
[tool result: shell_exec]
a
b

exit: 0
Two files.
[m: 1 prompt + 1 completion | context: 1/10 (10.0%)]
";

    #[test]
    fn a6_a_turn_in_a_pipe_shows_the_conversation_on_one_stream_and_the_status_on_the_other() {
        let both = shown(piped(), TURN);
        assert_eq!(both.of('o'), TURN_SHOWN);
        assert_eq!(both.of('e'), "...requesting...\n...requesting...\n");
    }

    #[test]
    fn a6_the_status_is_erased_on_a_terminal_before_anything_else_is_written() {
        let both = shown(on_terminal(), TURN);
        assert_eq!(both.of('o'), TURN_SHOWN);
        let status = "...requesting...\r\x1b[K";
        assert_eq!(both.of('e'), status.repeat(2));
        let writes = both.0.borrow();
        let mut shown = false;
        for (side, text) in writes.iter() {
            assert!(*side == 'e' || !shown, "{text:?} came after the status");
            shown = *side == 'e' && !text.ends_with("\x1b[K");
        }
    }

    #[test]
    fn f7_the_palette_is_used_when_colour_is_on() {
        let both = shown(colored(), TURN);
        let out = both.of('o');
        for piece in [
            "\x1b[36m--- reasoning start ---\x1b[0m\n\x1b[2mHmm.\x1b[0m\n",
            "\x1b[33m[tool call: shell_exec({\"command\":\"ls\"})]\x1b[0m\n",
            "\x1b[32m[tool result: shell_exec]\x1b[0m\n\x1b[2ma\x1b[0m\n\x1b[2mb\x1b[0m\n\n",
        ] {
            assert!(out.contains(piece), "{out:?}");
        }
        assert!(
            both.of('e')
                .starts_with("\x1b[1;90m...requesting...\x1b[0m\r\x1b[K")
        );
    }

    #[test]
    fn f6_without_colour_and_terminal_there_is_no_escape_byte() {
        let both = shown(piped(), TURN);
        assert!(!both.of('o').contains('\x1b') && !both.of('e').contains(['\x1b', '\r']));
    }

    #[test]
    fn c3_a_retry_ends_the_partial_line_and_says_why_when_and_which() {
        let both = shown(
            colored(),
            &[
                Event::Text("par"),
                Event::Retrying {
                    attempt: 2,
                    of: 9,
                    delay: Duration::from_secs(1),
                    reason: "connection reset",
                },
            ],
        );
        assert_eq!(both.of('o'), "par\n");
        assert_eq!(
            both.of('e'),
            "\x1b[31mconnection reset; retry 2 of 9 in 1 s\x1b[0m\n"
        );
    }

    #[test]
    fn c13_what_comes_from_outside_cannot_drive_the_terminal_or_forge_a_line() {
        let both = shown(
            on_terminal(),
            &[
                Event::Reasoning("a\x1b]0;t\x07b\u{9b}2J"),
                Event::Text("\u{202E}x\r\x08y"),
                Event::Call {
                    name: "n\x1b[2J\n",
                    arguments: "a\n[tool result: n]\x1b",
                },
                Event::Result {
                    name: "n\x1b",
                    text: "\x1b[2Jok",
                    failed: false,
                    streamed: false,
                },
                Event::Warning("w\x1b[2J\nx"),
            ],
        );
        assert!(
            !both
                .of('o')
                .contains(['\x1b', '\u{9b}', '\x07', '\r', '\x08', '\u{202E}'])
        );
        assert!(!both.of('e').contains('\x1b'));
        assert_eq!(
            both.of('o')
                .lines()
                .filter(|line| line.starts_with("[tool result"))
                .count(),
            1
        );
    }

    #[test]
    fn d7_long_arguments_are_shortened() {
        let arguments = "x".repeat(2_500);
        let call = [Event::Call {
            name: "n",
            arguments: &arguments,
        }];
        for look in [piped(), on_terminal()] {
            let short = shown(look, &call).of('o');
            assert!(short.contains(&format!("{}… (500 more characters))]", "x".repeat(2_000))));
        }
    }

    #[test]
    fn d7_a_long_body_is_folded_on_a_terminal_only() {
        let text = "line\n".repeat(50);
        let result = [Event::Result {
            name: "n",
            text: &text,
            failed: false,
            streamed: false,
        }];
        assert_eq!(
            shown(piped(), &result).of('o').matches("line\n").count(),
            50
        );
        let folded = shown(on_terminal(), &result).of('o');
        assert_eq!(folded.matches("line\n").count(), 40);
        assert!(folded.contains("… 10 lines left out …\n"));
    }

    #[test]
    fn f7_the_result_of_a_failed_tool_is_red() {
        let both = shown(
            colored(),
            &[Event::Result {
                name: "n",
                text: "no",
                failed: true,
                streamed: false,
            }],
        );
        assert_eq!(
            both.of('o'),
            "\x1b[32m[tool result: n]\x1b[0m\n\x1b[31mno\x1b[0m\n"
        );
    }

    #[test]
    fn an_error_says_what_failed_and_what_helps_in_red() {
        let both = Both::default();
        let (out, err) = (Side('o', both.clone()), Side('e', both.clone()));
        let mut screen = screen_for(out, err, colored(), Box::new(|| 80));
        screen.event(Event::Text("half"));
        screen.error(&Error::Config {
            message: "bad".into(),
            hint: Some("mend it".into()),
        });
        screen.error(&Error::Cancelled);
        drop(screen);
        assert_eq!(both.of('o'), "half\n");
        assert_eq!(
            both.of('e'),
            "\x1b[31merror: bad\x1b[0m\n\x1b[31mhint: mend it\x1b[0m\n"
        );
    }

    #[test]
    fn a6_a_closed_pipe_is_noticed_and_kept() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut screen = screen_for(Closed, io::sink(), piped(), Box::new(|| 80));
        assert!(!screen.closed());
        screen.event(Event::Text("x"));
        screen.flush();
        assert!(screen.closed());
        let error = screen.finish().expect_err("kept");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a3_quiet_writes_only_the_last_answer_of_a_prompt() {
        let look = Look {
            quiet: true,
            ..piped()
        };
        let both = shown(look, TURN);
        assert_eq!(both.of('o'), "Two files.\n");
        assert_eq!(both.of('e'), "");
    }
}
