//! Bindings of rankings, of transposed rows and of the printed context.

use super::arrays::{csr_out, slice, CsrArrays};
use super::door::{long, quick, wrong};
use ketrag_base::error::{Error, Result};
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::transpose as graph;
use ketrag_core::rank::pagerank::{self as ranks, Settings, Until, Walk};
use ketrag_core::rank::select;
use ketrag_core::search::fill::{fill as taken, split_budget as split, FillPolicy, OversizePolicy};
use ketrag_core::search::render::{Renderer, Style, Units};
use ketrag_text::bpe::Encoding;
use ketrag_text::strings::StringsBuf;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

type U32s<'py> = Bound<'py, PyArray1<u32>>;
type U64s<'py> = Bound<'py, PyArray1<u64>>;

#[pyfunction]
#[pyo3(signature = (indptr, indices, weights=None, restart=None, *, teleport=0.15, until="tolerance", tolerance=1e-9, steps=0, lazy=false, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
fn pagerank<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    restart: Option<PyReadonlyArray1<'py, f64>>,
    teleport: f64,
    until: &str,
    tolerance: f64,
    steps: u32,
    lazy: bool,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
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
fn core_count(py: Python<'_>, n: usize, ratio: f64) -> PyResult<usize> {
    quick(py, || select::core_count(n, ratio))
}

#[pyfunction]
fn select_ranked<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray1<'py, f64>,
    count: usize,
) -> PyResult<U32s<'py>> {
    let scores = slice(&scores, "scores")?;
    Ok(quick(py, || select::select_ranked(scores, count))?.into_pyarray(py))
}

#[pyfunction]
fn select_uniform<'py>(
    py: Python<'py>,
    n: usize,
    count: usize,
    seed: u64,
    stage: &str,
) -> PyResult<U32s<'py>> {
    Ok(quick(py, || select::select_uniform(n, count, seed, stage))?.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, columns, *, threads=0, report=None))]
fn transpose<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
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
fn renumber<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
    columns: usize,
    kept: PyReadonlyArray1<'py, u32>,
) -> PyResult<CsrArrays<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let kept = slice(&kept, "kept")?;
    let rows = quick(py, || graph::renumber(CsrView::new(indptr, indices, columns)?, kept))?;
    Ok(csr_out(py, rows))
}

#[pyfunction]
fn split_budget(py: Python<'_>, budget: u64, share: f64) -> PyResult<(u64, u64)> {
    quick(py, || split(budget, share))
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
fn fill<'py>(
    py: Python<'py>,
    costs: PyReadonlyArray1<'py, u64>,
    budget: u64,
    fill_policy: &str,
) -> PyResult<U64s<'py>> {
    let (costs, policy) = (slice(&costs, "costs")?, policy_of(fill_policy)?);
    let taken = quick(py, || Ok(taken(costs.len(), budget, policy, |row, _| costs[row])))?;
    Ok(taken.into_iter().map(|(row, _)| row as u64).collect::<Vec<_>>().into_pyarray(py))
}

/// (context, tokens, units, row tokens, starts, ends).
type ContextArrays<'py> = (String, u64, U32s<'py>, U64s<'py>, U64s<'py>, U64s<'py>);

#[pyfunction]
#[pyo3(signature = (candidates, blob, offsets, n_tokens, budget, *, titles=None, style="cited", fill_policy="first_overflow_stops", oversize_policy="truncate", encoding="cl100k_base"))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn render<'py>(
    py: Python<'py>,
    candidates: PyReadonlyArray1<'py, u32>,
    blob: PyReadonlyArray1<'py, u8>,
    offsets: PyReadonlyArray1<'py, u64>,
    n_tokens: PyReadonlyArray1<'py, u32>,
    budget: u64,
    titles: Option<(PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>)>,
    style: &str,
    fill_policy: &str,
    oversize_policy: &str,
    encoding: &str,
) -> PyResult<ContextArrays<'py>> {
    let style = match style {
        "cited" => Style::Cited,
        "ket" => Style::Ket,
        "published" => Style::Published,
        other => return Err(wrong(format!("style is cited, ket or published, not {other:?}"))),
    };
    let policy = policy_of(fill_policy)?;
    let oversize = match oversize_policy {
        "truncate" => OversizePolicy::Truncate,
        "drop" => OversizePolicy::Drop,
        other => return Err(wrong(format!("oversize_policy is truncate or drop, not {other:?}"))),
    };
    let candidates = slice(&candidates, "candidates")?;
    let texts = Packed { blob: slice(&blob, "blob")?, offsets: slice(&offsets, "offsets")? };
    let n_tokens = slice(&n_tokens, "n_tokens")?;
    let titles = match &titles {
        None => None,
        Some((blob, offsets, of)) => {
            let (blob, offsets) = (slice(blob, "title blob")?, slice(offsets, "title offsets")?);
            Some((Packed { blob, offsets }, slice(of, "title_of")?))
        }
    };
    let mut context = quick(py, || {
        let encoding = Encoding::by_name(encoding)?;
        let reach = match (policy, style) {
            (FillPolicy::FirstOverflowStops, Style::Cited | Style::Ket) => Some(budget),
            _ => None,
        };
        let needed = Needed::take(candidates, &texts, titles.as_ref(), n_tokens, reach)?;
        let titles = needed.titles.view();
        let titles = (titles, &needed.places[..]);
        let units = Units::new(needed.texts.view(), Some((titles.0, titles.1.into())), &needed.tokens)?;
        Renderer::new(encoding, style).render(&units, &needed.places, budget, policy, oversize)
    })?;
    for row in &mut context.rows {
        row.unit = candidates[row.unit as usize];
    }
    let column = |of: fn(&ketrag_core::search::render::Row) -> u64| {
        context.rows.iter().map(of).collect::<Vec<u64>>().into_pyarray(py)
    };
    let units: Vec<u32> = context.rows.iter().map(|r| r.unit).collect();
    let tokens = column(|r| r.tokens);
    let (starts, ends) = (column(|r| r.start as u64), column(|r| r.end as u64));
    Ok((context.text, context.tokens, units.into_pyarray(py), tokens, starts, ends))
}

/// Strings in one buffer, checked one by one: checking all of them would cost more than printing some.
struct Packed<'a> {
    blob: &'a [u8],
    offsets: &'a [u64],
}

impl<'a> Packed<'a> {
    fn get(&self, i: usize, name: &str) -> Result<&'a str> {
        let range = self.offsets.get(i).zip(self.offsets.get(i + 1));
        let bytes = range.and_then(|(&a, &b)| self.blob.get(a as usize..b as usize));
        let bytes = bytes.ok_or_else(|| Error::input(format!("{name} {i} does not exist")))?;
        std::str::from_utf8(bytes).map_err(|_| Error::input(format!("{name} {i} is not UTF-8")))
    }
}

/// The candidates that may be printed: row `i` is the `i`-th of them.
#[derive(Default)]
struct Needed {
    texts: StringsBuf,
    titles: StringsBuf,
    tokens: Vec<u32>,
    places: Vec<u32>,
}

impl Needed {
    /// Take candidates up to the first at which the texts' tokens exceed `reach`, if given.
    fn take(
        candidates: &[u32],
        texts: &Packed<'_>,
        titles: Option<&(Packed<'_>, &[u32])>,
        n_tokens: &[u32],
        reach: Option<u64>,
    ) -> Result<Self> {
        let n = texts.offsets.len().saturating_sub(1);
        if n_tokens.len() != n {
            return Err(Error::input(format!("there are {} token counts for {n} texts", n_tokens.len())));
        }
        if let Some((_, of)) = titles.filter(|(_, of)| of.len() != n) {
            return Err(Error::input(format!("title_of has {} entries for {n} texts", of.len())));
        }
        if let Some(i) = candidates.iter().position(|&u| u as usize >= n) {
            return Err(Error::input(format!(
                "candidate {} at position {i}: there are {n} units",
                candidates[i]
            )));
        }
        let mut needed = Self::default();
        let mut sum = 0u64;
        for (&unit, place) in candidates.iter().zip(0u32..) {
            let unit = unit as usize;
            needed.texts.push(texts.get(unit, "text")?);
            needed.titles.push(match titles {
                Some((titles, of)) => titles.get(of[unit] as usize, "title")?,
                None => "",
            });
            needed.tokens.push(n_tokens[unit]);
            needed.places.push(place);
            sum += u64::from(n_tokens[unit]);
            if reach.is_some_and(|reach| sum > reach) {
                break;
            }
        }
        Ok(needed)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(pagerank, m)?)?;
    m.add_function(wrap_pyfunction!(core_count, m)?)?;
    m.add_function(wrap_pyfunction!(select_ranked, m)?)?;
    m.add_function(wrap_pyfunction!(select_uniform, m)?)?;
    m.add_function(wrap_pyfunction!(transpose, m)?)?;
    m.add_function(wrap_pyfunction!(renumber, m)?)?;
    m.add_function(wrap_pyfunction!(split_budget, m)?)?;
    m.add_function(wrap_pyfunction!(fill, m)?)?;
    m.add_function(wrap_pyfunction!(render, m)?)?;
    Ok(())
}
