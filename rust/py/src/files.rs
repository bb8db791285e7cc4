//! Bindings of mapped files and of their hashes.

use super::arrays::slice;
use super::door::{of_index, quick, to_python, wrong};
use ketrag_base::error::{Error, Result};
use ketrag_base::progress::Progress;
use ketrag_base::store::{file_tree, pack, pack_to, root, Kind, MappedArray, MappedFile, Shape, Tree, Value};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::OpenOptions;
use std::io::BufWriter;
use std::os::raw::{c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;

/// A file of an index, mapped read-only; as a buffer, its bytes. It stays readable after its name is removed.
#[pyclass(frozen, name = "MappedFile", module = "ketrag_fast._core")]
pub struct File {
    mapped: Arc<MappedFile>,
}

/// A mapped file, or the path of one with unknown size and digest.
#[derive(FromPyObject)]
pub enum FileIn<'py> {
    Mapped(PyRef<'py, File>),
    Path(PathBuf),
}

impl FileIn<'_> {
    pub fn mapped(&self) -> Result<Arc<MappedFile>> {
        match self {
            Self::Mapped(file) => Ok(file.mapped.clone()),
            Self::Path(path) => Ok(Arc::new(MappedFile::open(path, None, None, None)?)),
        }
    }
}

fn parse(digest: &str) -> Result<blake3::Hash> {
    blake3::Hash::from_hex(digest).map_err(|_| Error::damaged(format!("{digest:?} is not a checksum")))
}

#[pymethods]
impl File {
    /// Map a file, which must have `size` bytes, if given. With a `digest` (BLAKE3, hexadecimal) it is
    /// verified as it is read; `tree` is a file with the hashes of its blocks, and their offset in it.
    #[new]
    #[pyo3(signature = (path, size=None, digest=None, tree=None))]
    fn new(
        path: PathBuf,
        size: Option<u64>,
        digest: Option<&str>,
        tree: Option<(PyRef<'_, Self>, usize)>,
    ) -> PyResult<Self> {
        let tree = tree.map(|(file, start)| Tree { file: file.mapped.clone(), start });
        let digest = digest.map(parse).transpose().map_err(to_python)?;
        let mapped = MappedFile::open(&path, size, digest, tree).map_err(to_python)?;
        Ok(Self { mapped: Arc::new(mapped) })
    }

    fn __len__(&self) -> usize {
        self.mapped.bytes().len()
    }

    /// Verify everything not verified yet; IndexDamaged names the file.
    #[pyo3(signature = (threads=0))]
    fn verify(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        quick(py, || self.mapped.ensure(threads)).map_err(|e| of_index(py, e))
    }

    /// # Safety
    /// Python calls this with a view to fill in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill in"));
        }
        let bytes = slf.get().mapped.bytes();
        let (start, length) = (bytes.as_ptr() as *mut c_void, bytes.len() as ffi::Py_ssize_t);
        // SAFETY: the view holds a reference to this object, which keeps the mapping alive; the view is
        // read-only, so nobody writes through the pointer.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Return the packed form of an array of unsigned integers, given as its bytes in little-endian order, or None
/// if its type is not packed.
#[pyfunction]
#[pyo3(signature = (data, dtype, shape, *, threads=0))]
fn pack_array<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    dtype: &str,
    shape: Vec<usize>,
    threads: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let data = slice(&data, "data")?;
    let Some(shape) = shape_of(dtype, &shape) else { return Ok(None) };
    let packed = quick(py, || pack(shape, data, threads, &Progress::none()))?;
    Ok(packed.map(|packed| PyBytes::new(py, &packed)))
}

/// Write the packed form to a new file, a few chunks at a time, and return its size; None, and no file, if the type is
/// not packed. Chunks that the packed array `earlier` has, too, are copied from it.
#[pyfunction]
#[pyo3(signature = (data, dtype, shape, path, *, earlier=None, threads=0))]
fn pack_file<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    dtype: &str,
    shape: Vec<usize>,
    path: PathBuf,
    earlier: Option<PathBuf>,
    threads: usize,
) -> PyResult<Option<u64>> {
    let data = slice(&data, "data")?;
    let Some(shape) = shape_of(dtype, &shape) else { return Ok(None) };
    quick(py, || {
        let failed =
            |error: std::io::Error| Error::io(format!("{}: {error}", path.display())).caused_by(error);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let earlier = earlier.map(|path| MappedFile::open(&path, None, None, None)).transpose()?;
        let earlier = earlier.as_ref().map(MappedFile::bytes);
        let mut out = BufWriter::new(file);
        pack_to(shape, data, earlier, &mut out, threads, &Progress::none())
    })
}

fn shape_of(dtype: &str, shape: &[usize]) -> Option<Shape> {
    let (rows, columns) = match *shape {
        [rows] => (rows, None),
        [rows, columns] => (rows, Some(columns)),
        _ => return None,
    };
    let kind = Kind::parse(dtype).filter(|kind| matches!(kind, Kind::U8 | Kind::U32 | Kind::U64))?;
    Some(Shape { kind, rows, columns })
}

/// Return the values of a packed array, in one dimension, verified.
#[pyfunction]
fn unpack_array<'py>(py: Python<'py>, file: FileIn<'py>) -> PyResult<Bound<'py, PyAny>> {
    let mapped = file.mapped().map_err(|e| of_index(py, to_python(e)))?;
    let array = MappedArray::new(mapped).map_err(|e| of_index(py, to_python(e)))?;
    let values = match array.kind() {
        Kind::U8 => quick(py, || Ok(array.values::<u8>()?.to_vec())).map(|x| x.into_pyarray(py).into_any()),
        Kind::U32 => quick(py, || Ok(array.values::<u32>()?.to_vec())).map(|x| x.into_pyarray(py).into_any()),
        Kind::U64 => quick(py, || Ok(array.values::<u64>()?.to_vec())).map(|x| x.into_pyarray(py).into_any()),
        other => return Err(wrong(format!("arrays of {other:?} are not packed"))),
    };
    values.map_err(|e| of_index(py, e))
}

/// Return values `start` to `stop` of a stored array of bytes. Only their blocks are verified and unpacked.
#[pyfunction]
fn read_bytes<'py>(
    py: Python<'py>,
    file: FileIn<'py>,
    start: usize,
    stop: usize,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let mapped = file.mapped().map_err(|e| of_index(py, to_python(e)))?;
    let read = || {
        let array = MappedArray::new(mapped)?;
        let items = array.items::<u8>()?;
        match start <= stop && stop <= items.len() {
            true => Ok(items.get(start..stop).to_vec()),
            false => Err(Error::input(format!("bytes {start} to {stop} of {} do not exist", items.len()))),
        }
    };
    quick(py, read).map(|values| values.into_pyarray(py)).map_err(|e| of_index(py, e))
}

/// Return the BLAKE3 of a file (hexadecimal), and the concatenated hashes of its blocks: empty for a single
/// block.
#[pyfunction]
fn hash_file(py: Python<'_>, path: PathBuf) -> PyResult<(String, Bound<'_, PyBytes>)> {
    let (digest, values) = quick(py, || file_tree(&path, &Progress::none()))?;
    Ok((digest.to_hex().to_string(), PyBytes::new(py, bytemuck::cast_slice(&values))))
}

/// Return the BLAKE3 of a file of `size` bytes from the hashes of its blocks, or None if they do not fit.
#[pyfunction]
fn merge_hashes(hashes: &[u8], size: usize) -> PyResult<Option<String>> {
    let values: &[Value] =
        bytemuck::try_cast_slice(hashes).map_err(|_| wrong("hashes have 32 bytes each"))?;
    Ok(root(values, size).map(|digest| digest.to_hex().to_string()))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<File>()?;
    m.add_function(wrap_pyfunction!(hash_file, m)?)?;
    m.add_function(wrap_pyfunction!(pack_array, m)?)?;
    m.add_function(wrap_pyfunction!(pack_file, m)?)?;
    m.add_function(wrap_pyfunction!(unpack_array, m)?)?;
    m.add_function(wrap_pyfunction!(read_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(merge_hashes, m)?)
}
