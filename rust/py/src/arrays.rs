//! NumPy arrays as slices: contiguous or rejected, never copied silently.

use super::door::wrong;
use ketrag_base::error::Result;
use ketrag_base::sparse::Csr;
use ketrag_core::vector::{Coded, Rows, Vectors};
use ketrag_text::strings::StringsBuf;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// Arguments that are arrays, and results.
pub type Array<'py, T> = PyReadonlyArray1<'py, T>;
pub type Matrix<'py, T> = PyReadonlyArray2<'py, T>;
pub type Out<'py, T> = Bound<'py, PyArray1<T>>;
pub type MatrixOut<'py, T> = Bound<'py, PyArray2<T>>;
/// Strings as blob and offsets.
pub type Packed<'py> = (Array<'py, u8>, Array<'py, u64>);
/// Compressed rows.
pub type CsrIn<'py> = (Array<'py, u64>, Array<'py, u32>);

pub fn slice<'a, T: Element>(array: &'a Array<'_, T>, name: &str) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| wrong(format!("{name} must be contiguous")))
}

/// Row-major values with (rows, columns).
pub fn matrix<'a, T: Element>(array: &'a Matrix<'_, T>, name: &str) -> PyResult<(&'a [T], usize, usize)> {
    let view = array.as_array();
    let (rows, columns) = (view.shape()[0], view.shape()[1]);
    let values = array.as_slice().map_err(|_| wrong(format!("{name} must be C-contiguous")))?;
    if rows > 1 && columns > 1 && !view.is_standard_layout() {
        return Err(wrong(format!("{name} must be C-contiguous")));
    }
    Ok((values, rows, columns))
}

pub type CsrArrays<'py> = (Out<'py, u64>, Out<'py, u32>);

pub fn csr_out(py: Python<'_>, csr: Csr) -> CsrArrays<'_> {
    (csr.indptr.into_pyarray(py), csr.indices.into_pyarray(py))
}

pub type StringArrays<'py> = (Out<'py, u8>, Out<'py, u64>);

pub fn strings_out(py: Python<'_>, strings: StringsBuf) -> StringArrays<'_> {
    (strings.blob.into_pyarray(py), strings.offsets.into_pyarray(py))
}

/// Return a matrix of (rows, columns) from concatenated rows.
pub fn matrix_out<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; 2],
) -> PyResult<MatrixOut<'_, T>> {
    values.into_pyarray(py).reshape(shape)
}

/// Stored rows of vectors: `(codes, scale, dimension)` with four or eight bits per value, or values in f32.
#[derive(FromPyObject)]
pub enum StoredRows<'py> {
    Nibbles(Matrix<'py, u8>, Array<'py, f32>, usize),
    Bytes(Matrix<'py, i8>, Array<'py, f32>, usize),
    Floats(Matrix<'py, f32>),
}

/// Slices of [`StoredRows`], checked once the interpreter is released.
pub enum RowSlices<'a> {
    Nibbles(&'a [u8], &'a [f32], usize),
    Bytes(&'a [i8], &'a [f32], usize),
    Floats(&'a [f32], usize),
}

impl StoredRows<'_> {
    pub fn slices(&self) -> PyResult<RowSlices<'_>> {
        Ok(match self {
            Self::Nibbles(codes, scale, d) => {
                RowSlices::Nibbles(matrix(codes, "codes")?.0, slice(scale, "scale")?, *d)
            }
            Self::Bytes(codes, scale, d) => {
                RowSlices::Bytes(matrix(codes, "codes")?.0, slice(scale, "scale")?, *d)
            }
            Self::Floats(values) => {
                let (values, _, d) = matrix(values, "vectors")?;
                RowSlices::Floats(values, d)
            }
        })
    }
}

impl<'a> RowSlices<'a> {
    pub fn rows(&self) -> Result<Rows<'a>> {
        Ok(match *self {
            Self::Nibbles(codes, scale, d) => Rows::Coded(Coded::nibbles(codes, scale, d)?),
            Self::Bytes(codes, scale, d) => Rows::Coded(Coded::bytes(codes, scale, d)?),
            Self::Floats(values, d) => Vectors::new(values, d)?.into(),
        })
    }
}
