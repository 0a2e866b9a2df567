//! The processes of commands: started with their output in a pipe, ended with their whole group.

use std::env;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::os::{self, Group, Script};

/// How long a command that was asked to end may take before it is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// How long a killed group is waited for; what hangs in the system stays.
const GIVE_UP_AFTER: Duration = Duration::from_millis(200);
/// How often a group is looked at while it ends.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// How much is read at once, in bytes; a pipe holds as much.
pub(super) const BLOCK: usize = 64 * 1024;
/// How many blocks wait between the pipe and its reader here.
pub(super) const QUEUE: usize = 2;
/// As good as no limit, and can be added to any instant.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What a command's child processes find in their environment unless the person set it: nothing
/// may wait for a key (SPEC D3).
pub(super) const ENVIRONMENT: [(&str, &str); 5] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// The groups to end when the program does.
static RUNNING: Mutex<Vec<Group>> = Mutex::new(Vec::new());

/// Ends all groups that are running: they are asked to end, and killed after `grace`.
pub(super) fn end_all(grace: Duration) {
    let groups = running_groups().clone();
    end_groups(&groups, grace);
}

pub(super) fn end_groups(groups: &[Group], grace: Duration) {
    for group in groups {
        group.terminate();
    }
    let deadline = Instant::now() + grace.min(FOREVER);
    let is_gone = |group: &Group| {
        group.reap();
        group.is_gone()
    };
    while !groups.iter().all(is_gone) && Instant::now() < deadline {
        thread::sleep(TICK);
    }
    for group in groups {
        group.kill();
    }
}

pub(super) fn running_groups() -> MutexGuard<'static, Vec<Group>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn after(time: Duration) -> Instant {
    Instant::now() + time.min(FOREVER)
}

/// Whether `command` can be run here at all.
pub(super) fn check(command: &str) -> io::Result<()> {
    if command.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the command contains a NUL character, which no shell can take",
        ));
    }
    match env::current_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the working directory does not exist any more, so no command can run in it",
        )),
        _ => Ok(()),
    }
}

/// A command that was started.
pub(super) struct Started {
    pub(super) process: Process,
    /// What it writes, until everybody who can write there has gone.
    pub(super) output: mpsc::Receiver<Vec<u8>>,
    /// Where that comes from.
    pub(super) pipe: PipeReader,
}

/// Starts `command` with both outputs in one pipe, and a thread that reads it.
pub(super) fn start(command: &str) -> io::Result<Started> {
    check(command)?;
    let (pipe, writer) = io::pipe()?;
    let reader = pipe.try_clone()?;
    let process = {
        // From its first moment on it is among those that end with the program.
        let mut running = running_groups();
        let (child, script) = os::start(command, |shell| spawn(shell, &writer))?;
        let process = Process::new(child, script)?;
        running.push(process.group);
        process
    };
    drop(writer);
    let (sender, output) = mpsc::channel(QUEUE);
    thread::Builder::new()
        .name("command output".into())
        .spawn(move || read(reader, &sender))?;
    Ok(Started {
        process,
        output,
        pipe,
    })
}

fn spawn(mut shell: Command, output: &PipeWriter) -> io::Result<Child> {
    shell.stdin(Stdio::null());
    shell.stdout(output.try_clone()?);
    shell.stderr(output.try_clone()?);
    let unset = |&(name, _): &(&str, &str)| env::var_os(name).is_none();
    shell.envs(ENVIRONMENT.into_iter().filter(unset));
    os::detach(&mut shell);
    tokio::process::Command::from(shell).spawn()
}

/// Reads to the end, whether anybody still wants it or not: a process that was left behind would
/// be killed by its next write if the pipe were closed. See [`os::keep_reading`], too.
fn read(mut pipe: PipeReader, output: &mpsc::Sender<Vec<u8>>) {
    let mut block = vec![0; BLOCK];
    loop {
        match pipe.read(&mut block) {
            Ok(0) => return,
            Ok(length) => {
                let bytes = block.get(..length).unwrap_or_default();
                if !output.is_closed() {
                    // The other side may be gone by now, which changes nothing.
                    let _ = output.blocking_send(bytes.to_vec());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// A running shell and its process group, which end when it is dropped before it was released.
pub(super) struct Process {
    child: Option<Child>,
    pub(super) group: Group,
    /// When it was asked to end.
    asked: Option<Instant>,
    /// Whether nobody waits for it any more but the task that ends it.
    in_background: bool,
    /// Goes when the shell has read it to its end.
    script: Option<Script>,
}

impl Process {
    fn new(child: Child, script: Option<Script>) -> io::Result<Self> {
        let group = child.id().and_then(Group::led_by);
        let group = group.ok_or_else(|| io::Error::other("the command has no process id"))?;
        Ok(Self {
            child: Some(child),
            group,
            asked: None,
            in_background: false,
            script,
        })
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("the command is not waited for any more")),
        }
    }

    /// Asks the group to end, once. Returns when it is to be killed.
    pub(super) fn terminate(&mut self) -> Instant {
        let asked = *self.asked.get_or_insert_with(|| {
            self.group.terminate();
            Instant::now()
        });
        asked + KILL_AFTER
    }

    /// Kills the group.
    pub(super) fn kill(&self) {
        self.group.kill();
    }

    /// Whether the shell and its whole group are gone.
    pub(super) fn is_over(&mut self) -> bool {
        let ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        self.child.as_mut().is_none_or(ended) && self.group.is_gone()
    }

    /// Lets go of the group: what is left of it may live on.
    pub(super) fn release(&mut self) {
        self.child = None;
        running_groups().retain(|group| *group != self.group);
    }

    /// Waits until the group has ended, and kills it when that takes too long.
    pub(super) async fn end(mut self) {
        let deadline = self.terminate();
        while !self.is_over() {
            if Instant::now() >= deadline {
                self.group.kill();
                // What even that does not end hangs in the system, and is not waited for.
                let _ = timeout(GIVE_UP_AFTER, self.wait()).await;
                break;
            }
            sleep(TICK * 4).await;
        }
        self.release();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        if self.in_background {
            // The runtime goes, and the time for ending in peace with it.
            return self.group.kill();
        }
        self.terminate();
        let process = Self {
            child: Some(child),
            in_background: true,
            script: self.script.take(),
            ..*self
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(process.end())),
            Err(_) => drop(process),
        }
    }
}
