//! What a question gets, as Python sees it.

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
    /// The bytes of the text that hold each row's own text.
    spans: Vec<(usize, usize)>,
    scores: Py<PyArray1<f64>>,
    /// Beside the rows: the node of a graph that is printed, `2**32 - 1` where it is a unit. Empty where all are.
    nodes: Py<PyArray1<u32>>,
    sections: Vec<SectionOut>,
}

/// What one question gets: a context for each budget, in order.
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
            nodes: printed.nodes.into_pyarray(py).unbind(),
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
