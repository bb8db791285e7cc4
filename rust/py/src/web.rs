//! Bindings of web pages.

use super::door::quick;
use pyo3::prelude::*;

type Heading = (usize, u8, String);
type Page = (String, Vec<Heading>, Vec<(usize, usize)>, Vec<String>, String);

/// Return the text of a serialised body, its headings (offset in characters, level, text), its listings (start and end), the
/// targets of its links, and the heading before the text.
#[pyfunction]
#[pyo3(signature = (markup, *, whole = false))]
fn web_page(py: Python<'_>, markup: &str, whole: bool) -> PyResult<Page> {
    quick(py, || {
        let page = ketrag_web::read(markup, whole);
        Ok((page.text.text, page.text.headings, page.text.code, page.links, page.banner))
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(web_page, m)?)
}
