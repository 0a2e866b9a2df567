//! Answers on the screen: Markdown while it streams (SPEC F8, C13).
//!
//! Everything goes through the public sink, as the loop drives it. Snapshots of `tests/markdown/*.md`
//! lie beside the sources.

#![allow(clippy::expect_used)] // a test that cannot go on stops

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bantam::event::Event;
use bantam::render::text::packing_columns;
use bantam::render::{Look, screen};
use proptest::prelude::*;
use pulldown_cmark::{Event as Markdown, Options, Parser, Tag};

/// A stream whose text can be looked at while it is written.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).expect("UTF-8")
    }
}

/// What answers in these pieces look like on a terminal of `width` columns.
fn rendered(pieces: &[&str], width: usize, color: bool) -> String {
    let paper = Paper::default();
    let look = Look {
        terminal: true,
        color,
        markdown: true,
        ..Look::default()
    };
    let mut screen = screen(paper.clone(), io::sink(), look, Box::new(move || width));
    for piece in pieces {
        screen.event(Event::Text(piece));
        screen.flush();
    }
    screen.event(Event::ReplyEnd);
    screen.finish().expect("written");
    drop(screen);
    paper.text()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/markdown")
}

fn documents() -> Vec<(String, String)> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(folder()).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_stem().expect("a name").to_string_lossy();
            let text = fs::read_to_string(&path).expect("a document");
            documents.push((name.into_owned(), text));
        }
    }
    documents.sort();
    documents
}

#[test]
fn f8_documents_look_like_their_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, text) in documents() {
            for width in [40, 80] {
                let plain = rendered(&[&text], width, false);
                insta::assert_snapshot!(format!("{name}-{width}"), plain);
                let colored = rendered(&[&text], width, true).replace('\x1b', "␛");
                insta::assert_snapshot!(format!("{name}-{width}-color"), colored);
            }
        }
    });
}

/// The documents and the examples of the two specifications, each by itself.
fn samples() -> Vec<String> {
    let mut samples: Vec<String> = documents().into_iter().map(|(_, text)| text).collect();
    for file in ["commonmark-examples.txt", "gfm-examples.txt"] {
        let text = fs::read_to_string(folder().join(file)).expect("the examples");
        let mut examples = text.split("%%%%%%%%%%%%%%%%%%%%\n");
        assert!(examples.next().expect("a header").contains("BY-SA"));
        samples.extend(examples.map(str::to_owned));
    }
    assert!(samples.len() > 670);
    samples
}

/// `text` in pieces of these lengths in characters, over and over.
fn pieces<'a>(text: &'a str, lengths: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for length in lengths.iter().cycle() {
        let end = rest.char_indices().nth(*length).map(|(at, _)| at);
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        pieces.push(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

fn without_sgr(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (codes, rest) = part.split_once('m').expect("an SGR sequence");
        assert!(
            codes
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b';'),
            "{codes:?}"
        );
        plain.push_str(rest);
    }
    plain
}

/// How often each letter and digit occurs.
fn letters(text: &str) -> BTreeMap<char, usize> {
    let mut letters = BTreeMap::new();
    for c in text.chars().filter(|c| c.is_alphanumeric()) {
        *letters.entry(c).or_default() += 1;
    }
    letters
}

/// The text of a document as pulldown-cmark reads it, without the markup.
fn text_of(source: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut text = String::new();
    for event in Parser::new_ext(source, options) {
        match event {
            Markdown::Text(piece)
            | Markdown::Code(piece)
            | Markdown::Html(piece)
            | Markdown::InlineHtml(piece) => text.push_str(&piece),
            _ => {}
        }
    }
    text.replace("<br>", "").replace("<br />", "")
}

/// Whether a row is wider than `width` for no good reason.
fn is_too_wide(row: &str, width: usize) -> bool {
    let wide = row.chars().filter(|c| packing_columns(&c.to_string()) > 0);
    packing_columns(row) > width && wide.count() > 1 && !row.contains("://")
}

#[test]
fn f8_pieces_do_not_matter() {
    for (index, sample) in samples().iter().enumerate() {
        for (width, color) in [(7, false), (40, true), (80, true)] {
            let whole = rendered(&[sample], width, color);
            for lengths in [&[1][..], &[2, 5, 1, 13], &[index % 7 + 1, 3]] {
                assert_eq!(
                    rendered(&pieces(sample, lengths), width, color),
                    whole,
                    "{sample}"
                );
            }
        }
    }
}

#[test]
fn f8_nothing_is_lost_but_markup() {
    for sample in samples() {
        for width in [1, 12, 80] {
            let shown = letters(&rendered(&[&sample], width, false));
            for (c, count) in letters(&text_of(&sample)) {
                let found = shown.get(&c).copied().unwrap_or_default();
                assert!(found >= count, "{c} at {width} in {sample}");
            }
        }
    }
}

#[test]
fn c13_nothing_but_our_own_styles_reaches_the_terminal() {
    for sample in samples() {
        let shown = rendered(&[&sample], 80, true);
        let plain = without_sgr(&shown);
        assert!(
            plain.chars().all(|c| c == '\n' || !c.is_control()),
            "{sample}"
        );
        assert_eq!(plain, rendered(&[&sample], 80, false), "{sample}");
        for row in shown.lines() {
            let last = row.rfind("\x1b[").and_then(|at| row.get(at..));
            assert!(
                last.is_none_or(|last| last.starts_with("\x1b[0m")),
                "{row:?}"
            );
        }
    }
}

#[test]
fn f8_no_row_is_wider_than_the_terminal() {
    // Code is not wrapped.
    let has_code = |text: &str| {
        Parser::new(text).any(|event| matches!(event, Markdown::Start(Tag::CodeBlock(_))))
    };
    for sample in samples().iter().filter(|sample| !has_code(sample)) {
        // An address is only known by its first ten characters.
        let least = if sample.contains("://") { 12 } else { 1 };
        for width in (least..30).chain([40, 80, 200]) {
            for row in rendered(&[sample], width, false).lines() {
                assert!(!is_too_wide(row, width), "{row:?} at {width} in {sample}");
            }
        }
    }
}

#[test]
fn f8_an_indented_item_below_a_pipe_keeps_its_depth_however_it_arrives() {
    let document = "|\n - one\n  - two\n   - three\n";
    let expected = "|\n• one\n• two\n• three\n";
    for length in 1..=document.len() {
        assert_eq!(rendered(&pieces(document, &[length]), 80, false), expected);
    }
}

#[test]
fn f8_each_footnote_and_definition_has_a_row_of_its_own() {
    let document =
        "text[^1]\n[^1]: one\n[^2]: two\ngoes on\n\n[a]: http://a.b\n[c]: http://c.d\n[e] f";
    let expected =
        "text[^1]\n[^1]: one\n[^2]: two goes on\n\n[a]: http://a.b\n[c]: http://c.d [e] f\n";
    for length in 1..=document.len() {
        assert_eq!(rendered(&pieces(document, &[length]), 80, false), expected);
    }
}

/// Documents made of all that may mean something; every word occurs once.
fn strange_documents() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => Just("W"),
        3 => Just(" "),
        2 => prop::sample::select(vec!["\n", "\n\n", "  \n", "\\\n"]),
        3 => prop::sample::select(vec![
            "*", "**", "_", "~~W", "`W", "``W", "[", "](", ")", "![", "<", ">", "<b>", "<br>", "</",
            "&", ";", "&#27;", "&lt;", "\\", "!", "\"", "'", "(", "|", "\\|", ":", "-", "=", "#",
            "日本語", "👍🏽", "👨\u{200D}👩", "❤\u{FE0F}", "e\u{301}", "1\u{FE0F}", "\u{200B}", "é",
        ]),
        2 => prop::sample::select(vec![
            "\n- W", "\n1. W", "\n> W", "\n# W", "\n|W|W|\n|-|:-:|\n|W|", "\n|W", "\n---\n", "\n===\n",
            "\n<div>W", "\n<!--", "-->", "\n  W", "\n- - W", "\n> - W", "\n10) W", "\n---|---\n",
            "\n+", "\n> > W", "\n   W", "\n***\n", "\n\n\tW", "\n - W", "\n  - W", "\n   -",
            "\n[^W]: W",
        ]),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| {
        let mut document = String::new();
        for (index, token) in tokens.into_iter().enumerate() {
            document.push_str(&token.replace('W', &format!("q{index}z")));
        }
        document
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f8_strange_documents_are_shown_whole_and_within_the_width(
        document in strange_documents(),
        lengths in prop::collection::vec(1usize..12, 1..5),
        width in 1usize..90,
    ) {
        let shown = rendered(&[&document], width, true);
        prop_assert_eq!(&rendered(&pieces(&document, &lengths), width, true), &shown);
        let plain = without_sgr(&shown);
        prop_assert!(plain.chars().all(|c| c == '\n' || !c.is_control()));
        for row in plain.lines() {
            let is_code = document.contains('\t') || document.contains("    ");
            prop_assert!(is_code || !is_too_wide(row, width), "{row:?}");
        }
        let compact: String = plain.chars().filter(|c| c.is_alphanumeric()).collect();
        let is_in_cells = plain.contains('┬');
        for word in document.split(|c: char| !c.is_ascii_alphanumeric()) {
            let is_word = word.starts_with('q') && word.ends_with('z');
            prop_assert!(!is_word || is_in_cells || compact.contains(word), "{word} in {plain:?}");
        }
    }
}

/// Any text at all, with much that may mean something.
fn any_documents() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        prop::sample::select(vec![
            "\n",
            "\n",
            "\n\n",
            "```",
            "\n```\n",
            "\n~~~",
            "`",
            "~",
            "~~",
            "*",
            "_",
            "|",
            "-",
            "=",
            "#",
            ">",
            "<",
            "!",
            "[",
            "]",
            "(",
            ")",
            "\\",
            "&",
            ";",
            ":",
            "\"",
            "'",
            " ",
            "  ",
            "    ",
            "\t",
            "a",
            "b",
            "1",
            "1.",
            "https://a.b/",
            "<pre>",
            "</pre>",
            "<!--",
            "-->",
            "<br>",
            "| a | b |\n|-|-|\n",
            "&#10;",
            "日",
            "👨\u{200D}👩",
            "\u{FE0F}",
            "\r",
            "\x1b[",
            "m",
            "\u{301}",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ];
    prop::collection::vec(token, 0..60).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f8_pieces_do_not_matter_to_any_document(
        document in any_documents(),
        lengths in prop::collection::vec(1usize..12, 1..5),
        width in 1usize..90,
    ) {
        let shown = rendered(&[&document], width, true);
        prop_assert_eq!(&rendered(&pieces(&document, &lengths), width, true), &shown);
        prop_assert!(without_sgr(&shown).chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert!(shown.is_empty() || shown.ends_with('\n'));
    }
}

#[test]
fn f8_a_long_line_of_marks_in_a_fence_is_code() {
    let document = format!("```\n{}\nx\n```\n*y*", "`".repeat(300));
    let shown = rendered(&[&document], 80, false);
    assert_eq!(shown, format!("{}\nx\ny\n", "`".repeat(300)));
}

#[test]
fn f8_hostile_documents_end_in_time() {
    let nested = format!("{}text\n", "> ".repeat(10_000));
    let columns = format!("{0}\n{1}\n{0}\n", "|cell".repeat(5_000), "|-".repeat(5_000));
    let documents = [
        (nested, "text"),
        (columns, "cell: cell"),
        ("x".repeat(1_000_000), "xxx"),
        (format!("{}\n", "- ".repeat(10_000)), "- -"),
        (format!("```\n{}", "code\n".repeat(20_000)), "code\n"),
        (format!("a **{}", "b ".repeat(50_000)), "a **b b"),
        (
            format!("{}a{}", "[".repeat(10_000), "](b)".repeat(10_000)),
            "[[[",
        ),
        (format!("|a|\n|-|\n{}", "|x|\n".repeat(10_000)), "│ x │"),
        (format!("|{}", "y".repeat(200_000)), "|yyy"),
        (format!("# {}", "z ".repeat(50_000)), "z z"),
        ("\n".repeat(100_000), ""),
        (format!("<{}", "a ".repeat(50_000)), "<a a"),
    ];
    for (document, part) in &documents {
        assert!(rendered(&[document], 80, false).contains(part), "{part}");
    }
}

#[test]
fn f8_words_appear_as_they_come_fences_by_line_and_tables_at_their_end() {
    let paper = Paper::default();
    let look = Look {
        terminal: true,
        markdown: true,
        ..Look::default()
    };
    let mut screen = screen(paper.clone(), io::sink(), look, Box::new(|| 80));
    let mut shows = |piece: &str, shown: &str| {
        screen.event(Event::Text(piece));
        screen.flush();
        assert!(paper.text().ends_with(shown), "{piece:?}: {}", paper.text());
    };
    shows("Hel", "Hel");
    shows("lo, wor", "Hello, wor");
    shows("ld! **bo", "Hello, world!");
    shows("ld** and", "Hello, world! bold and");
    shows("\n\n```rust\nlet x", "\n\nlet x");
    shows(" = 1;\nlet y", "let x = 1;\nlet y");
    shows("\n```\n| a |\n|---", "let y\n");
    shows("|\n| 1 |\n", "let y\n");
    shows("\n", "└───┘\n");
}

#[test]
fn c11_an_interrupted_answer_shows_what_was_held_and_closes_its_styles() {
    let paper = Paper::default();
    let look = Look {
        terminal: true,
        color: true,
        markdown: true,
        ..Look::default()
    };
    let mut screen = screen(paper.clone(), io::sink(), look, Box::new(|| 80));
    screen.event(Event::Text("Some `code` and **held [text"));
    screen.event(Event::Interrupted);
    assert_eq!(paper.text(), "Some \x1b[36mcode\x1b[0m and **held [text\n");
    screen.event(Event::Text("| a |\n|---|\n| 1"));
    screen.event(Event::Interrupted);
    assert!(without_sgr(&paper.text()).contains("│ 1 │\n└───┘\n"));
}

#[test]
fn f8_in_a_pipe_the_markdown_passes_through_but_for_control_characters() {
    let paper = Paper::default();
    let mut screen = screen(paper.clone(), io::sink(), Look::default(), Box::new(|| 20));
    let mut expected = String::new();
    for (_, text) in documents() {
        screen.event(Event::Text(&text));
        screen.event(Event::Text("\x1b[31mx\x07\u{9b}2J\x1b"));
        screen.event(Event::Text("]0;title\x07y\n"));
        screen.event(Event::ReplyEnd);
        expected.extend([text.as_str(), "xy\n"]);
    }
    screen.finish().expect("written");
    assert_eq!(paper.text(), expected);
}
