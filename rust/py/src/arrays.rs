//! NumPy arrays as arguments and results. An argument that is not contiguous is rejected, never copied.

use super::door::wrong;
use ketrag_base::error::Result;
use ketrag_base::sparse::{Csr, CsrView};
use ketrag_core::vector::{Coded, Rows, Vectors};
use ketrag_text::strings::{Strings, StringsBuf};
use numpy::ndarray::{Dimension, Ix1, Ix2};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray};
use pyo3::prelude::*;
use std::ops::Deref;

/// An argument that is a contiguous array: a slice of its values, row by row.
pub struct Values<'py, T: Element, D: Dimension> {
    values: *const [T],
    /// Rows and columns; a vector has one column.
    shape: [usize; 2],
    /// Keeps the values alive and unchanged.
    _held: PyReadonlyArray<'py, T, D>,
}

pub type Array<'py, T> = Values<'py, T, Ix1>;
pub type Matrix<'py, T> = Values<'py, T, Ix2>;

// SAFETY: a shared reference gives access to the values alone, never to the Python object.
unsafe impl<T: Element + Sync, D: Dimension> Sync for Values<'_, T, D> {}

impl<T: Element, D: Dimension> Deref for Values<'_, T, D> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the array is held, and nobody writes to it meanwhile.
        unsafe { &*self.values }
    }
}

impl<'a, 'py, T: Element + 'a, D: Dimension + 'a> FromPyObject<'a, 'py> for Values<'py, T, D> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let held: PyReadonlyArray<'py, T, D> = object.extract()?;
        let view = held.as_array();
        let &[rows, ref columns @ ..] = view.shape() else { return Err(wrong("an array needs a dimension")) };
        let shape = [rows, columns.first().copied().unwrap_or(1)];
        let values: *const [T] =
            view.as_slice().ok_or_else(|| wrong("the array must be contiguous, in C order"))?;
        Ok(Self { values, shape, _held: held })
    }
}

impl<T: Element> Matrix<'_, T> {
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
