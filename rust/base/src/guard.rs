//! Blocks of a mapped file that are verified, and unpacked, on first access.
//!
//! Code that reads scattered rows of a large array checks its [`Guard`] before each read, or reads
//! [`crate::items::Items`], which do. A block that is ready costs one load. Files and packed arrays implement [`Verify`], in `store`.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// log2 of the size of a block of a file: 16 KiB. Hashing a block takes about 5 microseconds, and the hashes of a file take
/// 1/512 of its size.
pub const BLOCK_BITS: u32 = 14;

/// Verifies blocks of a file and marks them.
pub trait Verify: Sync {
    /// Verify `blocks`; unwind with [`crate::error::Error::raise`] if one of them is damaged.
    fn verify(&self, blocks: Range<usize>);
}

/// One bit for each block of a file.
#[derive(Debug, Default)]
pub struct Marks {
    words: Box<[AtomicU64]>,
}

impl Marks {
    pub fn new(blocks: usize) -> Self {
        Self { words: (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A thread that sees the mark also sees everything written before it was set, such as the values of an
    /// unpacked block.
    #[inline]
    pub fn has(&self, block: usize) -> bool {
        self.words.get(block / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (block % 64) & 1 == 1)
    }

    pub fn set(&self, block: usize) {
        if let Some(word) = self.words.get(block / 64) {
            word.fetch_or(1 << (block % 64), Ordering::Release);
        }
    }
}

/// Verifies the blocks behind items of one array before they are read.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    marks: &'a Marks,
    file: &'a dyn Verify,
    /// Offset of item 0 in the file, and log2 of the item size in bytes.
    start: usize,
    shift: u32,
    /// log2 of the block size.
    bits: u32,
}

impl<'a> Guard<'a> {
    /// `size` is the size of an item in bytes, a power of two; `bits` is log2 of the size of a block.
    pub fn new(marks: &'a Marks, file: &'a dyn Verify, start: usize, size: usize, bits: u32) -> Self {
        Self { marks, file, start, shift: size.trailing_zeros(), bits }
    }

    /// Return once the blocks that hold these items are verified.
    #[inline]
    pub fn check(&self, items: Range<usize>) {
        if items.start >= items.end {
            return;
        }
        // Items of a slice in memory cannot overflow here; a read beyond the slice fails there.
        let byte = |item: usize| self.start.wrapping_add(item << self.shift);
        let first = byte(items.start) >> self.bits;
        let last = byte(items.end).wrapping_sub(1) >> self.bits;
        // Most rows are inside one block.
        if !(self.marks.has(first)
            && (first == last || (first + 1..=last).all(|block| self.marks.has(block))))
        {
            self.file.verify(first..last + 1);
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("start", &self.start)
            .field("shift", &self.shift)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Seen(Mutex<Vec<Range<usize>>>);

    impl Verify for Seen {
        fn verify(&self, blocks: Range<usize>) {
            self.0.lock().unwrap().push(blocks);
        }
    }

    #[test]
    fn the_blocks_of_the_items_are_asked_for_and_no_others() {
        let (marks, seen) = (Marks::new(130), Seen::default());
        let guard = Guard::new(&marks, &seen, 128, 4, BLOCK_BITS);
        let per_block = (1 << BLOCK_BITS) / 4;
        guard.check(5..5);
        guard.check(0..1);
        guard.check(per_block - 32..per_block - 31); // the file header moves it across the block boundary
        guard.check(per_block - 33..per_block - 31);
        marks.set(1);
        guard.check(per_block - 32..per_block - 31);
        guard.check(0..3 * per_block);
        assert_eq!(*seen.0.lock().unwrap(), [0..1, 1..2, 0..2, 0..4]);
        assert!(!marks.has(1 << 40) && !marks.has(129) && marks.has(1));
    }
}
