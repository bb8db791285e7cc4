//! A retrieval request without its query, as one object that is checked on creation, and the reply to a query.

use crate::arrays::Array;
use crate::door::{to_python, wrong};
use crate::extensions::EXTENSIONS;
use ketrag_base::sparse::Mask;
use ketrag_core::assemble::{Reply, Request, Share};
use ketrag_core::channels::{Options, Printed, Value};
use ketrag_core::search::fill::{FillPolicy, OversizePolicy};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A deadline so far in the future that it does not limit anything.
pub const AGES: Duration = Duration::from_secs(365 * 24 * 3600);

/// The units that pass a filter. Created once and shared by all queries with that filter.
#[pyclass(frozen, name = "Mask", module = "ketrag_fast._core")]
pub struct PyMask(pub Arc<Mask>);

#[pymethods]
impl PyMask {
    /// Create a mask from one byte per unit: 0 if it is excluded.
    #[new]
    fn new(units: Array<'_, u8>) -> Self {
        Self(Arc::new(Mask::from_fn(units.len(), |unit| units[unit] != 0)))
    }

    fn __len__(&self) -> usize {
        self.0.count()
    }
}

/// How queries are answered: a mode's recipe, budgets, and the options of its channels.
#[pyclass(frozen, name = "Request", module = "ketrag_fast._core")]
pub struct PyRequest {
    pub inner: Request,
    pub deadline: Duration,
}

#[pymethods]
impl PyRequest {
    /// `shares` are (channel, share of the budget) in the order of their sections. `join`: "shares", "fuse"
    /// or "vote"; `rollover`: unused budget goes to "none", the "last" or the "first" share. `options` are
    /// those of the channels; `deadline` is in seconds from the call; `mask` selects the units that may be
    /// printed. With `once`, one of equal or nearly equal units is printed, and neighbours of one list as one
    /// passage. Units less relevant than `min_score` are not printed.
    #[new]
    #[pyo3(signature = (mode, shares, budgets, *, join="shares", rollover="none", options=None, top=None, truncate=true, deadline=None, mask=None, once=false, min_score=0.0))]
    fn new(
        mode: String,
        shares: Vec<(String, f64)>,
        budgets: Vec<i64>,
        join: &str,
        rollover: &str,
        options: Option<BTreeMap<String, Bound<'_, PyAny>>>,
        top: Option<usize>,
        truncate: bool,
        deadline: Option<f64>,
        mask: Option<PyRef<'_, PyMask>>,
        once: bool,
        min_score: f64,
    ) -> PyResult<Self> {
        let deadline = match deadline {
            None => AGES,
            Some(s) => Duration::try_from_secs_f64(s).map_err(|_| wrong("deadline must not be negative"))?,
        };
        let size = |budget: i64| {
            u64::try_from(budget).map_err(|_| wrong(format!("a budget must not be negative, got {budget}")))
        };
        let oversize = if truncate { OversizePolicy::Truncate } else { OversizePolicy::Drop };
        let options =
            options.unwrap_or_default().into_iter().map(|(name, found)| Ok((value(&name, &found)?, name)));
        let options = options.map(|pair| pair.map(|(value, name)| (name, value))).collect::<PyResult<_>>()?;
        let inner = Request::new(
            mode,
            shares.into_iter().map(|(channel, part)| Share { channel, part }).collect(),
            (join, rollover),
            budgets.into_iter().map(size).collect::<PyResult<_>>()?,
            Options::new(options),
            top,
            (FillPolicy::default(), oversize),
            mask.map(|mask| mask.0.clone()),
            &EXTENSIONS,
        );
        let inner = inner.and_then(|inner| inner.once(once).min_score(min_score)).map_err(to_python)?;
        Ok(Self { inner, deadline: deadline.min(AGES) })
    }

    #[getter]
    fn mode(&self) -> &str {
        self.inner.mode()
    }

    #[getter]
    fn budgets(&self) -> Vec<u64> {
        self.inner.budgets().to_vec()
    }

    #[getter]
    fn top(&self) -> Option<usize> {
        self.inner.top()
    }
}

fn value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::None);
    }
    // In Python True is an int, so check it first.
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Flag(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        let whole = value.extract().map_err(|_| wrong(format!("the option {name} is too large: {value}")))?;
        return Ok(Value::Whole(whole));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Real(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::Text(value.extract()?));
    }
    Err(wrong(format!("the option {name} must be a bool, int, float, str or None, not {}", value.get_type())))
}

/// (name, channel, tokens, start, end) of a section; start and end are bytes of the text
type SectionOut = (&'static str, String, u64, usize, usize);

/// The context for one budget. Rows are the printed units, in order.
#[pyclass(frozen, get_all, name = "Printed", module = "ketrag_fast._core")]
pub struct PyPrinted {
    text: Py<PyString>,
    tokens: u64,
    units: Vec<u32>,
    row_tokens: Vec<u64>,
    /// The byte range of each row's text.
    spans: Vec<(usize, usize)>,
    scores: Vec<f64>,
    /// The relevance of each row, from 0 to 1.
    relevance: Vec<f64>,
    /// Whether passages were found, but none is relevant enough to answer the query.
    nothing_fits: bool,
    /// Parallel to the rows: the printed node of a graph, `2**32 - 1` if the row is a unit. Empty if all are
    /// units.
    nodes: Vec<u32>,
    /// The first unit of each row and their number: several if neighbours are joined.
    runs: Vec<(u32, u32)>,
    /// (printed unit, copy that is left out).
    copies: Vec<(u32, u32)>,
    sections: Vec<SectionOut>,
}

/// The answer to one query: a context for each budget, in order.
#[pyclass(frozen, get_all, name = "Reply", module = "ketrag_fast._core")]
pub struct PyReply {
    reason: Option<&'static str>,
    contexts: Vec<Py<PyPrinted>>,
    milliseconds: f64,
    empty_channels: Vec<String>,
}

impl PyPrinted {
    fn new(py: Python<'_>, printed: Printed) -> Self {
        let context = printed.context;
        let units: Vec<u32> = context.rows.iter().map(|row| row.unit).collect();
        let tokens: Vec<u64> = context.rows.iter().map(|row| row.tokens).collect();
        let sections = printed.sections.into_iter();
        Self {
            text: PyString::new(py, &context.text).unbind(),
            tokens: context.tokens,
            units,
            row_tokens: tokens,
            spans: context.rows.iter().map(|row| (row.start, row.end)).collect(),
            scores: printed.scores,
            nothing_fits: printed.nothing_fits,
            relevance: printed.relevance,
            nodes: printed.nodes,
            runs: context.rows.iter().map(|row| (row.first, row.count)).collect(),
            copies: printed.copies,
            sections: sections.map(|s| (s.name, s.channel, s.tokens, s.start, s.end)).collect(),
        }
    }
}

impl PyReply {
    pub fn new(py: Python<'_>, reply: Reply, milliseconds: f64) -> PyResult<Self> {
        let contexts = reply.contexts.into_iter().map(|printed| Py::new(py, PyPrinted::new(py, printed)));
        Ok(Self {
            reason: reply.reason,
            contexts: contexts.collect::<PyResult<_>>()?,
            milliseconds,
            empty_channels: reply.empty_channels,
        })
    }
}
