//! Memory-mapped, read-only files of a generation. A mapping needs no descriptor, is shared by all processes,
//! is inherited by a fork, and keeps the file's bytes after the file is deleted, so an open index stays
//! usable.

use super::tree::refused;
use super::tree::{self, Value, BLOCK};
use crate::error::{Error, Result};
use crate::guard::{Guard, Marks, Verify, BLOCK_BITS};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use memmap2::Mmap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of blocks that a thread verifies at a time. Shorter files are verified by the calling thread.
const RUN: usize = 128;

/// Location of the hashes of a file's blocks: another file, and an offset in it.
#[derive(Debug, Clone)]
pub struct Tree {
    pub file: Arc<MappedFile>,
    pub start: usize,
}

/// One mapped file. It must not change while it is mapped; the files of a generation never do.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    name: String,
    /// `None` if the file is not verified.
    digest: Option<blake3::Hash>,
    tree: Option<Tree>,
    /// Whether the hashes in the tree produce the digest. If not, they are not used.
    usable: OnceLock<bool>,
    marks: Marks,
    whole: AtomicBool,
}

impl MappedFile {
    /// Map a file without reading it. It must have `bytes` bytes, if given.
    pub fn open(
        path: &Path,
        bytes: Option<u64>,
        digest: Option<blake3::Hash>,
        tree: Option<Tree>,
    ) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |e| refused(&name, e);
        // Opening a pipe by mistake would block.
        let about = std::fs::metadata(path).map_err(failed)?;
        if !about.is_file() {
            return Err(Error::damaged(format!("{name} is not a regular file")));
        }
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if let Some(bytes) = bytes.filter(|&bytes| bytes != found) {
            return Err(Error::damaged(format!("{name} has {found} bytes, but {bytes} were written")));
        }
        // SAFETY: this package never writes to or truncates a published file; a program that alters one while
        // it is open violates the contract of the mapping.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let marks = Marks::new(if digest.is_some() { tree::blocks(map.len()) } else { 0 });
        let whole = AtomicBool::new(digest.is_none());
        Ok(Self { map, name, digest, tree, usable: OnceLock::new(), marks, whole })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Return the bytes, whether or not they are verified.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Return whether everything is verified.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    /// Return the guard of items of `size` bytes from offset `start` on, or `None` if everything is verified.
    pub fn guard(&self, start: usize, size: usize) -> Option<Guard<'_>> {
        (!self.is_whole()).then(|| Guard::new(&self.marks, self, start, size, BLOCK_BITS))
    }

    /// Verify all remaining blocks on `threads` threads (0: all cores). Errors name the file.
    pub fn ensure(&self, threads: usize) -> Result<()> {
        if self.is_whole() {
            return Ok(());
        }
        let blocks = tree::blocks(self.map.len());
        match self.values() {
            Some(values) => {
                let check = |range: Range<usize>| self.compare(values, range);
                self.over_blocks(blocks, threads, check)?;
            }
            None if blocks == 1 => self.require(Some(blake3::hash(&self.map)))?,
            None => {
                let hash =
                    |range: Range<usize>| Ok(range.map(|at| tree::value(at, self.block(at))).collect());
                let values: Vec<Vec<Value>> = self.over_blocks(blocks, threads, hash)?;
                self.require(tree::root(&values.concat(), self.map.len()))?;
            }
        }
        (0..blocks).for_each(|block| self.marks.set(block));
        self.whole.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Verify the remaining blocks on this thread.
    pub fn read_ahead(&self, progress: &Progress) -> Result<()> {
        if self.values().is_none() {
            return self.ensure(1);
        }
        let blocks = tree::blocks(self.map.len());
        (0..blocks).try_for_each(|at| progress.check().and_then(|()| self.ensure_blocks(at..at + 1)))
    }

    /// Verify some blocks, or the whole file if it has no block hashes.
    fn ensure_blocks(&self, blocks: Range<usize>) -> Result<()> {
        match self.values() {
            Some(values) => self.compare(values, blocks.start..blocks.end.min(values.len())),
            None => self.ensure(0),
        }
    }

    fn over_blocks<T: Send>(
        &self,
        blocks: usize,
        threads: usize,
        work: impl Fn(Range<usize>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        map_ranges(blocks, RUN, threads, &Progress::none(), work)
    }

    fn block(&self, at: usize) -> &[u8] {
        &self.map[at * BLOCK..((at + 1) * BLOCK).min(self.map.len())]
    }

    fn compare(&self, values: &[Value], blocks: Range<usize>) -> Result<()> {
        for at in blocks {
            if !self.marks.has(at) {
                if tree::value(at, self.block(at)) != values[at] {
                    return Err(self.altered());
                }
                self.marks.set(at);
            }
        }
        Ok(())
    }

    /// Return the hashes of the blocks, if there are any and they produce the digest.
    fn values(&self) -> Option<&[Value]> {
        let Tree { file, start } = self.tree.as_ref()?;
        let count = tree::blocks(self.map.len());
        let bytes = file.bytes().get(*start..)?.get(..count.checked_mul(size_of::<Value>())?)?;
        let values: &[Value] = bytemuck::try_cast_slice(bytes).ok()?;
        let usable = || tree::root(values, self.map.len()).is_some_and(|root| Some(root) == self.digest);
        self.usable.get_or_init(usable).then_some(values)
    }

    fn require(&self, found: Option<blake3::Hash>) -> Result<()> {
        if found.is_some() && found == self.digest {
            return Ok(());
        }
        Err(self.altered())
    }

    fn altered(&self) -> Error {
        Error::damaged(format!("{} is altered: its checksum does not match", self.name))
    }
}

impl Verify for MappedFile {
    #[cold]
    fn verify(&self, blocks: Range<usize>) {
        if let Err(error) = self.ensure_blocks(blocks) {
            error.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::caught;
    use std::path::PathBuf;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ketrag-mapped-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Three and a half blocks and their hashes. Byte `damaged` is changed afterwards.
    fn opened(place: &Place, damaged: Option<usize>, with_tree: bool, spoilt_tree: bool) -> MappedFile {
        let mut bytes: Vec<u8> = (0..3 * BLOCK + BLOCK / 2).map(|i| (i % 253) as u8).collect();
        let digest = blake3::hash(&bytes);
        let mut tree = vec![0u8; 5]; // the hashes may begin at any offset
        tree.extend(bytes.chunks(BLOCK).enumerate().flat_map(|(at, block)| tree::value(at, block)));
        if spoilt_tree {
            tree[40] ^= 1;
        }
        if let Some(at) = damaged {
            bytes[at] ^= 1;
        }
        let path = place.file("data", &bytes);
        let side = place.file("tree", &tree);
        let side = Arc::new(MappedFile::open(&side, None, None, None).unwrap());
        let tree = with_tree.then_some(Tree { file: side, start: 5 });
        MappedFile::open(&path, Some(bytes.len() as u64), Some(digest), tree).unwrap()
    }

    fn check(file: &MappedFile, items: Range<usize>) -> Result<()> {
        caught(|| {
            if let Some(guard) = file.guard(0, 4) {
                guard.check(items);
            }
            Ok(())
        })
    }

    #[test]
    fn damage_is_found_in_the_block_that_is_read_and_in_no_other() {
        let place = Place::new("damage");
        let file = opened(&place, Some(2 * BLOCK + 7), true, false);
        let per_block = BLOCK / 4;
        check(&file, 0..2 * per_block).unwrap();
        check(&file, 3 * per_block..3 * per_block + 9).unwrap();
        for _ in 0..2 {
            let error = check(&file, 2 * per_block - 1..2 * per_block + 1).unwrap_err();
            assert!(matches!(&error, Error::Damaged(text) if text.contains(file.name())), "{error}");
        }
        assert!(matches!(file.ensure(2), Err(Error::Damaged(_))));
        assert!(!file.is_whole());
    }

    #[test]
    fn without_hashes_of_blocks_or_with_wrong_ones_the_whole_file_is_verified() {
        let place = Place::new("plain");
        for (with_tree, spoilt) in [(false, false), (true, true)] {
            let file = opened(&place, Some(3 * BLOCK), with_tree, spoilt);
            assert!(matches!(check(&file, 0..1), Err(Error::Damaged(_))));
            drop(file); // Windows does not allow writing to a mapped file
            let file = opened(&place, None, with_tree, spoilt);
            check(&file, 0..1).unwrap();
            assert!(file.is_whole() && file.guard(0, 4).is_none());
        }
    }

    #[test]
    fn a_whole_file_has_no_guard_and_a_small_one_is_one_block() {
        let place = Place::new("whole");
        let file = opened(&place, None, true, false);
        file.ensure(3).unwrap();
        assert!(file.guard(0, 4).is_none());
        for (bytes, digest) in [(&b"abc"[..], blake3::hash(b"abc")), (&b""[..], blake3::hash(b""))] {
            let path = place.file("small", bytes);
            let size = Some(bytes.len() as u64);
            MappedFile::open(&path, size, Some(digest), None).unwrap().ensure(1).unwrap();
            let other = MappedFile::open(&path, size, Some(blake3::hash(b"x")), None).unwrap();
            assert!(other.ensure(1).is_err());
            assert!(matches!(MappedFile::open(&path, Some(99), None, None), Err(Error::Damaged(_))));
        }
        assert!(matches!(MappedFile::open(&place.0.join("none"), None, None, None), Err(Error::Damaged(_))));
    }

    #[cfg(unix)]
    #[test]
    fn the_bytes_outlive_the_name() {
        let place = Place::new("name");
        let file = opened(&place, None, true, false);
        std::fs::remove_dir_all(&place.0).unwrap();
        file.ensure(1).unwrap();
        assert_eq!(file.bytes()[253 * 5 + 9], 9);
    }
}
