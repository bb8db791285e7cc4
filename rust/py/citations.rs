//! Faces of the citation graph: its edges, and the messages that are passed along them.

use super::arrays::{csr_out, matrix, slice, CsrArrays};
use super::door::{long, wrong};
use crate::graph::citations::{self as graph, Texts};
use crate::rank::messages::{pass, Aggregate, Buffers, Carried, Graph, Settings};
use crate::search::vectors::Vectors;
use crate::sparse::CsrView;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(citation_links, m)?)?;
    m.add_function(wrap_pyfunction!(edge_alphas, m)?)?;
    m.add_function(wrap_pyfunction!(pass_messages, m)?)
}
