//! The citation graph, and the messages passed along its edges.

use crate::arrays::{csr_out, Array, CsrIn, CsrOut, Matrix, Out, StoredRows};
use crate::door::{long, to_python, wrong, Report};
use ketrag_encode::graph_matrix::Matrix as Packed;
use ketrag_papers::cg_rag::candidates::{candidates, Wanted};
use ketrag_papers::cg_rag::citations::{self as graph, Texts};
use ketrag_papers::cg_rag::layer::{Layer, Messages};
use ketrag_papers::cg_rag::messages::{pass, Buffers, Carried, Graph, Settings};
use ketrag_papers::cg_rag::network::Network;
use pyo3::prelude::*;

/// Return (in-neighbours of each text, relevance of each edge, product of the vectors of its ends).
#[pyfunction]
#[pyo3(signature = (first_text, vectors, words, word_count, word_weights, senders, most, *, threads=0, report=None))]
pub fn citation_links(
    py: Python<'_>,
    first_text: Array<'_, u64>,
    vectors: Matrix<'_, f32>,
    words: CsrIn<'_>,
    word_count: usize,
    word_weights: Array<'_, f64>,
    senders: CsrIn<'_>,
    most: usize,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(CsrOut, Out<f64>, Out<f64>)> {
    let made = long(py, report, |progress| {
        let words = words.view(word_count)?;
        let texts = Texts::new(&first_text, vectors.vectors()?, words, &word_weights)?;
        let documents = first_text.len().saturating_sub(1);
        let senders = senders.view(documents)?;
        graph::link(texts, senders, most, threads, progress)
    })?;
    Ok((csr_out(made.edges), Out(made.relevance), Out(made.near)))
}

/// Return the cosine of the ends of each edge, at least 0.
#[pyfunction]
#[pyo3(signature = (edges, vectors, *, threads=0, report=None))]
pub fn edge_alphas(
    py: Python<'_>,
    edges: CsrIn<'_>,
    vectors: Matrix<'_, f32>,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Out<f32>> {
    let made = long(py, report, |progress| {
        let edges = edges.view(vectors.rows())?;
        graph::alphas(edges, &vectors.vectors()?, threads, progress)
    })?;
    Ok(Out(made))
}

/// Return the value of each text after `layers` rounds of messages.
#[pyfunction]
#[pyo3(signature = (edges, kinds, alphas, weights, values, *, share, layers=2, wanted=255, report=None))]
pub fn pass_messages(
    py: Python<'_>,
    edges: CsrIn<'_>,
    kinds: Array<'_, u8>,
    alphas: Array<'_, f32>,
    weights: Array<'_, f64>,
    values: Array<'_, f64>,
    share: f64,
    layers: usize,
    wanted: u8,
    report: Report<'_, '_>,
) -> PyResult<Out<f64>> {
    let mut state = values.to_vec();
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
    long(py, report, |progress| {
        let edges = edges.view(edges.rows())?;
        let carried = Carried::new(Graph::new(edges, &kinds, &alphas)?, wanted)?;
        pass(&carried, &weights, &mut state, &settings, &mut Buffers::default(), progress)?;
        Ok(state)
    })
    .map(Out)
}

/// Texts, their similarity, the indices of those that are ranked, the edges among them, and the index of
/// each edge in the graph.
type CandidatesOut = (Out<u32>, Out<f64>, Out<u32>, CsrOut, Out<u64>);

/// Return the part of the graph relevant to a query.
#[pyfunction]
#[pyo3(signature = (vectors, vector, weights, edges, kinds, *, best, steps, wanted, threads=0))]
pub fn citation_candidates(
    py: Python<'_>,
    vectors: StoredRows<'_>,
    vector: Array<'_, f32>,
    weights: Array<'_, f64>,
    edges: CsrIn<'_>,
    kinds: Array<'_, u8>,
    best: usize,
    steps: usize,
    wanted: u8,
    threads: usize,
) -> PyResult<CandidatesOut> {
    let found = long(py, None, |progress| {
        let vectors = vectors.rows()?;
        let edges = edges.view(vectors.len())?;
        let wanted = Wanted { best, steps, kinds: wanted };
        candidates(&vectors, &vector, &weights, (edges, &kinds), wanted, (threads, progress))
    })?;
    let edges = (Out(found.indptr), Out(found.indices));
    let (texts, near) = (Out(found.texts), Out(found.near));
    Ok((texts, near, Out(found.ranked), edges, Out(found.edges)))
}

/// A matrix of weights and its bias.
type Weights<'py> = (Matrix<'py, f32>, Array<'py, f32>);
type LayerWeights<'py> = (Weights<'py>, Weights<'py>, Weights<'py>, Weights<'py>);

fn packed(given: &Weights<'_>) -> PyResult<Packed> {
    Packed::new(&given.0, &given.1, given.0.rows()).map_err(to_python)
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
    fn weigh(
        &self,
        py: Python<'_>,
        vectors: Matrix<'_, f32>,
        texts: Array<'_, u32>,
        senders: Array<'_, u32>,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Out<f32>> {
        if vectors.columns() != self.0.dimension() {
            let (wanted, dim) = (self.0.dimension(), vectors.columns());
            return Err(wrong(format!("vectors have {dim} columns, the network {wanted} inputs")));
        }
        long(py, report, |progress| self.0.weigh(&vectors, &texts, &senders, threads, progress)).map(Out)
    }

    /// Return the product of `vector` with the layers' output for each of the texts `ranked`, whose vectors
    /// are rows of `h`. `factors` are parallel to the edges, `weights` to the rows.
    #[pyo3(signature = (h, edges, factors, weights, vector, ranked, *, threads=0))]
    fn scores(
        &self,
        py: Python<'_>,
        h: Matrix<'_, f32>,
        edges: CsrIn<'_>,
        factors: Array<'_, f32>,
        weights: Array<'_, f32>,
        vector: Array<'_, f32>,
        ranked: Array<'_, u32>,
        threads: usize,
    ) -> PyResult<Out<f64>> {
        long(py, None, |progress| {
            let messages = Messages::new(edges.view(h.rows())?, &factors, &weights)?;
            self.0.scores(&h, messages, &vector, &ranked, threads, progress)
        })
        .map(Out)
    }
}
