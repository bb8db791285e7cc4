//! Bindings of k-means clustering.

use super::arrays::{matrix, matrix_out};
use super::door::long;
use ketrag_core::graph::kmeans as clusters;
use ketrag_core::vector::simd::Level;
use ketrag_core::vector::Vectors;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (vectors, centres, *, seed=42, iterations=25, simd="auto", threads=0, report=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn kmeans<'py>(
    py: Python<'py>,
    vectors: PyReadonlyArray2<'py, f32>,
    centres: usize,
    seed: u64,
    iterations: u32,
    simd: &str,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f64>>)> {
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(kmeans, m)?)?;
    Ok(())
}
