//! Arrays as arguments and results. An argument is any contiguous buffer of the right type (an array of NumPy, `bytes`, a
//! `memoryview`), so that a caller without NumPy can pass one; it is never copied. Results are arrays of NumPy, or values
//! of [`column_bytes`] where callers do without NumPy.

use super::door::wrong;
use ketrag_base::error::Result;
use ketrag_base::sparse::{Csr, CsrView};
use ketrag_core::vector::{Coded, Rows, Vectors};
use ketrag_text::strings::{Strings, StringsBuf};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::buffer::{Element as Plain, PyBuffer};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::marker::PhantomData;
use std::ops::Deref;

/// An argument that is a contiguous array of `D` dimensions: a slice of its values, row by row.
pub struct Values<'py, T: Plain, const D: usize> {
    values: *const [T],
    /// Rows and columns; a vector has one column.
    shape: [usize; 2],
    /// Keeps the values alive.
    _held: PyBuffer<T>,
    _call: PhantomData<&'py ()>,
}

pub type Array<'py, T> = Values<'py, T, 1>;
pub type Matrix<'py, T> = Values<'py, T, 2>;

// SAFETY: a shared reference gives access to the values alone, never to the Python object.
unsafe impl<T: Plain + Sync, const D: usize> Sync for Values<'_, T, D> {}

impl<T: Plain, const D: usize> Deref for Values<'_, T, D> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer is held, and nobody writes to it meanwhile.
        unsafe { &*self.values }
    }
}

impl<'a, 'py, T: Plain, const D: usize> FromPyObject<'a, 'py> for Values<'py, T, D> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let kind = || {
            let (object, kind) = (object.get_type(), std::any::type_name::<T>());
            PyTypeError::new_err(format!("expected an array of {kind} with {D} dimensions, got {object}"))
        };
        let held = PyBuffer::<T>::get(&object).map_err(|_| kind())?;
        if held.dimensions() != D {
            return Err(kind());
        }
        if !held.is_c_contiguous() {
            return Err(wrong("the array must be contiguous, in C order"));
        }
        let shape = [held.shape()[0], held.shape().get(1).copied().unwrap_or(1)];
        let values: *const [T] = match held.item_count() {
            0 => &[],
            count => std::ptr::slice_from_raw_parts(held.buf_ptr().cast(), count),
        };
        Ok(Self { values, shape, _held: held, _call: PhantomData })
    }
}

impl<T: Plain> Matrix<'_, T> {
    pub fn row(&self, at: usize) -> &[T] {
        &self[at * self.columns()..][..self.columns()]
    }

    /// Return the rows of a matrix that must have `N` columns.
    pub fn rows_of<const N: usize>(&self, name: &str) -> PyResult<&[[T; N]]> {
        match self.columns() {
            columns if columns == N => Ok(self.as_chunks().0),
            columns => Err(wrong(format!("{name} must have {N} columns, not {columns}"))),
        }
    }

    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    pub fn columns(&self) -> usize {
        self.shape[1]
    }
}

impl Matrix<'_, f32> {
    pub fn vectors(&self) -> Result<Vectors<'_>> {
        Vectors::new(self, self.columns())
    }
}

/// Strings as blob and offsets.
#[derive(FromPyObject)]
pub struct Packed<'py>(pub Array<'py, u8>, Array<'py, u64>);

impl Packed<'_> {
    pub fn view(&self) -> Result<Strings<'_>> {
        Strings::new(&self.0, &self.1)
    }
}

/// Compressed rows as row ends and ids.
#[derive(FromPyObject)]
pub struct CsrIn<'py>(pub Array<'py, u64>, pub Array<'py, u32>);

impl CsrIn<'_> {
    pub fn view(&self, columns: usize) -> Result<CsrView<'_>> {
        CsrView::new(&self.0, &self.1, columns)
    }

    /// Return the number of rows, which is valid once `view` has succeeded.
    #[cfg(feature = "papers")]
    pub fn rows(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// Stored rows of vectors: `(codes, scale, dimension)` with four or eight bits per value, or values in f32.
#[derive(FromPyObject)]
pub enum StoredRows<'py> {
    Nibbles(Matrix<'py, u8>, Array<'py, f32>, usize),
    Bytes(Matrix<'py, i8>, Array<'py, f32>, usize),
    Floats(Matrix<'py, f32>),
}

impl StoredRows<'_> {
    pub fn rows(&self) -> Result<Rows<'_>> {
        Ok(match self {
            Self::Nibbles(codes, scale, d) => Rows::Coded(Coded::nibbles(codes, scale, *d)?),
            Self::Bytes(codes, scale, d) => Rows::Coded(Coded::bytes(codes, scale, *d)?),
            Self::Floats(values) => values.vectors()?.into(),
        })
    }
}

/// A result that is an array of one dimension.
pub struct Out<T>(pub Vec<T>);

impl<'py, T: Element> IntoPyObject<'py> for Out<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, Self::Target>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(self.0.into_pyarray(py))
    }
}

/// A result that is an array of two dimensions: its values row by row, and its shape.
pub struct MatrixOut<T>(pub Vec<T>, pub [usize; 2]);

impl<'py, T: Element> IntoPyObject<'py> for MatrixOut<T> {
    type Target = PyArray2<T>;
    type Output = Bound<'py, Self::Target>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.0.into_pyarray(py).reshape(self.1)
    }
}

pub type CsrOut = (Out<u64>, Out<u32>);

pub fn csr_out(rows: Csr) -> CsrOut {
    (Out(rows.indptr), Out(rows.indices))
}

pub type StringsOut = (Out<u8>, Out<u64>);

pub fn strings_out(strings: StringsBuf) -> StringsOut {
    (Out(strings.blob), Out(strings.offsets))
}
