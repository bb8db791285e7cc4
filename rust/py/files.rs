//! The face of stored files.

use super::door::quick;
use crate::progress::Progress;
use crate::store::file_digest;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Lower-case hexadecimal BLAKE3 of a file.
#[pyfunction]
fn hash_file(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    quick(py, || file_digest(&path, &Progress::none()))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(hash_file, m)?)
}
