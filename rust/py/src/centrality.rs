//! Bindings of core numbers, betweenness and the short walk from entry points.

use super::arrays::slice;
use super::door::{long, wrong};
use ketrag_base::sparse::CsrView;
use ketrag_core::rank::pagerank::Walk;
use ketrag_core::rank::spread::{Settings, Spread};
use ketrag_core::rank::{betweenness as between, core_numbers as cores};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// A square graph.
fn square<'a>(indptr: &'a [u64], indices: &'a [u32]) -> ketrag_base::Result<CsrView<'a>> {
    CsrView::new(indptr, indices, indptr.len().saturating_sub(1))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, *, report=None))]
fn core_numbers<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let cores = long(py, report, |progress| cores::core_numbers(square(indptr, indices)?, progress))?;
    Ok(cores.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, pivots, *, threads=0, report=None))]
fn betweenness<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    pivots: PyReadonlyArray1<'py, u32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let pivots = slice(&pivots, "pivots")?;
    let sums = long(py, report, |progress| {
        between::betweenness(square(indptr, indices)?, pivots, threads, progress)
    })?;
    Ok(sums.into_pyarray(py))
}

type Ranked<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights, entries, entry_weights, *, teleport=0.5, steps=2, lazy=false, report=None))]
#[allow(clippy::too_many_arguments)]
fn spread<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    entries: PyReadonlyArray1<'py, u32>,
    entry_weights: PyReadonlyArray1<'py, f64>,
    teleport: f64,
    steps: u32,
    lazy: bool,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Ranked<'py>> {
    let walk = if lazy { Walk::Lazy } else { Walk::Teleport };
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let weights = weights.as_ref().map(|w| slice(w, "weights")).transpose()?;
    let (ids, shares) = (slice(&entries, "entries")?, slice(&entry_weights, "entry_weights")?);
    if ids.len() != shares.len() {
        return Err(wrong(format!("there are {} entry_weights for {} entries", shares.len(), ids.len())));
    }
    if let Some(weights) = weights.filter(|w| w.len() != indices.len()) {
        return Err(wrong(format!("there are {} weights for {} edges", weights.len(), indices.len())));
    }
    let entries: Vec<(u32, f64)> = ids.iter().copied().zip(shares.iter().copied()).collect();
    let settings = Settings { teleport, steps, walk };
    let ranked = long(py, report, |progress| {
        let (edges, mut spread) = (square(indptr, indices)?, Spread::default());
        match weights {
            Some(weights) => spread.run(edges, |place| weights[place], &entries, &settings, progress)?,
            None => spread.run(edges, |_| 1.0, &entries, &settings, progress)?,
        }
        Ok(spread.ranked())
    })?;
    let ids: Vec<i64> = ranked.iter().map(|s| i64::from(s.id)).collect();
    let scores: Vec<f64> = ranked.iter().map(|s| s.score).collect();
    Ok((ids.into_pyarray(py), scores.into_pyarray(py)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(core_numbers, m)?)?;
    m.add_function(wrap_pyfunction!(betweenness, m)?)?;
    m.add_function(wrap_pyfunction!(spread, m)?)?;
    Ok(())
}
