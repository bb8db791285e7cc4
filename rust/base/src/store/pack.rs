//! Packed arrays: files of compressed chunks, each of which decodes to 64 KiB of the array.
//!
//! The file is a header (type and shape), the compressed length of each chunk, and the chunks. A chunk holds
//! integers as [`super::rice`] encodes them, bytes as DEFLATE, or its bytes as they are, whichever is
//! shortest. Bytes are the same on every machine, because both encoders use integers alone.

use super::kind::Kind;
use super::rice;
use crate::error::{Error, Result};
use crate::guard::BLOCK_BITS;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use std::io::{Cursor, Seek, SeekFrom, Write};
use zlib_rs::{DeflateConfig, ReturnCode};

/// Decoded bytes of a chunk; the last one may be shorter.
pub const CHUNK: usize = 1 << BLOCK_BITS;
/// The first bytes of a packed array, with the version of this layout.
pub const MAGIC: &[u8; 8] = b"KETPACK\x01";
/// Magic, type, number of dimensions, rows, columns.
pub const HEADER: usize = 26;
const RAW: u8 = 0;
const INTEGERS: u8 = 1;
const DEFLATED: u8 = 2;
/// Level of compression: higher ones gain a percent of size for twice the time.
const LEVEL: i32 = 6;
/// The largest window, and neither header nor checksum.
const WITHOUT_HEADER: i32 = -15;
/// Chunks that are compressed before they are written.
const TOGETHER: usize = 64;
/// Largest columns that are encoded as columns.
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

    /// Return the number of chunks.
    pub fn chunks(&self) -> Option<usize> {
        Some(self.bytes()?.div_ceil(CHUNK))
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
    let count = data.len().div_ceil(CHUNK);
    let earlier = earlier.and_then(|bytes| Chunks::parse(bytes, shape)).unwrap_or_default();
    let mut lengths = vec![0u8; 4 * count];
    out.write_all(&shape.header()).and_then(|()| out.write_all(&lengths)).map_err(failed)?;
    let mut size = (HEADER + lengths.len()) as u64;
    for start in (0..count).step_by(TOGETHER) {
        let some = TOGETHER.min(count - start);
        let chunks = map_ranges(some, 1, threads, progress, |range| {
            let at = start + range.start;
            let chunk = &data[at * CHUNK..((at + 1) * CHUNK).min(data.len())];
            Ok(match earlier.find(at, chunk) {
                Some(packed) => packed.to_vec(),
                None => encode(chunk, shape.kind, columns),
            })
        })?;
        for (at, chunk) in chunks.iter().enumerate() {
            lengths[4 * (start + at)..][..4].copy_from_slice(&(chunk.len() as u32).to_le_bytes());
            out.write_all(chunk).map_err(failed)?;
            size += chunk.len() as u64;
        }
    }
    out.seek(SeekFrom::Start(HEADER as u64)).and_then(|_| out.write_all(&lengths)).map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(Some(size))
}

/// The compressed chunks of a packed array of bytes, whose compression takes ten times as long as decoding.
#[derive(Default)]
struct Chunks<'a>(Vec<&'a [u8]>);

impl<'a> Chunks<'a> {
    /// Return the chunks of a file if its array is of bytes, as one of `shape` is.
    fn parse(bytes: &'a [u8], shape: Shape) -> Option<Self> {
        let found = Shape::parse(bytes)?;
        if (found.kind, found.columns) != (Kind::U8, None) || (shape.kind, shape.columns) != (Kind::U8, None)
        {
            return None;
        }
        let (lengths, mut rest) = bytes[HEADER..].split_at_checked(found.chunks()?.checked_mul(4)?)?;
        let mut chunks = Vec::new();
        for length in lengths.chunks_exact(4) {
            let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
            let (chunk, after) = rest.split_at_checked(length)?;
            chunks.push(chunk);
            rest = after;
        }
        Some(Self(chunks))
    }

    /// Return the compressed chunk at a position if it decodes to these bytes.
    fn find(&self, at: usize, bytes: &[u8]) -> Option<&'a [u8]> {
        let packed = self.0.get(at)?;
        let mut decoded = vec![0u8; bytes.len()];
        decode(packed, Kind::U8, &mut decoded)?;
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

/// Replace `out` by the DEFLATE form of a chunk. Which instructions the processor has does not change it.
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

/// Decode a chunk to exactly `out.len()` bytes; `None` if it is not what [`pack`] writes.
pub fn decode(chunk: &[u8], kind: Kind, out: &mut [u8]) -> Option<()> {
    let (&form, chunk) = chunk.split_first()?;
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
            rice::decode(chunk, out.len() / size, |values| {
                let to = &mut out[at..at + size * values.len()];
                at += to.len();
                write_integers(values, kind, to)
            })?;
        }
        _ => return None,
    }
    Some(())
}

/// Write values of a type; `None` if one of them is too large for it.
fn write_integers(values: &[u64], kind: Kind, to: &mut [u8]) -> Option<()> {
    match kind {
        Kind::U32 => {
            let all = values.iter().fold(0, |all, &value| all | value);
            u32::try_from(all).ok()?;
            for (to, &value) in to.chunks_exact_mut(4).zip(values) {
                to.copy_from_slice(&(value as u32).to_le_bytes());
            }
        }
        Kind::U64 => {
            for (to, &value) in to.chunks_exact_mut(8).zip(values) {
                to.copy_from_slice(&value.to_le_bytes());
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A copied chunk shows in the file: here one that decodes to the same bytes in another form.
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
