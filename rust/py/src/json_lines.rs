//! Bindings of JSON lines.

use super::arrays::{strings_out, StringArrays};
use super::door::quick;
use ketrag_text::json_lines::read_lines;
use ketrag_text::strings::StringsBuf;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

type Texts<'py> = (Bound<'py, PyList>, StringArrays<'py>);
/// Number of documents before the line, its number, and its bytes.
type Left<'py> = (usize, usize, Bound<'py, PyBytes>);
type Read<'py> = (Texts<'py>, Texts<'py>, Texts<'py>, Bound<'py, PyList>, Vec<Left<'py>>, usize);

fn texts_out<'py>(py: Python<'py>, texts: StringsBuf) -> PyResult<Texts<'py>> {
    let view = texts.view();
    let list = PyList::new(py, (0..view.len()).map(|i| view.get(i)))?;
    Ok((list, strings_out(py, texts)))
}

/// Read whole lines of a file: return ids, titles and texts (as a list and packed), hashes, the lines that are left to the
/// caller, and the number of lines. A document without an id is `name:line`.
#[pyfunction]
fn read_json_lines<'py>(py: Python<'py>, block: &[u8], name: &str, first: usize) -> PyResult<Read<'py>> {
    let found = quick(py, || Ok(read_lines(block, |line| format!("{name}:{}", first + line))))?;
    let left = found
        .left
        .iter()
        .map(|left| (left.before, first + left.line, PyBytes::new(py, &block[left.start..left.end])))
        .collect();
    let hashes = PyList::new(py, found.hashes.iter().map(|hash| PyBytes::new(py, hash)))?;
    let (ids, titles) = (texts_out(py, found.ids)?, texts_out(py, found.titles)?);
    Ok((ids, titles, texts_out(py, found.texts)?, hashes, left, found.lines))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(read_json_lines, m)?)
}
