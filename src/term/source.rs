//! Where what is typed comes from: the terminal's bytes, or the Windows console's events.
//!
//! The only part of the terminal that waits. Job control, a new size and calls from the application
//! arrive through one socket beside the terminal, so that nothing needs to be asked in intervals.

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
    use signal_hook::consts::{SIGCONT, SIGINT, SIGTSTP, SIGWINCH};
    use signal_hook::{flag, low_level};

    use super::super::decode::{Decoder, Typed};
    use super::super::input::Event;

    /// How long an ESC is waited on: the rest of a key's sequence comes sooner, even over ssh.
    const SEQUENCE_PATIENCE: Duration = Duration::from_millis(50);

    /// How long a paste may pause. One that was cut off must not swallow all keys for good.
    const PASTE_PATIENCE: Duration = Duration::from_secs(3);

    /// The signals that are events, and whether they came.
    struct Signal {
        event: Event,
        came: Arc<AtomicBool>,
    }

    /// The terminal as a source of keys, with what else may happen meanwhile.
    pub(crate) struct Source {
        decoder: Decoder,
        buffer: Vec<u8>,
        /// A byte comes here for every signal and every call.
        bell: UnixStream,
        called: bool,
        signals: Vec<Signal>,
    }

    /// Calls the thread that waits on the [`Source`].
    #[derive(Clone)]
    pub(crate) struct Waker(Arc<UnixStream>);

    /// What the bell is rung with by a call; signals use another byte.
    const CALL: u8 = b'!';

    impl Waker {
        /// Rings. If the line is full, the bell rings anyway.
        pub(crate) fn wake(&self) {
            let _ = (&*self.0).write(&[CALL]);
        }
    }

    /// The one source of this process and its bell.
    pub(crate) fn open() -> io::Result<(Source, Waker)> {
        let (bell, ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringer.set_nonblocking(true)?;
        let mut signals = Vec::new();
        for (number, event) in [
            (SIGTSTP, Event::Stop),
            (SIGCONT, Event::Continued),
            (SIGWINCH, Event::Resized),
            (SIGINT, Event::Interrupted),
        ] {
            let came = Arc::new(AtomicBool::new(false));
            flag::register(number, Arc::clone(&came))?;
            low_level::pipe::register(number, ringer.try_clone()?)?;
            signals.push(Signal { event, came });
        }
        let source = Source {
            decoder: Decoder::default(),
            buffer: vec![0; 1 << 14],
            bell,
            called: false,
            signals,
        };
        Ok((source, Waker(Arc::new(ringer))))
    }

    impl Source {
        /// A signal or a call that came.
        pub(crate) fn take_signal(&mut self) -> Option<Event> {
            if std::mem::take(&mut self.called) {
                return Some(Event::Woken);
            }
            let came = |signal: &&Signal| signal.came.swap(false, Ordering::SeqCst);
            self.signals.iter().find(came).map(|signal| signal.event.clone())
        }

        /// Waits until a signal or a call may have come.
        pub(crate) fn wait_for_signal(&mut self) {
            wait(&[self.bell.as_fd()], None);
            self.answer_bell();
        }

        pub(crate) fn forget_interrupt(&mut self) {
            for signal in &self.signals {
                if signal.event == Event::Interrupted {
                    signal.came.store(false, Ordering::SeqCst);
                }
            }
        }

        /// Whether the terminal has something to read, or is gone, within `timeout`.
        pub(crate) fn is_readable(&self, timeout: Duration) -> bool {
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
            if let Some(event) = self.take_signal() {
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

        fn read_terminal(&mut self, flags: PollFlags, queue: &mut VecDeque<Typed>) -> Option<Event> {
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
            while let Ok(count @ 1..) = self.bell.read(&mut rings) {
                self.called |= rings.iter().take(count).any(|ring| *ring == CALL);
            }
        }
    }

    /// Waits until one of the files can be read; returns which can, by their index. None can when the
    /// time is over or a signal came.
    fn wait(files: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Vec<(usize, PollFlags)> {
        let mut polled: Vec<PollFd<'_>> = files
            .iter()
            .map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN))
            .collect();
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
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
    use std::thread;
    use std::time::{Duration, Instant};

    use crossterm::event::{self, KeyCode, KeyEventKind, KeyModifiers};

    use super::super::decode::Typed;
    use super::super::input::Event;

    /// How often calls are looked for: the console can't be waited for together with them.
    const INTERVAL: Duration = Duration::from_millis(20);

    /// The console as a source of keys.
    pub(crate) struct Source {
        called: Arc<AtomicBool>,
    }

    /// Calls the thread that waits on the [`Source`].
    #[derive(Clone)]
    pub(crate) struct Waker(Arc<AtomicBool>);

    impl Waker {
        pub(crate) fn wake(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) fn open() -> io::Result<(Source, Waker)> {
        let called = Arc::new(AtomicBool::new(false));
        let source = Source {
            called: Arc::clone(&called),
        };
        Ok((source, Waker(called)))
    }

    impl Source {
        pub(crate) fn take_signal(&mut self) -> Option<Event> {
            self.called.swap(false, Ordering::SeqCst).then_some(Event::Woken)
        }

        pub(crate) fn wait_for_signal(&mut self) {
            thread::sleep(INTERVAL);
        }

        pub(crate) fn forget_interrupt(&mut self) {}

        pub(crate) fn is_readable(&self, timeout: Duration) -> bool {
            event::poll(timeout).unwrap_or(false)
        }

        pub(crate) fn is_unfinished(&self) -> bool {
            false
        }

        pub(crate) fn patience(&self) -> Duration {
            Duration::ZERO
        }

        pub(crate) fn read(
            &mut self,
            queue: &mut VecDeque<Typed>,
            timeout: Option<Duration>,
        ) -> Option<Event> {
            let start = Instant::now();
            loop {
                if let Some(event) = self.take_signal() {
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
