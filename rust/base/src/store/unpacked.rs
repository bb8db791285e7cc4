//! The values of a packed or patched array in memory: each chunk is verified and decoded when it is first read.
//!
//! The memory is reserved for the whole array, but pages that are never decoded are never touched: a chunk of
//! integers decodes to a page of memory. Chunks of an array with changes are smaller, because they are
//! assembled again after each change, and a query reads only a few values of most chunks.

use super::mapped::MappedFile;
use super::pack::Item;
use super::pack::{decode, Shape, HEADER};
use crate::error::{Error, Result};
use crate::guard::{Guard, Marks, Verify};
use crate::items::Items;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::store::patch::{Numbering, Patch};
use memmap2::MmapMut;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of bytes that a thread decodes at a time.
const RUN: usize = 1 << 19;
/// log2 of the chunk size of an assembled array: about a row of ids or a text.
const COMPOSED_BITS: u32 = 10;

/// An array whose values are assembled when they are read.
pub trait Compose: Send + Sync {
    fn name(&self) -> &str;
    fn shape(&self) -> Shape;
    /// Write the values from a byte on.
    fn fill(&self, offset: usize, out: &mut [u8]) -> Result<()>;
    /// Return the changes to an earlier array from which it is assembled, and the numbers of ids, if it is.
    fn changes(&self) -> Option<Changes<'_>> {
        None
    }
}

/// Changes of an array, and the current numbers of its values if they are ids.
pub type Changes<'a> = (&'a Patch, Option<&'a Numbering>);

/// The source of the values.
enum Source {
    /// A file, with the offsets of its chunks and the end of the last chunk.
    Packed(Arc<MappedFile>, Vec<usize>),
    Composed(Box<dyn Compose>),
}

/// An array whose chunks are decoded on first access.
pub struct Unpacked {
    source: Source,
    shape: Shape,
    bytes: usize,
    /// log2 of the bytes of a chunk.
    bits: u32,
    /// Chunks whose values may be read.
    marks: Marks,
    start: *mut u8,
    /// Held while a chunk is written. The memory is only accessed through `start`.
    memory: Mutex<MmapMut>,
}

// SAFETY: bytes behind `start` are written once, with `memory` locked and before the mark of their chunk is
// set, and read only after the mark was seen.
unsafe impl Send for Unpacked {}
// SAFETY: as above.
unsafe impl Sync for Unpacked {}

impl std::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacked").field("name", &self.name()).field("shape", &self.shape).finish()
    }
}

impl Unpacked {
    /// Read the header and the lengths of the chunks.
    pub fn new(file: Arc<MappedFile>) -> Result<Self> {
        let wrong = || Error::damaged(format!("{}: the header of a packed array is invalid", file.name()));
        let shape = Shape::parse(file.bytes()).ok_or_else(wrong)?;
        let first = shape.head().ok_or_else(wrong)?;
        verified(&file, 0..first.min(file.bytes().len()))?;
        let places = shape.places(&file.bytes()[HEADER..]).ok_or_else(wrong)?;
        let end = places.last().copied().unwrap_or_default();
        if end.checked_add(shape.padding()) != Some(file.bytes().len()) {
            return Err(wrong());
        }
        Self::of(Source::Packed(file, places), shape)
    }

    /// Return an array whose values are assembled when they are read.
    pub fn composed(array: Box<dyn Compose>) -> Result<Self> {
        let shape = array.shape();
        Self::of(Source::Composed(array), shape)
    }

    fn of(source: Source, shape: Shape) -> Result<Self> {
        let too_large = || Error::damaged("an array is too large to exist".to_owned());
        let bytes = shape.bytes().ok_or_else(too_large)?;
        let bits = match source {
            Source::Packed(..) => shape.chunk_bits(),
            Source::Composed(_) => COMPOSED_BITS,
        };
        let mut memory = MmapMut::map_anon(bytes.max(1))
            .map_err(|e| Error::memory(format!("cannot reserve {bytes} bytes for an array: {e}")))?;
        let start = memory.as_mut_ptr();
        let marks = Marks::new(bytes.div_ceil(1 << bits));
        Ok(Self { source, shape, bytes, bits, marks, start, memory: Mutex::new(memory) })
    }

    pub fn name(&self) -> &str {
        match &self.source {
            Source::Packed(file, _) => file.name(),
            Source::Composed(array) => array.name(),
        }
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn is_composed(&self) -> bool {
        matches!(self.source, Source::Composed(_))
    }

    /// Return the changes to an earlier array if the values are stored as such.
    pub fn changes(&self) -> Option<Changes<'_>> {
        match &self.source {
            Source::Packed(..) => None,
            Source::Composed(array) => array.changes(),
        }
    }

    /// Return the values, decoded as they are read. `T` must be the array's type.
    pub fn items<T: Item>(&self) -> Items<'_, T> {
        assert_eq!(T::KIND, self.shape.kind);
        let guard = Guard::new(&self.marks, self, 0, size_of::<T>(), self.bits);
        // SAFETY: a mapping is aligned to a page and has `bytes` bytes; the guard decodes before it returns,
        // and a decoded chunk is never written again.
        unsafe { Items::unpacked(self.start.cast(), self.bytes / size_of::<T>(), guard) }
    }

    /// Return all values. `T` must be the array's type.
    pub fn values<T: Item>(&self) -> Result<&[T]> {
        if let Source::Packed(file, _) = &self.source {
            file.ensure(0)?;
        }
        map_ranges(self.chunks(), RUN >> self.bits, 0, &Progress::none(), |range| {
            range.into_iter().try_for_each(|at| self.ready(at))
        })?;
        Ok(self.items().all())
    }

    /// Return the size of all values in bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Decode the chunks that no query has read yet.
    pub fn read_ahead(&self, progress: &Progress) -> Result<()> {
        (0..self.chunks()).try_for_each(|at| progress.check().and_then(|()| self.ready(at)))
    }

    fn chunks(&self) -> usize {
        self.bytes.div_ceil(1 << self.bits)
    }

    fn ready(&self, at: usize) -> Result<()> {
        if self.marks.has(at) {
            return Ok(());
        }
        let offset = at << self.bits;
        if offset >= self.bytes {
            return Err(Error::Internal(format!("{} has no chunk {at}", self.name())));
        }
        let mut values = vec![0u8; (1 << self.bits).min(self.bytes - offset)];
        match &self.source {
            Source::Packed(file, places) => {
                let (start, end) = (places[at], places[at + 1]);
                verified(file, start..end)?;
                let behind = (end + self.shape.padding()).min(file.bytes().len());
                decode(&file.bytes()[start..behind], end - start, self.shape.kind, &mut values).ok_or_else(
                    || Error::damaged(format!("{}: chunk {at} cannot be decoded", self.name())),
                )?;
            }
            Source::Composed(array) => array.fill(offset, &mut values)?,
        }
        let lock: MutexGuard<'_, MmapMut> = self.memory.lock().unwrap_or_else(|e| e.into_inner());
        if !self.marks.has(at) {
            // SAFETY: the chunk is inside the memory; no other thread writes, because of the lock, and none
            // reads before the mark is set.
            unsafe { self.start.add(offset).copy_from_nonoverlapping(values.as_ptr(), values.len()) };
            self.marks.set(at);
        }
        drop(lock);
        Ok(())
    }
}

/// Verify the blocks of a part of a file.
fn verified(file: &MappedFile, bytes: Range<usize>) -> Result<()> {
    match file.guard(0, 1) {
        Some(guard) => crate::error::caught(|| {
            guard.check(bytes);
            Ok(())
        }),
        None => Ok(()),
    }
}

impl Verify for Unpacked {
    #[cold]
    fn verify(&self, blocks: Range<usize>) {
        for at in blocks {
            if let Err(error) = self.ready(at) {
                error.raise();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::npy::MappedArray;
    use super::super::pack::Kind;
    use super::super::pack::{pack, Shape};
    use super::super::tree::{self, BLOCK};
    use super::*;
    use crate::error::caught;
    use std::path::PathBuf;

    fn packed(kind: Kind, columns: Option<usize>, data: &[u8]) -> Vec<u8> {
        let rows = data.len() / kind.size() / columns.unwrap_or(1);
        pack(Shape { kind, rows, columns }, data, 2, &Progress::none()).unwrap().unwrap()
    }

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("ketrag-unpacked-{name}-{}", std::process::id()))
    }

    /// An array in a file with a digest but no hashes of blocks.
    fn opened(name: &str, bytes: &[u8], digest_of: &[u8]) -> Result<MappedArray> {
        let path = place(name);
        std::fs::write(&path, bytes).unwrap();
        let file = MappedFile::open(&path, None, Some(blake3::hash(digest_of)), None);
        std::fs::remove_file(&path).unwrap();
        MappedArray::new(Arc::new(file?))
    }

    #[test]
    fn arrays_of_all_types_come_back_whole_and_in_part() {
        let ids: Vec<u32> = (0..100_000u32).map(|i| i % 41 * 977 + i / 41 % 7).collect();
        let bytes = packed(Kind::U32, None, bytemuck::cast_slice(&ids));
        assert!(bytes.len() < 4 * ids.len() / 2);
        let array = opened("ids", &bytes, &bytes).unwrap();
        assert_eq!(array.shape(), (ids.len(), 1));
        let items = array.items::<u32>().unwrap();
        assert_eq!(items[40_000..60_000], ids[40_000..60_000]);
        assert_eq!(items[99_999], ids[99_999]);
        assert_eq!(array.values::<u32>().unwrap(), ids);
        assert!(array.values::<u64>().is_err() && array.guarded::<u32>().is_err());

        let ends: Vec<u64> = (0..30_000u64).map(|i| i * i).collect();
        let bytes = packed(Kind::U64, Some(2), bytemuck::cast_slice(&ends));
        let array = opened("ends", &bytes, &bytes).unwrap();
        assert_eq!((array.shape(), array.values::<u64>().unwrap()), ((15_000, 2), &ends[..]));

        let text = "Amundsen sailed in the Fram. ".repeat(9_000);
        let bytes = packed(Kind::U8, None, text.as_bytes());
        assert!(bytes.len() < text.len() / 20);
        let array = opened("text", &bytes, &bytes).unwrap();
        assert_eq!(array.items::<u8>().unwrap()[100_000..100_060], text.as_bytes()[100_000..100_060]);
        let noise: Vec<u8> =
            (0..70_000u64).map(|i| (i.wrapping_mul(i).wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        let bytes = packed(Kind::U8, None, &noise);
        let array = opened("noise", &bytes, &bytes).unwrap();
        assert_eq!(array.values::<u8>().unwrap(), noise);
        let bytes = packed(Kind::U8, None, &[]);
        assert!(opened("none", &bytes, &bytes).unwrap().values::<u8>().unwrap().is_empty());
    }

    #[test]
    fn many_threads_read_the_same_values() {
        let ids: Vec<u32> = (0..400_000u32).map(|i| i.wrapping_mul(2_654_435_761) >> 9).collect();
        let bytes = packed(Kind::U32, None, bytemuck::cast_slice(&ids));
        let array = opened("threads", &bytes, &bytes).unwrap();
        let items = array.items::<u32>().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (ids, items) = (&ids, items);
                scope.spawn(move || {
                    for at in (thread..ids.len()).step_by(1_013) {
                        assert_eq!(items[at], ids[at]);
                    }
                });
            }
        });
    }

    #[test]
    fn damage_is_an_error_where_it_is_read_and_nowhere_else() {
        const CHUNK: usize = 1 << 16;
        let noise: Vec<u8> = (0..5 * CHUNK as u64)
            .map(|i| (i.wrapping_mul(i).wrapping_mul(0x9e37_79b9) >> 17) as u8)
            .collect();
        let good = packed(Kind::U8, None, &noise);
        let path = place("damage");
        let mut side = Vec::new();
        for (at, block) in good.chunks(BLOCK).enumerate() {
            side.extend(tree::value(at, block));
        }
        let side_path = place("damage-side");
        std::fs::write(&side_path, &side).unwrap();
        let mut bytes = good.clone();
        let damaged = bytes.len() - 9;
        bytes[damaged] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let side = Arc::new(MappedFile::open(&side_path, None, None, None).unwrap());
        let hashes = super::super::mapped::Tree { file: side, start: 0 };
        let file = MappedFile::open(&path, None, Some(blake3::hash(&good)), Some(hashes)).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&side_path).unwrap();
        let array = MappedArray::new(Arc::new(file)).unwrap();
        let items = array.items::<u8>().unwrap();
        assert_eq!(items[0..CHUNK], noise[..CHUNK]);
        let read = |range: Range<usize>| caught(|| Ok(items.get(range).len()));
        assert!(matches!(read(4 * CHUNK + 5..4 * CHUNK + 6), Err(Error::Damaged(_))));
        assert!(matches!(array.values::<u8>(), Err(Error::Damaged(_))));
        assert_eq!(read(CHUNK..CHUNK + 5), Ok(5));
    }

    #[test]
    fn crafted_files_are_refused() {
        let ids: Vec<u32> = (0..40_000).collect();
        let good = packed(Kind::U32, None, bytemuck::cast_slice(&ids));
        for at in [8, 9, 10, 17, 25, HEADER, HEADER + 3] {
            let mut bytes = good.clone();
            bytes[at] ^= 0x80;
            let read = opened("crafted", &bytes, &bytes).and_then(|array| Ok(array.values::<u32>()?.len()));
            assert!(matches!(read, Err(Error::Damaged(_))), "{at}: {read:?}");
        }
        assert!(opened("crafted", &good[..good.len() - 1], &good[..good.len() - 1]).is_err());
        assert!(opened("crafted", &good[..12], &good[..12]).is_err());
        // A chunk that passes verification but that no encoder writes.
        let mut bytes = good.clone();
        let first = HEADER + 2 * ids.len().div_ceil((1 << 12) / 4);
        bytes[first] = 9;
        let array = opened("crafted", &bytes, &bytes).unwrap();
        assert!(matches!(array.values::<u32>(), Err(Error::Damaged(_))));
    }
}
