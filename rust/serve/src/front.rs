//! The event loop: it accepts connections, reads requests, and keeps the time limits of clients.

use crate::backend::Backend;
use crate::cache::Cache;
use crate::connection::{Connection, Phase, State, LINGER};
use crate::counters::Counters;
use crate::date::Clock;
use crate::limits::Limits;
use crate::locks::lock;
use crate::queue::{Job, Queue};
use crate::request::{parse, Parsed, Plain, Rules, MOST};
use crate::shared::{Handed, Shared};
use crate::worker;
use ketrag_base::progress::Progress;
use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

const LISTEN: Token = Token(0);
const WAKE: Token = Token(1);
const FIRST: usize = 2;
const EVENTS: usize = 256;
/// How often time limits are checked.
const SWEEP: Duration = Duration::from_millis(100);
/// Workers in addition to two for each core: for slow requests, and for models elsewhere.
const SPARE: usize = 2;
/// Pieces in which a plain request may come.
const PIECES: u32 = 32;
/// Maximum bytes of the headers that are added to each reply.
const HEADERS: usize = 512;

/// A running front.
pub struct Front {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    bell: UnixStream,
}

impl Front {
    /// Serve the connections of a listening socket.
    pub fn start(
        listener: std::net::TcpListener,
        limits: Limits,
        rules: Rules,
        backend: Box<dyn Backend>,
    ) -> Result<Self> {
        if limits.headers.len() > HEADERS || limits.busy.is_empty() || limits.workers == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "the limits of the front are invalid"));
        }
        let poll = Poll::new()?;
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        poll.registry().register(&mut listener, LISTEN, Interest::READABLE)?;
        let (bell, notify) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        notify.set_nonblocking(true)?;
        let workers = limits.workers * 2 + SPARE;
        let shared = Arc::new(Shared {
            rules,
            backend,
            queue: Queue::new(workers, limits.workers),
            cache: Cache::new(limits.cache),
            counters: Counters::new(limits.counts.as_deref())?,
            clock: Clock::default(),
            registry: poll.registry().try_clone()?,
            waker: Waker::new(poll.registry(), WAKE)?,
            stopping: AtomicBool::new(false),
            abort: Mutex::new(None),
            open: AtomicUsize::new(0),
            lent: AtomicUsize::new(0),
            again: Mutex::default(),
            plans: Mutex::default(),
            handed: Mutex::default(),
            notify,
            limits,
        });
        let front = Self { shared, threads: Mutex::default(), bell };
        for n in 0..workers {
            let shared = front.shared.clone();
            front.spawn(format!("ketrag-answer-{n}"), move || worker::run(&shared, n))?;
        }
        let event_loop = EventLoop::new(poll, listener, front.shared.clone());
        front.spawn("ketrag-front".into(), move || event_loop.run())?;
        Ok(front)
    }

    fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
        lock(&self.threads).push(Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    /// Return a descriptor that is readable when [`Front::take`] has something to return.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Return the connections that the application must take over.
    pub fn take(&self) -> Vec<Handed> {
        let mut rung = [0; 64];
        while matches!((&self.bell).read(&mut rung), Ok(n) if n > 0) {}
        std::mem::take(&mut *lock(&self.shared.handed))
    }

    /// Note that a connection that the caller took is closed.
    pub fn closed(&self) {
        let _ = self.shared.lent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }

    /// Drop all plans and kept replies, because an index has changed.
    pub fn forget(&self) {
        self.shared.forget();
    }

    /// Return all counts, in the order of [`Counters::all`].
    pub fn counts(&self) -> Vec<u64> {
        self.shared.counters.all()
    }

    /// Return the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.shared.queue.load().0
    }

    /// Accept no more requests; stop those that run after `graceful`.
    pub fn stop(&self, graceful: Duration) {
        *lock(&self.shared.abort) = Some(Instant::now() + graceful);
        self.shared.stopping.store(true, Ordering::Relaxed);
        let _ = self.shared.waker.wake();
    }

    /// Wait until all threads have ended, after [`Front::stop`].
    pub fn join(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

struct EventLoop {
    poll: Poll,
    listener: Option<TcpListener>,
    /// Whether the system refused to accept a connection; it is tried again with the next sweep.
    refused: bool,
    connections: HashMap<Token, Arc<Connection>>,
    next: usize,
    buffer: Box<[u8]>,
    shared: Arc<Shared>,
}

impl EventLoop {
    fn new(poll: Poll, listener: TcpListener, shared: Arc<Shared>) -> Self {
        Self {
            poll,
            listener: Some(listener),
            refused: false,
            connections: HashMap::new(),
            next: FIRST,
            buffer: vec![0; MOST].into_boxed_slice(),
            shared,
        }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        let mut swept = Instant::now();
        loop {
            if let Err(error) = self.poll.poll(&mut events, Some(SWEEP)) {
                if error.kind() != ErrorKind::Interrupted {
                    break;
                }
            }
            for event in &events {
                match event.token() {
                    LISTEN => self.accept(),
                    WAKE => self.look_again(),
                    _ => self.handle(event),
                }
            }
            if swept.elapsed() >= SWEEP || self.shared.stopping.load(Ordering::Relaxed) {
                swept = Instant::now();
                self.sweep(swept);
                if self.is_done() {
                    break;
                }
            }
        }
        self.shared.queue.close();
    }

    fn accept(&mut self) {
        self.refused = false;
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    self.admit(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => {
                    self.refused = true; // too many open files, for example
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut stream: mio::net::TcpStream) {
        let shared = &self.shared;
        let all = shared.open.load(Ordering::Relaxed) + shared.lent.load(Ordering::Relaxed);
        if all >= shared.limits.connections {
            let socket = OwnedFd::from(std::net::TcpStream::from(stream));
            shared.hand_over(Handed { socket, bytes: Vec::new(), refused: true, late: None });
            return;
        }
        let token = Token(self.next);
        self.next += 1;
        let both = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut stream, token, both).is_ok() {
            shared.open.fetch_add(1, Ordering::Relaxed);
            self.connections.insert(token, Arc::new(Connection::new(token, stream)));
        }
    }

    /// Look at the connections that workers are done with and for which no event comes.
    fn look_again(&mut self) {
        let tokens = std::mem::take(&mut *lock(&self.shared.again));
        for token in tokens {
            if let Some(connection) = self.connections.get(&token).cloned() {
                self.advance(&connection, |_| {});
            }
        }
    }

    fn handle(&mut self, event: &Event) {
        let Some(connection) = self.connections.get(&event.token()).cloned() else { return };
        self.advance(&connection, |state| {
            if event.is_error() || (event.is_read_closed() && event.is_write_closed()) {
                state.close();
            } else if event.is_read_closed() {
                state.ended.get_or_insert_with(Instant::now);
            }
        });
    }

    /// Do what can be done for a connection after `note`.
    fn advance(&mut self, connection: &Arc<Connection>, note: impl FnOnce(&mut State)) {
        let buffer = &mut self.buffer;
        let shared = &*self.shared;
        let over = connection.with(|state| {
            note(state);
            if state.phase == Phase::Writing {
                state.write_on();
            }
            match state.phase {
                Phase::Busy | Phase::Writing => state.miss(),
                Phase::Lingering => state.drain(buffer),
                Phase::Reading => {
                    state.read(buffer, MOST);
                    read_requests(shared, connection, state);
                }
                Phase::Over => {}
            }
            state.phase == Phase::Over
        });
        if over {
            self.remove(connection.token);
        }
    }

    fn remove(&mut self, token: Token) {
        if self.connections.remove(&token).is_some() {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Keep the time limits.
    fn sweep(&mut self, now: Instant) {
        for job in self.shared.queue.expired(now) {
            worker::give_up(&self.shared, job);
        }
        if self.refused {
            self.accept();
        }
        let stopping = self.shared.stopping.load(Ordering::Relaxed);
        if stopping {
            self.listener = None;
        }
        let shared = &*self.shared;
        let abort = shared.is_aborting();
        let mut over = Vec::new();
        for (token, connection) in &self.connections {
            connection.with(|state| {
                keep_time(shared, state, now, stopping);
                if abort {
                    state.close();
                }
                if state.phase == Phase::Over {
                    over.push(*token);
                }
            });
        }
        for token in over {
            self.remove(token);
        }
    }

    /// Return whether the front has stopped and all requests have their replies.
    fn is_done(&self) -> bool {
        self.listener.is_none() && self.connections.is_empty()
    }
}

/// Read the requests that have come, until one is not complete or a worker has it.
fn read_requests(shared: &Shared, connection: &Arc<Connection>, state: &mut State) {
    while state.phase == Phase::Reading {
        match parse(&state.input, &shared.rules) {
            Parsed::Plain(plain, used) if !shared.stopping.load(Ordering::Relaxed) => {
                submit(shared, connection, state, *plain, used);
            }
            Parsed::Incomplete if state.ended.is_none() && state.reads <= PIECES => return,
            _ if state.input.is_empty() => state.close(),
            _ => hand_over(shared, state),
        }
    }
}

/// Put a request into the queue, or refuse it.
fn submit(shared: &Shared, connection: &Arc<Connection>, state: &mut State, request: Plain, used: usize) {
    let arrived = Instant::now();
    let until = arrived + Duration::from_secs_f64(request.seconds);
    let progress = Arc::new(Progress::with_deadline(until));
    let bytes = state.begin(used, &progress);
    let plan = shared.known_plan(&request.fields).flatten();
    let job = Job {
        connection: connection.clone(),
        request,
        bytes,
        arrived,
        until,
        progress,
        plan,
        embedded: None,
    };
    if let Err(job) = shared.queue.add(job, shared.limits.queue) {
        let (waiting, mean) = shared.queue.load();
        let seconds = waiting as f64 * mean / shared.limits.workers as f64;
        let busy = &shared.limits.busy;
        shared.counters.refused(arrived.elapsed());
        state.reply(&busy[(seconds as usize).min(busy.len() - 1)], !job.request.keep);
    }
}

fn hand_over(shared: &Shared, state: &mut State) {
    let bytes = std::mem::take(&mut state.input);
    if let Some(socket) = state.take_socket(&shared.registry) {
        shared.hand_over(Handed { socket, bytes, refused: false, late: None });
    }
}

/// Close or pass on a connection whose client is slow or gone.
fn keep_time(shared: &Shared, state: &mut State, now: Instant, stopping: bool) {
    let (limits, waited) = (&shared.limits, now.saturating_duration_since(state.since));
    match state.phase {
        Phase::Busy if state.ended.is_some_and(|ended| now.saturating_duration_since(ended) > LINGER) => {
            state.close();
        }
        Phase::Writing if waited > limits.idle => state.close(),
        Phase::Lingering if waited > LINGER => state.close(),
        Phase::Reading if state.input.is_empty() => {
            let most = if state.is_fresh { limits.read } else { limits.idle };
            if stopping || waited > most {
                state.close();
            }
        }
        Phase::Reading if stopping || waited > limits.read / 4 => hand_over(shared, state),
        _ => {}
    }
}
