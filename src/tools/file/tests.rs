//! Files that are easy to replace, and files that are not.

use super::*;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use tokio_util::sync::CancellationToken;

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(&find(path)?, content)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().to_str().unwrap().to_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn d2_a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("f");
    for bits in [0o755, 0o600, 0o644, 0o4711] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let mut reader = File::open(&path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(mode(&path), bits);
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "old", "who has the old file open goes on reading it");
        assert_eq!(names(home.path()), ["f"]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn d2_a_new_file_has_the_mode_that_the_umask_gives() {
    let home = tempfile::tempdir().unwrap();
    File::create(home.path().join("by the system")).unwrap();
    write(&home.path().join("f"), b"x").unwrap();
    assert_eq!(
        mode(&home.path().join("f")),
        mode(&home.path().join("by the system"))
    );
}

#[test]
fn d2_symbolic_links_are_followed_and_stay() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("d")).unwrap();
    fs::write(at("d/file"), "old").unwrap();
    symlink("d/file", at("link")).unwrap();
    symlink("link", at("link to link")).unwrap();
    write(&at("link to link"), b"new").unwrap();
    assert_eq!(fs::read(at("d/file")).unwrap(), b"new");
    assert!(at("link").is_symlink() && at("link to link").is_symlink());

    symlink("../e/missing", at("d/dangling")).unwrap();
    write(&at("d/dangling"), b"new").unwrap();
    assert_eq!(fs::read(at("e/missing")).unwrap(), b"new");
    assert!(at("d/dangling").is_symlink());

    symlink("loop", at("loop")).unwrap();
    assert!(write(&at("loop"), b"new").is_err());
}

#[test]
fn d2_a_file_with_several_names_is_written_in_place() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    fs::write(&a, "old content").unwrap();
    fs::hard_link(&a, &b).unwrap();
    for content in ["new", "much longer than the old one", ""] {
        write(&a, content.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&b).unwrap(), content);
    }
    assert_eq!(
        fs::metadata(&a).unwrap().ino(),
        fs::metadata(&b).unwrap().ino()
    );
    assert_eq!(names(home.path()), ["a", "b"]);
}

#[test]
fn d2_a_file_in_a_directory_that_cannot_be_written_is_written_in_place() {
    if is_root() {
        return; // Root can write any directory.
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("f");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o555)).unwrap();
    let written = write(&path, b"new");
    let created = write(&home.path().join("g"), b"new");
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    written.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert!(created.is_err());
}

#[test]
fn d2_a_file_that_is_not_writable_stays() {
    if is_root() {
        return; // Root can write any file.
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("f");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let error = write(&path, b"new").unwrap_err();
    assert!(error.to_string().contains("mode 444"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn d2_what_is_no_file_is_refused() {
    let home = tempfile::tempdir().unwrap();
    assert!(find(home.path()).is_err());
    assert!(find(Path::new(".")).is_err());
    let socket = home.path().join("s");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert!(find(&socket).unwrap_err().to_string().contains("socket"));
    fs::write(home.path().join("f"), "").unwrap();
    assert!(write(&home.path().join("f/below"), b"x").is_err());
    assert!(write(&home.path().join("n".repeat(300)), b"x").is_err());
    assert_eq!(names(home.path()), ["f", "s"]);
}

fn pipe(directory: &Path) -> PathBuf {
    let path = directory.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    path
}

#[tokio::test]
async fn d2_a_pipe_that_nobody_reads_is_an_error_not_a_wait() {
    let home = tempfile::tempdir().unwrap();
    let path = pipe(home.path());
    assert!(matches!(find(&path).unwrap(), Target::Special(_)));
    let cancel = CancellationToken::new();
    let error = write_special(&path, b"x", &cancel).await.unwrap_err();
    assert!(error.to_string().contains("nobody reads"), "{error}");
}

#[tokio::test]
async fn d2_a_pipe_that_someone_reads_gets_it_all() {
    let home = tempfile::tempdir().unwrap();
    let path = pipe(home.path());
    // Opened for both, so that neither side waits for the other.
    let reader = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let content = vec![b'x'; 300_000];
    let reading = std::thread::spawn(move || {
        let mut seen = vec![0; 300_000];
        (&reader).read_exact(&mut seen).unwrap();
        seen
    });
    let cancel = CancellationToken::new();
    write_special(&path, &content, &cancel).await.unwrap();
    assert!(reading.join().unwrap() == content);
}

#[tokio::test]
async fn d2_a_pipe_whose_reader_sleeps_can_be_interrupted() {
    let home = tempfile::tempdir().unwrap();
    let path = pipe(home.path());
    let _reader = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = write_special(&path, &vec![b'x'; 300_000], &cancel)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("interrupted by the user after "),
        "{error}"
    );
}

#[tokio::test]
async fn d2_devices_are_written_to() {
    let cancel = CancellationToken::new();
    let null = Path::new("/dev/null");
    assert!(matches!(find(null).unwrap(), Target::Special(_)));
    write_special(null, b"x", &cancel).await.unwrap();
    if Path::new("/dev/full").exists() {
        assert!(
            write_special(Path::new("/dev/full"), b"x", &cancel)
                .await
                .is_err()
        );
    }
}

/// Set for the process that the next test starts, with the directory to work in.
const CHILD: &str = "BANTAM_TEST_SIZE_LIMIT";

#[test]
fn d2_a_limit_on_file_sizes_leaves_the_old_content() {
    if let Some(home) = std::env::var_os(CHILD) {
        return under_a_size_limit(Path::new(&home));
    }
    let home = tempfile::tempdir().unwrap();
    let test = "tools::file::tests::d2_a_limit_on_file_sizes_leaves_the_old_content";
    let status = Command::new("sh")
        .args(["-c", "ulimit -f 40; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(CHILD, home.path())
        // The limit would hold for a log that the tests are written to, too.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

fn under_a_size_limit(home: &Path) {
    survive_size_limit();
    let (a, b, c) = (home.join("a"), home.join("b"), home.join("c"));
    let old = "old content\n".repeat(800);
    let large = vec![b'x'; 1_000_000];
    for path in [&a, &b] {
        fs::write(path, &old).unwrap();
    }
    fs::hard_link(&b, home.join("b2")).unwrap();
    for path in [&a, &b, &c] {
        assert!(write(path, &large).is_err(), "{}", path.display());
    }
    for path in [&a, &b] {
        assert_eq!(fs::read_to_string(path).unwrap(), old, "{}", path.display());
    }
    assert_eq!(names(home), ["a", "b", "b2"]);
}
