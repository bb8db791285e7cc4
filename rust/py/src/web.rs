//! Bindings of web pages.

use super::door::quick;
use pyo3::prelude::*;

type Heading = (usize, u8, String);

/// Return the text of a serialised body, its headings (offset in characters, level, text) and the targets of its links.
#[pyfunction]
#[pyo3(signature = (markup, *, whole = false))]
fn web_page(py: Python<'_>, markup: &str, whole: bool) -> PyResult<(String, Vec<Heading>, Vec<String>)> {
    quick(py, || {
        let (text, links) = ketrag_web::read(markup, whole);
        Ok((text.text, text.headings, links))
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(web_page, m)?)
}
