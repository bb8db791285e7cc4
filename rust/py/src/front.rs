//! The HTTP front as a Python object.

use super::door::wrong;
use super::plan::{PyPlan, Served};
use ketrag_serve::backend::Plan;
use ketrag_serve::{Backend, Front, Limits, Rules};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Plans by a function of Python.
struct Planner(Py<PyAny>);

impl Backend for Planner {
    fn plan(&self, fields: &str, until: Instant) -> Option<Arc<dyn Plan>> {
        let seconds = until.saturating_duration_since(Instant::now()).as_secs_f64();
        let call = |py: Python<'_>| -> PyResult<Option<Py<PyPlan>>> {
            Ok(self.0.call1(py, (fields, seconds))?.extract::<Option<Py<PyPlan>>>(py)?)
        };
        let plan = Python::attach(call).unwrap_or_default();
        plan.map(|plan| Arc::new(Served(plan)) as Arc<dyn Plan>)
    }
}

/// (socket, bytes read, refused, late)
type HandedOut<'py> = (i32, Bound<'py, PyBytes>, bool, Option<f64>);

/// Answers plain requests at a listening socket, and passes all other connections on.
#[pyclass(frozen, name = "Front", module = "ketrag_fast._core")]
struct PyFront(Front);

fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong(format!("{name} must be seconds, not {seconds}")))
}

#[pymethods]
impl PyFront {
    /// `socket` is a listening socket, which the front owns from now on. `plan(fields, seconds)` returns a `Plan`, or None.
    /// `hosts` are the names that `Host` may have, None for any; `busy` are whole replies 429 with a wait of 1, 2,
    /// ... seconds; `headers` are lines of every other reply;
    /// `counts` is a new file for the counts.
    #[new]
    #[pyo3(signature = (socket, plan, *, workers, connections, queue, batch, cache, body, question, deadline, read, idle, hosts, token, headers, busy, counts=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        socket: i32,
        plan: Py<PyAny>,
        workers: usize,
        connections: usize,
        queue: usize,
        batch: usize,
        cache: usize,
        body: usize,
        question: usize,
        deadline: f64,
        read: f64,
        idle: f64,
        hosts: Option<Vec<String>>,
        token: Option<String>,
        headers: Vec<u8>,
        busy: Vec<Vec<u8>>,
        counts: Option<PathBuf>,
    ) -> PyResult<Self> {
        // SAFETY: the caller passes a descriptor that it has detached from its own socket object.
        let listener = unsafe { TcpListener::from_raw_fd(socket) };
        let (read, idle) = (seconds("read", read)?, seconds("idle", idle)?);
        let limits = Limits { workers, connections, queue, batch, cache, read, idle, headers, busy, counts };
        let rules = Rules { hosts, token, body, question, seconds: deadline };
        let front = Front::start(listener, limits, rules, Box::new(Planner(plan)));
        front.map(Self).map_err(|error| wrong(format!("the front cannot start: {error}")))
    }

    /// Return the descriptor that is readable when `take` has something to return.
    fn fileno(&self) -> i32 {
        self.0.bell().as_raw_fd()
    }

    /// Return the connections to take over. The caller owns their sockets.
    fn take<'py>(&self, py: Python<'py>) -> Vec<HandedOut<'py>> {
        let handed = self.0.take().into_iter();
        handed
            .map(|one| {
                let bytes = PyBytes::new(py, &one.bytes);
                (one.socket.into_raw_fd(), bytes, one.refused, one.late)
            })
            .collect()
    }

    /// Note that a connection that the caller took is closed.
    fn closed(&self) {
        self.0.closed();
    }

    /// Drop plans and kept replies: an index has changed.
    fn forget(&self) {
        self.0.forget();
    }

    /// Return all counts: replies, refusals, cached replies, microseconds, questions, requests by time, batches
    /// by size.
    fn counts(&self) -> Vec<u64> {
        self.0.counts()
    }

    /// Return the number of waiting requests.
    fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Accept no more requests. Those that run have `graceful` seconds.
    fn stop(&self, graceful: f64) -> PyResult<()> {
        self.0.stop(seconds("graceful", graceful)?);
        Ok(())
    }

    /// Wait for the end of all threads, after `stop`.
    fn join(&self, py: Python<'_>) {
        py.detach(|| self.0.join());
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyFront>()
}
