//! Faces for packed strings.

use super::arrays::{matrix, slice, strings_out, StringArrays};
use super::door::quick;
use crate::text::strings::{slices, take, Strings};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

type Packed<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, u64>);

/// The strings with these ids, in this order.
#[pyfunction]
fn take_strings<'py>(
    py: Python<'py>,
    strings: Packed<'py>,
    ids: PyReadonlyArray1<'py, u32>,
) -> PyResult<StringArrays<'py>> {
    let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
    let ids = slice(&ids, "ids")?;
    let out = quick(py, || take(Strings::new(blob, offsets)?, ids))?;
    Ok(strings_out(py, out))
}

/// Pieces of strings: bytes `spans[i]` of string `owners[i]`.
#[pyfunction]
fn slice_strings<'py>(
    py: Python<'py>,
    strings: Packed<'py>,
    owners: PyReadonlyArray1<'py, u32>,
    spans: PyReadonlyArray2<'py, u32>,
) -> PyResult<StringArrays<'py>> {
    let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
    let (owners, (spans, _, _)) = (slice(&owners, "owners")?, matrix(&spans, "spans")?);
    let out = quick(py, || slices(Strings::new(blob, offsets)?, owners, spans))?;
    Ok(strings_out(py, out))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(take_strings, m)?)?;
    m.add_function(wrap_pyfunction!(slice_strings, m)?)
}
