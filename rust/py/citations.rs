//! Faces of the citation graph: its edges, and the messages that are passed along them.

use super::arrays::{csr_out, matrix, matrix_out, slice, CsrArrays};
use super::door::{long, wrong};
use crate::graph::citations::{self as graph, Texts};
use crate::rank::messages::{pass, Aggregate, Buffers, Carried, Graph, Settings};
use crate::search::transformer::{self, Layer, Linear};
use crate::search::vectors::Vectors;
use crate::sparse::CsrView;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

type F64s<'py> = Bound<'py, PyArray1<f64>>;
type F32s<'py> = Bound<'py, PyArray1<f32>>;

/// Rows of compressed ids as they come from Python.
type Rows<'py> = (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>);

/// (the texts that send to each text, the relevance of each edge, the product of its vectors).
#[pyfunction]
#[pyo3(signature = (first_text, vectors, words, word_count, word_weights, senders, most, *, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
fn citation_links<'py>(
    py: Python<'py>,
    first_text: PyReadonlyArray1<'py, u64>,
    vectors: PyReadonlyArray2<'py, f32>,
    words: Rows<'py>,
    word_count: usize,
    word_weights: PyReadonlyArray1<'py, f64>,
    senders: Rows<'py>,
    most: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(CsrArrays<'py>, F64s<'py>, F64s<'py>)> {
    let first_text = slice(&first_text, "first_text")?;
    let (values, _, dim) = matrix(&vectors, "vectors")?;
    let word_rows = (slice(&words.0, "words")?, slice(&words.1, "words")?);
    let weights = slice(&word_weights, "word_weights")?;
    let sender_rows = (slice(&senders.0, "senders")?, slice(&senders.1, "senders")?);
    let made = long(py, report, |progress| {
        let words = CsrView::new(word_rows.0, word_rows.1, word_count)?;
        let texts = Texts::new(first_text, Vectors::new(values, dim)?, words, weights)?;
        let documents = first_text.len().saturating_sub(1);
        let senders = CsrView::new(sender_rows.0, sender_rows.1, documents)?;
        graph::link(texts, senders, most, threads, progress)
    })?;
    Ok((csr_out(py, made.edges), made.relevance.into_pyarray(py), made.near.into_pyarray(py)))
}

/// The cosine of the ends of each edge, from 0 up.
#[pyfunction]
#[pyo3(signature = (edges, vectors, *, threads=0, report=None))]
fn edge_alphas<'py>(
    py: Python<'py>,
    edges: Rows<'py>,
    vectors: PyReadonlyArray2<'py, f32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<F32s<'py>> {
    let (values, rows, dim) = matrix(&vectors, "vectors")?;
    let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
    let made = long(py, report, |progress| {
        let edges = CsrView::new(indptr, indices, rows)?;
        graph::alphas(edges, &Vectors::new(values, dim)?, threads, progress)
    })?;
    Ok(made.into_pyarray(py))
}

/// What each text has after its neighbours' messages of `layers` rounds.
#[pyfunction]
#[pyo3(signature = (edges, kinds, alphas, weights, values, *, layers=2, wanted=255, share=None, residual=0.0, report=None))]
#[allow(clippy::too_many_arguments)]
fn pass_messages<'py>(
    py: Python<'py>,
    edges: Rows<'py>,
    kinds: PyReadonlyArray1<'py, u8>,
    alphas: PyReadonlyArray1<'py, f32>,
    weights: PyReadonlyArray1<'py, f64>,
    values: PyReadonlyArray1<'py, f64>,
    layers: usize,
    wanted: u8,
    share: Option<f64>,
    residual: f64,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<F64s<'py>> {
    let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
    let (kinds, alphas) = (slice(&kinds, "kinds")?, slice(&alphas, "alphas")?);
    let weights = slice(&weights, "weights")?;
    let mut state = slice(&values, "values")?.to_vec();
    for (name, bad) in [
        ("alphas", alphas.iter().position(|x| !x.is_finite())),
        ("weights", weights.iter().position(|x| !x.is_finite())),
        ("values", state.iter().position(|x| !x.is_finite())),
    ] {
        if let Some(at) = bad {
            return Err(wrong(format!("{name}[{at}] is no finite number")));
        }
    }
    let aggregate = share.map_or(Aggregate::Mean, Aggregate::Added);
    let settings = Settings { aggregate, layers, residual };
    let state = long(py, report, move |progress| {
        let edges = CsrView::new(indptr, indices, indptr.len().saturating_sub(1))?;
        let carried = Carried::new(Graph::new(edges, kinds, alphas)?, wanted)?;
        pass(&carried, weights, &mut state, &settings, &mut Buffers::default(), progress)?;
        Ok(state)
    })?;
    Ok(state.into_pyarray(py))
}

/// A matrix of weights and its bias.
type Matrix<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, f32>);

fn linear<'a>(given: &'a Matrix<'_>) -> PyResult<(&'a [f32], &'a [f32], usize)> {
    let (values, inputs, _) = matrix(&given.0, "weights")?;
    Ok((values, slice(&given.1, "bias")?, inputs))
}

/// One layer of a graph transformer: (own, value, query, key), each with its bias.
#[pyfunction]
#[pyo3(signature = (h, edges, factors, weights, matrices, *, heads, relu, threads=0))]
#[allow(clippy::too_many_arguments)]
fn graph_layer<'py>(
    py: Python<'py>,
    h: PyReadonlyArray2<'py, f32>,
    edges: Rows<'py>,
    factors: PyReadonlyArray1<'py, f32>,
    weights: PyReadonlyArray1<'py, f32>,
    matrices: (Matrix<'py>, Matrix<'py>, Matrix<'py>, Matrix<'py>),
    heads: usize,
    relu: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (values, rows, _) = matrix(&h, "h")?;
    let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
    let (factors, weights) = (slice(&factors, "factors")?, slice(&weights, "weights")?);
    let given = [linear(&matrices.0)?, linear(&matrices.1)?, linear(&matrices.2)?, linear(&matrices.3)?];
    let outputs = given[0].1.len();
    let out = long(py, None, |progress| {
        let edges = CsrView::new(indptr, indices, rows)?;
        let [own, value, query, key] = given.map(|(w, b, inputs)| Linear::new(w, b, inputs));
        let layer = Layer { own: own?, value: value?, query: query?, key: key?, heads };
        transformer::layer(values, edges, (factors, weights), &layer, (relu, threads), progress)
    })?;
    matrix_out(py, out, [rows, outputs])
}

/// What a trained network says of each edge, from 0 to 1.
#[pyfunction]
#[pyo3(signature = (edges, vectors, matrices, *, threads=0, report=None))]
fn weigh_edges<'py>(
    py: Python<'py>,
    edges: Rows<'py>,
    vectors: PyReadonlyArray2<'py, f32>,
    matrices: (Matrix<'py>, Matrix<'py>, Matrix<'py>),
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<F32s<'py>> {
    let (values, rows, _) = matrix(&vectors, "vectors")?;
    let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
    let given = [linear(&matrices.0)?, linear(&matrices.1)?, linear(&matrices.2)?];
    let made = long(py, report, |progress| {
        let edges = CsrView::new(indptr, indices, rows)?;
        let [first, second, third] = given.map(|(w, b, inputs)| Linear::new(w, b, inputs));
        transformer::weigh(edges, values, [first?, second?, third?], threads, progress)
    })?;
    Ok(made.into_pyarray(py))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(citation_links, m)?)?;
    m.add_function(wrap_pyfunction!(graph_layer, m)?)?;
    m.add_function(wrap_pyfunction!(weigh_edges, m)?)?;
    m.add_function(wrap_pyfunction!(edge_alphas, m)?)?;
    m.add_function(wrap_pyfunction!(pass_messages, m)?)
}
