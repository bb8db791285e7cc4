//! The documents of an opened generation: their ids, texts, and the lines that match a pattern.

use crate::arrays::Array;
use crate::column::selects;
use crate::door::{of_index, quick};
use crate::searcher::PySearcher;
use crate::strings::PyPattern;
use ketrag_base::error::Result;
use ketrag_core::generation::{Documents, Found};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Document, start and end in code points, text, code points cut before it, matches in the text, line in the indexed text,
/// line in the source if it has lines.
type LineOut = (usize, usize, usize, String, usize, Vec<(usize, usize)>, usize, Option<usize>);

/// The documents of an opened generation by number. Masks are one byte per row, 0 if it is not wanted; None for all.
#[pyclass(frozen, name = "Documents", module = "ketrag_fast._core")]
pub struct PyDocuments {
    searcher: Py<PySearcher>,
    count: usize,
}

impl PyDocuments {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Documents<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let searcher = self.searcher.get();
        quick(py, || searcher.inner.with_parts(|parts| work(parts.documents()?))).map_err(|e| of_index(py, e))
    }
}

#[pymethods]
impl PyDocuments {
    #[new]
    fn new(py: Python<'_>, searcher: Py<PySearcher>) -> PyResult<Self> {
        let found = Self { searcher, count: 0 };
        let count = found.with(py, |documents| Ok(documents.len()))?;
        Ok(Self { count, ..found })
    }

    fn __len__(&self) -> usize {
        self.count
    }

    /// Return the ids of all documents.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |documents| Ok(documents.ids()))
    }

    /// Return the first row of a document in the documents' arrays, and the row after its last one.
    fn rows(&self, py: Python<'_>, document: usize) -> PyResult<(usize, usize)> {
        self.with(py, |documents| documents.rows(document)).map(|rows| (rows.start, rows.end))
    }

    /// Return the text of a document.
    fn text(&self, py: Python<'_>, document: usize) -> PyResult<String> {
        self.with(py, |documents| {
            documents.rows(document)?;
            Ok(documents.texts(document..document + 1)?.get(0).to_owned())
        })
    }

    /// Return the line of the source at which the text of a document begins; None if its source has no lines.
    fn first_line(&self, py: Python<'_>, document: usize, text: &str) -> PyResult<Option<usize>> {
        self.with(py, |documents| documents.first_line(document, text))
    }

    /// Return the row of a document that has a position in code points; between units, that of the unit before.
    fn row_at(&self, py: Python<'_>, document: usize, start: u32) -> PyResult<usize> {
        self.with(py, |documents| documents.row_at(document, start))
    }

    /// Return the wanted documents as ranges (first, stop) of about two megabytes of text, which may have unwanted ones.
    fn blocks(&self, py: Python<'_>, wanted: Option<Array<'_, u8>>) -> PyResult<Vec<(usize, usize)>> {
        let blocks = self.with(py, |documents| documents.blocks(|at| selects(wanted.as_ref(), at)))?;
        Ok(blocks.into_iter().map(|range| (range.start, range.end)).collect())
    }

    /// Return at most `most` lines of the wanted documents from `first` to `stop` that match a pattern, in order.
    fn lines(
        &self,
        py: Python<'_>,
        pattern: Py<PyPattern>,
        first: usize,
        stop: usize,
        wanted: Option<Array<'_, u8>>,
        most: usize,
    ) -> PyResult<Vec<LineOut>> {
        let (pattern, wanted) = (&pattern.get().0, wanted.as_ref());
        let select = |at| selects(wanted, at);
        let found = self.with(py, |documents| documents.lines(pattern, first..stop, select, most))?;
        let out = |Found { document, line, number }| {
            (document, line.span.0, line.span.1, line.text, line.cut, line.marks, line.line + 1, number)
        };
        Ok(found.into_iter().map(out).collect())
    }

    /// Return (document, number of matching lines) for the wanted documents from `first` to `stop` that have any.
    fn counts(
        &self,
        py: Python<'_>,
        pattern: Py<PyPattern>,
        first: usize,
        stop: usize,
        wanted: Option<Array<'_, u8>>,
    ) -> PyResult<Vec<(usize, u32)>> {
        let (pattern, wanted) = (&pattern.get().0, wanted.as_ref());
        self.with(py, |documents| documents.counts(pattern, first..stop, |at| selects(wanted, at)))
    }

    /// Return a mask of the units whose documents are in a mask.
    fn units_of<'py>(&self, py: Python<'py>, wanted: Array<'_, u8>) -> PyResult<Bound<'py, PyBytes>> {
        let mask = self.with(py, |documents| documents.units_of(|at| selects(Some(&wanted), at)))?;
        Ok(PyBytes::new(py, &mask))
    }

    /// Return a mask of the documents that have units, all of which are in a mask.
    fn documents_of<'py>(&self, py: Python<'py>, units: Array<'_, u8>) -> PyResult<Bound<'py, PyBytes>> {
        let mask = self.with(py, |documents| documents.documents_of(|at| selects(Some(&units), at)))?;
        Ok(PyBytes::new(py, &mask))
    }

    /// Return a mask of the units from `first` to `stop`: those of a mask that have a line matching a pattern.
    fn units_matching<'py>(
        &self,
        py: Python<'py>,
        pattern: Py<PyPattern>,
        first: usize,
        stop: usize,
        wanted: Option<Array<'_, u8>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (pattern, wanted) = (&pattern.get().0, wanted.as_ref());
        let select = |at| selects(wanted, at);
        let mask = self.with(py, |documents| documents.units_matching(pattern, first..stop, select))?;
        Ok(PyBytes::new(py, &mask))
    }
}
