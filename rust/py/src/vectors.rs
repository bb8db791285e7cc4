//! Vector search, neighbours by cosine, k-means and the built-in embedder.

use crate::arrays::{Array, CsrIn, Matrix, MatrixOut, Out, StoredRows};
use crate::door::{long, quick, wrong, Report};
use ketrag_base::sparse::{CsrView, Scored};
use ketrag_core::embed::builtin;
use ketrag_core::graph::{cosine_knn as cosine, kmeans as clusters};
use ketrag_core::search::fusion;
use ketrag_core::vector as search;
use ketrag_core::vector::quantised::{Quantised, QuantisedView};
use ketrag_core::vector::simd::Level;
use ketrag_core::vector::{nibbles, signs, Filter};
use pyo3::prelude::*;

/// Codes of eight bits, the factor of each row, and its largest error.
type Codes<'py> = (Matrix<'py, i8>, Array<'py, f32>, Array<'py, f32>);

fn split(items: &[Scored]) -> (Vec<u32>, Vec<f64>) {
    (items.iter().map(|s| s.id).collect(), items.iter().map(|s| s.score).collect())
}

#[pyfunction]
#[pyo3(signature = (vectors, queries, k, *, codes=None, ids=None, simd="auto", threads=0, report=None))]
pub fn vector_top_k(
    py: Python<'_>,
    vectors: Matrix<'_, f32>,
    queries: Matrix<'_, f32>,
    k: usize,
    codes: Option<Codes<'_>>,
    ids: Option<Array<'_, u32>>,
    simd: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(MatrixOut<u32>, MatrixOut<f64>)> {
    let (d, count) = (vectors.columns(), queries.rows());
    let widths =
        [("queries", queries.columns()), ("codes", codes.as_ref().map_or(d, |codes| codes.0.columns()))];
    if let Some((name, width)) = widths.into_iter().find(|&(_, width)| width != d) {
        return Err(wrong(format!("{name} have {width} columns, the vectors {d}")));
    }
    let ids = ids.as_deref();
    let found = k.min(ids.map_or(vectors.rows(), <[u32]>::len));
    let best = long(py, report, |progress| {
        let vectors = vectors.vectors()?;
        let codes = codes.as_ref().map(|(codes, scale, error)| QuantisedView::new(codes, scale, error, d));
        let codes = codes.transpose()?;
        let filter = ids.map_or(Filter::All, Filter::Ids);
        let how = (Level::named(simd)?, threads);
        search::top_k_many(&vectors, codes.as_ref(), &queries, k, filter, how, progress)
    })?;
    let (ids, scores) = split(&best.concat());
    Ok((MatrixOut(ids, [count, found]), MatrixOut(scores, [count, found])))
}

#[pyfunction]
#[pyo3(signature = (vectors, *, threads=0, report=None))]
pub fn quantise_vectors(
    py: Python<'_>,
    vectors: Matrix<'_, f32>,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(MatrixOut<i8>, Out<f32>, Out<f32>)> {
    let made = long(py, report, |progress| Quantised::build(&vectors.vectors()?, threads, progress))?;
    let codes = MatrixOut(made.codes, [vectors.rows(), vectors.columns()]);
    Ok((codes, Out(made.scale), Out(made.residual)))
}

/// Return four-bit codes of vectors, and the factor of each row.
#[pyfunction]
#[pyo3(signature = (vectors, *, threads=0, report=None))]
pub fn pack_nibbles(
    py: Python<'_>,
    vectors: Matrix<'_, f32>,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(MatrixOut<u8>, Out<f32>)> {
    let made = long(py, report, |progress| nibbles::pack(&vectors.vectors()?, threads, progress))?;
    Ok((MatrixOut(made.codes, [vectors.rows(), nibbles::width(vectors.columns())]), Out(made.scale)))
}

/// Return the signs of vectors, eight values a byte.
#[pyfunction]
pub fn pack_signs(py: Python<'_>, vectors: Matrix<'_, f32>) -> PyResult<MatrixOut<u8>> {
    let made = quick(py, || vectors.vectors().map(|_| signs::pack(&vectors, vectors.columns())))?;
    Ok(MatrixOut(made, [vectors.rows(), vectors.columns().div_ceil(8)]))
}

/// Return the product of every stored row with a query.
#[pyfunction]
pub fn row_scores(py: Python<'_>, rows: StoredRows<'_>, query: Array<'_, f32>) -> PyResult<Out<f64>> {
    quick(py, || {
        let rows = rows.rows()?;
        let mut scores = vec![0.0; rows.len()];
        rows.ask(&query)?.scores(0..rows.len(), &mut scores);
        Ok(scores)
    })
    .map(Out)
}

#[pyfunction]
#[pyo3(signature = (vectors, k, *, exclude=None, simd="auto", threads=0, report=None))]
pub fn cosine_knn(
    py: Python<'_>,
    vectors: Matrix<'_, f32>,
    k: usize,
    exclude: Option<CsrIn<'_>>,
    simd: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(MatrixOut<u32>, MatrixOut<f64>)> {
    let found = long(py, report, |progress| {
        let exclude = exclude.as_ref().map(|rows| rows.view(vectors.rows())).transpose()?;
        let level = if simd == "auto" { Level::widest() } else { Level::named(simd)? };
        cosine::cosine_knn(&vectors.vectors()?, k, exclude, level, threads, progress)
    })?;
    let shape = [vectors.rows(), found.k];
    Ok((MatrixOut(found.ids, shape), MatrixOut(found.scores, shape)))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, repeats, words, *, dims=128, idf_power=2, rounds=5, sample=20_000, seed=42, threads=0, report=None))]
pub fn fit_embedder(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    repeats: Array<'_, u32>,
    words: usize,
    dims: usize,
    idf_power: u32,
    rounds: usize,
    sample: usize,
    seed: u64,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<MatrixOut<f32>> {
    let options = builtin::Options { dims, idf_power, rounds, sample, seed };
    let basis = long(py, report, |progress| {
        builtin::fit(CsrView::new(&indptr, &indices, words)?, &repeats, &options, threads, progress)
    })?;
    Ok(MatrixOut(basis.values, [words, basis.dims]))
}

#[pyfunction]
#[pyo3(signature = (basis, indptr, indices, repeats, *, threads=0, report=None))]
pub fn embed_rows(
    py: Python<'_>,
    basis: Matrix<'_, f32>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    repeats: Array<'_, u32>,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<MatrixOut<f32>> {
    let vectors = long(py, report, |progress| {
        let counts = CsrView::new(&indptr, &indices, basis.rows())?;
        builtin::embed_rows(&basis, basis.columns(), counts, &repeats, threads, progress)
    })?;
    Ok(MatrixOut(vectors, [indptr.len().saturating_sub(1), basis.columns()]))
}

#[pyfunction]
#[pyo3(signature = (lists, *, constant=60.0))]
pub fn fuse_ranks(
    py: Python<'_>,
    lists: Vec<Array<'_, u32>>,
    constant: f64,
) -> PyResult<(Out<u32>, Out<f64>)> {
    let lists = lists.iter().map(|list| &list[..]).collect::<Vec<_>>();
    let (ids, scores) = split(&quick(py, || fusion::fuse(&lists, constant))?);
    Ok((Out(ids), Out(scores)))
}

#[pyfunction]
pub fn simd_levels() -> Vec<&'static str> {
    Level::all().into_iter().map(Level::name).collect()
}

#[pyfunction]
#[pyo3(signature = (vectors, centres, *, seed=42, iterations=25, simd="auto", threads=0, report=None))]
pub fn kmeans(
    py: Python<'_>,
    vectors: Matrix<'_, f32>,
    centres: usize,
    seed: u64,
    iterations: u32,
    simd: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(Out<i64>, MatrixOut<f64>)> {
    let found = long(py, report, |progress| {
        let level = if simd == "auto" { Level::widest() } else { Level::named(simd)? };
        let settings = clusters::Settings { seed, iterations, threads, level };
        clusters::kmeans(&vectors.vectors()?, centres, &settings, progress)
    })?;
    let labels: Vec<i64> = found.labels.iter().map(|&label| i64::from(label)).collect();
    let shape = [found.centres.len() / vectors.columns(), vectors.columns()];
    Ok((Out(labels), MatrixOut(found.centres, shape)))
}
