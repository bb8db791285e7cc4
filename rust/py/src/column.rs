//! Stored arrays as Python reads them without NumPy: one value, or a few rows, at a time.

use crate::arrays::Array;
use crate::door::{of_index, quick, to_python, wrong};
use crate::files::FileIn;
use ketrag_base::error::{Error, Result};
use ketrag_base::store::{Item, Kind, MappedArray};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};
use pyo3::IntoPyObjectExt;
use std::ops::Range;
use std::sync::Arc;

/// The values of a stored array. Only the blocks of the values that are read are verified and unpacked. A value is a number;
/// a row of two dimensions, or a range of rows, is a `memoryview`.
#[pyclass(frozen, name = "Column", module = "ketrag_fast._core")]
pub struct Column(Arc<MappedArray>);

/// An index: a row, a value of a row, or a range of rows.
#[derive(FromPyObject)]
enum At<'py> {
    Row(isize),
    Value(isize, isize),
    Rows(Bound<'py, PySlice>),
}

#[pymethods]
impl Column {
    #[new]
    fn new(py: Python<'_>, file: FileIn<'_>) -> PyResult<Self> {
        file.array().map(Self).map_err(|e| of_index(py, to_python(e)))
    }

    /// Return the number of rows.
    fn __len__(&self) -> usize {
        self.0.shape().0
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: At<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.kind() {
            Kind::U8 => self.read::<u8>(py, at, "B"),
            Kind::I8 => self.read::<i8>(py, at, "b"),
            Kind::U32 => self.read::<u32>(py, at, "I"),
            Kind::U64 => self.read::<u64>(py, at, "Q"),
            Kind::F32 => self.read::<f32>(py, at, "f"),
            Kind::F64 => self.read::<f64>(py, at, "d"),
        }
    }

    /// Return the first row whose value is not less than `value`, from row `start` on. The values ascend.
    #[pyo3(signature = (value, start=0))]
    fn find(&self, py: Python<'_>, value: u64, start: usize) -> PyResult<usize> {
        let range = start..self.0.shape().0.max(start);
        let find = || match self.0.kind() {
            Kind::U32 => Ok(self.0.items::<u32>()?.partition_point(range, |&x| u64::from(x) < value)),
            Kind::U64 => Ok(self.0.items::<u64>()?.partition_point(range, |&x| x < value)),
            kind => Err(Error::input(format!("values of type {kind:?} are not searched"))),
        };
        quick(py, find).map_err(|e| of_index(py, e))
    }

    /// Return the rows (begin, stop) from `first` to `last` with `begin < end` and `stop >= start`. The begins ascend.
    fn overlapping(
        &self,
        py: Python<'_>,
        first: usize,
        last: usize,
        start: u32,
        end: u32,
    ) -> PyResult<Vec<usize>> {
        let (rows, width) = self.0.shape();
        let find = || {
            if width != 2 || first > last || last > rows {
                return Err(Error::input(format!(
                    "{rows} rows of {width} values have no spans {first} to {last}"
                )));
            }
            let items = self.0.items::<u32>()?;
            let spans = items.get(2 * first..2 * last).chunks_exact(2);
            let near =
                spans.take_while(|span| span[0] < end).enumerate().filter(|(_, span)| span[1] >= start);
            Ok(near.map(|(at, _)| first + at).collect())
        };
        quick(py, find).map_err(|e| of_index(py, e))
    }
}

impl Column {
    fn read<'py, T: Item + Send + IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        at: At<'py>,
        format: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (rows, width) = self.0.shape();
        let values = |range: Range<usize>| -> PyResult<Vec<T>> {
            quick(py, || Ok(self.0.items::<T>()?.get(range).to_vec())).map_err(|e| of_index(py, e))
        };
        match at {
            At::Row(row) if self.0.columns().is_none() => {
                let row = inside(row, rows)?;
                values(row..row + 1)?[0].into_bound_py_any(py)
            }
            At::Row(row) => {
                let row = inside(row, rows)?;
                view(py, &values(row * width..(row + 1) * width)?, format, None)
            }
            At::Value(row, column) => {
                let at = inside(row, rows)? * width + inside(column, width)?;
                values(at..at + 1)?[0].into_bound_py_any(py)
            }
            At::Rows(slice) => {
                let found = slice.indices(rows as isize)?;
                if found.step != 1 {
                    return Err(wrong("a range of rows has no step"));
                }
                let (start, count) = (found.start as usize, found.slicelength);
                let found = values(start * width..(start + count) * width)?;
                view(py, &found, format, self.0.columns().map(|width| (count, width)))
            }
        }
    }
}

fn inside(at: isize, count: usize) -> PyResult<usize> {
    let found = if at < 0 { at + count as isize } else { at };
    match found >= 0 && (found as usize) < count {
        true => Ok(found as usize),
        false => Err(PyIndexError::new_err(format!("{at} of {count}"))),
    }
}

/// Return values as a `memoryview` of their type. One of no rows has one dimension, because Python has no other.
fn view<'py, T: Item>(
    py: Python<'py>,
    values: &[T],
    format: &str,
    shape: Option<(usize, usize)>,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, bytemuck::cast_slice(values));
    let view = PyMemoryView::from(bytes.as_any())?;
    match shape {
        Some(shape) if !values.is_empty() => view.call_method1("cast", (format, shape)),
        _ if format == "B" => Ok(view.into_any()),
        _ => view.call_method1("cast", (format,)),
    }
}

/// Return whether a row of a mask is selected. Without a mask, all are.
pub fn selects(mask: Option<&Array<'_, u8>>, row: usize) -> Result<bool> {
    let Some(mask) = mask else { return Ok(true) };
    match mask.get(row) {
        Some(&value) => Ok(value != 0),
        None => Err(Error::input(format!("the mask has {} rows, and no row {row}", mask.len()))),
    }
}
