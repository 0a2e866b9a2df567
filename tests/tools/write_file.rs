//! Files written and spliced (SPEC D1, D2).

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{mode, write_in};
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn d1_without_numbers_the_file_becomes_the_content_and_parents_are_created() {
    let call = json!({"path": "a/b/c.txt", "content": "new\n"});
    write_in(|cli| cli, &call).1.file("a/b/c.txt", "new\n");
    write_in(|cli| cli.file("a/b/c.txt", "old and longer"), &call)
        .1
        .file("a/b/c.txt", "new\n");
}

#[test]
fn d1_the_content_may_be_empty() {
    let call = json!({"path": "f", "content": ""});
    write_in(|cli| cli.file("f", "old"), &call).1.file("f", "");
}

#[test]
fn d1_with_numbers_bytes_are_spliced() {
    for (offset, deleted, expected) in [
        (json!(0), json!(0), "XYabcdef"),
        (json!(2), json!(0), "abXYcdef"),
        (json!(2), json!(3), "abXYf"),
        (json!(6), json!(0), "abcdefXY"),
        (json!(4), json!(100), "abcdXY"),
        (json!(0), json!(6), "XY"),
        (json!(1), Value::Null, "aXYbcdef"),
        (Value::Null, json!(2), "XYcdef"),
    ] {
        let mut call = json!({"path": "f", "content": "XY"});
        for (name, value) in [("offset", offset), ("del_bytes", deleted)] {
            if !value.is_null() {
                call[name] = value;
            }
        }
        write_in(|cli| cli.file("f", "abcdef"), &call)
            .1
            .file("f", expected);
    }
}

#[test]
fn d1_a_splice_touches_nothing_but_its_bytes() {
    let call = json!({"path": "f", "content": "Z", "offset": 3, "del_bytes": 1});
    write_in(|cli| cli.file("f", b"\xef\xbb\xbfa\r\nb\r\n\xff"), &call)
        .1
        .file("f", b"\xef\xbb\xbfZ\r\nb\r\n\xff");
}

#[test]
fn d1_an_offset_beyond_the_end_names_the_size_and_changes_nothing() {
    let call = json!({"path": "f", "content": "X", "offset": 7});
    let (result, run) = write_in(|cli| cli.file("f", "abcdef"), &call);
    assert!(result.contains('6'), "{result}");
    run.file("f", "abcdef");
}

#[test]
fn d1_an_offset_into_a_file_that_is_not_there_is_an_error_beyond_0() {
    let call = json!({"path": "f", "content": "X", "offset": 1});
    write_in(|cli| cli, &call).1.no_file("f");
    let call = json!({"path": "f", "content": "X", "offset": 0});
    write_in(|cli| cli, &call).1.file("f", "X");
}

#[test]
fn d1_negative_and_enormous_numbers_are_errors_and_change_nothing() {
    for (name, number) in [
        ("offset", json!(-1)),
        ("del_bytes", json!(-1)),
        ("offset", json!(u64::MAX)),
        ("offset", json!(1e300)),
    ] {
        let call = json!({"path": "f", "content": "X", name: number});
        let (result, run) = write_in(|cli| cli.file("f", "abc"), &call);
        assert!(result.contains(name) || result.contains("size"), "{result}");
        run.file("f", "abc").stderr_lacks("panicked");
    }
}

#[test]
fn d1_an_enormous_number_of_deleted_bytes_deletes_to_the_end() {
    let call = json!({"path": "f", "content": "X", "offset": 1, "del_bytes": i64::MAX});
    write_in(|cli| cli.file("f", "abc"), &call)
        .1
        .file("f", "aX");
}

#[test]
fn d1_a_cut_inside_a_character_names_the_nearest_boundaries() {
    for (offset, deleted, near) in [(2, 0, ["1", "4"]), (3, 1, ["1", "4"]), (1, 1, ["1", "4"])] {
        let call = json!({"path": "f", "content": "X", "offset": offset, "del_bytes": deleted});
        let (result, run) = write_in(|cli| cli.file("f", "a€b"), &call);
        assert!(near.iter().all(|at| result.contains(at)), "{result}");
        run.file("f", "a€b");
    }
}

#[test]
fn d1_a_file_that_is_no_text_may_be_cut_anywhere() {
    let call = json!({"path": "f", "content": "X", "offset": 2, "del_bytes": 1});
    write_in(|cli| cli.file("f", b"\xff\xe2\x82\xac"), &call)
        .1
        .file("f", b"\xff\xe2X\xac");
}

#[test]
fn d1_a_leading_tilde_means_home() {
    let call = json!({"path": "~/notes/x", "content": "in home"});
    let (_, run) = write_in(|cli| cli, &call);
    let written = fs::read_to_string(run.home().join("notes/x")).unwrap();
    assert_eq!(written, "in home");
    run.no_file("~");
}

#[test]
fn d1_paths_that_are_no_files_are_errors() {
    for path in [
        "",
        ".",
        "folder",
        "folder/",
        "new/",
        "file/below",
        "/proc/nothing/here",
    ] {
        let call = json!({"path": path, "content": "X"});
        let (result, run) = write_in(|cli| cli.file("folder/inner", "i").file("file", "f"), &call);
        assert!(!result.is_empty(), "{path:?}");
        run.file("folder/inner", "i")
            .file("file", "f")
            .no_file("new")
            .stderr_lacks("panicked");
    }
}

#[test]
fn d2_a_changed_file_keeps_its_mode() {
    let server = Server::start([
        Reply::call(
            "a",
            "write_file",
            &json!({"path": "f", "content": "#!/bin/sh\n"}),
        ),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("f", "old").prompt("x");
    fs::set_permissions(cli.directory().join("f"), fs::Permissions::from_mode(0o751)).unwrap();
    let run = cli.run();
    run.success().file("f", "#!/bin/sh\n");
    assert_eq!(mode(&run.directory().join("f")), 0o751);
}

#[test]
fn d2_a_new_file_has_the_mode_of_the_umask() {
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let call = json!({"path": "f", "content": "x"});
        let script = format!("umask {umask}; exec \"$@\"");
        let (_, run) = write_in(|cli| cli.through(&script), &call);
        assert_eq!(mode(&run.directory().join("f")), expected);
    }
}

#[test]
fn d2_a_symlink_is_followed_and_stays_one() {
    let server = Server::start([
        Reply::call(
            "a",
            "write_file",
            &json!({"path": "link", "content": "new"}),
        ),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("real/target", "old").prompt("x");
    symlink("real/target", cli.directory().join("link")).unwrap();
    let run = cli.run();
    run.success().file("real/target", "new");
    let link = run.directory().join("link");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn d2_a_file_with_two_names_keeps_both() {
    let server = Server::start([
        Reply::call("a", "write_file", &json!({"path": "one", "content": "new"})),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("one", "old").prompt("x");
    fs::hard_link(cli.directory().join("one"), cli.directory().join("two")).unwrap();
    cli.run().success().file("one", "new").file("two", "new");
}

#[test]
fn d2_a_file_is_replaced_and_not_written_over() {
    let server = Server::start([
        Reply::call("a", "write_file", &json!({"path": "f", "content": "new"})),
        Reply::answer("ok"),
    ]);
    let cli = Cli::against(&server).file("f", "old").prompt("x");
    let before = fs::metadata(cli.directory().join("f")).unwrap().ino();
    let held = fs::File::open(cli.directory().join("f")).unwrap();
    let run = cli.run();
    run.success();
    assert_ne!(
        fs::metadata(run.directory().join("f")).unwrap().ino(),
        before
    );
    assert_eq!(std::io::read_to_string(held).unwrap(), "old");
    let names = fs::read_dir(run.directory()).unwrap().count();
    assert_eq!(
        names, 3,
        "the file, the prompt and the config, and nothing left over"
    );
}

#[test]
fn d2_a_write_that_fails_leaves_the_old_file() {
    let content = "x".repeat(1_000_000);
    let call = json!({"path": "f", "content": content});
    let script = r#"ulimit -f 100; trap '' XFSZ; exec "$@""#;
    let (result, run) = write_in(|cli| cli.file("f", "old").through(script), &call);
    run.file("f", "old");
    assert!(!result.contains("created"), "{result}");
    let names: Vec<_> = fs::read_dir(run.directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "nothing is left over: {names:?}");
}

#[test]
fn d2_a_pipe_nobody_reads_is_an_error_and_no_wait() {
    let script = r#"mkfifo pipe; exec "$@""#;
    let call = json!({"path": "pipe", "content": "x"});
    let (result, _) = write_in(|cli| cli.through(script), &call);
    assert!(result.contains("pipe"), "{result}");
}

#[test]
fn d2_a_pipe_someone_reads_is_written_to() {
    let text = "through the pipe";
    let call = json!({"path": "pipe", "content": text});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let cli = Cli::against(&server).prompt("x");
    let pipe = cli.directory().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    // Opened for both, a pipe has a reader at once.
    let mut reader = fs::File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    cli.run().success();
    let result = server.request(1).result();
    assert!(result.contains("16"), "{result}");
    let mut received = vec![0; text.len()];
    reader.read_exact(&mut received).unwrap();
    assert_eq!(received, text.as_bytes());
}

#[test]
fn d2_a_device_is_written_in_place() {
    let call = json!({"path": "/dev/null", "content": "x"});
    write_in(|cli| cli, &call);
    assert!(Path::new("/dev/null").metadata().unwrap().len() == 0);
}

#[test]
fn d2_a_file_in_a_directory_that_cannot_be_written_is_written_in_place() {
    let call = json!({"path": "closed/f", "content": "new"});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let cli = Cli::against(&server).file("closed/f", "old").prompt("x");
    let closed = cli.directory().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let before = fs::metadata(closed.join("f")).unwrap().ino();
    let run = cli.run();
    run.success().file("closed/f", "new");
    let after = fs::metadata(closed.join("f")).unwrap().ino();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    // Nothing is closed to the superuser.
    assert!(after == before || rustix::process::geteuid().is_root());
}

#[test]
fn d2_a_socket_is_an_error() {
    let call = json!({"path": "socket", "content": "x"});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let cli = Cli::against(&server).prompt("x");
    let _listener = UnixListener::bind(cli.directory().join("socket")).unwrap();
    let run = cli.run();
    run.success();
    let result = server.request(1).result();
    assert!(result.contains("socket"), "{result}");
    let kind = fs::symlink_metadata(run.directory().join("socket")).unwrap();
    assert!(kind.file_type().is_socket());
}

#[test]
fn d2_the_result_says_what_happened() {
    let call = json!({"path": "f", "content": "12345"});
    let (created, _) = write_in(|cli| cli, &call);
    assert!(
        created.contains('5') && created.contains("created"),
        "{created}"
    );
    let (changed, _) = write_in(|cli| cli.file("f", "old"), &call);
    assert!(
        changed.contains('5') && !changed.contains("created"),
        "{changed}"
    );
}
