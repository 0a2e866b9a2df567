//! Answers on the screen: Markdown while it streams (SPEC F8, C13).
//!
//! Everything goes through the public sink, as the loop drives it. Snapshots of `tests/markdown/*.md`
//! lie beside the sources.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bantam::event::Event;
use bantam::render::{Look, screen};

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
