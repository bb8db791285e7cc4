//! Bindings of the concepts, of their graph, and of the chunks that they select.

use super::arrays::{csr_out, matrix, slice, CsrArrays};
use super::door::{long, wrong};
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::concepts::extract;
use ketrag_core::graph::concepts::pairs;
use ketrag_core::graph::concepts::select::choose_chunks;
use ketrag_core::search::concepts::{self as search, ConceptIndex};
use ketrag_core::vector::simd::Level;
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

/// (units, scores, concepts that brought them).
type Units<'py> = (U32s<'py>, Bound<'py, PyArray1<f64>>, U32s<'py>);

/// Return the units that concepts bring in, in order; 2**32 - 1 means several concepts together.
#[pyfunction]
#[pyo3(signature = (vectors, edges_indptr, edges_indices, units_indptr, units_indices, unit_vectors, query, wanted, *, seeds=25, depth=2, order="local"))]
#[allow(clippy::too_many_arguments)]
fn concept_search<'py>(
    py: Python<'py>,
    vectors: PyReadonlyArray2<'py, f32>,
    edges_indptr: PyReadonlyArray1<'py, u64>,
    edges_indices: PyReadonlyArray1<'py, u32>,
    units_indptr: PyReadonlyArray1<'py, u64>,
    units_indices: PyReadonlyArray1<'py, u32>,
    unit_vectors: PyReadonlyArray2<'py, f32>,
    query: PyReadonlyArray1<'py, f32>,
    wanted: usize,
    seeds: usize,
    depth: usize,
    order: &str,
) -> PyResult<Units<'py>> {
    let (values, concepts, dim) = matrix(&vectors, "vectors")?;
    let (unit_values, units, unit_dim) = matrix(&unit_vectors, "unit_vectors")?;
    let edges = (slice(&edges_indptr, "edges_indptr")?, slice(&edges_indices, "edges_indices")?);
    let rows = (slice(&units_indptr, "units_indptr")?, slice(&units_indices, "units_indices")?);
    let query = slice(&query, "query")?;
    let named = || wrong(format!("order is local or turns, not {order:?}"));
    let order = search::Order::by_name(order).ok_or_else(named)?;
    let options = search::Options { seeds, depth, order };
    let found = long(py, None, |progress| {
        let index = ConceptIndex {
            vectors: if concepts == 0 { None } else { Some(Vectors::new(values, dim)?) },
            codes: None,
            edges: CsrView::new(edges.0, edges.1, concepts)?,
            units: CsrView::new(rows.0, rows.1, units)?,
            unit_vectors: Vectors::new(unit_values, unit_dim)?,
            unit_codes: None,
            mask: None,
        };
        index.units.require_sorted()?;
        index.search(query, options, wanted, Level::best(), &mut search::Scratch::default(), progress)
    })?;
    let units: Vec<u32> = found.iter().map(|f| f.unit).collect();
    let scores: Vec<f64> = found.iter().map(|f| f.score).collect();
    let concepts: Vec<u32> = found.iter().map(|f| f.concept).collect();
    Ok((units.into_pyarray(py), scores.into_pyarray(py), concepts.into_pyarray(py)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(concepts, m)?)?;
    m.add_function(wrap_pyfunction!(concept_graph, m)?)?;
    m.add_function(wrap_pyfunction!(concept_search, m)?)?;
    m.add_function(wrap_pyfunction!(select_by_concepts, m)?)
}
