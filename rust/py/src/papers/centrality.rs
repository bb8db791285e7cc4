//! Centralities of the nodes of a graph.

use crate::arrays::{Array, Out};
use crate::door::{long, Report};
use ketrag_base::sparse::CsrView;
use ketrag_papers::noderag::centrality;
use pyo3::prelude::*;

/// A square graph.
fn square<'a>(indptr: &'a [u64], indices: &'a [u32]) -> ketrag_base::Result<CsrView<'a>> {
    CsrView::new(indptr, indices, indptr.len().saturating_sub(1))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, *, report=None))]
pub fn core_numbers(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    report: Report<'_, '_>,
) -> PyResult<Out<i64>> {
    long(py, report, |progress| centrality::core_numbers(square(&indptr, &indices)?, progress)).map(Out)
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, pivots, *, threads=0, report=None))]
pub fn betweenness(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    pivots: Array<'_, u32>,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Out<f64>> {
    long(py, report, |progress| {
        centrality::betweenness(square(&indptr, &indices)?, &pivots, threads, progress)
    })
    .map(Out)
}
