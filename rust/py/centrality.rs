//! Faces of the ranks of a graph's nodes that need no walk to its end.

use super::arrays::slice;
use super::door::long;
use crate::rank;
use crate::sparse::CsrView;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// A square graph.
fn square<'a>(indptr: &'a [u64], indices: &'a [u32]) -> crate::Result<CsrView<'a>> {
    CsrView::new(indptr, indices, indptr.len().saturating_sub(1))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, *, report=None))]
fn core_numbers<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let cores =
        long(py, report, |progress| rank::core_numbers::core_numbers(square(indptr, indices)?, progress))?;
    Ok(cores.into_pyarray(py))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(core_numbers, m)?)?;
    Ok(())
}
