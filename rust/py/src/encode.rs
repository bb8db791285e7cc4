//! Bindings of the native sentence encoder, of the cross-encoder, and of the model that quotes answers.

use super::arrays::{Array, Matrix, MatrixOut, Out};
use super::door::{long, quick, Report};
use ketrag_base::progress::Progress;
use ketrag_encode::{
    Classifier as Pairs, Encoder as Core, Extractor as Reader, Kernel, Precision, Role,
    TermEncoder as Weigher, TermRows as Rows, TextSpans, Timing,
};
use ketrag_text::strings::Strings;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Texts with fewer bytes in total are encoded without a watching thread.
const SMALL: usize = 2000;

/// Vectors of texts and of spans, the texts' tokens, and windows beyond one per text.
type EncodedSpans = (MatrixOut<f32>, MatrixOut<f32>, u64, u64);

/// A loaded sentence encoder.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct Encoder {
    core: Core,
}

#[pymethods]
impl Encoder {
    /// Load a folder of sentence-transformers.
    #[staticmethod]
    #[pyo3(signature = (folder, *, precision="auto", kernel="auto", threads=0, report=None))]
    fn open(
        py: Python<'_>,
        folder: PathBuf,
        precision: &str,
        kernel: &str,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Self> {
        let core = long(py, report, |progress| {
            Core::open(&folder, Precision::named(precision)?, kernel, threads, progress)
        })?;
        Ok(Self { core })
    }

    /// Return (a row for each text, the texts' tokens, windows beyond one per text).
    #[pyo3(signature = (texts, offsets, *, prompt="", threads=0, report=None))]
    fn encode(
        &self,
        py: Python<'_>,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        prompt: &str,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<(MatrixOut<f32>, u64, u64)> {
        let found = if texts.len() < SMALL && offsets.len() < SMALL && report.is_none() {
            let silent = Progress::none();
            quick(py, || self.core.encode(&Strings::new(&texts, &offsets)?, prompt, threads, &silent))?
        } else {
            long(py, report, |progress| {
                self.core.encode(&Strings::new(&texts, &offsets)?, prompt, threads, progress)
            })?
        };
        let rows = MatrixOut(found.vectors, [offsets.len() - 1, self.core.dimension()]);
        Ok((rows, found.tokens, found.more))
    }

    /// Return (a row for each text, a row for each span, the texts' tokens, windows beyond one per text). The
    /// spans of text `i` are rows `indptr[i]` to `indptr[i + 1]` of `spans`, in bytes.
    #[pyo3(signature = (texts, offsets, indptr, spans, *, prompt="", threads=0, report=None))]
    fn encode_spans(
        &self,
        py: Python<'_>,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        indptr: Array<'_, u64>,
        spans: Matrix<'_, u32>,
        prompt: &str,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<EncodedSpans> {
        let own = TextSpans { indptr: &indptr, spans: spans.rows_of("spans")? };
        let found = long(py, report, |progress| {
            self.core.encode_spans(&Strings::new(&texts, &offsets)?, &own, prompt, threads, progress)
        })?;
        let shape = |rows| [rows, self.core.dimension()];
        let rows = MatrixOut(found.vectors, shape(offsets.len() - 1));
        Ok((rows, MatrixOut(found.spans, shape(spans.rows())), found.tokens, found.more))
    }

    /// Return the number of tokens of each text, in all its windows.
    #[pyo3(signature = (texts, offsets, *, prompt="", threads=0, report=None))]
    fn lengths(
        &self,
        py: Python<'_>,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        prompt: &str,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Out<u64>> {
        long(py, report, |progress| {
            self.core.lengths(&Strings::new(&texts, &offsets)?, prompt, threads, progress)
        })
        .map(Out)
    }

    /// Return the number of tokens of each text, without the prompt and without truncation.
    #[pyo3(signature = (texts, offsets, *, threads=0, report=None))]
    fn counts(
        &self,
        py: Python<'_>,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Out<u64>> {
        long(py, report, |progress| self.core.counts(&Strings::new(&texts, &offsets)?, threads, progress))
            .map(Out)
    }

    /// Return the lowest cosine to f32 on the built-in texts.
    #[pyo3(signature = (*, threads=0, report=None))]
    fn closeness(&self, py: Python<'_>, threads: usize, report: Report<'_, '_>) -> PyResult<f64> {
        long(py, report, |progress| self.core.closeness(threads, progress))
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

    /// (kernel, precision, microseconds per token in one layer) of every measured candidate.
    #[getter]
    fn timings(&self) -> Vec<(&'static str, &'static str, f64)> {
        self.core.timings().iter().map(told).collect()
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

    /// Return a digest of the files and the precision.
    #[pyo3(signature = (*, report=None))]
    fn fingerprint(&self, py: Python<'_>, report: Report<'_, '_>) -> PyResult<String> {
        long(py, report, |progress| self.core.fingerprint(progress))
    }
}

/// A loaded cross-encoder.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct Classifier {
    core: Pairs,
}

#[pymethods]
impl Classifier {
    /// Load a folder of a classifier with one label.
    #[staticmethod]
    #[pyo3(signature = (folder, *, precision="auto", kernel="auto", threads=0))]
    fn open(
        py: Python<'_>,
        folder: PathBuf,
        precision: &str,
        kernel: &str,
        threads: usize,
    ) -> PyResult<Self> {
        let core = long(py, None, |progress| {
            Pairs::open(&folder, Precision::named(precision)?, kernel, threads, progress)
        })?;
        Ok(Self { core })
    }

    /// Return a score for each text with the query, within `seconds`.
    #[pyo3(signature = (question, texts, offsets, *, threads=0, seconds=None))]
    fn scores(
        &self,
        py: Python<'_>,
        question: &str,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        threads: usize,
        seconds: Option<f64>,
    ) -> PyResult<Out<f32>> {
        let progress = until(seconds);
        quick(py, || self.core.scores(question, &Strings::new(&texts, &offsets)?, threads, &progress))
            .map(Out)
    }

    #[getter]
    fn precision(&self) -> &'static str {
        self.core.precision()
    }

    #[getter]
    fn kernel(&self) -> &'static str {
        self.core.kernel()
    }

    /// Like the timings of `Encoder`.
    #[getter]
    fn timings(&self) -> Vec<(&'static str, &'static str, f64)> {
        self.core.timings().iter().map(told).collect()
    }
}

/// A loaded model for extractive question answering.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct Extractor {
    core: Reader,
}

/// Starts, ends, scores, scores of "no answer", and whether the question was cut.
type Spans = (Out<u64>, Out<u64>, Out<f32>, Out<f32>, bool);

#[pymethods]
impl Extractor {
    /// Load a folder of a model with outputs for start and end.
    #[staticmethod]
    #[pyo3(signature = (folder, *, precision="auto", kernel="auto", threads=0))]
    fn open(
        py: Python<'_>,
        folder: PathBuf,
        precision: &str,
        kernel: &str,
        threads: usize,
    ) -> PyResult<Self> {
        let core = long(py, None, |progress| {
            Reader::open(&folder, Precision::named(precision)?, kernel, threads, progress)
        })?;
        Ok(Self { core })
    }

    /// Return the best span of each text, within `seconds`.
    #[pyo3(signature = (question, texts, offsets, *, threads=0, seconds=None))]
    fn spans(
        &self,
        py: Python<'_>,
        question: &str,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        threads: usize,
        seconds: Option<f64>,
    ) -> PyResult<Spans> {
        let progress = until(seconds);
        let spans =
            quick(py, || self.core.spans(question, &Strings::new(&texts, &offsets)?, threads, &progress))?;
        Ok((Out(spans.starts), Out(spans.ends), Out(spans.scores), Out(spans.none), spans.is_cut))
    }

    #[getter]
    fn precision(&self) -> &'static str {
        self.core.precision()
    }

    #[getter]
    fn kernel(&self) -> &'static str {
        self.core.kernel()
    }

    /// Like the timings of `Encoder`.
    #[getter]
    fn timings(&self) -> Vec<(&'static str, &'static str, f64)> {
        self.core.timings().iter().map(told).collect()
    }

    /// Return a digest of the files and the precision.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        long(py, None, |progress| self.core.fingerprint(progress))
    }
}

/// A loaded sparse encoder.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct TermEncoder {
    core: Weigher,
}

/// Row ends, ascending terms, and their weights.
type TermRows = (Out<u64>, Out<u32>, Out<f32>);

fn term_rows(rows: Rows) -> TermRows {
    (Out(rows.indptr), Out(rows.terms), Out(rows.weights))
}

#[pymethods]
impl TermEncoder {
    /// Load a folder of a masked language model with SPLADE pooling.
    #[staticmethod]
    #[pyo3(signature = (folder, *, precision="auto", kernel="auto", threads=0, report=None))]
    fn open(
        py: Python<'_>,
        folder: PathBuf,
        precision: &str,
        kernel: &str,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Self> {
        let core = long(py, report, |progress| {
            Weigher::open(&folder, Precision::named(precision)?, kernel, threads, progress)
        })?;
        Ok(Self { core })
    }

    /// Return the terms of each document.
    #[pyo3(signature = (texts, offsets, *, threads=0, report=None))]
    fn rows(
        &self,
        py: Python<'_>,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<TermRows> {
        let rows = long(py, report, |progress| {
            self.core.rows(&Strings::new(&texts, &offsets)?, Role::Document, threads, progress)
        })?;
        Ok(term_rows(rows))
    }

    /// Return the terms of each query, within `seconds`.
    #[pyo3(signature = (texts, offsets, *, threads=0, seconds=None))]
    fn queries(
        &self,
        py: Python<'_>,
        texts: Array<'_, u8>,
        offsets: Array<'_, u64>,
        threads: usize,
        seconds: Option<f64>,
    ) -> PyResult<TermRows> {
        let progress = until(seconds);
        let rows =
            quick(py, || self.core.rows(&Strings::new(&texts, &offsets)?, Role::Query, threads, &progress))?;
        Ok(term_rows(rows))
    }

    /// The size of the vocabulary.
    #[getter]
    fn terms(&self) -> usize {
        self.core.terms()
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

    /// Whether a query is a table of weights, without the model.
    #[getter]
    fn has_table(&self) -> bool {
        self.core.has_table()
    }

    #[getter]
    fn note(&self) -> Option<&str> {
        self.core.note()
    }
}

/// Return a digest of the files on which the weights of a sparse encoder depend.
#[pyfunction]
pub fn term_encoder_fingerprint(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    long(py, None, |progress| Weigher::fingerprint(&folder, progress))
}

fn told(timing: &Timing) -> (&'static str, &'static str, f64) {
    (timing.way.kernel.name(), timing.way.form.name(), timing.microseconds)
}

/// Return the kernels that this machine can run, the plainest first.
#[pyfunction]
pub fn encoder_kernels() -> Vec<&'static str> {
    Kernel::all().into_iter().map(Kernel::name).collect()
}

/// Return the reason why a folder's model has no native implementation, or None if it has one.
#[pyfunction]
pub fn encoder_refusal(py: Python<'_>, folder: PathBuf) -> PyResult<Option<String>> {
    quick(py, || Core::refusal(&folder))
}

/// Return a progress that stops after `seconds`, if given; more than a year counts as unlimited.
fn until(seconds: Option<f64>) -> Progress {
    match seconds {
        Some(s) if s < 1e8 => Progress::with_deadline(Instant::now() + Duration::from_secs_f64(s.max(0.0))),
        _ => Progress::none(),
    }
}
