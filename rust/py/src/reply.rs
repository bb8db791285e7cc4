//! The answer to a query, as Python objects.

use ketrag_core::assemble::Reply;
use ketrag_core::channels::Printed;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// (name, channel, tokens, start, end) of a section; start and end are bytes of the text
type SectionOut = (&'static str, String, u64, usize, usize);

/// The context for one budget. Rows are the printed units, in order.
#[pyclass(frozen, get_all, name = "Printed", module = "ketrag_fast._core")]
pub struct PyPrinted {
    text: Py<PyString>,
    tokens: u64,
    units: Py<PyArray1<u32>>,
    row_tokens: Py<PyArray1<u64>>,
    /// The byte range of each row's text.
    spans: Vec<(usize, usize)>,
    scores: Py<PyArray1<f64>>,
    /// The relevance of each row, from 0 to 1.
    relevance: Py<PyArray1<f64>>,
    /// Whether passages were found, but none is relevant enough to answer the query.
    nothing_fits: bool,
    /// Parallel to the rows: the printed node of a graph, `2**32 - 1` if the row is a unit. Empty if all are
    /// units.
    nodes: Py<PyArray1<u32>>,
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
            units: units.into_pyarray(py).unbind(),
            row_tokens: tokens.into_pyarray(py).unbind(),
            spans: context.rows.iter().map(|row| (row.start, row.end)).collect(),
            scores: printed.scores.into_pyarray(py).unbind(),
            nothing_fits: printed.nothing_fits,
            relevance: printed.relevance.into_pyarray(py).unbind(),
            nodes: printed.nodes.into_pyarray(py).unbind(),
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPrinted>()?;
    m.add_class::<PyReply>()
}
