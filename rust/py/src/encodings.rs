//! Bindings of text in other encodings than UTF-8.

use super::door::quick;
use ketrag_text::encodings::decode;
use pyo3::prelude::*;

type Decoded = (String, Option<String>, bool, bool);

/// Return the text of bytes without a byte order mark, its encoding (None for UTF-8), whether it is sure, and whether it is the
/// declared one.
#[pyfunction]
#[pyo3(signature = (data, declared = None))]
fn decode_text(py: Python<'_>, data: &[u8], declared: Option<&str>) -> PyResult<Decoded> {
    quick(py, || {
        let found = decode(data, declared);
        Ok((found.text, found.encoding, found.is_sure, found.is_declared))
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(decode_text, m)?)
}
