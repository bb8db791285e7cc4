//! Bindings of the citation graph: its edges, and the messages passed along them.

use super::arrays::{csr_out, matrix, slice, Array, CsrArrays, CsrIn, Matrix, Out, StoredRows};
use super::door::{long, to_python, wrong};
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::citations::{self as graph, Texts};
use ketrag_core::rank::messages::{pass, Buffers, Carried, Graph, Settings};
use ketrag_core::search::candidates::{candidates, Wanted};
use ketrag_core::vector::Vectors;
use ketrag_encode::graph_layer::{Layer, Messages};
use ketrag_encode::graph_matrix::Matrix as Packed;
use ketrag_encode::graph_network::Network;
use numpy::IntoPyArray;
use pyo3::prelude::*;

/// Return (in-neighbours of each text, relevance of each edge, product of the vectors of its ends).
#[pyfunction]
#[pyo3(signature = (first_text, vectors, words, word_count, word_weights, senders, most, *, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn citation_links<'py>(
    py: Python<'py>,
    first_text: Array<'py, u64>,
    vectors: Matrix<'py, f32>,
    words: CsrIn<'py>,
    word_count: usize,
    word_weights: Array<'py, f64>,
    senders: CsrIn<'py>,
    most: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(CsrArrays<'py>, Out<'py, f64>, Out<'py, f64>)> {
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

/// Return the cosine of the ends of each edge, at least 0.
#[pyfunction]
#[pyo3(signature = (edges, vectors, *, threads=0, report=None))]
pub fn edge_alphas<'py>(
    py: Python<'py>,
    edges: CsrIn<'py>,
    vectors: Matrix<'py, f32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, f32>> {
    let (values, rows, dim) = matrix(&vectors, "vectors")?;
    let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
    let made = long(py, report, |progress| {
        let edges = CsrView::new(indptr, indices, rows)?;
        graph::alphas(edges, &Vectors::new(values, dim)?, threads, progress)
    })?;
    Ok(made.into_pyarray(py))
}

/// Return the value of each text after `layers` rounds of messages.
#[pyfunction]
#[pyo3(signature = (edges, kinds, alphas, weights, values, *, share, layers=2, wanted=255, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn pass_messages<'py>(
    py: Python<'py>,
    edges: CsrIn<'py>,
    kinds: Array<'py, u8>,
    alphas: Array<'py, f32>,
    weights: Array<'py, f64>,
    values: Array<'py, f64>,
    share: f64,
    layers: usize,
    wanted: u8,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, f64>> {
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
            return Err(wrong(format!("{name}[{at}] is not a finite number")));
        }
    }
    let settings = Settings { share, layers };
    let state = long(py, report, move |progress| {
        let edges = CsrView::new(indptr, indices, indptr.len().saturating_sub(1))?;
        let carried = Carried::new(Graph::new(edges, kinds, alphas)?, wanted)?;
        pass(&carried, weights, &mut state, &settings, &mut Buffers::default(), progress)?;
        Ok(state)
    })?;
    Ok(state.into_pyarray(py))
}

/// Return the part of the graph relevant to a query: (texts, their similarity, the indices of those that are
/// ranked, the edges among them, the index of each edge in the graph).
#[pyfunction]
#[pyo3(signature = (vectors, vector, weights, edges, kinds, *, best, steps, wanted, threads=0))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub fn citation_candidates<'py>(
    py: Python<'py>,
    vectors: StoredRows<'py>,
    vector: Array<'py, f32>,
    weights: Array<'py, f64>,
    edges: CsrIn<'py>,
    kinds: Array<'py, u8>,
    best: usize,
    steps: usize,
    wanted: u8,
    threads: usize,
) -> PyResult<(Out<'py, u32>, Out<'py, f64>, Out<'py, u32>, CsrArrays<'py>, Out<'py, u64>)> {
    let slices = vectors.slices()?;
    let (vector, weights) = (slice(&vector, "vector")?, slice(&weights, "weights")?);
    let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
    let kinds = slice(&kinds, "kinds")?;
    let found = long(py, None, |progress| {
        let vectors = slices.rows()?;
        let edges = CsrView::new(indptr, indices, vectors.len())?;
        let wanted = Wanted { best, steps, kinds: wanted };
        candidates(&vectors, vector, weights, (edges, kinds), wanted, (threads, progress))
    })?;
    let edges = (found.indptr.into_pyarray(py), found.indices.into_pyarray(py));
    let (texts, near) = (found.texts.into_pyarray(py), found.near.into_pyarray(py));
    Ok((texts, near, found.ranked.into_pyarray(py), edges, found.edges.into_pyarray(py)))
}

/// A matrix of weights and its bias.
type Weights<'py> = (Matrix<'py, f32>, Array<'py, f32>);
type LayerWeights<'py> = (Weights<'py>, Weights<'py>, Weights<'py>, Weights<'py>);

fn packed(given: &Weights<'_>) -> PyResult<Packed> {
    let (values, inputs, _) = matrix(&given.0, "weights")?;
    Packed::new(values, slice(&given.1, "bias")?, inputs).map_err(to_python)
}

fn packed_layer(given: &LayerWeights<'_>, heads: usize) -> PyResult<Layer> {
    let (own, value, query, key) = given;
    Layer::new([packed(own)?, packed(value)?, packed(query)?, packed(key)?], heads).map_err(to_python)
}

/// A trained LeSeGR model with its weights packed: edge weights, and scores of texts.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct GraphNetwork(Network);

#[pymethods]
impl GraphNetwork {
    /// `weigh` are the three matrices that weigh edges, `layers` (own, value, query, key) of each layer.
    #[new]
    #[pyo3(signature = (weigh, layers, *, heads))]
    fn new(
        weigh: (Weights<'_>, Weights<'_>, Weights<'_>),
        layers: Vec<LayerWeights<'_>>,
        heads: usize,
    ) -> PyResult<Self> {
        let weigh = [packed(&weigh.0)?, packed(&weigh.1)?, packed(&weigh.2)?];
        let layers = layers.iter().map(|layer| packed_layer(layer, heads)).collect::<PyResult<Vec<_>>>()?;
        Network::new(weigh, layers).map(Self).map_err(to_python)
    }

    /// Return a number from 0 to 1 for each edge from `senders` to `texts`, two parallel lists.
    #[pyo3(signature = (vectors, texts, senders, *, threads=0, report=None))]
    fn weigh<'py>(
        &self,
        py: Python<'py>,
        vectors: Matrix<'py, f32>,
        texts: Array<'py, u32>,
        senders: Array<'py, u32>,
        threads: usize,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Out<'py, f32>> {
        let (values, _, dim) = matrix(&vectors, "vectors")?;
        if dim != self.0.dimension() {
            return Err(wrong(format!(
                "the network of {} inputs does not fit {dim} values",
                self.0.dimension()
            )));
        }
        let (texts, senders) = (slice(&texts, "texts")?, slice(&senders, "senders")?);
        let made = long(py, report, |progress| self.0.weigh(values, texts, senders, threads, progress))?;
        Ok(made.into_pyarray(py))
    }

    /// Return the product of `vector` with the layers' output for each of the texts `ranked`, whose vectors
    /// are rows of `h`. `factors` are parallel to the edges, `weights` to the rows.
    #[pyo3(signature = (h, edges, factors, weights, vector, ranked, *, threads=0))]
    #[allow(clippy::too_many_arguments)]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        h: Matrix<'py, f32>,
        edges: CsrIn<'py>,
        factors: Array<'py, f32>,
        weights: Array<'py, f32>,
        vector: Array<'py, f32>,
        ranked: Array<'py, u32>,
        threads: usize,
    ) -> PyResult<Out<'py, f64>> {
        let (values, rows, _) = matrix(&h, "h")?;
        let (indptr, indices) = (slice(&edges.0, "edges")?, slice(&edges.1, "edges")?);
        let (factors, weights) = (slice(&factors, "factors")?, slice(&weights, "weights")?);
        let (vector, ranked) = (slice(&vector, "vector")?, slice(&ranked, "ranked")?);
        let made = long(py, None, |progress| {
            let messages = Messages::new(CsrView::new(indptr, indices, rows)?, factors, weights)?;
            self.0.scores(values, messages, vector, ranked, threads, progress)
        })?;
        Ok(made.into_pyarray(py))
    }
}
