//! The HTTP front, and the plans of the queries that it answers without Python.

use crate::arrays::{Array, Matrix};
use crate::context_json::{Describe, Frame, Row, Timings};
use crate::door::{of_index, quick, wrong};
use crate::request::PyRequest;
use crate::searcher::PySearcher;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::StatusCode;
use ketrag_base::error::Result;
use ketrag_base::progress::Progress;
use ketrag_core::assemble::Corrected;
use ketrag_core::channels::Question;
use ketrag_serve::access::TokenDigest;
use ketrag_serve::backend::{Answer, Model, Plan, Vector, Vectors};
use ketrag_serve::json::string;
use ketrag_serve::request_log::Entry;
use ketrag_serve::{
    Access, Backend, Call, Errors, Front, Holder, Limits, Replied, RequestLog, Rules, Style, Whole,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Plans created by a Python function, and calls to shards answered by another one.
struct Planner {
    plan: Py<PyAny>,
    call: Option<Py<PyAny>>,
}

/// (status, whether the body is packed, body)
type CallOut<'py> = (u16, bool, Bound<'py, PyBytes>);

impl Backend for Planner {
    fn plan(&self, fields: &str, until: Instant) -> Option<Arc<dyn Plan>> {
        let seconds = until.saturating_duration_since(Instant::now()).as_secs_f64();
        let call = |py: Python<'_>| -> PyResult<Option<Py<PyPlan>>> {
            Ok(self.plan.call1(py, (fields, seconds))?.extract::<Option<Py<PyPlan>>>(py)?)
        };
        let plan = Python::attach(call).unwrap_or_default();
        plan.map(|plan| Arc::new(Served(plan)) as Arc<dyn Plan>)
    }

    fn call(&self, call: &Call) -> Option<Replied> {
        let answer = self.call.as_ref()?;
        Python::attach(|py| {
            let body = PyBytes::new(py, &call.body);
            let found =
                answer.bind(py).call1((&call.path, body, &call.holder.name, &call.holder.allow)).ok()?;
            let (status, is_packed, body) = found.extract::<Option<CallOut<'_>>>().ok()??;
            let status = StatusCode::from_u16(status).ok()?;
            Some(Replied { status, is_packed, body: body.as_bytes().to_vec() })
        })
    }
}

/// Answers plain requests at a listening socket, and passes all others to the application.
#[pyclass(frozen, name = "Front", module = "ketrag_fast._core")]
pub struct PyFront(Front);

/// (SHA-256 of the token, name, condition on documents, whether it may query)
type Holders = Vec<(Vec<u8>, String, String, bool)>;

fn holders_of(given: Option<Holders>) -> PyResult<Option<Vec<(TokenDigest, Holder)>>> {
    let holder = |(digest, name, allow, reads): (Vec<u8>, String, String, bool)| {
        let digest = digest.try_into().map_err(|_| wrong("the digest of a token has 32 bytes"))?;
        Ok((digest, Holder { name, allow, reads }))
    };
    given.map(|all| all.into_iter().map(holder).collect()).transpose()
}

/// A log with a line for each request, written by a thread, so that no request waits for a disk.
#[pyclass(frozen, name = "RequestLog", module = "ketrag_fast._core")]
pub struct PyRequestLog(Arc<RequestLog>);

#[pymethods]
impl PyRequestLog {
    /// Lines go to a copy of the descriptor `file`. With `all`, every request has a line, else slow and refused ones;
    /// with `questions`, lines have the question. Requests of more than `slow` seconds are marked.
    #[new]
    #[pyo3(signature = (file, *, json, all, questions, slow))]
    fn new(file: i32, json: bool, all: bool, questions: bool, slow: f64) -> PyResult<Self> {
        let style = Style { json, all, questions, slow: seconds("slow", slow)? };
        let started = copy_of(file).and_then(|file| RequestLog::start(file, style));
        started
            .map(|log| Self(Arc::new(log)))
            .map_err(|error| wrong(format!("the log cannot start: {error}")))
    }

    /// Add a request that took some seconds; `user` is empty if there are no users.
    #[pyo3(signature = (user, method, path, status, seconds, *, may_be_slow, question=None))]
    fn add(
        &self,
        user: &str,
        method: &str,
        path: &str,
        status: u16,
        seconds: f64,
        may_be_slow: bool,
        question: Option<&str>,
    ) {
        let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.0.add(&Entry { user, method, path, status, took, question, may_be_slow });
    }

    /// Add a line about the service.
    fn note(&self, level: &str, message: &str) {
        self.0.note(level, message);
    }

    /// Write the last lines, for two seconds at most, and end.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

#[cfg(unix)]
fn copy_of(file: i32) -> std::io::Result<std::fs::File> {
    use std::os::fd::BorrowedFd;
    // SAFETY: the descriptor is open while this function runs, because the caller holds its file.
    let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
    borrowed.try_clone_to_owned().map(std::fs::File::from)
}

#[cfg(windows)]
fn copy_of(_: i32) -> std::io::Result<std::fs::File> {
    use std::os::windows::io::AsHandle;
    std::io::stderr().as_handle().try_clone_to_owned().map(std::fs::File::from)
}

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
    /// counts. `holders` are (SHA-256 of the token, name, condition on documents or an empty text, whether they may
    /// query), None if no token is needed; `log` has a line for each request that the front answers.
    /// `call(path, body, name, allow)` answers a call to a shard by a holder: (status, whether the body is packed, body),
    /// or None if the application must answer.
    #[new]
    #[pyo3(signature = (socket, application, plan, *, workers, connections, queue, batch, cache, body, question, deadline, read, idle, hosts, holders, headers, busy, crowded, broken, stopping, counts=None, log=None, call=None))]
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
        holders: Option<Holders>,
        headers: Headers,
        busy: Vec<Error>,
        crowded: Error,
        broken: Error,
        stopping: Error,
        counts: Option<PathBuf>,
        log: Option<Py<PyRequestLog>>,
        call: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let listener = listener(socket).ok_or_else(|| wrong("not a socket"))?;
        let errors = Errors {
            busy: busy.into_iter().map(whole).collect::<PyResult<_>>()?,
            crowded: whole(crowded)?,
            broken: whole(broken)?,
            stopping: whole(stopping)?,
        };
        let (read, idle, headers) = (seconds("read", read)?, seconds("idle", idle)?, self::headers(headers)?);
        let log = log.map(|log| log.get().0.clone());
        let limits =
            Limits { workers, connections, queue, batch, cache, read, idle, headers, errors, counts, log };
        let has_marks = Some(ketrag_text::query_language::has_marks as fn(&str) -> bool);
        let access = Access::of(holders_of(holders)?);
        let rules = Rules { hosts, access, body, question, seconds: deadline, has_marks };
        let front = Front::start(listener, application, limits, rules, Box::new(Planner { plan, call }));
        front.map(Self).map_err(|error| wrong(format!("the front cannot start: {error}")))
    }

    /// Drop plans and cached replies: an index has changed.
    fn forget(&self) {
        self.0.forget();
    }

    /// Replace the holders of tokens.
    fn set_holders(&self, holders: Option<Holders>) -> PyResult<()> {
        self.0.set_holders(holders_of(holders)?);
        Ok(())
    }

    /// Return all counts: replies, refusals, cached replies, microseconds, queries, requests by time, and
    /// batches by size.
    fn counts(&self) -> Vec<u64> {
        self.0.counts()
    }

    /// Return the number of waiting requests.
    fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Stop accepting requests, and finish those that are running.
    fn stop(&self) {
        self.0.stop();
    }

    /// Stop running requests as well. The application replies to them.
    fn abort(&self) {
        self.0.abort();
    }

    /// Wait until all connections are closed, after `stop`. Return False if that takes longer than `seconds`.
    fn join(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let time = self::seconds("seconds", seconds)?;
        Ok(py.detach(|| self.0.join(time)))
    }
}

/// Maximum total size of cached descriptions in bytes.
const MOST: usize = 16 << 20;
/// Size of a description in addition to its text, in bytes.
const ENTRY: usize = 80;

/// The fields of rows.
type Described = HashMap<Row, Arc<[u8]>>;

/// The metadata and locations of printed units. Python is called once for each unit.
#[pyclass(frozen, name = "Descriptions", module = "ketrag_fast._core")]
pub struct PyDescriptions {
    /// Returns, for (unit, start, end) each, the JSON fields `page`, `location` and `metadata` without braces.
    describe: Py<PyAny>,
    kept: Mutex<(usize, Described)>,
}

#[pymethods]
impl PyDescriptions {
    #[new]
    fn new(describe: Py<PyAny>) -> Self {
        Self { describe, kept: Mutex::default() }
    }
}

impl PyDescriptions {
    /// Return the fields of rows, or `None` if Python failed.
    fn get(&self, rows: &[Row]) -> Option<Vec<Arc<[u8]>>> {
        let missing: Vec<Row> = {
            let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
            rows.iter().filter(|row| !kept.1.contains_key(row)).copied().collect()
        };
        let fresh: Vec<Vec<u8>> = match missing.is_empty() {
            true => Vec::new(),
            false => {
                let call = |py: Python<'_>| self.describe.call1(py, (missing.clone(),))?.extract(py);
                Python::attach(call).ok()?
            }
        };
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let fresh: Described = missing.into_iter().zip(fresh.into_iter().map(Arc::from)).collect();
        let found = rows.iter().map(|row| kept.1.get(row).or_else(|| fresh.get(row)).cloned()).collect();
        for (row, fields) in fresh {
            kept.0 += fields.len() + ENTRY;
            kept.1.insert(row, fields);
        }
        if kept.0 > MOST {
            *kept = Default::default();
        }
        found
    }
}

/// Answers queries with equal options.
#[pyclass(frozen, name = "Plan", module = "ketrag_fast._core")]
pub struct PyPlan {
    id: u64,
    searcher: Py<PySearcher>,
    request: Py<PyRequest>,
    frame: Frame,
    describe: Option<Py<PyDescriptions>>,
    embed: Option<Py<PyAny>>,
    model: Model,
    literal: bool,
}

/// The number of the next plan.
static NEXT: AtomicU64 = AtomicU64::new(1);

#[pymethods]
impl PyPlan {
    /// `kind` is that of the units; `cautions` are warnings of each reply; `fitting` is the number of units that
    /// pass the filter. `embed(questions, seconds)` returns vectors f32[questions, dimension]; plans with an equal
    /// `model` are embedded together; with `parallel` several threads may call `embed` at a time. `request` has one budget,
    /// and its deadline is not used. Unless `literal`, questions with words that no document has are left to Python.
    #[new]
    #[pyo3(signature = (searcher, request, *, mode, kind, generation, budget, cautions, fitting=None, describe=None, embed=None, model=0, parallel=false, literal=false))]
    fn new(
        searcher: Py<PySearcher>,
        request: Py<PyRequest>,
        mode: String,
        kind: String,
        generation: u64,
        budget: u64,
        cautions: Vec<String>,
        fitting: Option<u64>,
        describe: Option<Py<PyDescriptions>>,
        embed: Option<Py<PyAny>>,
        model: u64,
        parallel: bool,
        literal: bool,
    ) -> Self {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let frame = Frame { mode, kind, generation, budget, cautions, fitting };
        let model = Model { id: model, parallel };
        Self { id, searcher, request, frame, describe, embed, model, literal }
    }

    /// Return the reply to a question as JSON, or None if it needs passages as objects.
    #[pyo3(name = "answer", signature = (question, vector=None))]
    fn answer_python<'py>(
        &self,
        py: Python<'py>,
        question: &str,
        vector: Option<Array<'py, f32>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let vector = vector.as_deref().map(|values| Vector { values, milliseconds: 0.0 });
        let mut out = Vec::new();
        if !self.takes(question) {
            return Ok(None);
        }
        let answered = quick(py, || self.reply(question, vector, &Progress::none(), &mut out));
        let answered = answered.map_err(|e| of_index(py, e))?;
        Ok((answered != Answer::Pass).then(|| PyBytes::new(py, &out)))
    }
}

/// Words of a query whose unknown words are named next to results; `_KEYWORDS` of `query/reading.py`.
const KEYWORDS: usize = 4;

impl PyPlan {
    /// Return whether no word of a question is replaced by a similar one or named in a note: Python adds both.
    fn takes(&self, question: &str) -> bool {
        let corrected = || self.searcher.get().inner.correct(question);
        let is_short = question.split_whitespace().nth(KEYWORDS).is_none();
        let has_note = |found: &Corrected| found.replaces() || is_short;
        self.literal || !corrected().is_ok_and(|found| found.as_ref().is_some_and(has_note))
    }

    fn reply(
        &self,
        question: &str,
        vector: Option<Vector<'_>>,
        progress: &Progress,
        out: &mut Vec<u8>,
    ) -> Result<Answer> {
        let searcher = &self.searcher.get().inner;
        let started = Instant::now();
        let asked = Question { text: question, vector: vector.map(|v| v.values), ..Question::default() };
        let reply = searcher.answer(&self.request.get().inner, asked, progress)?;
        let is_empty = reply.contexts.iter().any(|printed| printed.context.text.is_empty());
        let unknown = if is_empty && !self.literal { searcher.correct(question)? } else { None };
        let search = started.elapsed().as_secs_f64() * 1000.0;
        let timings = Timings { embed: vector.map_or(0.0, |v| v.milliseconds), search };
        let call = self.describe.as_ref().map(|own| |rows: &[Row]| own.get().get(rows));
        let describe = call.as_ref().map(|call| call as Describe<'_>);
        let written = searcher
            .with_parts(|parts| self.frame.write(out, parts, question, &reply, &timings, describe))?;
        if let (Some(()), Some(unknown)) = (written, unknown) {
            write_unknown(out, &unknown);
        }
        let warned = !self.frame.cautions.is_empty() || !reply.empty_channels.is_empty();
        Ok(match (written, warned) {
            (None, _) => Answer::Pass,
            (Some(()), true) => Answer::Once,
            (Some(()), false) => Answer::Cached,
        })
    }
}

/// Add the words that no document has to a context, which has no passages.
fn write_unknown(out: &mut Vec<u8>, unknown: &Corrected) {
    if out.pop().is_none() {
        return;
    }
    out.extend_from_slice(br#","unknown":["#);
    for (at, (word, _)) in unknown.words.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, word);
    }
    out.extend_from_slice(b"]}");
}

/// A plan of Python for the front.
pub struct Served(pub Py<PyPlan>);

impl Plan for Served {
    fn id(&self) -> u64 {
        self.0.get().id
    }

    fn takes(&self, question: &str) -> bool {
        self.0.get().takes(question)
    }

    fn model(&self) -> Option<Model> {
        let plan = self.0.get();
        plan.embed.as_ref().map(|_| plan.model)
    }

    fn embed(&self, questions: &[&str], until: Instant) -> Option<Vectors> {
        let call = self.0.get().embed.as_ref()?;
        let started = Instant::now();
        let seconds = until.saturating_duration_since(started).as_secs_f64();
        let found = Python::attach(|py| -> PyResult<(Vec<f32>, usize)> {
            let found = call.call1(py, (questions.to_vec(), seconds))?;
            let array: Matrix<'_, f32> = found.bind(py).extract()?;
            Ok((array.to_vec(), array.columns()))
        });
        let (values, dimension) = found.ok()?;
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0 / questions.len().max(1) as f64;
        Some(Vectors { values, dimension, milliseconds })
    }

    fn answer(
        &self,
        question: &str,
        vector: Option<Vector<'_>>,
        progress: &Progress,
        out: &mut Vec<u8>,
    ) -> Result<Answer> {
        self.0.get().reply(question, vector, progress, out)
    }
}
