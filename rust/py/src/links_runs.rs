//! Binding of the walk's arrays in bounded memory.

use super::arrays::{matrix, slice};
use super::door::{long, to_python};
use ketrag_core::graph::links::Array;
use ketrag_core::graph::links_runs::{build_in_runs, Bounds, Output, Units};
use ketrag_text::detection::Choice;
use ketrag_text::strings::Strings;
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

type Packed<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, u64>);
type Ids<'py> = PyReadonlyArray1<'py, u32>;
type Spans<'py> = PyReadonlyArray2<'py, u32>;

/// Return the arrays of `links_build` from those of the stage "units": arrays, or paths of files in `folder` (an empty
/// one), which hold the values alone. Every sentence must lie within its unit. `run` bounds the units that are read
/// together, `entries` the entries of a transpose that are placed together.
#[pyfunction]
#[pyo3(signature = (titles, owners, texts, spans, sentence_units, sentence_spans, sentence_titles, folder, *, before, run, entries, language="english", threads=0, report=None))]
#[allow(clippy::too_many_arguments)] // the arrays of the units, one by one
fn links_build_runs<'py>(
    py: Python<'py>,
    titles: Packed<'py>,
    owners: Ids<'py>,
    texts: Packed<'py>,
    spans: Spans<'py>,
    sentence_units: Ids<'py>,
    sentence_spans: Spans<'py>,
    sentence_titles: PyReadonlyArray1<'py, u8>,
    folder: PathBuf,
    before: Packed<'py>,
    run: usize,
    entries: usize,
    language: &str,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let language = Choice::by_name(language).map_err(to_python)?;
    let titles = (slice(&titles.0, "titles")?, slice(&titles.1, "title offsets")?);
    let texts = (slice(&texts.0, "texts")?, slice(&texts.1, "text offsets")?);
    let before = (slice(&before.0, "contexts")?, slice(&before.1, "context offsets")?);
    let owners = slice(&owners, "owners")?;
    let (spans, _, _) = matrix(&spans, "spans")?;
    let sentence_units = slice(&sentence_units, "sentence_units")?;
    let (sentence_spans, _, _) = matrix(&sentence_spans, "sentence_spans")?;
    let sentence_titles = slice(&sentence_titles, "sentence_titles")?;
    let made = long(py, report, |progress| {
        let units = Units {
            titles: Strings::new(titles.0, titles.1)?,
            owners,
            texts: Strings::new(texts.0, texts.1)?,
            before: Strings::new(before.0, before.1)?,
            spans,
            sentence_units,
            sentence_spans,
            sentence_titles,
            language,
        };
        build_in_runs(&units, Bounds { units: run, entries }, &folder, threads, progress)
    })?;
    let out = PyDict::new(py);
    for (name, output) in made {
        match output {
            Output::Memory(Array::U8(x)) => out.set_item(name, x.into_pyarray(py))?,
            Output::Memory(Array::U32(x)) => out.set_item(name, x.into_pyarray(py))?,
            Output::Memory(Array::U64(x)) => out.set_item(name, x.into_pyarray(py))?,
            Output::File(path) => out.set_item(name, path)?,
        }
    }
    Ok(out)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(links_build_runs, m)?)
}
