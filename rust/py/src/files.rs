//! Mapped files, their hashes, and the patches of an index whose documents changed.

use crate::arrays::{Array, Out};
use crate::door::{long, of_index, quick, to_python, wrong, Report};
use crate::units::PyCutUnits;
use ketrag_base::beneath::open_regular;
use ketrag_base::error::{Error, Result};
use ketrag_base::parallel::map_ranges;
use ketrag_base::progress::Progress;
use ketrag_base::store::patch::{Numbering, Patch, Piece};
use ketrag_base::store::{
    file_tree, pack_to, root, Item, Kind, MappedArray, MappedFile, Patched, Shape, Tree, Value,
};
use ketrag_core::generation::delta::{from_below, patches, Documents, New, Patches};
use ketrag_core::generation::{Arrays, Held, Parts};
use ketrag_core::graph::links_delta::Of;
use ketrag_text::detection::Choice;
use numpy::{Element, IntoPyArray};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::fs::{Metadata, OpenOptions};
use std::io::BufWriter;
use std::os::raw::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file of an index, mapped read-only; as a buffer, its bytes. It stays readable after its name is removed.
#[pyclass(frozen, name = "MappedFile", module = "ketrag_fast._core")]
pub struct File {
    body: Body,
    /// The array in the file, shared by all files that were opened with it.
    array: OnceLock<Arc<MappedArray>>,
}

enum Body {
    Mapped(Arc<MappedFile>),
    /// An array stored as changes to an earlier array. It has no bytes to map.
    Patched,
}

/// A mapped file, or the path of one with unknown size and digest.
#[derive(FromPyObject)]
pub enum FileIn<'py> {
    Mapped(PyRef<'py, File>),
    Path(PathBuf),
}

impl FileIn<'_> {
    /// Return the file, or the array if several generations share it.
    pub fn held(&self) -> Result<Held> {
        match self {
            Self::Mapped(file) => match (&file.body, file.array.get()) {
                (_, Some(array)) => Ok(Held::Array(array.clone())),
                (Body::Mapped(mapped), None) => Ok(Held::File(mapped.clone())),
                (Body::Patched, None) => Err(Error::Internal("a patched array is missing".to_owned())),
            },
            Self::Path(path) => Ok(Held::File(Arc::new(MappedFile::open(path, None, None, None)?))),
        }
    }

    /// Return the array.
    pub fn array(&self) -> Result<Arc<MappedArray>> {
        match self.held()? {
            Held::Array(array) => Ok(array),
            Held::File(file) => Ok(Arc::new(MappedArray::new(file)?)),
        }
    }
}

impl File {
    /// Return the array in the file. Its values are unpacked only once for all readers.
    fn shared(&self) -> Result<Arc<MappedArray>> {
        match (&self.body, self.array.get()) {
            (_, Some(array)) => Ok(array.clone()),
            (Body::Mapped(mapped), None) => {
                let array = Arc::new(MappedArray::new(mapped.clone())?);
                Ok(self.array.get_or_init(|| array).clone())
            }
            (Body::Patched, None) => Err(Error::Internal("a patched array is missing".to_owned())),
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Mapped(mapped) => mapped.bytes(),
            Body::Patched => &[],
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
        let tree = tree.and_then(|(file, start)| match &file.body {
            Body::Mapped(mapped) => Some(Tree { file: mapped.clone(), start }),
            Body::Patched => None,
        });
        let digest = digest.map(parse).transpose().map_err(to_python)?;
        let mapped = MappedFile::open(&path, size, digest, tree).map_err(to_python)?;
        Ok(Self { body: Body::Mapped(Arc::new(mapped)), array: OnceLock::new() })
    }

    /// Return an array that is the one in this file with changes: `pieces` (position, start, 1 if new, shift of each), the new
    /// `values`, the `length`, and for ids the start and shift of each of their numberings.
    fn patched(
        &self,
        py: Python<'_>,
        pieces: Array<'_, u64>,
        values: Array<'_, u64>,
        length: u64,
        numbers: Option<Array<'_, u64>>,
        name: String,
    ) -> PyResult<Self> {
        let piece = |&[at, start, is_new, shift]: &[u64; 4]| Piece {
            at,
            start,
            is_new: is_new != 0,
            shift: shift as i64,
        };
        let (pieces, rest) = pieces.as_chunks();
        if !rest.is_empty() {
            return Err(wrong("each piece has four numbers"));
        }
        let pieces = pieces.iter().map(piece).collect();
        let patch = Patch { pieces, values: values.to_vec(), len: length };
        let numbers = numbers.map(|steps| {
            let (starts, shifts) =
                steps.as_chunks().0.iter().map(|&[start, shift]| (start, shift as i64)).unzip();
            Arc::new(Numbering::from_parts(starts, shifts))
        });
        let array = quick(py, || {
            let patched = Patched::new(self.shared()?, patch, numbers, name)?;
            Ok(Arc::new(MappedArray::composed(Box::new(patched))?))
        });
        Ok(Self { body: Body::Patched, array: OnceLock::from(array.map_err(|e| of_index(py, e))?) })
    }

    /// Return the shape of the array in the file.
    fn shape(&self, py: Python<'_>) -> PyResult<(usize, Option<usize>)> {
        let array = self.shared().map_err(|e| of_index(py, to_python(e)))?;
        Ok((array.shape().0, array.columns()))
    }

    fn __len__(&self) -> usize {
        self.bytes().len()
    }

    /// Verify everything not verified yet; IndexDamaged names the file.
    #[pyo3(signature = (threads=0))]
    fn verify(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        match &self.body {
            Body::Mapped(mapped) => quick(py, || mapped.ensure(threads)).map_err(|e| of_index(py, e)),
            Body::Patched => Ok(()),
        }
    }

    /// # Safety
    /// Python calls this with a view to fill in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill in"));
        }
        let bytes = slf.get().bytes();
        let (start, length) = (bytes.as_ptr() as *mut c_void, bytes.len() as ffi::Py_ssize_t);
        // SAFETY: the view holds a reference to this object, which keeps the mapping alive; the view is
        // read-only, so nobody writes through the pointer.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Write the packed form of an array of unsigned integers, given as its bytes in little-endian order, to a new file,
/// a few chunks at a time, and return its size; None, and no file, if the type is not packed. Chunks that the packed
/// array `earlier` has, too, are copied from it.
#[pyfunction]
#[pyo3(signature = (data, dtype, shape, path, *, earlier=None, threads=0))]
pub fn pack_file(
    py: Python<'_>,
    data: Array<'_, u8>,
    dtype: &str,
    shape: Vec<usize>,
    path: PathBuf,
    earlier: Option<PathBuf>,
    threads: usize,
) -> PyResult<Option<u64>> {
    let Some(shape) = shape_of(dtype, &shape) else { return Ok(None) };
    quick(py, || {
        let failed =
            |error: std::io::Error| Error::io(format!("{}: {error}", path.display())).caused_by(error);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let earlier = earlier.map(|path| MappedFile::open(&path, None, None, None)).transpose()?;
        let earlier = earlier.as_ref().map(MappedFile::bytes);
        let mut out = BufWriter::new(file);
        pack_to(shape, &data, earlier, &mut out, threads, &Progress::none())
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
pub fn unpack_array<'py>(py: Python<'py>, file: FileIn<'py>) -> PyResult<Bound<'py, PyAny>> {
    let array = file.array().map_err(|e| of_index(py, to_python(e)))?;
    match array.kind() {
        Kind::U8 => unpacked::<u8>(py, &array),
        Kind::U32 => unpacked::<u32>(py, &array),
        Kind::U64 => unpacked::<u64>(py, &array),
        Kind::I8 => unpacked::<i8>(py, &array),
        Kind::F32 => unpacked::<f32>(py, &array),
        Kind::F64 => Err(wrong("arrays of F64 are not packed")),
    }
}

fn unpacked<'py, T: Item + Element>(py: Python<'py>, array: &MappedArray) -> PyResult<Bound<'py, PyAny>> {
    let values = quick(py, || Ok(array.values::<T>()?.to_vec())).map_err(|e| of_index(py, e))?;
    Ok(values.into_pyarray(py).into_any())
}

/// Return values `start` to `stop` of a stored array of bytes. Only their blocks are verified and unpacked.
#[pyfunction]
pub fn read_bytes(py: Python<'_>, file: FileIn<'_>, start: usize, stop: usize) -> PyResult<Out<u8>> {
    let array = file.array().map_err(|e| of_index(py, to_python(e)))?;
    let read = || {
        let items = array.items::<u8>()?;
        match start <= stop && stop <= items.len() {
            true => Ok(items.get(start..stop).to_vec()),
            false => Err(Error::input(format!("bytes {start} to {stop} of {} do not exist", items.len()))),
        }
    };
    quick(py, read).map(Out).map_err(|e| of_index(py, e))
}

/// Return the BLAKE3 of a file (hexadecimal), and the concatenated hashes of its blocks: empty for a single
/// block.
#[pyfunction]
pub fn hash_file(py: Python<'_>, path: PathBuf) -> PyResult<(String, Bound<'_, PyBytes>)> {
    let (digest, values) = quick(py, || file_tree(&path, &Progress::none()))?;
    Ok((digest.to_hex().to_string(), PyBytes::new(py, bytemuck::cast_slice(&values))))
}

/// Return the BLAKE3 of a file of `size` bytes from the hashes of its blocks, or None if they do not fit.
#[pyfunction]
pub fn merge_hashes(hashes: &[u8], size: usize) -> PyResult<Option<String>> {
    let values: &[Value] =
        bytemuck::try_cast_slice(hashes).map_err(|_| wrong("the hashes must have 32 bytes each"))?;
    Ok(root(values, size).map(|digest| digest.to_hex().to_string()))
}

/// Number of files that one thread looks up, or reads, at a time.
const LOOKED_UP: usize = 512;
const HASHED: usize = 16;
/// Bytes of what is known of a file: size, times of change of its content and of its inode in ns, and inode number.
const STAT: usize = 32;
/// Bytes of the hash of a file.
const DIGEST: usize = 32;

/// Return the paths of a list in which each ends with a zero byte.
fn paths_of(paths: &[u8]) -> Result<Vec<&[u8]>> {
    match paths.split_last() {
        None => Ok(Vec::new()),
        Some((0, rest)) => Ok(rest.split(|&byte| byte == 0).collect()),
        Some(_) => Err(Error::input("the last path does not end with a zero byte")),
    }
}

/// Return size, times of change and inode number of files (32 bytes each, little-endian i64: bytes, ns since 1970, ns since
/// 1970, number), whose paths end with a zero byte each. The size of a missing file is -1, that of a folder 0.
#[pyfunction]
pub fn file_stats<'py>(py: Python<'py>, paths: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let found = quick(py, || {
        let names = paths_of(paths)?;
        let parts = map_ranges(names.len(), LOOKED_UP, 0, &Progress::none(), |rows| {
            Ok(names[rows].iter().flat_map(|name| stat_of(name)).collect::<Vec<u8>>())
        })?;
        Ok(parts.concat())
    })?;
    Ok(PyBytes::new(py, &found))
}

/// Return the numbers of the files whose `file_stats` are not those in `stats`, and what these are now.
#[pyfunction]
pub fn changed_files<'py>(
    py: Python<'py>,
    paths: &[u8],
    stats: &[u8],
) -> PyResult<(Vec<usize>, Bound<'py, PyBytes>)> {
    let (rows, now) = quick(py, || {
        let names = paths_of(paths)?;
        if stats.len() != STAT * names.len() {
            let message = format!("{} bytes for {} files: each has {STAT}", stats.len(), names.len());
            return Err(Error::input(message));
        }
        let parts = map_ranges(names.len(), LOOKED_UP, 0, &Progress::none(), |rows| {
            let mut changed = (Vec::new(), Vec::new());
            for row in rows {
                let now = stat_of(names[row]);
                if now != stats[STAT * row..STAT * (row + 1)] {
                    changed.0.push(row);
                    changed.1.extend(now);
                }
            }
            Ok(changed)
        })?;
        let (rows, now): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((rows.concat(), now.concat()))
    })?;
    Ok((rows, PyBytes::new(py, &now)))
}

/// Return the BLAKE3 of files whose paths end with a zero byte each, 32 bytes each; zeros for one that cannot be read, or
/// that is not in the folder `root`, if given, after all links are resolved.
#[pyfunction]
#[pyo3(signature = (paths, root=None))]
pub fn hash_files<'py>(
    py: Python<'py>,
    paths: &[u8],
    root: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let root = root.as_deref();
    let found = quick(py, || {
        let names = paths_of(paths)?;
        let parts = map_ranges(names.len(), HASHED, 0, &Progress::none(), |rows| {
            let digest = |name: &&[u8]| path_of(name).and_then(|path| digest_of(path, root).ok());
            Ok(names[rows].iter().flat_map(|name| digest(name).unwrap_or([0; DIGEST])).collect::<Vec<u8>>())
        })?;
        Ok(parts.concat())
    })?;
    Ok(PyBytes::new(py, &found))
}

fn digest_of(path: &Path, root: Option<&Path>) -> std::io::Result<[u8; DIGEST]> {
    let mut state = blake3::Hasher::new();
    std::io::copy(&mut open_regular(path, root)?, &mut state)?;
    Ok(*state.finalize().as_bytes())
}

/// Open a regular file that is in the folder `root` after all links are resolved. Returns its descriptor, which the caller
/// closes, or the negative number of the system's error; None on systems without descriptors.
#[pyfunction]
pub fn open_beneath(py: Python<'_>, path: PathBuf, root: PathBuf) -> Option<i32> {
    #[cfg(unix)]
    return Some(match py.detach(|| open_regular(&path, Some(&root))) {
        Ok(file) => std::os::fd::IntoRawFd::into_raw_fd(file),
        Err(error) => -error.raw_os_error().unwrap_or(1),
    });
    #[cfg(not(unix))]
    {
        let _ = (py, path, root);
        None
    }
}

#[cfg(unix)]
fn path_of(name: &[u8]) -> Option<&Path> {
    Some(Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name)))
}

#[cfg(not(unix))]
fn path_of(name: &[u8]) -> Option<&Path> {
    std::str::from_utf8(name).ok().map(Path::new)
}

fn stat_of(name: &[u8]) -> [u8; STAT] {
    let values = match path_of(name).and_then(|path| std::fs::metadata(path).ok()) {
        None => [-1; 4],
        Some(about) => {
            let size = if about.is_dir() { 0 } else { i64::try_from(about.len()).unwrap_or(i64::MAX) };
            let (changed, inode) = inode_of(&about);
            [size, modified(&about), changed, inode]
        }
    };
    let mut bytes = [0; STAT];
    for (bytes, value) in bytes.chunks_exact_mut(8).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn modified(about: &Metadata) -> i64 {
    about.modified().ok().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    })
}

/// Return when an inode changed last, in ns since 1970, and its number; zeros on systems without them.
#[cfg(unix)]
fn inode_of(about: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    let changed = about.ctime().saturating_mul(1_000_000_000).saturating_add(about.ctime_nsec());
    (changed, about.ino().cast_signed())
}

#[cfg(not(unix))]
fn inode_of(_about: &Metadata) -> (i64, i64) {
    (0, 0)
}

/// Name, what the values number, number of pieces, number of new values, length.
type Entry = (String, &'static str, usize, usize, u64);
type Numbers = Vec<(&'static str, usize)>;
type Found<'py> = (Vec<Entry>, Numbers, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn name_of(of: Of) -> &'static str {
    match of {
        Of::Nothing => "",
        Of::Keywords => "keywords",
        Of::Names => "names",
        Of::Subjects => "subjects",
        Of::Units => "units",
        Of::Documents => "documents",
        Of::Chunks => "chunks",
        Of::Labels => "labels",
    }
}

/// Return how the arrays of the stages "units" and "links" change when documents do: a list of arrays (name, what its
/// values number, number of pieces and of new values, length), a list of numberings (what, number of steps), and the
/// pieces (4 numbers of 64 bits each), new values and steps (2 numbers each) of all of them; or None if the index must be computed
/// as a whole.
///
/// `files` are the published arrays, `gone` documents that go, `before` the documents before which others come,
/// `units` the arrays of these documents alone, and `new` further ones: hashes, and vectors. `behind` lists arrays that are changes of others, the
/// published ones first: the result is the changes of those below the last.
#[pyfunction]
#[pyo3(signature = (files, gone, before, units, new, *, language, behind=Vec::new(), report=None))]
pub fn delta_patches<'py>(
    py: Python<'py>,
    files: BTreeMap<String, FileIn<'py>>,
    gone: Array<'py, u32>,
    before: Array<'py, u32>,
    units: PyRef<'py, PyCutUnits>,
    new: BTreeMap<String, Array<'py, u64>>,
    language: &str,
    behind: Vec<BTreeMap<String, FileIn<'py>>>,
    report: Report<'_, '_>,
) -> PyResult<Option<Found<'py>>> {
    let choice = Choice::by_name(language).map_err(to_python)?;
    let arrays_of = |files: BTreeMap<String, FileIn<'py>>| -> Result<Arrays> {
        let held = files.into_iter().map(|(name, file)| Ok((name, file.held()?)));
        Ok(Arrays::new(held.collect::<Result<Vec<_>>>()?, true))
    };
    let arrays = arrays_of(files).map_err(to_python)?;
    let levels = behind.into_iter().map(arrays_of).collect::<Result<Vec<_>>>().map_err(to_python)?;
    let mut own = units.new_arrays();
    own.extend(new.iter().map(|(name, values)| (name.clone(), values.to_vec())));
    let new: New = own;
    let found: Option<Patches> = long(py, report, |progress| {
        let parts = Parts::new(&arrays, language)?;
        let links = parts.links()?.ok_or_else(|| Error::damaged("the index has no links".to_owned()))?;
        let documents = Documents { gone: &gone, before: &before, new: &new, language: choice };
        let Some(found) = patches(&arrays, links, &documents, progress)? else { return Ok(None) };
        levels.iter().try_fold(found, |found, level| from_below(level, found)).map(Some)
    })?;
    let Some((arrays, numbers)) = found else { return Ok(None) };
    let (mut pieces, mut values, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    let mut entries = Vec::new();
    for (name, of, patch) in arrays {
        entries.push((name, name_of(of), patch.pieces.len(), patch.values.len(), patch.len));
        for piece in &patch.pieces {
            pieces.extend([piece.at, piece.start, u64::from(piece.is_new), piece.shift as u64]);
        }
        values.extend(patch.values);
    }
    let mut numberings = Vec::new();
    for (of, numbering) in numbers {
        let (starts, shifts) = numbering.parts();
        numberings.push((name_of(of), starts.len()));
        starts.iter().zip(shifts).for_each(|(&start, &shift)| steps.extend([start, shift as u64]));
    }
    let bytes = |values: &[u64]| PyBytes::new(py, bytemuck::cast_slice(values));
    Ok(Some((entries, numberings, bytes(&pieces), bytes(&values), bytes(&steps))))
}
