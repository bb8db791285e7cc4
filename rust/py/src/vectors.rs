//! Vector search, neighbours by cosine and by shared words, keyword means, k-means and the built-in embedder.

use crate::arrays::{csr_out, Array, CsrIn, CsrOut, Matrix, MatrixOut, Out, StoredRows};
use crate::door::{long, quick, wrong, Report};
use ketrag_base::sparse::{CsrView, Scored};
use ketrag_core::embed::{builtin, keyword_means as means};
use ketrag_core::graph::cooccurrence::{cooccurrence_knn as knn, Kernel, Options};
use ketrag_core::graph::cosine_knn::knn_graph as graph;
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
#[pyo3(signature = (indptr, indices, sentences, *, unit=false, threads=0, report=None))]
pub fn keyword_means(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    sentences: Matrix<'_, f32>,
    unit: bool,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<MatrixOut<f32>> {
    let words = indptr.len().saturating_sub(1);
    let made = long(py, report, |progress| {
        let words = CsrView::new(&indptr, &indices, sentences.rows())?;
        means::keyword_means(words, &sentences.vectors()?, unit, threads, progress)
    })?;
    Ok(MatrixOut(made, [words, sentences.columns()]))
}

/// Like `keyword_means` of the vectors that `embed_rows` computes from the words of sentences, each counted
/// once.
#[pyfunction]
#[pyo3(signature = (basis, sent_words, word_sents, *, room=means::ROOM, threads=0, report=None))]
pub fn keyword_means_by_words(
    py: Python<'_>,
    basis: Matrix<'_, f32>,
    sent_words: CsrIn<'_>,
    word_sents: CsrIn<'_>,
    room: usize,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<MatrixOut<f32>> {
    let made = long(py, report, |progress| {
        let sentences = sent_words.view(basis.rows())?;
        let keywords = word_sents.view(sentences.rows())?;
        means::keyword_means_by_words(&basis, basis.columns(), sentences, keywords, room, threads, progress)
    })?;
    Ok(MatrixOut(made, [word_sents.rows(), basis.columns()]))
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

type Neighbours = (MatrixOut<u32>, MatrixOut<u32>);

fn kernel_of(name: &str) -> PyResult<Kernel> {
    match name {
        "auto" => Ok(Kernel::Auto),
        "avx512" => Ok(Kernel::Avx512),
        "avx2" => Ok(Kernel::Avx2),
        "neon" => Ok(Kernel::Neon),
        "portable" => Ok(Kernel::Portable),
        _ => Err(wrong(format!("kernel must be auto, avx512, avx2, neon or portable, not {name:?}"))),
    }
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, columns, k, *, max_df_ratio=None, allow_zero=false, rows=None,
                    threads=0, kernel="auto", report=None))]
pub fn cooccurrence_knn(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    columns: usize,
    k: usize,
    max_df_ratio: Option<f64>,
    allow_zero: bool,
    rows: Option<(usize, usize)>,
    threads: usize,
    kernel: &str,
    report: Report<'_, '_>,
) -> PyResult<Neighbours> {
    let kernel = kernel_of(kernel)?;
    let rows = rows.map(|(start, end)| start..end);
    let answered = rows.as_ref().map(|r| r.len());
    let options = Options { max_df_ratio, allow_zero, threads, kernel, rows, ..Options::default() };
    let found =
        long(py, report, |progress| knn(CsrView::new(&indptr, &indices, columns)?, k, &options, progress))?;
    let shape = [answered.unwrap_or(indptr.len() - 1), k];
    Ok((MatrixOut(found.ids, shape), MatrixOut(found.counts, shape)))
}

#[pyfunction]
pub fn knn_graph(py: Python<'_>, lexical: Matrix<'_, u32>, semantic: Matrix<'_, u32>) -> PyResult<CsrOut> {
    if lexical.rows() != semantic.rows() {
        return Err(wrong(format!("lexical has {} rows, semantic {}", lexical.rows(), semantic.rows())));
    }
    quick(py, || graph(lexical.rows(), &[(&lexical, lexical.columns()), (&semantic, semantic.columns())]))
        .map(csr_out)
}

/// Return the instruction sets that `kernel=` accepts on this machine, the widest first.
#[pyfunction]
pub fn cooccurrence_kernels() -> Vec<&'static str> {
    let name = |kernel: Kernel| match kernel {
        Kernel::Auto => "auto",
        Kernel::Avx512 => "avx512",
        Kernel::Avx2 => "avx2",
        Kernel::Neon => "neon",
        Kernel::Portable => "portable",
    };
    Kernel::available().into_iter().map(name).collect()
}
