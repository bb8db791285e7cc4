//! NumPy arrays as slices: contiguous or rejected, never copied silently.

use super::door::wrong;
use ketrag_base::sparse::Csr;
use ketrag_text::strings::StringsBuf;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

pub fn slice<'a, T: Element>(array: &'a PyReadonlyArray1<'_, T>, name: &str) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| wrong(format!("{name} must be contiguous")))
}

/// Row-major values with (rows, columns).
pub fn matrix<'a, T: Element>(
    array: &'a PyReadonlyArray2<'_, T>,
    name: &str,
) -> PyResult<(&'a [T], usize, usize)> {
    let view = array.as_array();
    let (rows, columns) = (view.shape()[0], view.shape()[1]);
    let values = array.as_slice().map_err(|_| wrong(format!("{name} must be C-contiguous")))?;
    if rows > 1 && columns > 1 && !view.is_standard_layout() {
        return Err(wrong(format!("{name} must be C-contiguous")));
    }
    Ok((values, rows, columns))
}

pub type CsrArrays<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

pub fn csr_out(py: Python<'_>, csr: Csr) -> CsrArrays<'_> {
    (csr.indptr.into_pyarray(py), csr.indices.into_pyarray(py))
}

pub type StringArrays<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u64>>);

pub fn strings_out(py: Python<'_>, strings: StringsBuf) -> StringArrays<'_> {
    (strings.blob.into_pyarray(py), strings.offsets.into_pyarray(py))
}

/// Return a matrix of (rows, columns) from concatenated rows.
pub fn matrix_out<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; 2],
) -> PyResult<Bound<'_, PyArray2<T>>> {
    values.into_pyarray(py).reshape(shape)
}
