//! Whole files, splices, and what the model is told about them.

use super::*;
use crate::sanitize::Redactor;
use crate::tools::Registry;
use proptest::prelude::*;
use std::fs;

/// Calls the tool through the registry; `PATH` in the arguments is the path of `name` in `home`.
async fn call(home: &Path, name: &str, mut arguments: Value) -> ToolOutput {
    arguments["path"] = json!(home.join(name).to_str().unwrap());
    call_with(&arguments.to_string(), true).await
}

async fn call_with(arguments: &str, sanitize_args: bool) -> ToolOutput {
    let tool = Box::new(WriteFile::new());
    let registry = Registry::new(vec![tool], sanitize_args, Redactor::default());
    let context = Context {
        cancel: &CancellationToken::new(),
        on_output: &mut |_| {},
    };
    registry.call(NAME, arguments, context).await
}

#[tokio::test]
async fn d1_without_offset_and_del_bytes_the_file_becomes_the_content() {
    let home = tempfile::tempdir().unwrap();
    let output = call(home.path(), "a/b/c.txt", json!({"content": "hé\n"})).await;
    let path = home.path().join("a/b/c.txt");
    assert_eq!(output.text, format!("created {}: 4 bytes", path.display()));
    assert!(!output.failed && !output.streamed);
    assert_eq!(fs::read_to_string(&path).unwrap(), "hé\n");
    let output = call(
        home.path(),
        "a/b/c.txt",
        json!({"content": "x", "offset": null}),
    )
    .await;
    assert_eq!(output.text, format!("changed {}: 1 byte", path.display()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    call(home.path(), "a/b/c.txt", json!({"content": ""})).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[tokio::test]
async fn d1_with_either_number_the_content_is_spliced_in() {
    for (old, arguments, new) in [
        (
            "hello",
            json!({"content": "J", "offset": 0, "del_bytes": 1}),
            "Jello",
        ),
        ("hello", json!({"content": ">", "offset": 0}), ">hello"),
        ("hello", json!({"content": ">", "del_bytes": 2}), ">llo"),
        ("hello", json!({"content": "!", "offset": 5}), "hello!"),
        (
            "hello",
            json!({"content": "", "offset": 1, "del_bytes": 3}),
            "ho",
        ),
        (
            "hello",
            json!({"content": "p", "offset": 3, "del_bytes": 99}),
            "help",
        ),
        (
            "hello",
            json!({"content": "p", "offset": "3", "del_bytes": "2.0"}),
            "help",
        ),
        (
            "hello",
            json!({"content": "p", "offset": 3, "del_bytes": 1e30}),
            "help",
        ),
        (
            "hello",
            json!({"content": "", "offset": 0, "del_bytes": 0}),
            "hello",
        ),
        (
            "a€b",
            json!({"content": "$", "offset": 1, "del_bytes": 3}),
            "a$b",
        ),
        (
            "",
            json!({"content": "x", "offset": 0, "del_bytes": 5}),
            "x",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("f"), old).unwrap();
        let output = call(home.path(), "f", arguments.clone()).await;
        assert!(!output.failed, "{}", output.text);
        let content = fs::read_to_string(home.path().join("f")).unwrap();
        assert_eq!(content, new, "{arguments}");
    }
}

#[tokio::test]
async fn d1_a_splice_says_what_it_did() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("f"), "0123456789").unwrap();
    let output = call(
        home.path(),
        "f",
        json!({"content": "xy", "offset": 7, "del_bytes": 99}),
    )
    .await;
    let path = home.path().join("f");
    assert_eq!(
        output.text,
        format!(
            "changed {}: at byte 7 deleted 3, inserted 2; now 9 bytes",
            path.display()
        )
    );
    let output = call(home.path(), "new", json!({"content": "xy", "offset": 0})).await;
    assert!(output.text.starts_with("created "), "{}", output.text);
    assert_eq!(fs::read_to_string(home.path().join("new")).unwrap(), "xy");
}

#[tokio::test]
async fn d1_a_bad_splice_is_an_error_and_changes_nothing() {
    let old = "a€b𝄞";
    for (arguments, message) in [
        (
            json!({"offset": 10}),
            "offset 10 is beyond the end: the file has 9 bytes",
        ),
        (
            json!({"offset": 1e30}),
            "is beyond the end: the file has 9 bytes",
        ),
        (
            json!({"offset": -1}),
            "`offset` has to be at least 0, but is -1",
        ),
        (
            json!({"del_bytes": -5}),
            "`del_bytes` has to be at least 0, but is -5",
        ),
        (
            json!({"offset": 2}),
            "offset = 2 is inside a UTF-8 character, which goes from byte 1 to 4",
        ),
        (
            json!({"offset": 8}),
            "offset = 8 is inside a UTF-8 character, which goes from byte 5 to 9",
        ),
        (
            json!({"offset": 0, "del_bytes": 3}),
            "offset + del_bytes = 3 is inside a UTF-8 character, which goes from byte 1 to 4",
        ),
        (json!({"offset": 0.5}), "`offset` has to be an integer"),
    ] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("f"), old).unwrap();
        let mut arguments = arguments;
        arguments["content"] = json!("x");
        let output = call(home.path(), "f", arguments).await;
        assert!(output.failed);
        assert!(output.text.contains(message), "{}", output.text);
        assert_eq!(fs::read_to_string(home.path().join("f")).unwrap(), old);
    }
    let home = tempfile::tempdir().unwrap();
    let output = call(home.path(), "none/f", json!({"content": "x", "offset": 1})).await;
    assert!(
        output.text.contains("the file does not exist"),
        "{}",
        output.text
    );
    assert!(!home.path().join("none").exists());
}

#[tokio::test]
async fn d1_a_file_that_is_no_text_may_be_cut_anywhere() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("f"), b"\xe2\x82\xac\xff").unwrap();
    let output = call(
        home.path(),
        "f",
        json!({"content": "x", "offset": 1, "del_bytes": 1}),
    )
    .await;
    assert!(!output.failed, "{}", output.text);
    assert_eq!(fs::read(home.path().join("f")).unwrap(), b"\xe2x\xac\xff");
}

#[tokio::test]
async fn d1_a_splice_touches_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("f"), b"\xEF\xBB\xBFa\r\nb\r\n").unwrap();
    call(
        home.path(),
        "f",
        json!({"content": "Z", "offset": 3, "del_bytes": 1}),
    )
    .await;
    assert_eq!(
        fs::read(home.path().join("f")).unwrap(),
        b"\xEF\xBB\xBFZ\r\nb\r\n"
    );
}

#[tokio::test]
async fn c12_lost_characters_are_told_and_without_sanitising_none_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("f");
    let text = "x\r\ny 👨\u{200d}👩";
    let arguments = json!({"path": path.to_str(), "content": text}).to_string();
    let output = call_with(&arguments, true).await;
    assert!(
        output.text.contains("\n2 characters of content left out"),
        "{}",
        output.text
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\ny 👨👩");
    let output = call_with(&arguments, false).await;
    assert!(!output.text.contains("left out"), "{}", output.text);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn d1_paths_that_name_no_file_are_refused() {
    let home = Some(Path::new("/home/x"));
    for (name, message) in [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("dir/", "directory"),
        ("/", "directory"),
        ("~/", "directory"),
    ] {
        let error = path(name, home).unwrap_err();
        assert!(error.contains(message), "{name:?}: {error}");
    }
    assert!(path("~/x", None).unwrap_err().contains("no home directory"));
}

#[test]
fn d1_a_leading_tilde_means_home() {
    let home = Some(Path::new("/home/x"));
    for (name, expected) in [
        ("~/a", "/home/x/a"),
        ("~//a", "/home/x/a"),
        ("~", "/home/x"),
        ("a/~/b", "a/~/b"),
        ("~a/b", "~a/b"),
        ("./~", "./~"),
        ("/a", "/a"),
    ] {
        assert_eq!(path(name, home).unwrap(), PathBuf::from(expected), "{name}");
    }
    assert_eq!(path("a", None).unwrap(), PathBuf::from("a"));
}

#[test]
fn the_definitions_of_both_tools_are_short() {
    use crate::shell::Limits;
    use crate::tools::shell_exec::ShellExec;
    let limits = Limits {
        timeout: std::time::Duration::from_secs(1),
        output_chars: 0,
        spill_dir: None,
        redactor: Redactor::default(),
    };
    let tools: Vec<Box<dyn Tool>> =
        vec![Box::new(ShellExec::new(limits)), Box::new(WriteFile::new())];
    let registry = Registry::new(tools, true, Redactor::default());
    let json = serde_json::to_string(registry.specs()).unwrap();
    assert!(json.len() <= 900, "{} bytes: {json}", json.len());
}

proptest! {
    #[test]
    fn d1_splice_equals_a_reference(
        old in "[a-c€𝄞é]{0,12}",
        offset in 0usize..40,
        del_bytes in prop_oneof![0usize..40, Just(usize::MAX)],
    ) {
        let splice = Splice { offset, del_bytes };
        let range = splice.range(old.as_bytes(), true);
        let boundaries: Vec<usize> = (0..=old.len()).filter(|&at| old.is_char_boundary(at)).collect();
        let end = offset.saturating_add(del_bytes).min(old.len());
        if boundaries.contains(&offset) && boundaries.contains(&end) {
            prop_assert_eq!(range, Ok(offset..end));
        } else {
            prop_assert!(range.is_err());
        }
    }

    #[test]
    fn d1_any_bytes_and_numbers_give_what_was_asked_for_or_an_error(
        old in prop::collection::vec(any::<u8>(), 0..30),
        content in "[a-z]{0,5}",
        offset in 0usize..40,
        del_bytes in 0usize..40,
    ) {
        prop_assume!(std::str::from_utf8(&old).is_err());
        let range = Splice { offset, del_bytes }.range(&old, true);
        if offset > old.len() {
            prop_assert!(range.is_err());
        } else {
            let range = range.unwrap();
            let mut expected: Vec<u8> = old.iter().copied().take(offset).collect();
            expected.extend(content.bytes());
            expected.extend(old.iter().copied().skip(offset).skip(del_bytes));
            let mut new = old.clone();
            new.splice(range, content.bytes());
            prop_assert_eq!(new, expected);
        }
    }
}
