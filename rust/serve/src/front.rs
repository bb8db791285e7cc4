//! The front: it accepts connections until it is stopped, and hyper serves them.

use crate::application::Applications;
use crate::backend::Backend;
use crate::cache::Cache;
use crate::client::Client;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::queue::Queue;
use crate::request::Rules;
use crate::shared::{lock, Shared};
use crate::socket::{Socket, LINGER};
use crate::worker;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Workers in addition to two for each core: for slow requests, and for models elsewhere.
const SPARE: usize = 2;
/// Maximum bytes and number of the headers of a request.
const HEAD: usize = 65_536;
const HEADERS: usize = 100;
/// How long the front waits when the system refuses a connection: there are too many open files, for example.
const PAUSE: Duration = Duration::from_millis(100);
/// How long clients may take to read the replies to stopped requests.
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
    /// Connections end with the reply to their request.
    Stopping,
    /// All connections end soon.
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
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = runtime.block_on(async { TcpListener::from_std(listener) })?;
        let workers = limits.workers * 2 + SPARE;
        let shared = Arc::new(Shared {
            rules,
            backend,
            address,
            applications: Applications::default(),
            queue: Queue::new(workers, limits.workers),
            cache: Cache::new(limits.cache),
            counters: Counters::new(limits.counts.as_deref())?,
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
        let shared = front.shared.clone();
        front.spawn("ketrag-front".into(), move || {
            runtime.block_on(accept(&shared, listener, stages));
            shared.applications.close();
            drop(runtime);
            shared.queue.close();
            drop(end);
        })?;
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

    /// Return all counts, in the order of [`Counters::all`].
    pub fn counts(&self) -> Vec<u64> {
        self.shared.counters.all()
    }

    /// Return the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.shared.queue.load().0
    }

    /// Accept no more requests; finish those that run.
    pub fn stop(&self) {
        self.stage.send_if_modified(|stage| {
            let first = *stage == Stage::Serving;
            *stage = if first { Stage::Stopping } else { *stage };
            first
        });
    }

    /// Stop running requests as well: the application replies to them.
    pub fn abort(&self) {
        self.shared.aborting.store(true, Ordering::Relaxed);
        self.stage.send_replace(Stage::Aborting);
    }

    /// Wait until all connections are closed, after [`Front::stop`]. Return false if that takes longer than `time`.
    pub fn join(&self, time: Duration) -> bool {
        if lock(&self.ended).recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _ = thread.join();
        }
        true
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Serve connections until the front is stopped and they are closed.
async fn accept(shared: &Arc<Shared>, listener: TcpListener, mut stages: watch::Receiver<Stage>) {
    let mut tasks = JoinSet::new();
    let admitted = Arc::new(()); // each admitted connection has a clone, which counts it
    while *stages.borrow() == Stage::Serving {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    if Arc::strong_count(&admitted) <= shared.limits.connections {
                        let (shared, admitted) = (shared.clone(), admitted.clone());
                        let stages = stages.clone();
                        tasks.spawn(async move {
                            serve(shared, stream, stages).await;
                            drop(admitted);
                        });
                    } else {
                        tasks.spawn(refuse(shared.clone(), stream));
                    }
                }
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(PAUSE).await,
            },
            Some(_) = tasks.join_next() => {}
            _ = stages.changed() => {}
        }
    }
    drop(listener);
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

/// Serve a connection until its end.
async fn serve(shared: Arc<Shared>, stream: TcpStream, mut stages: watch::Receiver<Stage>) {
    let busy = Arc::new(AtomicBool::new(false));
    let socket = Socket::new(stream, busy.clone(), shared.limits.idle);
    let read = shared.limits.read;
    let client = Arc::new(Client { shared, busy });
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { Ok::<_, Infallible>(client.answer(request).await) }
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
