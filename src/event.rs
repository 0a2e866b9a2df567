//! What the loop tells the screen, and the seam through which it does.

use std::time::Duration;

/// Something that happened in a turn, in the order in which a person should learn of it.
///
/// All texts come as the model, the server or the command wrote them, but for tool output, which
/// is sanitised for the model (SPEC C12). A sink that writes to a terminal makes them harmless.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// A request goes out; nothing of the answer is there yet.
    Requesting,
    /// The first byte of the answer has come.
    Replying,
    /// The request failed and is made again after `delay`. What the failed attempt brought is void.
    Retrying {
        /// Which retry this is, counted from 1.
        attempt: usize,
        /// How many there are at most.
        of: usize,
        /// How long it is until then.
        delay: Duration,
        /// Why, on one line.
        reason: &'a str,
    },
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// A piece of the answer, in Markdown.
    Text(&'a str),
    /// The answer is whole: nothing more of it comes.
    ReplyEnd,
    /// A tool is about to run.
    Call {
        /// The tool's name as the model wrote it.
        name: &'a str,
        /// The arguments as the model wrote them, JSON or not.
        arguments: &'a str,
    },
    /// A piece of what the running tool prints.
    Output {
        /// The tool's name.
        name: &'a str,
        /// Any piece of text, not necessarily a whole line.
        chunk: &'a str,
    },
    /// A tool has ended.
    Result {
        /// The tool's name.
        name: &'a str,
        /// What goes to the model.
        text: &'a str,
        /// Whether it is an error of the tool (a command with a non-zero exit code is none).
        failed: bool,
        /// Whether the person has seen it all as [`Event::Output`] already.
        streamed: bool,
    },
    /// The usage line of the turn (SPEC C14), without colour and newline.
    Usage(&'a str),
    /// Something the person should know, on one line; nothing failed.
    Notice(&'a str),
    /// Something that went wrong without ending the run, on one line.
    Warning(&'a str),
    /// The person interrupted the turn; what was held back comes out now.
    Interrupted,
}

/// Where events go. A sink cannot fail into the loop: it keeps its I/O error until it is asked.
pub trait Sink {
    /// Takes one event in.
    fn event(&mut self, event: Event<'_>);

    /// Shows what the events so far amount to; called once for all that came in one read.
    fn flush(&mut self) {}

    /// Whether nobody can see the output any more (a closed pipe): the loop then stops early.
    fn closed(&self) -> bool {
        false
    }
}
