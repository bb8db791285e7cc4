//! The HTTP front as a Python object.

use super::door::wrong;
use super::plan::{PyPlan, Served};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::StatusCode;
use ketrag_serve::backend::Plan;
use ketrag_serve::{Backend, Errors, Front, Limits, Rules, Whole};
use pyo3::prelude::*;
use std::net::TcpListener;
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

/// Answers plain requests at a listening socket, and passes all others to the application.
#[pyclass(frozen, name = "Front", module = "ketrag_fast._core")]
struct PyFront(Front);

type Headers = Vec<(String, String)>;
/// (status, headers, body)
type Error = (u16, Headers, Vec<u8>);

fn headers(given: Headers) -> PyResult<HeaderMap> {
    let header = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    let map: Option<HeaderMap> = given.into_iter().map(header).collect();
    map.ok_or_else(|| wrong("a header of the front is invalid"))
}

fn whole((status, given, body): Error) -> PyResult<Whole> {
    let status = StatusCode::from_u16(status).map_err(|_| wrong("a status of the front is invalid"))?;
    Ok(Whole { status, headers: headers(given)?, body })
}

fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong(format!("{name} must be seconds, not {seconds}")))
}

#[cfg(unix)]
fn listener(socket: i64) -> Option<TcpListener> {
    use std::os::fd::FromRawFd;
    // SAFETY: the caller passes a descriptor that it has detached from its own socket object.
    Some(unsafe { TcpListener::from_raw_fd(socket.try_into().ok()?) })
}

#[cfg(windows)]
fn listener(socket: i64) -> Option<TcpListener> {
    use std::os::windows::io::FromRawSocket;
    // SAFETY: the caller passes a socket that it has detached from its own socket object.
    Some(unsafe { TcpListener::from_raw_socket(socket.try_into().ok()?) })
}

#[pymethods]
impl PyFront {
    /// `socket` is a listening socket, which the front owns from now on. `application` is the address of the
    /// application: a path, on Windows an address of TCP. `plan(fields, seconds)` returns a `Plan`, or None.
    /// `hosts` are the names that `Host` may have, None for any; `headers` are those of a reply with a context. Errors
    /// are (status, headers, body); `busy` are those with a wait of 1, 2, ... seconds. `counts` is a new file for the
    /// counts.
    #[new]
    #[pyo3(signature = (socket, application, plan, *, workers, connections, queue, batch, cache, body, question, deadline, read, idle, hosts, token, headers, busy, crowded, broken, stopping, counts=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        socket: i64,
        application: String,
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
        headers: Headers,
        busy: Vec<Error>,
        crowded: Error,
        broken: Error,
        stopping: Error,
        counts: Option<PathBuf>,
    ) -> PyResult<Self> {
        let listener = listener(socket).ok_or_else(|| wrong("not a socket"))?;
        let errors = Errors {
            busy: busy.into_iter().map(whole).collect::<PyResult<_>>()?,
            crowded: whole(crowded)?,
            broken: whole(broken)?,
            stopping: whole(stopping)?,
        };
        let (read, idle, headers) = (seconds("read", read)?, seconds("idle", idle)?, self::headers(headers)?);
        let limits =
            Limits { workers, connections, queue, batch, cache, read, idle, headers, errors, counts };
        let rules = Rules { hosts, token, body, question, seconds: deadline };
        let front = Front::start(listener, application, limits, rules, Box::new(Planner(plan)));
        front.map(Self).map_err(|error| wrong(format!("the front cannot start: {error}")))
    }

    /// Drop plans and cached replies: an index has changed.
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

    /// Accept no more requests; finish those that run.
    fn stop(&self) {
        self.0.stop();
    }

    /// Stop running requests as well: the application replies to them.
    fn abort(&self) {
        self.0.abort();
    }

    /// Wait until all connections are closed, after `stop`. Return False if that takes longer than `seconds`.
    fn join(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let time = self::seconds("seconds", seconds)?;
        Ok(py.detach(|| self.0.join(time)))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyFront>()
}
