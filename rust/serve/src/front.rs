//! The front: it accepts connections until it is stopped, and hyper serves them.

use crate::access::{Holder, TokenDigest};
use crate::application::Applications;
use crate::backend::Backend;
use crate::cache::Cache;
use crate::client::Client;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::locks::lock;
use crate::queue::Queue;
use crate::reply::Busy;
use crate::request::Rules;
use crate::request_body::LINGER;
use crate::shared::Shared;
use crate::worker;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::task::{ready, Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout, Sleep};

/// Number of workers in addition to two per core, for slow requests and for models on other machines.
const SPARE: usize = 2;
/// Maximum bytes and number of the headers of a request.
const HEAD: usize = 65_536;
const HEADERS: usize = 100;
/// Pause after the system refuses a connection, for example because there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Time that clients have to read the replies to stopped requests.
const LAST: Duration = Duration::from_secs(5);

/// A running front.
pub struct Front {
    shared: Arc<Shared>,
    stage: watch::Sender<Stage>,
    /// Disconnected when all connections are closed.
    ended: Mutex<Receiver<()>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Connections are closed after the reply to their current request.
    Stopping,
    /// All connections are closed soon.
    Aborting,
}

impl Front {
    /// Serve the connections of a listening socket. `address` is that of the application: a path, on Windows an
    /// address of TCP.
    pub fn start(
        listener: std::net::TcpListener,
        address: String,
        limits: Limits,
        rules: Rules,
        backend: Box<dyn Backend>,
    ) -> Result<Self> {
        if limits.errors.busy.is_empty() || limits.workers == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "the limits of the front are invalid"));
        }
        listener.set_nonblocking(true)?;
        let threads = limits.workers;
        let workers = limits.workers * 2 + SPARE;
        let shared = Arc::new(Shared {
            rules,
            backend,
            address,
            queue: Queue::new(workers, limits.workers),
            cache: Cache::new(limits.cache),
            counters: Counters::new(limits.counts.as_deref())?,
            open: AtomicUsize::new(0),
            aborting: AtomicBool::new(false),
            plans: Mutex::default(),
            limits,
        });
        let (stage, stages) = watch::channel(Stage::Serving);
        let (end, ended) = channel();
        let front = Self { shared, stage, ended: Mutex::new(ended), threads: Mutex::default() };
        for n in 0..workers {
            let shared = front.shared.clone();
            front.spawn(format!("ketrag-answer-{n}"), move || worker::run(&shared, n))?;
        }
        let mut others = Vec::new();
        for n in 0..threads {
            let (other, streams) = unbounded_channel();
            others.push(other);
            let (shared, stages, end) = (front.shared.clone(), front.stage.subscribe(), end.clone());
            let runtime = new_runtime()?;
            front.spawn(format!("ketrag-front-{n}"), move || {
                runtime.block_on(serve_all(&shared, streams, stages));
                drop(end);
            })?;
        }
        let runtime = new_runtime()?;
        let listener = runtime.block_on(async { TcpListener::from_std(listener) })?;
        front.spawn("ketrag-accept".into(), move || runtime.block_on(accept(listener, &others, stages)))?;
        Ok(front)
    }

    fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
        lock(&self.threads).push(Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    /// Drop all plans and cached replies, because an index has changed.
    pub fn forget(&self) {
        self.shared.forget();
    }

    /// Replace the holders of tokens; `None`: no token is needed.
    pub fn set_holders(&self, holders: Option<Vec<(TokenDigest, Holder)>>) {
        self.shared.rules.access.replace(holders);
    }

    /// Return all counts, in the order of [`Counters::all`].
    pub fn counts(&self) -> Vec<u64> {
        self.shared.counters.all()
    }

    /// Return the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.shared.queue.load().0
    }

    /// Stop accepting requests, and finish those that are running.
    pub fn stop(&self) {
        self.stage.send_if_modified(|stage| {
            let first = *stage == Stage::Serving;
            *stage = if first { Stage::Stopping } else { *stage };
            first
        });
    }

    /// Stop running requests as well. The application replies to them.
    pub fn abort(&self) {
        self.shared.aborting.store(true, Ordering::Relaxed);
        self.stage.send_replace(Stage::Aborting);
    }

    /// Wait until all connections are closed, after [`Front::stop`]. Return false if that takes longer than `time`.
    pub fn join(&self, time: Duration) -> bool {
        if lock(&self.ended).recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        self.shared.queue.close();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _ = thread.join();
        }
        true
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.abort();
        self.shared.queue.close();
    }
}

fn new_runtime() -> Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

/// Accept connections until the front is stopped, and distribute them.
async fn accept(
    listener: TcpListener,
    threads: &[UnboundedSender<std::net::TcpStream>],
    mut stages: watch::Receiver<Stage>,
) {
    for thread in threads.iter().cycle() {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    let _ = stream.into_std().map(|stream| thread.send(stream));
                }
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(PAUSE).await,
            },
            _ = stages.wait_for(|stage| *stage != Stage::Serving) => return,
        }
    }
}

/// Serve connections until the front is stopped and they are closed.
async fn serve_all(
    shared: &Arc<Shared>,
    mut streams: UnboundedReceiver<std::net::TcpStream>,
    mut stages: watch::Receiver<Stage>,
) {
    let mut tasks = JoinSet::new();
    let applications = Arc::new(Applications::default());
    loop {
        tokio::select! {
            stream = streams.recv() => {
                let Some(stream) = stream else { break };
                let Ok(stream) = TcpStream::from_std(stream) else { continue };
                match Admitted::new(shared) {
                    Some(admitted) => tasks.spawn(serve(admitted, applications.clone(), stream, stages.clone())),
                    None => tasks.spawn(refuse(shared.clone(), stream)),
                };
            }
            Some(_) = tasks.join_next() => {}
        }
    }
    let all = async { while tasks.join_next().await.is_some() {} };
    let aborted = async {
        // The front itself holds the sender.
        let _ = stages.wait_for(|stage| *stage == Stage::Aborting).await;
        sleep(LAST).await;
    };
    tokio::select! {
        () = all => {}
        () = aborted => {}
    }
}

/// A connection within the limit on their number.
struct Admitted(Arc<Shared>);

impl Admitted {
    fn new(shared: &Arc<Shared>) -> Option<Self> {
        let one = Self(shared.clone());
        (shared.open.fetch_add(1, Ordering::Relaxed) < shared.limits.connections).then_some(one)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serve a connection until its end.
async fn serve(
    admitted: Admitted,
    applications: Arc<Applications>,
    stream: TcpStream,
    mut stages: watch::Receiver<Stage>,
) {
    let shared = admitted.0.clone();
    let busy = Arc::new(AtomicBool::new(false));
    let socket = Socket::new(stream, busy.clone(), shared.limits.idle);
    let read = shared.limits.read;
    let client = Arc::new(Client { shared, applications, busy });
    let service = service_fn(move |request| {
        let client = client.clone();
        let busy = Busy::new(&client.busy); // before the connection is read again
        async move { Ok::<_, Infallible>(client.answer(request, busy).await) }
    });
    let mut connection = pin!(builder(read).serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stages.wait_for(|stage| *stage != Stage::Serving) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Reply that there are too many connections.
async fn refuse(shared: Arc<Shared>, stream: TcpStream) {
    let service = service_fn(|_| {
        let response = shared.limits.errors.crowded.response();
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = builder(LINGER);
    let connection = builder.keep_alive(false).serve_connection(TokioIo::new(stream), service);
    let _ = timeout(2 * LINGER, connection).await;
}

fn builder(read: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(read).max_headers(HEADERS).max_buf_size(HEAD);
    builder
}

// The socket of a client, with two time limits: one for clients that read slowly, and one for clients that
// have closed their sending side while their request is answered.

/// How long a client that has closed its sending side may wait for its reply. hyper treats the end of the
/// client's data as a lost connection, but a client may close its side and continue to read.
const PATIENCE: Duration = Duration::from_secs(3);

struct Socket {
    stream: TcpStream,
    /// Whether a request is answered.
    busy: Arc<AtomicBool>,
    /// Whether written data is waiting for the system to accept it.
    unsent: bool,
    /// Maximum time without progress of a reply.
    idle: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    ended: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub fn new(stream: TcpStream, busy: Arc<AtomicBool>, idle: Duration) -> Self {
        Self { stream, busy, unsent: false, idle, stalled: None, ended: None }
    }

    /// Pass on the state of a write, which fails if the client has read nothing for too long.
    fn limit<T>(&mut self, cx: &mut Context<'_>, written: Poll<Result<T>>) -> Poll<Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let idle = self.idle;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(idle))).as_mut().poll(cx));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        if this.ended.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
            if buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
        if this.busy.load(Ordering::Relaxed) || this.unsent {
            ready!(this.ended.get_or_insert_with(|| Box::pin(sleep(PATIENCE))).as_mut().poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        this.unsent = true;
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.limit(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let this = self.get_mut();
        this.unsent = true;
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.limit(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this once it has written all of its buffered data.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(cx))?;
        this.unsent = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
