//! Graphs as compressed rows: PageRank, selection of core chunks, transposed rows, and
//! functions for drawing graphs. Also the selection of rows that fit into a token budget.

use crate::arrays::{csr_out, Array, CsrOut, MatrixOut, Out};
use crate::door::{long, quick, wrong, Report};
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::weighted::{undirected, Weighted};
use ketrag_core::graph::{
    communities as louvain, layout as forces, neighbourhood as near, transpose as graph,
};
use ketrag_core::rank::pagerank::{Settings, Until, Walk};
use ketrag_core::rank::{pagerank as ranks, select};
use ketrag_core::search::fill::{fill as taken, FillPolicy};
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights=None, restart=None, *, teleport=0.15, until="tolerance", tolerance=1e-9, steps=0, lazy=false, threads=0, report=None))]
pub fn pagerank(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    weights: Option<Array<'_, f64>>,
    restart: Option<Array<'_, f64>>,
    teleport: f64,
    until: &str,
    tolerance: f64,
    steps: u32,
    lazy: bool,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Out<f64>> {
    let until = match until {
        "tolerance" => Until::Tolerance(tolerance),
        "steps" => Until::Steps(steps),
        "networkx" => Until::Networkx,
        other => return Err(wrong(format!("until must be tolerance, steps or networkx, not {other:?}"))),
    };
    let walk = if lazy { Walk::Lazy } else { Walk::Teleport };
    let settings = Settings { teleport, until, walk, threads };
    long(py, report, |progress| {
        let edges = CsrView::new(&indptr, &indices, indptr.len().saturating_sub(1))?;
        ranks::pagerank(edges, weights.as_deref(), restart.as_deref(), &settings, progress)
    })
    .map(Out)
}

#[pyfunction]
pub fn core_count(py: Python<'_>, n: usize, ratio: f64) -> PyResult<usize> {
    quick(py, || select::core_count(n, ratio))
}

#[pyfunction]
pub fn select_ranked(py: Python<'_>, scores: Array<'_, f64>, count: usize) -> PyResult<Out<u32>> {
    quick(py, || select::select_ranked(&scores, count)).map(Out)
}

#[pyfunction]
pub fn select_uniform(py: Python<'_>, n: usize, count: usize, seed: u64, stage: &str) -> PyResult<Out<u32>> {
    quick(py, || select::select_uniform(n, count, seed, stage)).map(Out)
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, columns, *, report=None))]
pub fn transpose(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    columns: usize,
    report: Report<'_, '_>,
) -> PyResult<CsrOut> {
    long(py, report, |progress| graph::transpose(CsrView::new(&indptr, &indices, columns)?, progress))
        .map(csr_out)
}

#[pyfunction]
pub fn renumber(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    columns: usize,
    kept: Array<'_, u32>,
) -> PyResult<CsrOut> {
    quick(py, || graph::renumber(CsrView::new(&indptr, &indices, columns)?, &kept)).map(csr_out)
}

fn policy_of(name: &str) -> PyResult<FillPolicy> {
    match name {
        "first_overflow_stops" => Ok(FillPolicy::FirstOverflowStops),
        "skip_and_continue" => Ok(FillPolicy::SkipAndContinue),
        other => Err(wrong(format!(
            "fill_policy must be first_overflow_stops or skip_and_continue, not {other:?}"
        ))),
    }
}

/// Return the indices of the rows that fit a budget.
#[pyfunction]
#[pyo3(signature = (costs, budget, *, fill_policy="first_overflow_stops"))]
pub fn fill(py: Python<'_>, costs: Array<'_, u64>, budget: u64, fill_policy: &str) -> PyResult<Out<u64>> {
    let policy = policy_of(fill_policy)?;
    let taken = quick(py, || Ok(taken(costs.len(), budget, policy, |row, _| costs[row])))?;
    Ok(Out(taken.into_iter().map(|(row, _)| row as u64).collect()))
}

#[pyfunction]
#[pyo3(signature = (nodes, sources, targets, weights, *, report=None))]
pub fn weighted_graph(
    py: Python<'_>,
    nodes: usize,
    sources: Array<'_, u32>,
    targets: Array<'_, u32>,
    weights: Array<'_, f64>,
    report: Report<'_, '_>,
) -> PyResult<(Out<u64>, Out<u32>, Out<f64>)> {
    let built = long(py, report, |progress| undirected(nodes, &sources, &targets, &weights, progress))?;
    Ok((Out(built.indptr), Out(built.indices), Out(built.weights)))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, *, steps=60, theta=1.1, seed=42, threads=0, report=None))]
pub fn graph_layout(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    weights: Array<'_, f64>,
    steps: usize,
    theta: f64,
    seed: u64,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<MatrixOut<f64>> {
    let settings = forces::Settings { seed, steps, theta, threads };
    let xy = long(py, report, |progress| {
        forces::layout(Weighted::new(&indptr, &indices, &weights)?, &settings, progress)
    })?;
    let nodes = xy.len() / 2;
    Ok(MatrixOut(xy, [nodes, 2]))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, *, resolution=1.0, report=None))]
pub fn graph_communities(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    weights: Array<'_, f64>,
    resolution: f64,
    report: Report<'_, '_>,
) -> PyResult<Out<u32>> {
    long(py, report, |progress| {
        louvain::communities(Weighted::new(&indptr, &indices, &weights)?, resolution, progress)
    })
    .map(Out)
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, seeds, limit, hidden, *, report=None))]
pub fn graph_neighbourhood(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    weights: Array<'_, f64>,
    seeds: Array<'_, u32>,
    limit: usize,
    hidden: Array<'_, u8>,
    report: Report<'_, '_>,
) -> PyResult<(Out<u32>, Out<f64>, Out<u32>)> {
    let found = long(py, report, |progress| {
        near::neighbourhood(Weighted::new(&indptr, &indices, &weights)?, &seeds, limit, &hidden, progress)
    })?;
    Ok((Out(found.nodes), Out(found.scores), Out(found.parents)))
}

/// Sources, targets and weights of the edges, and how many there are in all.
type Edges = (Out<u32>, Out<u32>, Out<f64>, u64);

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, nodes, most, *, report=None))]
pub fn induced_edges(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    weights: Array<'_, f64>,
    nodes: Array<'_, u32>,
    most: usize,
    report: Report<'_, '_>,
) -> PyResult<Edges> {
    let found = long(py, report, |progress| {
        near::induced(Weighted::new(&indptr, &indices, &weights)?, &nodes, most, progress)
    })?;
    let (sources, targets) = (Out(found.sources), Out(found.targets));
    Ok((sources, targets, Out(found.weights), found.total))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, start, end, *, report=None))]
pub fn shortest_path(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    weights: Array<'_, f64>,
    start: u32,
    end: u32,
    report: Report<'_, '_>,
) -> PyResult<Out<u32>> {
    long(py, report, |progress| {
        near::shortest_path(Weighted::new(&indptr, &indices, &weights)?, start, end, progress)
    })
    .map(Out)
}
