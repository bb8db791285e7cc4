//! Graphs as compressed rows: PageRank and centrality, selection of core chunks, transposed rows, and
//! functions for drawing graphs. Also the selection of rows that fit into a token budget.

use crate::arrays::{csr_out, matrix_out, slice, Array, CsrArrays, MatrixOut, Out};
use crate::door::{long, quick, wrong};
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::weighted::{undirected, Weighted};
use ketrag_core::graph::{
    communities as louvain, layout as forces, neighbourhood as near, transpose as graph,
};
use ketrag_core::rank::pagerank::{Settings, Until, Walk};
use ketrag_core::rank::{betweenness as between, core_numbers as cores, pagerank as ranks, select};
use ketrag_core::search::fill::{fill as taken, FillPolicy};
use numpy::IntoPyArray;
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights=None, restart=None, *, teleport=0.15, until="tolerance", tolerance=1e-9, steps=0, lazy=false, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn pagerank<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    weights: Option<Array<'py, f64>>,
    restart: Option<Array<'py, f64>>,
    teleport: f64,
    until: &str,
    tolerance: f64,
    steps: u32,
    lazy: bool,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, f64>> {
    let until = match until {
        "tolerance" => Until::Tolerance(tolerance),
        "steps" => Until::Steps(steps),
        "networkx" => Until::Networkx,
        other => return Err(wrong(format!("until is tolerance, steps or networkx, not {other:?}"))),
    };
    let walk = if lazy { Walk::Lazy } else { Walk::Teleport };
    let settings = Settings { teleport, until, walk, threads };
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = weights.as_ref().map(|w| slice(w, "weights")).transpose()?;
    let restart = restart.as_ref().map(|r| slice(r, "restart")).transpose()?;
    let result = long(py, report, |progress| {
        let edges = CsrView::new(indptr, indices, indptr.len().saturating_sub(1))?;
        ranks::pagerank(edges, weights, restart, &settings, progress)
    })?;
    Ok(result.into_pyarray(py))
}

#[pyfunction]
pub fn core_count(py: Python<'_>, n: usize, ratio: f64) -> PyResult<usize> {
    quick(py, || select::core_count(n, ratio))
}

#[pyfunction]
pub fn select_ranked<'py>(py: Python<'py>, scores: Array<'py, f64>, count: usize) -> PyResult<Out<'py, u32>> {
    let scores = slice(&scores, "scores")?;
    Ok(quick(py, || select::select_ranked(scores, count))?.into_pyarray(py))
}

#[pyfunction]
pub fn select_uniform<'py>(
    py: Python<'py>,
    n: usize,
    count: usize,
    seed: u64,
    stage: &str,
) -> PyResult<Out<'py, u32>> {
    Ok(quick(py, || select::select_uniform(n, count, seed, stage))?.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, columns, *, threads=0, report=None))]
pub fn transpose<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    columns: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<CsrArrays<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let turned = long(py, report, |progress| {
        graph::transpose(CsrView::new(indptr, indices, columns)?, threads, progress)
    })?;
    Ok(csr_out(py, turned))
}

#[pyfunction]
pub fn renumber<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    columns: usize,
    kept: Array<'py, u32>,
) -> PyResult<CsrArrays<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let kept = slice(&kept, "kept")?;
    let rows = quick(py, || graph::renumber(CsrView::new(indptr, indices, columns)?, kept))?;
    Ok(csr_out(py, rows))
}

fn policy_of(name: &str) -> PyResult<FillPolicy> {
    match name {
        "first_overflow_stops" => Ok(FillPolicy::FirstOverflowStops),
        "skip_and_continue" => Ok(FillPolicy::SkipAndContinue),
        other => Err(wrong(format!("unknown fill_policy {other:?}"))),
    }
}

/// Return the indices of the rows that fit a budget.
#[pyfunction]
#[pyo3(signature = (costs, budget, *, fill_policy="first_overflow_stops"))]
pub fn fill<'py>(
    py: Python<'py>,
    costs: Array<'py, u64>,
    budget: u64,
    fill_policy: &str,
) -> PyResult<Out<'py, u64>> {
    let (costs, policy) = (slice(&costs, "costs")?, policy_of(fill_policy)?);
    let taken = quick(py, || Ok(taken(costs.len(), budget, policy, |row, _| costs[row])))?;
    Ok(taken.into_iter().map(|(row, _)| row as u64).collect::<Vec<_>>().into_pyarray(py))
}

/// A square graph.
fn square<'a>(indptr: &'a [u64], indices: &'a [u32]) -> ketrag_base::Result<CsrView<'a>> {
    CsrView::new(indptr, indices, indptr.len().saturating_sub(1))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, *, report=None))]
pub fn core_numbers<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, i64>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let cores = long(py, report, |progress| cores::core_numbers(square(indptr, indices)?, progress))?;
    Ok(cores.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, pivots, *, threads=0, report=None))]
pub fn betweenness<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    pivots: Array<'py, u32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, f64>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let pivots = slice(&pivots, "pivots")?;
    let sums = long(py, report, |progress| {
        between::betweenness(square(indptr, indices)?, pivots, threads, progress)
    })?;
    Ok(sums.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (nodes, sources, targets, weights, *, report=None))]
#[allow(clippy::type_complexity)]
pub fn weighted_graph<'py>(
    py: Python<'py>,
    nodes: usize,
    sources: Array<'py, u32>,
    targets: Array<'py, u32>,
    weights: Array<'py, f64>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Out<'py, u64>, Out<'py, u32>, Out<'py, f64>)> {
    let (sources, targets) = (slice(&sources, "sources")?, slice(&targets, "targets")?);
    let weights = slice(&weights, "weights")?;
    let built = long(py, report, |progress| undirected(nodes, sources, targets, weights, progress))?;
    Ok((built.indptr.into_pyarray(py), built.indices.into_pyarray(py), built.weights.into_pyarray(py)))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, *, steps=60, theta=1.1, seed=42, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn graph_layout<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    weights: Array<'py, f64>,
    steps: usize,
    theta: f64,
    seed: u64,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<MatrixOut<'py, f64>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = slice(&weights, "weights")?;
    let settings = forces::Settings { seed, steps, theta, threads };
    let xy = long(py, report, |progress| {
        forces::layout(Weighted::new(indptr, indices, weights)?, &settings, progress)
    })?;
    let shape = [xy.len() / 2, 2];
    matrix_out(py, xy, shape)
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, *, resolution=1.0, report=None))]
pub fn graph_communities<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    weights: Array<'py, f64>,
    resolution: f64,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, u32>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = slice(&weights, "weights")?;
    let found = long(py, report, |progress| {
        louvain::communities(Weighted::new(indptr, indices, weights)?, resolution, progress)
    })?;
    Ok(found.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, seeds, limit, hidden, *, report=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub fn graph_neighbourhood<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    weights: Array<'py, f64>,
    seeds: Array<'py, u32>,
    limit: usize,
    hidden: Array<'py, u8>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Out<'py, u32>, Out<'py, f64>, Out<'py, u32>)> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = slice(&weights, "weights")?;
    let (seeds, hidden) = (slice(&seeds, "seeds")?, slice(&hidden, "hidden")?);
    let found = long(py, report, |progress| {
        near::neighbourhood(Weighted::new(indptr, indices, weights)?, seeds, limit, hidden, progress)
    })?;
    Ok((found.nodes.into_pyarray(py), found.scores.into_pyarray(py), found.parents.into_pyarray(py)))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, nodes, most, *, report=None))]
#[allow(clippy::type_complexity)]
pub fn induced_edges<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    weights: Array<'py, f64>,
    nodes: Array<'py, u32>,
    most: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Out<'py, u32>, Out<'py, u32>, Out<'py, f64>, u64)> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let (weights, nodes) = (slice(&weights, "weights")?, slice(&nodes, "nodes")?);
    let found = long(py, report, |progress| {
        near::induced(Weighted::new(indptr, indices, weights)?, nodes, most, progress)
    })?;
    let (sources, targets) = (found.sources.into_pyarray(py), found.targets.into_pyarray(py));
    Ok((sources, targets, found.weights.into_pyarray(py), found.total))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, start, end, *, report=None))]
pub fn shortest_path<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    weights: Array<'py, f64>,
    start: u32,
    end: u32,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, u32>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = slice(&weights, "weights")?;
    let path = long(py, report, |progress| {
        near::shortest_path(Weighted::new(indptr, indices, weights)?, start, end, progress)
    })?;
    Ok(path.into_pyarray(py))
}
