//! Vector search, neighbours by cosine and by shared words, keyword means, k-means and the built-in embedder.

use crate::arrays::{
    csr_out, matrix, matrix_out, slice, Array, CsrArrays, CsrIn, Matrix, MatrixOut, Out, StoredRows,
};
use crate::door::{long, quick, wrong};
use ketrag_base::error::Result;
use ketrag_base::sparse::{CsrView, Scored};
use ketrag_core::embed::{builtin, keyword_means as means};
use ketrag_core::graph::cooccurrence::{cooccurrence_knn as knn, Kernel, Options};
use ketrag_core::graph::knn_graph::knn_graph as graph;
use ketrag_core::graph::{cosine_knn as cosine, kmeans as clusters};
use ketrag_core::search::fusion;
use ketrag_core::vector as search;
use ketrag_core::vector::quantised::{Quantised, QuantisedView};
use ketrag_core::vector::simd::Level;
use ketrag_core::vector::{nibbles, signs, Filter, Vectors};
use numpy::IntoPyArray;
use pyo3::prelude::*;

type Codes<'py> = (Matrix<'py, i8>, Array<'py, f32>, Array<'py, f32>);

/// Slices of the three arrays of byte codes, checked once the interpreter is released.
struct CodeSlices<'a>(&'a [i8], &'a [f32], &'a [f32]);

fn code_slices<'a>(codes: &'a Option<Codes<'_>>, d: usize) -> PyResult<Option<CodeSlices<'a>>> {
    let Some((codes, scale, residual)) = codes else { return Ok(None) };
    let (codes, _, width) = matrix(codes, "codes")?;
    if width != d {
        return Err(wrong(format!("codes have {width} columns, the vectors {d}")));
    }
    Ok(Some(CodeSlices(codes, slice(scale, "scale")?, slice(residual, "residual")?)))
}

impl<'a> CodeSlices<'a> {
    fn view(&self, d: usize) -> Result<QuantisedView<'a>> {
        QuantisedView::new(self.0, self.1, self.2, d)
    }
}

fn split(items: &[Scored]) -> (Vec<u32>, Vec<f64>) {
    (items.iter().map(|s| s.id).collect(), items.iter().map(|s| s.score).collect())
}

#[pyfunction]
#[pyo3(signature = (vectors, queries, k, *, codes=None, ids=None, simd="auto", threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn vector_top_k<'py>(
    py: Python<'py>,
    vectors: Matrix<'py, f32>,
    queries: Matrix<'py, f32>,
    k: usize,
    codes: Option<Codes<'py>>,
    ids: Option<Array<'py, u32>>,
    simd: &str,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(MatrixOut<'py, u32>, MatrixOut<'py, f64>)> {
    let (values, rows, d) = matrix(&vectors, "vectors")?;
    let (asked, count, width) = matrix(&queries, "queries")?;
    if width != d {
        return Err(wrong(format!("queries have {width} columns, the vectors {d}")));
    }
    let codes = code_slices(&codes, d)?;
    let ids = ids.as_ref().map(|ids| slice(ids, "ids")).transpose()?;
    let found = k.min(ids.map_or(rows, <[u32]>::len));
    let best = long(py, report, |progress| {
        let vectors = Vectors::new(values, d)?;
        let codes = codes.as_ref().map(|codes| codes.view(d)).transpose()?;
        let filter = ids.map_or(Filter::All, Filter::Ids);
        let how = (Level::named(simd)?, threads);
        search::top_k_many(&vectors, codes.as_ref(), asked, k, filter, how, progress)
    })?;
    let (ids, scores) = split(&best.concat());
    // `reshape` to (count, 0) keeps the number of rows if nothing is found.
    let shape = [count, found];
    use numpy::PyArrayMethods;
    Ok((ids.into_pyarray(py).reshape(shape)?, scores.into_pyarray(py).reshape(shape)?))
}

#[pyfunction]
#[pyo3(signature = (vectors, *, threads=0, report=None))]
pub fn quantise_vectors<'py>(
    py: Python<'py>,
    vectors: Matrix<'py, f32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(MatrixOut<'py, i8>, Out<'py, f32>, Out<'py, f32>)> {
    let (values, rows, d) = matrix(&vectors, "vectors")?;
    let made = long(py, report, |progress| Quantised::build(&Vectors::new(values, d)?, threads, progress))?;
    use numpy::PyArrayMethods;
    let codes = made.codes.into_pyarray(py).reshape([rows, d])?;
    Ok((codes, made.scale.into_pyarray(py), made.residual.into_pyarray(py)))
}

/// Return four-bit codes of vectors, and the factor of each row.
#[pyfunction]
#[pyo3(signature = (vectors, *, threads=0, report=None))]
pub fn pack_nibbles<'py>(
    py: Python<'py>,
    vectors: Matrix<'py, f32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(MatrixOut<'py, u8>, Out<'py, f32>)> {
    let (values, rows, d) = matrix(&vectors, "vectors")?;
    let made = long(py, report, |progress| nibbles::pack(&Vectors::new(values, d)?, threads, progress))?;
    Ok((matrix_out(py, made.codes, [rows, nibbles::width(d)])?, made.scale.into_pyarray(py)))
}

/// Return the signs of vectors, eight values a byte.
#[pyfunction]
pub fn pack_signs<'py>(py: Python<'py>, vectors: Matrix<'py, f32>) -> PyResult<MatrixOut<'py, u8>> {
    let (values, rows, d) = matrix(&vectors, "vectors")?;
    let made = quick(py, || Vectors::new(values, d).map(|_| signs::pack(values, d)))?;
    matrix_out(py, made, [rows, d.div_ceil(8)])
}

/// Return the product of every stored row with a query.
#[pyfunction]
pub fn row_scores<'py>(
    py: Python<'py>,
    rows: StoredRows<'py>,
    query: Array<'py, f32>,
) -> PyResult<Out<'py, f64>> {
    let (slices, query) = (rows.slices()?, slice(&query, "query")?);
    let scores = quick(py, || {
        let rows = slices.rows()?;
        let mut scores = vec![0.0; rows.len()];
        rows.ask(query)?.scores(0..rows.len(), &mut scores);
        Ok(scores)
    })?;
    Ok(scores.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (vectors, k, *, exclude=None, simd="auto", threads=0, report=None))]
pub fn cosine_knn<'py>(
    py: Python<'py>,
    vectors: Matrix<'py, f32>,
    k: usize,
    exclude: Option<CsrIn<'py>>,
    simd: &str,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(MatrixOut<'py, u32>, MatrixOut<'py, f64>)> {
    let (values, rows, d) = matrix(&vectors, "vectors")?;
    let exclude = match &exclude {
        None => None,
        Some((indptr, indices)) => Some((slice(indptr, "indptr")?, slice(indices, "indices")?)),
    };
    let found = long(py, report, |progress| {
        let vectors = Vectors::new(values, d)?;
        let exclude = exclude.map(|(indptr, indices)| CsrView::new(indptr, indices, rows)).transpose()?;
        let level = if simd == "auto" { Level::widest() } else { Level::named(simd)? };
        cosine::cosine_knn(&vectors, k, exclude, level, threads, progress)
    })?;
    let shape = [rows, found.k];
    Ok((matrix_out(py, found.ids, shape)?, matrix_out(py, found.scores, shape)?))
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, sentences, *, unit=false, threads=0, report=None))]
pub fn keyword_means<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    sentences: Matrix<'py, f32>,
    unit: bool,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<MatrixOut<'py, f32>> {
    let (values, rows, d) = matrix(&sentences, "sentences")?;
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let words = indptr.len().saturating_sub(1);
    let made = long(py, report, |progress| {
        let words = CsrView::new(indptr, indices, rows)?;
        means::keyword_means(words, &Vectors::new(values, d)?, unit, threads, progress)
    })?;
    matrix_out(py, made, [words, d])
}

/// Like `keyword_means` of the vectors that `embed_rows` computes from the words of sentences, each counted
/// once.
#[pyfunction]
#[pyo3(signature = (basis, sent_words, word_sents, *, room=means::ROOM, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn keyword_means_by_words<'py>(
    py: Python<'py>,
    basis: Matrix<'py, f32>,
    sent_words: CsrIn<'py>,
    word_sents: CsrIn<'py>,
    room: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<MatrixOut<'py, f32>> {
    let (values, words, d) = matrix(&basis, "basis")?;
    let (ends, ids) = (slice(&sent_words.0, "sent_words")?, slice(&sent_words.1, "sent_words")?);
    let (turned, places) = (slice(&word_sents.0, "word_sents")?, slice(&word_sents.1, "word_sents")?);
    let made = long(py, report, |progress| {
        let sentences = CsrView::new(ends, ids, words)?;
        let keywords = CsrView::new(turned, places, sentences.rows())?;
        means::keyword_means_by_words(values, d, sentences, keywords, room, threads, progress)
    })?;
    matrix_out(py, made, [turned.len().saturating_sub(1), d])
}

#[pyfunction]
#[pyo3(signature = (indptr, indices, repeats, words, *, dims=128, idf_power=2, rounds=5, sample=20_000, seed=42, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn fit_embedder<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    repeats: Array<'py, u32>,
    words: usize,
    dims: usize,
    idf_power: u32,
    rounds: usize,
    sample: usize,
    seed: u64,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<MatrixOut<'py, f32>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let repeats = slice(&repeats, "repeats")?;
    let options = builtin::Options { dims, idf_power, rounds, sample, seed };
    let basis = long(py, report, |progress| {
        builtin::fit(CsrView::new(indptr, indices, words)?, repeats, &options, threads, progress)
    })?;
    matrix_out(py, basis.values, [words, basis.dims])
}

#[pyfunction]
#[pyo3(signature = (basis, indptr, indices, repeats, *, threads=0, report=None))]
pub fn embed_rows<'py>(
    py: Python<'py>,
    basis: Matrix<'py, f32>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    repeats: Array<'py, u32>,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<MatrixOut<'py, f32>> {
    let (values, words, dims) = matrix(&basis, "basis")?;
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let repeats = slice(&repeats, "repeats")?;
    let vectors = long(py, report, |progress| {
        let counts = CsrView::new(indptr, indices, words)?;
        builtin::embed_rows(values, dims, counts, repeats, threads, progress)
    })?;
    matrix_out(py, vectors, [indptr.len().saturating_sub(1), dims])
}

#[pyfunction]
#[pyo3(signature = (lists, *, constant=60.0))]
pub fn fuse_ranks<'py>(
    py: Python<'py>,
    lists: Vec<Array<'py, u32>>,
    constant: f64,
) -> PyResult<(Out<'py, u32>, Out<'py, f64>)> {
    let lists = lists.iter().map(|list| slice(list, "a ranked list")).collect::<PyResult<Vec<_>>>()?;
    let (ids, scores) = split(&quick(py, || fusion::fuse(&lists, constant))?);
    Ok((ids.into_pyarray(py), scores.into_pyarray(py)))
}

#[pyfunction]
pub fn simd_levels() -> Vec<&'static str> {
    Level::all().into_iter().map(Level::name).collect()
}

#[pyfunction]
#[pyo3(signature = (vectors, centres, *, seed=42, iterations=25, simd="auto", threads=0, report=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub fn kmeans<'py>(
    py: Python<'py>,
    vectors: Matrix<'py, f32>,
    centres: usize,
    seed: u64,
    iterations: u32,
    simd: &str,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Out<'py, i64>, MatrixOut<'py, f64>)> {
    let (values, _, d) = matrix(&vectors, "vectors")?;
    let found = long(py, report, |progress| {
        let level = if simd == "auto" { Level::widest() } else { Level::named(simd)? };
        let settings = clusters::Settings { seed, iterations, threads, level };
        clusters::kmeans(&Vectors::new(values, d)?, centres, &settings, progress)
    })?;
    let labels: Vec<i64> = found.labels.iter().map(|&label| i64::from(label)).collect();
    let shape = [found.centres.len() / d, d];
    Ok((labels.into_pyarray(py), matrix_out(py, found.centres, shape)?))
}

type Neighbours<'py> = (MatrixOut<'py, u32>, MatrixOut<'py, u32>);

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
#[allow(clippy::too_many_arguments)]
pub fn cooccurrence_knn<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    columns: usize,
    k: usize,
    max_df_ratio: Option<f64>,
    allow_zero: bool,
    rows: Option<(usize, usize)>,
    threads: usize,
    kernel: &str,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Neighbours<'py>> {
    let kernel = kernel_of(kernel)?;
    let rows = rows.map(|(start, end)| start..end);
    let answered = rows.as_ref().map(|r| r.len());
    let options = Options { max_df_ratio, allow_zero, threads, kernel, rows, ..Options::default() };
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let found =
        long(py, report, |progress| knn(CsrView::new(indptr, indices, columns)?, k, &options, progress))?;
    let shape = [answered.unwrap_or(indptr.len() - 1), k];
    Ok((matrix_out(py, found.ids, shape)?, matrix_out(py, found.counts, shape)?))
}

#[pyfunction]
pub fn knn_graph<'py>(
    py: Python<'py>,
    lexical: Matrix<'py, u32>,
    semantic: Matrix<'py, u32>,
) -> PyResult<CsrArrays<'py>> {
    let (first, first_rows, first_k) = matrix(&lexical, "lexical")?;
    let (second, second_rows, second_k) = matrix(&semantic, "semantic")?;
    if first_rows != second_rows {
        return Err(wrong(format!("lexical has {first_rows} rows, semantic {second_rows}")));
    }
    let csr = quick(py, || graph(first_rows, &[(first, first_k), (second, second_k)]))?;
    Ok(csr_out(py, csr))
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
