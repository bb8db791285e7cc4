//! Bindings of exact search: a compiled pattern and the lines that match it.

use super::arrays::slice;
use super::door::quick;
use ketrag_text::grep::{Pattern, Reading};
use ketrag_text::strings::Strings;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

type Packed<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, u64>);
/// String, line, start and end, text, code points cut before it, matches in the text.
type Line = (usize, usize, usize, usize, String, usize, Vec<(usize, usize)>);

/// A regular expression that is matched in linear time, line by line.
#[pyclass(frozen, name = "Pattern", module = "ketrag_fast._core")]
struct PyPattern(Pattern);

#[pymethods]
impl PyPattern {
    #[new]
    #[pyo3(signature = (pattern, *, any_case=false, words=false, literal=false))]
    fn new(py: Python<'_>, pattern: String, any_case: bool, words: bool, literal: bool) -> PyResult<Self> {
        quick(py, || Pattern::new(&pattern, Reading { any_case, words, literal })).map(Self)
    }

    /// Return the matching lines, at most `each` of one string and `most` in all.
    fn lines(&self, py: Python<'_>, strings: Packed<'_>, each: usize, most: usize) -> PyResult<Vec<Line>> {
        let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
        let found = quick(py, || Ok(self.0.lines(Strings::new(blob, offsets)?, each, most)))?;
        Ok(found
            .into_iter()
            .map(|one| (one.string, one.line, one.span.0, one.span.1, one.text, one.cut, one.marks))
            .collect())
    }

    /// Return the number of matching lines of each string, counted up to `each`.
    fn counts<'py>(
        &self,
        py: Python<'py>,
        strings: Packed<'py>,
        each: usize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
        Ok(quick(py, || Ok(self.0.counts(Strings::new(blob, offsets)?, each)))?.into_pyarray(py))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPattern>()
}
