//! Where what is typed comes from: the terminal's bytes, or the Windows console's events.
//!
//! The only part of the terminal that waits. A new size and calls from the application arrive through
//! one socket beside the terminal, so that nothing needs to be asked in intervals.

#[cfg(unix)]
pub(super) use unix::{Source, Waker, open};

#[cfg(not(unix))]
pub(super) use console::{Source, Waker, open};

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::stdio::stdin;
    use signal_hook::consts::SIGWINCH;
    use signal_hook::{flag, low_level};

    use super::super::decode::Decoder;
    use super::super::input::Event;
    use super::super::keys::Typed;

    /// How long an ESC is waited on: the rest of a key's sequence comes sooner, even over ssh.
    const SEQUENCE_PATIENCE: Duration = Duration::from_millis(50);

    /// How long a paste may pause. One that was cut off must not swallow all keys for good.
    const PASTE_PATIENCE: Duration = Duration::from_secs(3);

    /// Something that is told by a flag, and whether it was.
    struct Flag {
        event: Event,
        raised: Arc<AtomicBool>,
    }

    /// The terminal as a source of keys, with what else may happen meanwhile.
    pub(crate) struct Source {
        decoder: Decoder,
        buffer: Vec<u8>,
        /// A byte comes here whenever a flag is raised.
        bell: UnixStream,
        flags: Vec<Flag>,
    }

    /// Tells the thread that waits on the [`Source`].
    #[derive(Clone)]
    pub(crate) struct Waker {
        bell: Arc<UnixStream>,
        called: Arc<AtomicBool>,
        continued: Arc<AtomicBool>,
        interrupted: Arc<AtomicBool>,
    }

    impl Waker {
        /// That the application has something to say.
        pub(crate) fn wake(&self) {
            self.raise(&self.called);
        }

        /// That the terminal was out of our hands and is ours again.
        pub(crate) fn tell_continued(&self) {
            self.raise(&self.continued);
        }

        /// That Ctrl+C came as a signal.
        pub(crate) fn tell_interrupted(&self) {
            self.raise(&self.interrupted);
        }

        fn raise(&self, flag: &AtomicBool) {
            flag.store(true, Ordering::SeqCst);
            // If there is no room for the byte, others are there that do the same.
            let _ = (&*self.bell).write(&[1]);
        }
    }

    /// The source of this process's terminal.
    pub(crate) fn open() -> io::Result<(Source, Waker)> {
        let (heard, bell) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let mut flags = Vec::new();
        let mut flag = |event| {
            let raised = Arc::new(AtomicBool::new(false));
            flags.push(Flag {
                event,
                raised: Arc::clone(&raised),
            });
            raised
        };
        let waker = Waker {
            called: flag(Event::Woken),
            continued: flag(Event::Continued),
            interrupted: flag(Event::Interrupted),
            bell: Arc::new(bell.try_clone()?),
        };
        flag::register(SIGWINCH, flag(Event::Resized))?;
        low_level::pipe::register(SIGWINCH, bell)?;
        let source = Source {
            decoder: Decoder::default(),
            buffer: vec![0; 1 << 14],
            bell: heard,
            flags,
        };
        Ok((source, waker))
    }

    impl Source {
        /// Whether what is typed is safe for as long as nobody reads it. The buffer is small here.
        pub(crate) const KEEPS_ALL: bool = false;

        /// What was told by a flag.
        pub(crate) fn take_flag(&mut self) -> Option<Event> {
            let raised = |flag: &&Flag| flag.raised.swap(false, Ordering::SeqCst);
            self.flags
                .iter()
                .find(raised)
                .map(|flag| flag.event.clone())
        }

        /// Forgets what was told before now.
        pub(crate) fn forget_flags(&mut self) {
            for flag in &self.flags {
                flag.raised.store(false, Ordering::SeqCst);
            }
        }

        /// Whether the terminal has something to read, or is gone, within `timeout`.
        pub(crate) fn is_readable(timeout: Duration) -> bool {
            !wait(&[stdin()], Some(timeout)).is_empty()
        }

        /// Whether something has begun whose rest is still to come.
        pub(crate) fn is_unfinished(&self) -> bool {
            self.decoder.is_waiting()
        }

        /// How long it makes sense to wait for more.
        pub(crate) fn patience(&self) -> Duration {
            match (self.decoder.is_waiting(), self.decoder.is_pasting()) {
                (false, _) => Duration::ZERO,
                (true, false) => SEQUENCE_PATIENCE,
                (true, true) => PASTE_PATIENCE,
            }
        }

        /// Waits for anything at all and reads nothing: whether something was typed.
        pub(crate) fn wait(&self) -> bool {
            let timeout = self.decoder.is_waiting().then(|| self.patience());
            let ready = wait(&[stdin(), self.bell.as_fd()], timeout);
            ready.first().is_some_and(|(index, _)| *index == 0)
        }

        /// Reads once. Returns what is no typing; after a timeout what had begun is over.
        pub(crate) fn read(
            &mut self,
            queue: &mut VecDeque<Typed>,
            timeout: Option<Duration>,
        ) -> Option<Event> {
            let timeout = if self.decoder.is_waiting() {
                Some(timeout.map_or(self.patience(), |timeout| timeout.min(self.patience())))
            } else {
                timeout
            };
            let ready = wait(&[stdin(), self.bell.as_fd()], timeout);
            self.answer_bell();
            if let Some(event) = self.take_flag() {
                return Some(event);
            }
            match ready.first() {
                Some((0, flags)) => self.read_terminal(*flags, queue),
                Some(_) => None,
                None => {
                    self.decoder.settle(queue);
                    None
                }
            }
        }

        fn read_terminal(
            &mut self,
            flags: PollFlags,
            queue: &mut VecDeque<Typed>,
        ) -> Option<Event> {
            match rustix::io::read(stdin(), self.buffer.as_mut_slice()) {
                Ok(0) if flags.contains(PollFlags::HUP) => Some(Event::Gone),
                Ok(0) => Some(Event::End),
                Ok(length) => {
                    let bytes = self.buffer.get(..length).unwrap_or_default();
                    self.decoder.feed(bytes, queue);
                    None
                }
                Err(Errno::INTR | Errno::AGAIN) => None,
                Err(_) => Some(Event::Gone),
            }
        }

        fn answer_bell(&mut self) {
            let mut rings = [0; 64];
            while matches!(self.bell.read(&mut rings), Ok(1..)) {}
        }
    }

    /// Waits until one of the files can be read; returns which can, by their index. None can when the
    /// time is over or a signal came.
    fn wait(files: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Vec<(usize, PollFlags)> {
        let mut polled: Vec<PollFd<'_>> = files
            .iter()
            .map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN))
            .collect();
        // One that is too long to be told is none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => polled
                .iter()
                .map(PollFd::revents)
                .enumerate()
                .filter(|(_, flags)| !flags.is_empty())
                .collect(),
            Err(_) => Vec::new(),
        }
    }
}

#[cfg(not(unix))]
mod console {
    use std::collections::VecDeque;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use crossterm::event::{self, KeyCode, KeyEventKind, KeyModifiers};

    use super::super::input::Event;
    use super::super::keys::Typed;

    /// How often calls are looked for: the console can't be waited for together with them.
    const INTERVAL: Duration = Duration::from_millis(20);

    /// The console as a source of keys.
    pub(crate) struct Source {
        waker: Waker,
    }

    /// Tells the thread that waits on the [`Source`].
    #[derive(Clone, Default)]
    pub(crate) struct Waker {
        called: Arc<AtomicBool>,
        continued: Arc<AtomicBool>,
        interrupted: Arc<AtomicBool>,
    }

    impl Waker {
        pub(crate) fn wake(&self) {
            self.called.store(true, Ordering::SeqCst);
        }

        pub(crate) fn tell_continued(&self) {
            self.continued.store(true, Ordering::SeqCst);
        }

        pub(crate) fn tell_interrupted(&self) {
            self.interrupted.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) fn open() -> io::Result<(Source, Waker)> {
        let waker = Waker::default();
        let source = Source {
            waker: waker.clone(),
        };
        Ok((source, waker))
    }

    impl Source {
        pub(crate) const KEEPS_ALL: bool = true;

        pub(crate) fn take_flag(&mut self) -> Option<Event> {
            [
                (&self.waker.called, Event::Woken),
                (&self.waker.continued, Event::Continued),
                (&self.waker.interrupted, Event::Interrupted),
            ]
            .into_iter()
            .find(|(flag, _)| flag.swap(false, Ordering::SeqCst))
            .map(|(_, event)| event)
        }

        pub(crate) fn forget_flags(&mut self) {
            while self.take_flag().is_some() {}
        }

        pub(crate) fn is_readable(timeout: Duration) -> bool {
            event::poll(timeout).unwrap_or(false)
        }

        pub(crate) fn is_unfinished(&self) -> bool {
            false
        }

        pub(crate) fn patience(&self) -> Duration {
            Duration::ZERO
        }

        pub(crate) fn wait(&self) -> bool {
            false
        }

        pub(crate) fn read(
            &mut self,
            queue: &mut VecDeque<Typed>,
            timeout: Option<Duration>,
        ) -> Option<Event> {
            let start = Instant::now();
            loop {
                if let Some(event) = self.take_flag() {
                    return Some(event);
                }
                let left = timeout.map_or(INTERVAL, |all| all.saturating_sub(start.elapsed()));
                match event::poll(left.min(INTERVAL)) {
                    Ok(true) => break,
                    Ok(false) if timeout.is_some_and(|all| start.elapsed() >= all) => return None,
                    Ok(false) => {}
                    Err(_) => return Some(Event::Gone),
                }
            }
            match event::read() {
                Ok(event::Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    let held = key.modifiers.difference(KeyModifiers::SHIFT);
                    match key.code {
                        KeyCode::Char(c) if held.is_empty() => {
                            queue.push_back(Typed::Text(c.into()));
                        }
                        _ => queue.push_back(Typed::Key(key)),
                    }
                    None
                }
                Ok(event::Event::Paste(text)) => {
                    queue.push_back(Typed::Paste(text));
                    None
                }
                Ok(event::Event::Resize(..)) => Some(Event::Resized),
                Ok(_) => None,
                Err(_) => Some(Event::Gone),
            }
        }
    }
}
