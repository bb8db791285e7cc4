//! Bindings of the concepts, of their graph, and of the chunks that they select.

use super::arrays::{csr_out, matrix, slice, CsrArrays};
use super::door::long;
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::concepts::extract;
use ketrag_core::graph::concepts::pairs;
use ketrag_core::graph::concepts::select::choose_chunks;
use ketrag_core::vector::Vectors;
use ketrag_text::strings::Strings;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

type U32s<'py> = Bound<'py, PyArray1<u32>>;

/// (words that are concepts, the concepts of each chunk).
#[pyfunction]
#[pyo3(signature = (indptr, indices, counts, vocabulary, *, most=50, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
fn concepts<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    counts: PyReadonlyArray1<'py, u32>,
    vocabulary: (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, u64>),
    most: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(U32s<'py>, CsrArrays<'py>)> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let counts = slice(&counts, "counts")?;
    let (blob, offsets) = (slice(&vocabulary.0, "blob")?, slice(&vocabulary.1, "offsets")?);
    let found = long(py, report, |progress| {
        let vocabulary = Strings::new(blob, offsets)?;
        let words = CsrView::new(indptr, indices, vocabulary.len())?;
        extract::concepts(words, counts, vocabulary, most, threads, progress)
    })?;
    Ok((found.words.into_pyarray(py), csr_out(py, found.named)))
}

/// (rows of edges, shared chunks, cosines, weights, the similarity threshold).
type GraphArrays<'py> =
    (CsrArrays<'py>, U32s<'py>, Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f64>>, f64);

#[pyfunction]
#[pyo3(signature = (indptr, indices, vectors, *, theta_co=3, theta_sem=0.65, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
fn concept_graph<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    vectors: PyReadonlyArray2<'py, f32>,
    theta_co: u32,
    theta_sem: f64,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<GraphArrays<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let (values, rows, dim) = matrix(&vectors, "vectors")?;
    let made = long(py, report, |progress| {
        let chunks = CsrView::new(indptr, indices, rows)?;
        let bounds = (theta_co, pairs::MOST_EDGES);
        pairs::concept_graph(chunks, &Vectors::new(values, dim)?, bounds, theta_sem, threads, progress)
    })?;
    Ok((
        csr_out(py, made.edges),
        made.shared.into_pyarray(py),
        made.cosines.into_pyarray(py),
        made.weights.into_pyarray(py),
        made.threshold,
    ))
}

/// Return the chunks selected by concepts with these ranks, best first.
#[pyfunction]
#[pyo3(signature = (indptr, indices, ranks, count, *, report=None))]
fn select_by_concepts<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    ranks: PyReadonlyArray1<'py, f64>,
    count: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<U32s<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let ranks = slice(&ranks, "ranks")?;
    let chosen = long(py, report, |progress| {
        choose_chunks(CsrView::new(indptr, indices, ranks.len())?, ranks, count, progress)
    })?;
    Ok(chosen.into_pyarray(py))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(concepts, m)?)?;
    m.add_function(wrap_pyfunction!(concept_graph, m)?)?;
    m.add_function(wrap_pyfunction!(select_by_concepts, m)?)
}
