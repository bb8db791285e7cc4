//! Packed arrays: files of compressed chunks, each of which decodes to 64 KiB of an array of bytes or to 4 KiB of
//! one of integers; and the types of the elements of arrays.
//!
//! The file is a header (type and shape), the compressed length of each chunk, the chunks, and a few zeros,
//! so that a decoder may read beyond the last one. A chunk is encoded by [`super::rice`] (integers), by
//! DEFLATE (bytes) or not at all, whichever is shortest. Integers are read in scattered rows, so with small
//! chunks a first query decodes little that it does not read. Bytes are texts, which compress worse in small
//! chunks. The file is the same on every machine, because both encoders use integers alone.

use super::rice;
use crate::error::{Error, Result};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use bytemuck::Pod;
use std::io::{Cursor, Seek, SeekFrom, Write};
use zlib_rs::{DeflateConfig, ReturnCode};

/// log2 of the decoded size of a chunk of bytes. The last chunk may be shorter.
const BYTES_BITS: u32 = 16;
/// log2 of the decoded size of a chunk of 32-bit integers (a page of memory) and of a chunk of offsets, which
/// have fewer bits.
const INTEGERS_BITS: u32 = 12;
const OFFSETS_BITS: u32 = 13;
/// The first bytes of a packed array, with the version of this layout.
pub const MAGIC: &[u8; 8] = b"KETPACK\x02";
/// Magic, type, number of dimensions, rows, columns.
pub const HEADER: usize = 26;
const RAW: u8 = 0;
const INTEGERS: u8 = 1;
const DEFLATED: u8 = 2;
/// Level of compression: higher ones gain a percent of size for twice the time.
const LEVEL: i32 = 6;
/// The largest window, without header and checksum.
const WITHOUT_HEADER: i32 = -15;
/// Number of bytes that are compressed before they are written, and number that a thread compresses at a
/// time.
const TOGETHER: usize = 1 << 22;
const GRAIN: usize = 1 << 16;
/// Largest number of columns that are encoded as columns.
const PAIRS: usize = 2;

/// Type and shape of a packed array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub kind: Kind,
    pub rows: usize,
    /// `None` for an array of one dimension.
    pub columns: Option<usize>,
}

impl Shape {
    /// Return the size of the array in bytes, or `None` if it is too large to exist.
    pub fn bytes(&self) -> Option<usize> {
        self.rows.checked_mul(self.columns.unwrap_or(1))?.checked_mul(self.kind.size())
    }

    /// Return log2 of the decoded bytes of a chunk.
    pub fn chunk_bits(&self) -> u32 {
        match self.kind {
            Kind::U8 => BYTES_BITS,
            Kind::U64 => OFFSETS_BITS,
            _ => INTEGERS_BITS,
        }
    }

    /// Return the size of a chunk's length in bytes.
    fn length_size(&self) -> usize {
        match self.kind {
            Kind::U8 => 4,
            _ => 2,
        }
    }

    /// Return the start of each chunk and the end of the last one, given the bytes of a file from the end of
    /// the header on; `None` if there are too few bytes.
    pub fn places(&self, bytes: &[u8]) -> Option<Vec<usize>> {
        let mut end = self.head()?;
        let table = bytes.get(..end - HEADER)?;
        let mut places = vec![end];
        for length in table.chunks_exact(self.length_size()) {
            let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
            end = end.checked_add(length)?;
            places.push(end);
        }
        Some(places)
    }

    /// Return the size of header and lengths.
    pub fn head(&self) -> Option<usize> {
        self.chunks()?.checked_mul(self.length_size())?.checked_add(HEADER)
    }

    /// Return the number of chunks.
    pub fn chunks(&self) -> Option<usize> {
        Some(self.bytes()?.div_ceil(1 << self.chunk_bits()))
    }

    /// Return the number of bytes behind the last chunk.
    pub fn padding(&self) -> usize {
        match self.kind {
            Kind::U8 => 0,
            _ => rice::PAD,
        }
    }

    /// Parse a header.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEADER] = bytes.first_chunk()?;
        let number = |at: usize| head[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if &head[..8] != MAGIC {
            return None;
        }
        let kind = [Kind::U8, Kind::U32, Kind::U64].into_iter().find(|&kind| kind as u8 == head[8])?;
        let rows = usize::try_from(number(10)?).ok()?;
        let columns = usize::try_from(number(18)?).ok()?;
        let columns = match head[9] {
            1 if columns == 1 => None,
            2 => Some(columns),
            _ => return None,
        };
        Some(Self { kind, rows, columns })
    }

    fn header(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([self.kind as u8, if self.columns.is_some() { 2 } else { 1 }]);
        out.extend((self.rows as u64).to_le_bytes());
        out.extend((self.columns.unwrap_or(1) as u64).to_le_bytes());
        out
    }
}

/// Return the file for an array of unsigned integers in little-endian order, or `None` if `data` has another
/// size than `shape`, or another type. The result does not depend on `threads`.
pub fn pack(shape: Shape, data: &[u8], threads: usize, progress: &Progress) -> Result<Option<Vec<u8>>> {
    let mut out = Cursor::new(Vec::new());
    let written = pack_to(shape, data, None, &mut out, threads, progress)?;
    Ok(written.map(|_| out.into_inner()))
}

/// Write what [`pack`] returns, a few chunks at a time, and return the number of bytes.
///
/// `earlier` is the packed file of a similar array: its compressed chunks are copied wherever they decode to the same
/// values. It must come from [`pack`], or the bytes may differ from those of an array packed without it.
pub fn pack_to(
    shape: Shape,
    data: &[u8],
    earlier: Option<&[u8]>,
    out: &mut (impl Write + Seek),
    threads: usize,
    progress: &Progress,
) -> Result<Option<u64>> {
    if shape.bytes() != Some(data.len()) || !matches!(shape.kind, Kind::U8 | Kind::U32 | Kind::U64) {
        return Ok(None);
    }
    let failed = |error: std::io::Error| Error::io(format!("a packed array: {error}")).caused_by(error);
    let columns = shape.columns.filter(|&columns| columns == PAIRS).unwrap_or(1);
    let size_of_chunk = 1usize << shape.chunk_bits();
    let count = data.len().div_ceil(size_of_chunk);
    let (together, grain) = (TOGETHER / size_of_chunk, GRAIN / size_of_chunk);
    let earlier = earlier.and_then(|bytes| Chunks::parse(bytes, shape)).unwrap_or_default();
    let of_length = shape.length_size();
    let mut lengths = vec![0u8; of_length * count];
    out.write_all(&shape.header()).and_then(|()| out.write_all(&lengths)).map_err(failed)?;
    let mut size = (HEADER + lengths.len()) as u64;
    for start in (0..count).step_by(together) {
        let some = together.min(count - start);
        let chunks = map_ranges(some, grain, threads, progress, |range| {
            let each = range.into_iter().map(|at| {
                let at = start + at;
                let chunk = &data[at * size_of_chunk..((at + 1) * size_of_chunk).min(data.len())];
                match earlier.find(at, chunk) {
                    Some(packed) => packed.to_vec(),
                    None => encode(chunk, shape.kind, columns),
                }
            });
            Ok(each.collect::<Vec<_>>())
        })?;
        for (at, chunk) in chunks.iter().flatten().enumerate() {
            let length = (chunk.len() as u32).to_le_bytes();
            lengths[of_length * (start + at)..][..of_length].copy_from_slice(&length[..of_length]);
            out.write_all(chunk).map_err(failed)?;
            size += chunk.len() as u64;
        }
    }
    out.write_all(&vec![0; shape.padding()]).map_err(failed)?;
    size += shape.padding() as u64;
    out.seek(SeekFrom::Start(HEADER as u64)).and_then(|_| out.write_all(&lengths)).map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(Some(size))
}

/// The compressed chunks of a packed array of bytes. They are reused because compressing takes ten times as
/// long as decoding.
#[derive(Default)]
struct Chunks<'a>(Vec<&'a [u8]>);

impl<'a> Chunks<'a> {
    /// Return the chunks of a file if it holds an array of bytes like `shape`.
    fn parse(bytes: &'a [u8], shape: Shape) -> Option<Self> {
        let found = Shape::parse(bytes)?;
        if (found.kind, found.columns) != (Kind::U8, None) || (shape.kind, shape.columns) != (Kind::U8, None)
        {
            return None;
        }
        let places = found.places(&bytes[HEADER..])?;
        places.windows(2).map(|two| bytes.get(two[0]..two[1])).collect::<Option<_>>().map(Self)
    }

    /// Return the compressed chunk at a position if it decodes to these bytes.
    fn find(&self, at: usize, bytes: &[u8]) -> Option<&'a [u8]> {
        let packed = self.0.get(at)?;
        let mut decoded = vec![0u8; bytes.len()];
        decode(packed, packed.len(), Kind::U8, &mut decoded)?;
        (decoded == bytes).then_some(packed)
    }
}

fn encode(chunk: &[u8], kind: Kind, columns: usize) -> Vec<u8> {
    let mut out = Vec::new();
    match kind {
        Kind::U8 => {
            deflate(chunk, &mut out);
        }
        _ => {
            out.push(INTEGERS);
            rice::encode(&integers(chunk, kind), columns, &mut out);
        }
    }
    if out.len() > chunk.len() {
        out.clear();
        out.push(RAW);
        out.extend_from_slice(chunk);
    }
    out
}

/// Replace `out` by the DEFLATE form of a chunk. The result does not depend on the processor's instructions.
fn deflate(chunk: &[u8], out: &mut Vec<u8>) {
    out.resize(1 + zlib_rs::compress_bound(chunk.len()), DEFLATED);
    let config = DeflateConfig { level: LEVEL, window_bits: WITHOUT_HEADER, ..DeflateConfig::default() };
    let (written, done) = zlib_rs::compress_slice(&mut out[1..], chunk, config);
    // It cannot fail with this much room; if it did, the longer result would be replaced by the plain bytes.
    let size = if done == ReturnCode::Ok { written.len() } else { chunk.len() };
    out.truncate(1 + size);
}

fn integers(chunk: &[u8], kind: Kind) -> Vec<u64> {
    let value = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    chunk.chunks_exact(kind.size()).map(value).collect()
}

/// Decode a chunk of `length` bytes to exactly `out.len()` bytes, given these and what is behind them, at least
/// [`Shape::padding`] bytes; `None` if it is not what [`pack`] writes.
pub fn decode(bytes: &[u8], length: usize, kind: Kind, out: &mut [u8]) -> Option<()> {
    let (&form, bytes) = bytes.split_first()?;
    let length = length.checked_sub(1)?;
    let chunk = bytes.get(..length)?;
    match form {
        RAW => {
            (chunk.len() == out.len()).then(|| out.copy_from_slice(chunk))?;
        }
        DEFLATED => {
            let pieces = std::iter::once(chunk);
            let count =
                miniz_oxide::inflate::decompress_slice_iter_to_slice(out, pieces, false, true).ok()?;
            (count == out.len()).then_some(())?;
        }
        INTEGERS => {
            let (size, mut at) = (kind.size(), 0);
            rice::decode(bytes, length, out.len() / size, |values| {
                let to = &mut out[at..at + size * values.len()];
                at += to.len();
                write_integers(values, kind, to)
            })?;
        }
        _ => return None,
    }
    Some(())
}

/// Write values of a type, or return `None` if a value is too large for it.
fn write_integers(values: &[u64], kind: Kind, to: &mut [u8]) -> Option<()> {
    match kind {
        Kind::U32 => {
            let all = values.iter().fold(0, |all, &value| all | value);
            u32::try_from(all).ok()?;
            match bytemuck::try_cast_slice_mut::<u8, u32>(to) {
                Ok(to) => to.iter_mut().zip(values).for_each(|(to, &value)| *to = (value as u32).to_le()),
                Err(_) => to
                    .chunks_exact_mut(4)
                    .zip(values)
                    .for_each(|(to, &value)| to.copy_from_slice(&(value as u32).to_le_bytes())),
            }
        }
        Kind::U64 => match bytemuck::try_cast_slice_mut::<u8, u64>(to) {
            Ok(to) => to.iter_mut().zip(values).for_each(|(to, &value)| *to = value.to_le()),
            Err(_) => to
                .chunks_exact_mut(8)
                .zip(values)
                .for_each(|(to, &value)| to.copy_from_slice(&value.to_le_bytes())),
        },
        _ => return None,
    }
    Some(())
}

/// The element types that an index uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    U8,
    I8,
    U32,
    U64,
    F32,
    F64,
}

impl Kind {
    /// Parse NumPy's name of a type.
    pub fn parse(descr: &str) -> Option<Self> {
        Some(match descr {
            "|u1" => Self::U8,
            "|i1" => Self::I8,
            "<u4" => Self::U32,
            "<u8" => Self::U64,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            _ => return None,
        })
    }

    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U32 | Self::F32 => 4,
            Self::U64 | Self::F64 => 8,
        }
    }
}

/// Rust types that correspond to a [`Kind`].
pub trait Item: Pod {
    const KIND: Kind;
}

macro_rules! items {
    ($($rust:ty => $kind:ident),*) => {$(impl Item for $rust { const KIND: Kind = Kind::$kind; })*};
}
items!(u8 => U8, i8 => I8, u32 => U32, u64 => U64, f32 => F32, f64 => F64);

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 1 << BYTES_BITS;

    fn noise(count: usize) -> Vec<u8> {
        (0..count as u64).map(|i| b'a' + ((i * i) >> 9) as u8 % 23).collect()
    }

    fn packed(data: &[u8], earlier: Option<&[u8]>) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        let shape = Shape { kind: Kind::U8, rows: data.len(), columns: None };
        pack_to(shape, data, earlier, &mut out, 2, &Progress::none()).unwrap().unwrap();
        out.into_inner()
    }

    #[test]
    fn chunks_of_an_earlier_array_are_copied_and_change_no_byte() {
        let old = noise(5 * CHUNK + 70);
        let before = packed(&old, None);
        let (mut longer, mut changed, mut shifted) = (old.clone(), old.clone(), old.clone());
        longer.extend(noise(CHUNK));
        changed[2 * CHUNK + 5] ^= 1;
        shifted.insert(3 * CHUNK + 9, b'x');
        for data in [&old, &longer, &changed, &shifted, &old[..4 * CHUNK + 9].to_vec(), &Vec::new()] {
            assert_eq!(packed(data, Some(&before)), packed(data, None));
        }
        // A copied chunk can be recognised in the file, because here it decodes to the same bytes but is
        // encoded differently.
        let mut stored = before.clone();
        let first = u32::from_le_bytes(stored[HEADER..HEADER + 4].try_into().unwrap()) as usize;
        let start = HEADER + 4 * 6;
        stored.splice(start..start + first, std::iter::once(RAW).chain(old[..CHUNK].iter().copied()));
        stored[HEADER..HEADER + 4].copy_from_slice(&(CHUNK as u32 + 1).to_le_bytes());
        assert_eq!(packed(&longer, Some(&stored))[HEADER + 4 * 7], RAW);
        assert_eq!(packed(&longer, Some(&before))[HEADER + 4 * 7], DEFLATED);
    }

    #[test]
    fn an_earlier_file_that_is_not_a_packed_array_of_bytes_is_ignored() {
        let data = noise(2 * CHUNK);
        let good = packed(&data, None);
        let numbers = Shape { kind: Kind::U32, rows: data.len() / 4, columns: None };
        let other = pack(numbers, &data, 1, &Progress::none()).unwrap().unwrap();
        let mut cut = good.clone();
        cut.truncate(HEADER + 3);
        let mut long = good.clone();
        long[HEADER + 3] = 0xff;
        for earlier in [&other, &cut, &long, &Vec::new(), &b"KETPACK".to_vec()] {
            assert_eq!(packed(&data, Some(earlier)), good);
        }
    }
}
