//! Bindings of what pictures of graphs need: weighted graphs, layout, communities, neighbourhoods and paths.

use super::arrays::{matrix_out, slice};
use super::door::long;
use ketrag_core::graph::weighted::{undirected, Weighted};
use ketrag_core::graph::{communities as louvain, layout as forces, neighbourhood as near};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;

type Ids<'py> = Bound<'py, PyArray1<u32>>;
type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Given<'py, T> = PyReadonlyArray1<'py, T>;

#[pyfunction]
#[pyo3(signature = (nodes, sources, targets, weights, *, report=None))]
#[allow(clippy::type_complexity)]
fn weighted_graph<'py>(
    py: Python<'py>,
    nodes: usize,
    sources: Given<'py, u32>,
    targets: Given<'py, u32>,
    weights: Given<'py, f64>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<u64>>, Ids<'py>, Floats<'py>)> {
    let (sources, targets) = (slice(&sources, "sources")?, slice(&targets, "targets")?);
    let weights = slice(&weights, "weights")?;
    let built = long(py, report, |progress| undirected(nodes, sources, targets, weights, progress))?;
    Ok((built.indptr.into_pyarray(py), built.indices.into_pyarray(py), built.weights.into_pyarray(py)))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, *, steps=60, theta=1.1, seed=42, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
fn graph_layout<'py>(
    py: Python<'py>,
    indptr: Given<'py, u64>,
    indices: Given<'py, u32>,
    weights: Given<'py, f64>,
    steps: usize,
    theta: f64,
    seed: u64,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
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
fn graph_communities<'py>(
    py: Python<'py>,
    indptr: Given<'py, u64>,
    indices: Given<'py, u32>,
    weights: Given<'py, f64>,
    resolution: f64,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Ids<'py>> {
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
fn graph_neighbourhood<'py>(
    py: Python<'py>,
    indptr: Given<'py, u64>,
    indices: Given<'py, u32>,
    weights: Given<'py, f64>,
    seeds: Given<'py, u32>,
    limit: usize,
    hidden: Given<'py, u8>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Ids<'py>, Floats<'py>, Ids<'py>)> {
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
fn induced_edges<'py>(
    py: Python<'py>,
    indptr: Given<'py, u64>,
    indices: Given<'py, u32>,
    weights: Given<'py, f64>,
    nodes: Given<'py, u32>,
    most: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Ids<'py>, Ids<'py>, Floats<'py>, u64)> {
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
fn shortest_path<'py>(
    py: Python<'py>,
    indptr: Given<'py, u64>,
    indices: Given<'py, u32>,
    weights: Given<'py, f64>,
    start: u32,
    end: u32,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Ids<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = slice(&weights, "weights")?;
    let path = long(py, report, |progress| {
        near::shortest_path(Weighted::new(indptr, indices, weights)?, start, end, progress)
    })?;
    Ok(path.into_pyarray(py))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(weighted_graph, m)?)?;
    m.add_function(wrap_pyfunction!(graph_layout, m)?)?;
    m.add_function(wrap_pyfunction!(graph_communities, m)?)?;
    m.add_function(wrap_pyfunction!(graph_neighbourhood, m)?)?;
    m.add_function(wrap_pyfunction!(induced_edges, m)?)?;
    m.add_function(wrap_pyfunction!(shortest_path, m)?)?;
    Ok(())
}
