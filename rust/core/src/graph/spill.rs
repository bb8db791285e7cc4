//! Temporary files for builds whose arrays do not fit into memory: pieces that are written and read back,
//! outputs to which values are appended, and the transpose of rows in buckets.

use crate::error::{Error, Result};
use crate::memory::{use_large_pages, zeros};
use crate::progress::Progress;
use crate::text::interner::hash;
use bytemuck::Pod;
use std::fs::{remove_file, File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Number of values of a bucket that are written together.
const TOGETHER: usize = 3 << 14;

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("{}: {error}", path.display())).caused_by(error)
}

/// An unnamed file, which disappears with the process.
pub(crate) struct Spill {
    path: PathBuf,
    file: Mutex<File>,
    end: u64,
}

/// The location of a piece of a [`Spill`], and the hash of its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    start: u64,
    bytes: usize,
    hash: u64,
}

#[cfg(test)]
impl Piece {
    /// Return a piece that expects these bytes at the location of another piece.
    pub fn with_bytes_of(self, other: Self) -> Self {
        Self { start: other.start, ..self }
    }
}

impl Spill {
    pub fn create(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| failed(&path, error))?;
        // On systems that cannot remove an open file, the caller removes the folder.
        let _ = remove_file(&path);
        Ok(Self { path, file: Mutex::new(file), end: 0 })
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<Piece> {
        let file = self.file.get_mut().unwrap_or_else(|e| e.into_inner());
        file.seek(SeekFrom::Start(self.end))
            .and_then(|_| file.write_all(bytes))
            .map_err(|error| failed(&self.path, error))?;
        let piece = Piece { start: self.end, bytes: bytes.len(), hash: hash(bytes) };
        self.end += bytes.len() as u64;
        Ok(piece)
    }

    pub fn read(&self, piece: Piece) -> Result<Vec<u8>> {
        let mut bytes = zeros(piece.bytes, "a piece of a temporary file")?;
        let mut file = self.file.lock().unwrap_or_else(|e| e.into_inner());
        file.seek(SeekFrom::Start(piece.start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| failed(&self.path, error))?;
        drop(file);
        match hash(&bytes) == piece.hash {
            true => Ok(bytes),
            false => Err(Error::io(format!("{}: the system returned other bytes", self.path.display()))),
        }
    }
}

/// Append a list of values to a buffer of bytes, for [`take`].
pub(crate) fn put<T: Pod>(out: &mut Vec<u8>, values: &[T]) {
    out.extend((values.len() as u64).to_le_bytes());
    out.extend_from_slice(bytemuck::cast_slice(values));
}

/// Return the next list of values, and advance past it.
pub(crate) fn take<T: Pod>(bytes: &mut &[u8]) -> Result<Vec<T>> {
    let short = || Error::Internal("a piece of a temporary file is too short".into());
    let (head, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    let size = u64::from_le_bytes(*head) as usize * size_of::<T>();
    let (values, rest) = rest.split_at_checked(size).ok_or_else(short)?;
    *bytes = rest;
    Ok(bytemuck::pod_collect_to_vec(values))
}

/// An array in a file, without a header, in the byte order of the machine.
pub(crate) struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Sink {
    pub fn create(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| failed(&path, error))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 16, file) })
    }

    pub fn push<T: Pod>(&mut self, values: &[T]) -> Result<()> {
        self.file.write_all(bytemuck::cast_slice(values)).map_err(|error| failed(&self.path, error))
    }

    pub fn finish(mut self) -> Result<PathBuf> {
        self.file.flush().map_err(|error| failed(&self.path, error))?;
        Ok(self.path)
    }
}

/// Rows of ids in two files: offsets and values.
pub(crate) struct RowSink {
    ends: Sink,
    values: Sink,
    count: u64,
}

impl RowSink {
    pub fn create(folder: &Path, name: &str) -> Result<Self> {
        let mut ends = Sink::create(folder, &format!("{name}_indptr"))?;
        ends.push(&[0u64])?;
        Ok(Self { ends, values: Sink::create(folder, &format!("{name}_indices"))?, count: 0 })
    }

    /// Append rows, given their values and the end of each row.
    pub fn push(&mut self, values: &[u32], ends: &[u64]) -> Result<()> {
        let moved: Vec<u64> = ends.iter().map(|end| self.count + end).collect();
        self.count += values.len() as u64;
        self.ends.push(&moved)?;
        self.values.push(values)
    }

    pub fn finish(self) -> Result<(PathBuf, PathBuf)> {
        Ok((self.ends.finish()?, self.values.finish()?))
    }
}

/// The transpose of rows whose column lengths are known. Entries are written to buckets of adjacent columns
/// with at most `most` entries (or a single column), and sorted bucket by bucket.
pub(crate) struct Turned {
    spill: Spill,
    ends: Vec<u64>,
    /// The first column of each bucket, and the number of columns.
    first: Vec<u32>,
    /// The bucket of each column.
    bucket: Vec<u32>,
    waiting: Vec<Vec<u32>>,
    pieces: Vec<Vec<Piece>>,
}

impl Turned {
    pub fn new(folder: &Path, name: &str, lengths: &[u32], most: usize) -> Result<Self> {
        let (mut ends, mut first, mut bucket) = (vec![0u64], vec![0u32], Vec::with_capacity(lengths.len()));
        let (mut total, mut start) = (0u64, 0u64);
        for (column, &length) in lengths.iter().enumerate() {
            if total > start && total - start + u64::from(length) > most as u64 {
                first.push(column as u32);
                start = total;
            }
            bucket.push(first.len() as u32 - 1);
            total += u64::from(length);
            ends.push(total);
        }
        let count = first.len();
        first.push(lengths.len() as u32);
        let spill = Spill::create(folder, name)?;
        Ok(Self {
            spill,
            ends,
            first,
            bucket,
            waiting: vec![Vec::new(); count],
            pieces: vec![Vec::new(); count],
        })
    }

    /// Add an entry. Rows must come in ascending order.
    pub fn push(&mut self, column: u32, row: u32, value: u32) -> Result<()> {
        let bucket = self.bucket[column as usize] as usize;
        let waiting = &mut self.waiting[bucket];
        waiting.extend([column, row, value]);
        if waiting.len() >= TOGETHER {
            self.pieces[bucket].push(self.spill.append(bytemuck::cast_slice(waiting))?);
            waiting.clear();
        }
        Ok(())
    }

    /// Write the rows of each column in ascending order, with their values. Returns the offsets of the
    /// columns.
    pub fn finish(
        mut self,
        rows: &mut Sink,
        mut values: Option<&mut Sink>,
        progress: &Progress,
    ) -> Result<Vec<u64>> {
        for (bucket, columns) in self.first.windows(2).enumerate() {
            let (start, end) = (columns[0] as usize, columns[1] as usize);
            let base = self.ends[start];
            let mut next: Vec<u64> = self.ends[start..end].iter().map(|end| end - base).collect();
            let mut own_rows = zeros::<u32>((self.ends[end] - base) as usize, "rows of a bucket")?;
            let mut own_values =
                zeros::<u32>(if values.is_some() { own_rows.len() } else { 0 }, "values of a bucket")?;
            use_large_pages(&mut own_rows);
            use_large_pages(&mut own_values);
            let mut place = |entries: &[u32]| {
                for entry in entries.chunks_exact(3) {
                    let at = &mut next[entry[0] as usize - start];
                    own_rows[*at as usize] = entry[1];
                    if let Some(value) = own_values.get_mut(*at as usize) {
                        *value = entry[2];
                    }
                    *at += 1;
                }
            };
            for &piece in &self.pieces[bucket] {
                progress.check()?;
                place(&bytemuck::pod_collect_to_vec::<u8, u32>(&self.spill.read(piece)?));
            }
            place(&std::mem::take(&mut self.waiting[bucket]));
            rows.push(&own_rows)?;
            if let Some(values) = values.as_deref_mut() {
                values.push(&own_values)?;
            }
        }
        Ok(self.ends)
    }
}
