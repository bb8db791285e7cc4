//! Cutting documents into the arrays of the stage "units".

use crate::arrays::{Array, Matrix, MatrixOut, Out, Packed};
use crate::door::{long, wrong, Report};
use crate::text::{corpus_settings, marks_of};
use ketrag_core::generation::delta::New;
use ketrag_core::generation::unit_columns::{as_new, unit_columns, Locations, Rows, UnitColumn, Values};
use ketrag_text::corpus::build_corpus;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// The arrays of the stage "units" of some documents.
#[pyclass(frozen, name = "CutUnits", module = "ketrag_fast._core")]
pub struct PyCutUnits(Mutex<Vec<UnitColumn>>);

#[pymethods]
impl PyCutUnits {
    /// Return the arrays by name as arrays of NumPy. Without `keep`, they are gone from this object then.
    #[pyo3(signature = (*, keep=false))]
    fn arrays<'py>(&self, py: Python<'py>, keep: bool) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        let columns = match keep {
            true => self.columns().clone(),
            false => std::mem::take(&mut *self.columns()),
        };
        for UnitColumn { name, values, width } in columns {
            match values {
                Values::U8(values) => out.set_item(name, Out(values))?,
                Values::U32(values) if width == 1 => out.set_item(name, Out(values))?,
                Values::U64(values) if width == 1 => out.set_item(name, Out(values))?,
                Values::U32(values) => {
                    let rows = values.len() / width;
                    out.set_item(name, MatrixOut(values, [rows, width]))?;
                }
                Values::U64(values) => {
                    let rows = values.len() / width;
                    out.set_item(name, MatrixOut(values, [rows, width]))?;
                }
            }
        }
        Ok(out)
    }
}

impl PyCutUnits {
    fn columns(&self) -> std::sync::MutexGuard<'_, Vec<UnitColumn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return the arrays in the form that a delta takes.
    pub fn new_arrays(&self) -> New {
        as_new(&self.columns())
    }
}

/// Rows with headings, pages and the like: where those of each row end, their spans, labels and the labels' names.
#[derive(FromPyObject)]
pub struct LocationsIn<'py>(Array<'py, u64>, Array<'py, u32>, Array<'py, u32>, Packed<'py>);

/// Cut documents. `columns` are the ids, titles, texts and metadata (JSON) of the rows, `starts` their starts in the
/// documents in code points, and rows of `marks` are as for `corpus`. With `metadata` and `lines`, the result has
/// these arrays also if no row has any.
#[pyfunction]
#[pyo3(signature = (
    columns, documents, starts, locations, *, cut, tokens, overlap, splits, encoding, threads=0, language="english",
    marks=None, metadata=false, lines=false, report=None
))]
pub fn cut_units<'py>(
    py: Python<'py>,
    columns: [Packed<'py>; 4],
    documents: usize,
    starts: Array<'py, u32>,
    locations: LocationsIn<'py>,
    cut: &str,
    tokens: usize,
    overlap: usize,
    splits: u32,
    encoding: &str,
    threads: usize,
    language: &str,
    marks: Option<Matrix<'py, u32>>,
    metadata: bool,
    lines: bool,
    report: Report<'_, '_>,
) -> PyResult<PyCutUnits> {
    let settings = corpus_settings(cut, tokens, overlap, splits, encoding, "standard", language)?;
    let marks = marks_of(marks.as_ref())?;
    let [ids, titles, texts, values] = &columns;
    let LocationsIn(ends, spans, labels, names) = &locations;
    if spans.len() != 2 * labels.len() {
        return Err(wrong("each location must have a start, an end and a label"));
    }
    let found = long(py, report, |progress| {
        let built = build_corpus(titles.view()?, texts.view()?, marks, &settings, threads, progress)?;
        let rows = Rows {
            documents,
            ids: ids.view()?,
            titles: titles.view()?,
            texts: texts.view()?,
            metadata: values.view()?,
            starts: &starts,
            locations: Locations { ends, spans, labels, names: names.view()? },
            has_metadata: metadata,
            has_lines: lines,
        };
        unit_columns(built, &rows)
    })?;
    Ok(PyCutUnits(Mutex::new(found)))
}
