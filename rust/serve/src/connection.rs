//! The state of one connection: what was read of the next request, and what must still be written.

use crate::locks::lock;
use ketrag_base::progress::Progress;
use mio::net::TcpStream;
use mio::{Registry, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a client that sends no more may wait for its reply, and how long the rest of what a client sends is
/// read after the last reply, so that the reply is not lost.
pub const LINGER: Duration = Duration::from_secs(1);
/// Input buffers above this size are not kept between requests.
const USUAL: usize = 4096;

pub struct Connection {
    pub token: Token,
    state: Mutex<State>,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The next request.
    Reading,
    /// A worker.
    Busy,
    /// A client that reads its reply.
    Writing,
    /// The end of what the client sends, after the last reply.
    Lingering,
    /// Nothing: it is closed, or passed on.
    Over,
}

pub struct State {
    stream: Option<TcpStream>,
    pub input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    pub phase: Phase,
    /// Something came while a worker was busy.
    missed: bool,
    /// The connection ends with its reply.
    last: bool,
    /// When the phase began, or the first byte of a request came.
    pub since: Instant,
    /// How often something was read of the next request.
    pub reads: u32,
    /// Whether nothing was replied yet.
    pub is_fresh: bool,
    /// When the client stopped sending.
    pub ended: Option<Instant>,
    running: Option<Arc<Progress>>,
}

impl Connection {
    pub fn new(token: Token, stream: TcpStream) -> Self {
        Self {
            token,
            state: Mutex::new(State {
                stream: Some(stream),
                input: Vec::new(),
                output: Vec::new(),
                sent: 0,
                phase: Phase::Reading,
                missed: false,
                last: false,
                since: Instant::now(),
                reads: 0,
                is_fresh: true,
                ended: None,
                running: None,
            }),
        }
    }

    /// Call `work` with the state.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut lock(&self.state))
    }
}

impl State {
    /// Read what has come into `input`, by way of `buffer`, up to `most` bytes.
    pub fn read(&mut self, buffer: &mut [u8], most: usize) {
        self.missed = false;
        while self.input.len() < most {
            let Some(stream) = &mut self.stream else { return };
            match stream.read(buffer) {
                Ok(0) => {
                    self.ended.get_or_insert_with(Instant::now);
                    return;
                }
                Ok(n) => {
                    if self.input.is_empty() {
                        self.since = Instant::now();
                    }
                    self.reads += 1;
                    self.input.extend_from_slice(&buffer[..n]);
                    if n < buffer.len() {
                        return; // all that there was; the next bytes are another event
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.close();
                    return;
                }
            }
        }
        self.missed = true;
    }

    /// Read and drop what comes after the last reply; close at its end.
    pub fn drain(&mut self, buffer: &mut [u8]) {
        while let Some(stream) = &mut self.stream {
            match stream.read(buffer) {
                Ok(0) => self.close(),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.close(),
            }
        }
    }

    /// Note that something has come which nobody can read now.
    pub fn miss(&mut self) {
        self.missed = true;
    }

    /// Take the first `used` bytes of the input, and wait for a worker.
    pub fn begin(&mut self, used: usize, progress: &Arc<Progress>) -> Vec<u8> {
        let rest = self.input.split_off(used);
        let bytes = std::mem::replace(&mut self.input, rest);
        self.phase = Phase::Busy;
        self.reads = 0;
        self.running = Some(progress.clone());
        bytes
    }

    /// Write a reply; the connection ends with it if `last`. Return whether the next request can be read at once,
    /// without another event.
    pub fn reply(&mut self, bytes: &[u8], last: bool) -> bool {
        self.running = None;
        self.is_fresh = false;
        self.last = last;
        self.since = Instant::now();
        let Some(stream) = &mut self.stream else { return false };
        let mut sent = 0;
        while sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(0) => return self.fail(),
                Ok(n) => sent += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.output = bytes[sent..].to_vec();
                    self.sent = 0;
                    self.phase = Phase::Writing;
                    return false;
                }
                Err(_) => return self.fail(),
            }
        }
        self.after_reply()
    }

    /// Go on writing. Return whether the next request can be read at once.
    pub fn write_on(&mut self) -> bool {
        while self.sent < self.output.len() {
            let Some(stream) = &mut self.stream else { return false };
            match stream.write(&self.output[self.sent..]) {
                Ok(0) => return self.fail(),
                Ok(n) => {
                    self.sent += n;
                    self.since = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return self.fail(),
            }
        }
        self.output = Vec::new();
        self.sent = 0;
        self.after_reply()
    }

    fn fail(&mut self) -> bool {
        self.close();
        false
    }

    fn after_reply(&mut self) -> bool {
        if self.last {
            if let Some(stream) = &self.stream {
                let _ = stream.shutdown(Shutdown::Write);
            }
            self.phase = Phase::Lingering;
            self.input = Vec::new();
            return self.missed;
        }
        self.phase = Phase::Reading;
        if self.input.capacity() > USUAL && self.input.is_empty() {
            self.input = Vec::new();
        }
        self.missed || !self.input.is_empty() || self.ended.is_some()
    }

    /// Close the connection and stop the work for it.
    pub fn close(&mut self) {
        if let Some(progress) = self.running.take() {
            progress.stop();
        }
        self.stream = None;
        self.input = Vec::new();
        self.output = Vec::new();
        self.phase = Phase::Over;
    }

    /// Take the socket out, to pass it on. `None` if it is closed.
    pub fn take_socket(&mut self, registry: &Registry) -> Option<OwnedFd> {
        let mut stream = self.stream.take()?;
        self.running = None;
        self.phase = Phase::Over;
        registry.deregister(&mut stream).ok()?;
        Some(OwnedFd::from(std::net::TcpStream::from(stream)))
    }
}
