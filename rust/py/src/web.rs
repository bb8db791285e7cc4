//! Bindings of web pages.

use super::door::quick;
use pyo3::prelude::*;

type Heading = (usize, u8, String);

/// Return the text of a serialised body, its headings (offset in characters, level, text), the targets of its links, and the
/// heading before the text.
#[pyfunction]
#[pyo3(signature = (markup, *, whole = false))]
fn web_page(
    py: Python<'_>,
    markup: &str,
    whole: bool,
) -> PyResult<(String, Vec<Heading>, Vec<String>, String)> {
    quick(py, || {
        let page = ketrag_web::read(markup, whole);
        Ok((page.text.text, page.text.headings, page.links, page.banner))
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(web_page, m)?)
}
