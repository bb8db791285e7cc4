//! Chunks that share words, the graph of nearest chunks, and the vectors of keywords.

use crate::arrays::{csr_out, Array, CsrIn, CsrOut, Matrix, MatrixOut};
use crate::door::{long, quick, wrong, Report};
use ketrag_base::sparse::CsrView;
use ketrag_papers::ket_rag::cooccurrence::{cooccurrence_knn as knn, Kernel, Options};
use ketrag_papers::ket_rag::keyword_means as means;
use ketrag_papers::ket_rag::knn_graph::knn_graph as graph;
use pyo3::prelude::*;

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
