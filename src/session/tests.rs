//! Tests of the store as a whole: what is on disk after whatever several programs do to it.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::message::Message;

/// A home directory and a project in it.
struct World {
    home: TempDir,
}

/// A running program: a store and the conversation in its memory.
struct Program {
    store: Store,
    conversation: Conversation,
}

impl World {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn program(&self) -> Program {
        self.program_in("/the/project")
    }

    fn program_in(&self, cwd: &str) -> Program {
        Program {
            store: Store::open(Some(self.home.path()), Path::new(cwd)),
            conversation: Conversation::new("system"),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.home.path().join(format!(".bantam/sessions/{id}.json"))
    }

    fn text(&self, id: &str) -> String {
        fs::read_to_string(self.path(id)).unwrap()
    }

    fn json(&self, id: &str) -> Value {
        serde_json::from_str(&self.text(id)).unwrap()
    }

    fn write(&self, id: &str, content: &str) {
        let path = self.path(id);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The texts of the messages in a session, without the system message.
    fn said(&self, id: &str) -> Vec<String> {
        let messages = self.json(id)["messages"].clone();
        let texts = messages.as_array().unwrap().iter().skip(1);
        texts
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }

    /// All ids, in alphabetical order.
    fn ids(&self) -> Vec<String> {
        self.program().store.ids().unwrap()
    }

    /// Everything that was said in each of the project's sessions, in alphabetical order.
    fn all_said(&self) -> Vec<String> {
        let mut all: Vec<_> = self
            .ids()
            .iter()
            .map(|id| self.said(id).join(" "))
            .collect();
        all.sort();
        all
    }
}

impl Program {
    fn say(&mut self, text: &str) -> &mut Self {
        self.conversation.push(Message::user(text));
        self
    }

    fn save(&mut self) -> Saved {
        self.store.save(&self.conversation, "m", false).unwrap()
    }

    fn clear(&mut self) -> &mut Self {
        self.store.begin();
        self.conversation = Conversation::new("system");
        self
    }

    fn load(&mut self, id: &str) -> &mut Self {
        let session = self.store.load(id).unwrap();
        self.store.branch(&session);
        self.conversation = session.conversation;
        self
    }

    /// As `/continue`; whether there was anything to go on with.
    fn go_on(&mut self) -> bool {
        let Some(entry) = self.store.newest_other().unwrap() else {
            return false;
        };
        let session = self.store.load(&entry.id).unwrap();
        self.store.resume(&session);
        self.conversation = session.conversation;
        true
    }

    fn project(&self) -> String {
        self.store.project_id().to_owned()
    }

    fn aside(&self, number: u32) -> String {
        format!("{}-{number}", self.store.project_id())
    }
}

#[test]
fn e1_the_project_session_is_named_by_the_md5_of_the_directory() {
    let world = World::new();
    let mut program = world.program();
    // printf /the/project | md5sum
    assert_eq!(program.project(), "7e5ba1279a8d7ecdf661656afd2da1ab");
    program.say("hi").save();
    let file = world.json(&program.project());
    assert_eq!(file["id"], program.project());
    assert_eq!(file["cwd"], "/the/project");
    assert_eq!(file["model"], "m");
    assert_eq!(file["title"], "hi");
    assert_eq!(file["count"], 1);
    assert_eq!(file["conversation"].as_str().unwrap().len(), 32);
}

#[test]
fn e2_each_save_replaces_the_last_one() {
    let world = World::new();
    let mut program = world.program();
    for text in ["a", "b", "c"] {
        let saved = program.say(text).save();
        assert_eq!(saved.id, Some(program.project()));
        assert_eq!(saved.kept_aside, None);
    }
    assert_eq!(world.all_said(), ["a b c"]);
    program.conversation = Conversation::new("system");
    program.say("a").save();
    assert_eq!(world.all_said(), ["a"], "what was taken back is gone");
}

#[test]
fn e2_what_is_saved_already_is_not_written_again() {
    let world = World::new();
    let mut program = world.program();
    program.say("a");
    program
        .store
        .save(&program.conversation, "m", false)
        .unwrap();
    let before = world.text(&program.project());
    let synced = program.store.save(&program.conversation, "m", true);
    assert_eq!(synced.unwrap(), Saved::default());
    assert_eq!(world.text(&program.project()), before);
    program.store.set_summary("about a");
    assert_ne!(program.save(), Saved::default());
    program
        .store
        .save(&program.conversation, "other", true)
        .unwrap();
    assert_eq!(world.json(&program.project())["model"], "other");
    assert_eq!(world.json(&program.project())["summary"], "about a");
}

#[test]
fn e3_a_conversation_without_a_prompt_is_never_saved_over_anything() {
    let world = World::new();
    let mut program = world.program();
    program.say("a").save();
    assert_eq!(program.clear().save(), Saved::default());
    let conversation = program.conversation.clone();
    program.store.save_named("x", &conversation, "m").unwrap();
    assert_eq!(world.ids(), [program.project()]);
    assert_eq!(world.all_said(), ["a"]);
}

#[test]
fn c11_a_conversation_whose_only_prompt_was_taken_back_leaves_no_trace() {
    let world = World::new();
    world.program().say("old").save();
    let before = world.text(&world.program().project());
    let mut program = world.program();
    program.say("taken back").save();
    assert_eq!(world.ids().len(), 2);
    program.conversation = Conversation::new("system");
    program.save();
    assert_eq!(world.ids(), [program.project()]);
    assert_eq!(world.text(&program.project()), before);

    program.say("new").save();
    let mut other = world.program();
    other.say("other").save();
    program.conversation = Conversation::new("system");
    program.save();
    assert_eq!(
        world.all_said(),
        ["new", "old", "other"],
        "what is not there is not removed"
    );
}

#[test]
fn e3_an_earlier_conversation_of_the_project_is_kept_aside() {
    let world = World::new();
    world.program().say("first").save();
    let mut second = world.program();
    let saved = second.say("second").save();
    assert_eq!(saved.kept_aside, Some(second.aside(1)));
    second.clear().say("third").save();
    second.store.begin_compacted();
    second.conversation = Conversation::new("system");
    second.say("third in short").save();

    assert_eq!(world.said(&second.project()), ["third in short"]);
    assert_eq!(world.json(&second.project())["title"], "third");
    assert_eq!(world.said(&second.aside(1)), ["first"]);
    assert_eq!(world.said(&second.aside(2)), ["second"]);
    assert_eq!(world.said(&second.aside(3)), ["third"]);
}

#[test]
fn e3_a_file_without_a_prompt_is_not_worth_keeping() {
    let world = World::new();
    let mut program = world.program();
    world.write(&program.project(), r#"[{"role":"system","content":"s"}]"#);
    assert_eq!(program.say("a").save().kept_aside, None);
    assert_eq!(world.all_said(), ["a"]);
}

#[test]
fn e3_however_often_two_programs_take_turns_each_conversation_ends_up_in_one_file() {
    let world = World::new();
    let (mut one, mut two) = (world.program(), world.program());
    for turn in 0..5 {
        one.say(&format!("one{turn}")).save();
        two.say(&format!("two{turn}")).save();
    }
    assert_eq!(
        world.all_said(),
        ["one0 one1 one2 one3 one4", "two0 two1 two2 two3 two4"]
    );
}

#[test]
fn e3_two_that_go_on_with_one_session_and_drift_apart_are_both_kept() {
    let world = World::new();
    world.program().say("base").save();
    let (mut one, mut two) = (world.program(), world.program());
    assert!(one.go_on() && two.go_on());
    for turn in 0..3 {
        one.say(&format!("one{turn}")).save();
        two.say(&format!("two{turn}")).save();
    }
    assert_eq!(
        world.all_said(),
        ["base one0 one1 one2", "base two0 two1 two2"]
    );
}

#[test]
fn e3_what_another_program_added_is_kept_when_this_one_has_nothing_of_it() {
    let world = World::new();
    let mut one = world.program();
    one.say("base").save();
    let mut two = world.program();
    assert!(two.go_on());
    two.say("more").save();
    assert_eq!(one.say("else").save().kept_aside, Some(one.aside(1)));
    assert_eq!(world.all_said(), ["base else", "base more"]);
}

#[test]
fn e3_damaged_files_are_kept_aside_too() {
    let world = World::new();
    for content in ["", "{", "\0\0\0", "{}", "[1]", r#"[{"role":"x"}]"#] {
        let mut program = world.program();
        world.write(&program.project(), content);
        let saved = program.say("a").save();
        let aside = saved.kept_aside.expect(content);
        assert_eq!(world.text(&aside), content);
        fs::remove_dir_all(world.home.path().join(".bantam")).unwrap();
    }
    let mut program = world.program();
    fs::create_dir_all(world.path(&program.project())).unwrap();
    assert_eq!(program.say("a").save().kept_aside, Some(program.aside(1)));
    assert!(world.path(&program.aside(1)).is_dir());
}

#[test]
fn e3_a_named_save_over_another_conversation_keeps_that_one() {
    let world = World::new();
    let mut one = world.program();
    one.say("a").save();
    one.store.save_named("n", &one.conversation, "m").unwrap();
    one.say("b").save();
    let saved = one.store.save_named("n", &one.conversation, "m").unwrap();
    assert_eq!(
        saved.kept_aside, None,
        "a later state of the same conversation"
    );
    assert_eq!(world.said("n"), ["a", "b"]);

    let mut two = world.program_in("/else");
    two.say("x");
    let saved = two.store.save_named("n", &two.conversation, "m").unwrap();
    assert_eq!(saved.kept_aside.as_deref(), Some("n-1"));
    assert_eq!(world.said("n"), ["x"]);
    assert_eq!(world.said("n-1"), ["a", "b"]);
    assert_eq!(
        world.ids(),
        ["n".to_owned(), "n-1".into(), one.project()].sorted()
    );
}

#[test]
fn e4_a_name_that_is_none_is_refused_and_nothing_is_written() {
    let world = World::new();
    let mut program = world.program();
    program.say("a");
    for name in ["", "../x", "a/b", ".a", "a b", &"x".repeat(300)] {
        let error = program
            .store
            .save_named(name, &program.conversation, "m")
            .unwrap_err();
        assert!(error.to_string().contains("cannot be the name"), "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!(fs::read_dir(world.home.path()).unwrap().count(), 0);
}

#[test]
fn e6_a_loaded_session_stays_as_it_was() {
    let world = World::new();
    let mut program = world.program();
    program.say("a").save();
    program
        .store
        .save_named("n", &program.conversation, "m")
        .unwrap();
    program.say("b").save();
    program.clear().say("other").save();
    let named = world.text("n");
    let first = program.aside(1);
    let aside = world.text(&first);

    program.load("n").say("c").save();
    program.load(&first).say("d").save();
    assert_eq!(world.text("n"), named);
    assert_eq!(world.text(&first), aside);
    assert_eq!(world.all_said(), ["a", "a b", "a b d", "a c", "other"]);
}

#[test]
fn e6_the_name_that_was_loaded_can_be_saved_to_again() {
    let world = World::new();
    let mut program = world.program();
    program.say("a").save();
    program
        .store
        .save_named("n", &program.conversation, "m")
        .unwrap();

    let mut later = world.program();
    later.load("n").say("b").save();
    assert_eq!(
        world.all_said(),
        ["a", "a b"],
        "an equal copy is not kept aside"
    );
    let saved = later
        .store
        .save_named("n", &later.conversation, "m")
        .unwrap();
    assert_eq!(saved.kept_aside, None);
    assert_eq!(world.all_said(), ["a b", "a b"]);
}

#[test]
fn e6_continue_goes_to_the_newest_other_conversation_and_back() {
    let world = World::new();
    let mut program = world.program();
    assert!(!program.go_on(), "there is none");
    program.say("one").save();
    assert!(!program.go_on(), "there is none but the current one");
    program.clear().say("two").save();
    assert!(program.go_on());
    program.say("three").save();
    assert_eq!(world.said(&program.project()), ["one", "three"]);
    assert!(program.go_on());
    program.save();
    assert_eq!(world.said(&program.project()), ["two"]);
    assert_eq!(world.all_said(), ["one three", "two"]);
    assert!(!world.program_in("/else").go_on());
}

#[test]
fn e6_continue_names_the_projects_own_session_when_it_is_damaged() {
    let world = World::new();
    let mut program = world.program();
    program.say("one").save();
    program.clear().say("two").save();
    world.write(&program.project(), "{");
    let fresh = world.program();
    let entry = fresh.store.newest_other().unwrap().unwrap();
    assert_eq!(entry.id, program.project());
    let error = fresh.store.load(&entry.id).unwrap_err();
    assert!(error.to_string().contains("not valid JSON"), "{error}");
    assert_eq!(world.text(&program.project()), "{");
}

#[test]
fn e1_a_bare_array_is_gone_on_with_in_its_place() {
    let world = World::new();
    let mut program = world.program();
    let bare = json!([{"role": "system", "content": "old"}, {"role": "user", "content": "a"}]);
    world.write(&program.project(), &bare.to_string());
    assert!(program.go_on());
    assert_eq!(program.say("b").save().kept_aside, None);
    assert_eq!(world.all_said(), ["a b"]);
}

#[test]
fn e7_a_history_that_was_mended_replaces_the_broken_one() {
    let world = World::new();
    let mut program = world.program();
    let broken = json!({"conversation": "c", "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    ]});
    world.write(&program.project(), &broken.to_string());
    let session = program.store.load(&program.project()).unwrap();
    assert_eq!(
        session.repairs.to_string(),
        "1 result added, 1 empty answer removed"
    );
    let last = session.conversation.last().unwrap();
    assert_eq!(last, &Message::assistant(TURN_BROKEN_OFF));
    assert!(program.go_on());
    assert_eq!(program.say("b").save().kept_aside, None);
    assert_eq!(world.ids(), [program.project()]);
}

#[test]
fn a3_a_session_can_go_on_in_its_own_file() {
    let world = World::new();
    let mut program = world.program();
    program.say("own").save();
    program
        .store
        .save_named("n", &program.conversation, "m")
        .unwrap();
    let own = world.text(&program.project());

    let mut once = world.program();
    let session = once.store.load("n").unwrap();
    once.store.resume_in_place(&session);
    once.conversation = session.conversation;
    once.say("more").save();
    assert_eq!(world.said("n"), ["own", "more"]);
    assert_eq!(world.text(&program.project()), own);
}

#[test]
fn e6_what_is_no_id_is_not_looked_for_outside_the_directory() {
    let world = World::new();
    let program = world.program();
    fs::write(world.home.path().join("x.json"), "[]").unwrap();
    for id in ["../../x", "", "..", "a\0b", "nothing"] {
        let error = program.store.load(id).unwrap_err().to_string();
        assert!(error.starts_with("there is no session"), "{error}");
    }
    assert_eq!(program.store.find("../../x").unwrap(), Found::None);
}

#[test]
fn e2_failures_are_errors_that_say_what_and_where() {
    let homeless = Store::open(None, Path::new("/x")).save(&prompted(), "m", true);
    assert_eq!(
        homeless.unwrap_err().to_string(),
        "cannot save the session: the home directory is unknown"
    );

    let world = World::new();
    let home = world.home.path().join("file");
    fs::write(&home, "").unwrap();
    let mut store = Store::open(Some(&home), Path::new("/x"));
    let error = store.save(&prompted(), "m", true).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot create") && error.contains("file/.bantam"),
        "{error}"
    );
    assert!(store.list().is_err() || store.list().unwrap().is_empty());
}

fn prompted() -> Conversation {
    let mut conversation = Conversation::new("system");
    conversation.push(Message::user("hi"));
    conversation
}

trait Sorted {
    fn sorted(self) -> Self;
}

impl<const N: usize> Sorted for [String; N] {
    fn sorted(mut self) -> Self {
        self.sort();
        self
    }
}

/// What one of several programs does.
#[derive(Debug, Clone)]
enum Step {
    Say,
    Clear,
    Continue,
    Load(usize),
    SaveAs(usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Say),
        1 => Just(Step::Clear),
        2 => Just(Step::Continue),
        1 => (0..6_usize).prop_map(Step::Load),
        1 => (0..2_usize).prop_map(Step::SaveAs),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn e3_whatever_programs_do_nothing_that_was_saved_is_ever_lost(
        steps in proptest::collection::vec((0..3_usize, step()), 1..30)
    ) {
        let world = World::new();
        let mut programs = [world.program(), world.program(), world.program()];
        let mut saved: Vec<Vec<String>> = Vec::new();
        for (number, (who, step)) in steps.into_iter().enumerate() {
            let program = &mut programs[who];
            match step {
                Step::Say => {
                    program.say(&number.to_string());
                }
                Step::Clear => {
                    program.clear();
                }
                Step::Continue => {
                    program.go_on();
                }
                Step::Load(index) => {
                    if let Some(id) = world.ids().get(index) {
                        program.load(id);
                    }
                }
                Step::SaveAs(name) => {
                    let conversation = program.conversation.clone();
                    program.store.save_named(&format!("name{name}"), &conversation, "m").unwrap();
                }
                Step::Restart => *program = world.program(),
            }
            program.save();
            let texts = program.conversation.messages().iter().skip(1);
            saved.push(texts.map(Message::text).collect());
        }

        let ids = world.ids();
        let files: Vec<_> = ids.iter().map(|id| world.said(id)).collect();
        for texts in saved.into_iter().filter(|texts| !texts.is_empty()) {
            prop_assert!(files.iter().any(|file| file.starts_with(&texts)), "{:?} is lost", texts);
        }
        let project = programs[0].project();
        let mut identities: Vec<_> = ids
            .iter()
            .filter(|id| id.starts_with(&project))
            .map(|id| world.json(id)["conversation"].to_string())
            .collect();
        identities.sort();
        let all = identities.len();
        identities.dedup();
        prop_assert_eq!(all, identities.len(), "a conversation is in two files");
    }
}
