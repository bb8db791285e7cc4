//! The native sentence encoder.

use super::arrays::{matrix_out, slice};
use super::door::{long, quick};
use crate::encode::{Encoder as Core, Kernel, Precision};
use crate::text::strings::Strings;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Texts below this many bytes in all are encoded without a thread that watches.
const SMALL: usize = 2000;

/// A loaded model folder.
#[pyclass(frozen, module = "ketrag_fast._core")]
struct Encoder {
    core: Core,
}

#[pymethods]
impl Encoder {
    /// Loads a folder of sentence-transformers.
    #[staticmethod]
    #[pyo3(signature = (folder, *, precision="auto", kernel="auto", threads=0, report=None))]
    fn open(
        py: Python<'_>,
        folder: PathBuf,
        precision: &str,
        kernel: &str,
        threads: usize,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let core = long(py, report, |progress| {
            Core::open(&folder, Precision::named(precision)?, kernel, threads, progress)
        })?;
        Ok(Self { core })
    }

    /// A row for each text.
    #[pyo3(signature = (texts, offsets, *, prompt="", threads=0, report=None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, u64>,
        prompt: &str,
        threads: usize,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (texts, offsets) = (slice(&texts, "texts")?, slice(&offsets, "offsets")?);
        let values = if texts.len() < SMALL && offsets.len() < SMALL && report.is_none() {
            let silent = crate::progress::Progress::none();
            quick(py, || self.core.encode(&Strings::new(texts, offsets)?, prompt, threads, &silent))?
        } else {
            long(py, report, |progress| {
                self.core.encode(&Strings::new(texts, offsets)?, prompt, threads, progress)
            })?
        };
        matrix_out(py, values, [offsets.len() - 1, self.core.dimension()])
    }

    /// The tokens of each text.
    #[pyo3(signature = (texts, offsets, *, prompt="", threads=0, report=None))]
    fn lengths<'py>(
        &self,
        py: Python<'py>,
        texts: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, u64>,
        prompt: &str,
        threads: usize,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let (texts, offsets) = (slice(&texts, "texts")?, slice(&offsets, "offsets")?);
        let lengths = long(py, report, |progress| {
            self.core.lengths(&Strings::new(texts, offsets)?, prompt, threads, progress)
        })?;
        Ok(lengths.into_pyarray(py))
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.core.dimension()
    }

    #[getter]
    fn longest(&self) -> usize {
        self.core.longest()
    }

    #[getter]
    fn precision(&self) -> &'static str {
        self.core.precision()
    }

    #[getter]
    fn kernel(&self) -> &'static str {
        self.core.kernel()
    }

    #[getter]
    fn note(&self) -> Option<&str> {
        self.core.note()
    }

    #[getter]
    fn prompts(&self) -> Vec<(String, String)> {
        self.core.prompts().0.to_vec()
    }

    #[getter]
    fn default_prompt(&self) -> Option<&str> {
        self.core.prompts().1
    }

    /// A digest of the files and the precision.
    #[pyo3(signature = (*, report=None))]
    fn fingerprint(&self, py: Python<'_>, report: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        long(py, report, |progress| self.core.fingerprint(progress))
    }
}

/// The kernels that this machine can run, the plainest first.
#[pyfunction]
fn encoder_kernels() -> Vec<&'static str> {
    Kernel::all().into_iter().map(Kernel::name).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Encoder>()?;
    m.add_function(wrap_pyfunction!(encoder_kernels, m)?)
}
