//! Bindings of the co-occurrence neighbours and of the graph built from neighbour lists.

use super::arrays::{csr_out, matrix, matrix_out, slice, CsrArrays};
use super::door::{long, quick, wrong};
use ketrag_base::sparse::CsrView;
use ketrag_core::graph::cooccurrence::{cooccurrence_knn as knn, Kernel, Options};
use ketrag_core::graph::knn_graph::knn_graph as graph;
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

type Neighbours<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<u32>>);

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
fn cooccurrence_knn<'py>(
    py: Python<'py>,
    indptr: PyReadonlyArray1<'py, u64>,
    indices: PyReadonlyArray1<'py, u32>,
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
fn knn_graph<'py>(
    py: Python<'py>,
    lexical: PyReadonlyArray2<'py, u32>,
    semantic: PyReadonlyArray2<'py, u32>,
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
fn cooccurrence_kernels() -> Vec<&'static str> {
    let name = |kernel: Kernel| match kernel {
        Kernel::Auto => "auto",
        Kernel::Avx512 => "avx512",
        Kernel::Avx2 => "avx2",
        Kernel::Neon => "neon",
        Kernel::Portable => "portable",
    };
    Kernel::available().into_iter().map(name).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(cooccurrence_knn, m)?)?;
    m.add_function(wrap_pyfunction!(cooccurrence_kernels, m)?)?;
    m.add_function(wrap_pyfunction!(knn_graph, m)?)
}
