//! BLAKE3 tree hashes. A file's digest is computed from the hashes of its blocks, so one block can be
//! verified without reading the others and without trusting the stored hashes.

use crate::error::{Error, Result};
use crate::guard::BLOCK_BITS;
use crate::memory;
use crate::progress::Progress;
use blake3::hazmat::{left_subtree_len, merge_subtrees_non_root, merge_subtrees_root, HasherExt, Mode};
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Block size in bytes; the last block of a file may be shorter.
pub const BLOCK: usize = 1 << BLOCK_BITS;
/// Hash of a block inside a tree ("chaining value").
pub type Value = [u8; blake3::OUT_LEN];
/// Read size, small enough to limit memory and to notice a cancellation quickly.
const PIECE: usize = 64 * BLOCK;

/// Return the number of blocks of a file; an empty file has one.
pub fn blocks(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK).max(1)
}

/// Return the hash of block `at` of a file with several blocks.
pub fn value(at: usize, block: &[u8]) -> Value {
    let mut hasher = Hasher::new();
    hasher.set_input_offset((at * BLOCK) as u64);
    hasher.update(block);
    hasher.finalize_non_root()
}

/// Return the digest of a file of `bytes` bytes from the hashes of its blocks, or `None` if their number is
/// wrong or the file has a single block.
pub fn root(values: &[Value], bytes: usize) -> Option<Hash> {
    if values.len() < 2 || values.len() != blocks(bytes) {
        return None;
    }
    let left = left_subtree_len(bytes as u64) as usize;
    let (a, b) = values.split_at(left / BLOCK);
    Some(merge_subtrees_root(&inner(a, left), &inner(b, bytes - left), Mode::Hash))
}

/// Return the hash of a subtree. The recursion is as deep as the block count has bits.
fn inner(values: &[Value], bytes: usize) -> Value {
    if let [only] = values {
        return *only;
    }
    let left = left_subtree_len(bytes as u64) as usize;
    let (a, b) = values.split_at(left / BLOCK);
    merge_subtrees_non_root(&inner(a, left), &inner(b, bytes - left), Mode::Hash)
}

/// Return the BLAKE3 digest of a file and, if it has several blocks, their hashes.
pub fn file_tree(path: &Path, progress: &Progress) -> Result<(Hash, Vec<Value>)> {
    let failed = |e| refused(&path.display().to_string(), e);
    let mut file = File::open(path).map_err(failed)?;
    let mut piece = memory::zeros::<u8>(PIECE, "reading a file")?;
    let (mut values, mut bytes) = (Vec::new(), 0);
    loop {
        progress.check()?;
        let filled = fill(&mut file, &mut piece).map_err(failed)?;
        if bytes == 0 && filled <= BLOCK {
            return Ok((blake3::hash(&piece[..filled]), values));
        }
        let first = bytes / BLOCK;
        values.extend(piece[..filled].chunks(BLOCK).enumerate().map(|(k, block)| value(first + k, block)));
        bytes += filled;
        progress.advance(filled as u64);
        if filled < PIECE {
            let digest = root(&values, bytes);
            return Ok((digest.ok_or_else(|| Error::Internal("a file's blocks do not fit".into()))?, values));
        }
    }
}

/// Read until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Return the BLAKE3 digest of a file in lower-case hexadecimal.
pub fn file_digest(path: &Path, progress: &Progress) -> Result<String> {
    Ok(file_tree(path, progress)?.0.to_hex().to_string())
}

/// System error numbers that are not about the file: ENOMEM, EMFILE, ENFILE.
const NO_MEMORY: i32 = 12;
const PROCESS_FILES: i32 = 24;
const SYSTEM_FILES: i32 = 23;

/// Return the error for a file that the system cannot open, read or map.
pub(super) fn refused(name: &str, e: std::io::Error) -> Error {
    let error = match e.raw_os_error() {
        Some(NO_MEMORY) => Error::memory(format!("cannot map {name}: {e}")),
        Some(PROCESS_FILES | SYSTEM_FILES) => Error::limit(format!("cannot open {name}: {e}")),
        _ => Error::damaged(format!("cannot read {name}: {e}")),
    };
    error.caused_by(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| (i / 251) as u8 ^ (i % 241) as u8).collect()
    }

    #[test]
    fn the_hashes_of_the_blocks_make_the_digest() {
        let path = std::env::temp_dir().join(format!("ketrag-tree-{}", std::process::id()));
        let (none, all) = (Progress::none(), bytes(2 * PIECE + 5));
        for size in [
            0,
            1,
            BLOCK - 1,
            BLOCK,
            BLOCK + 1,
            3 * BLOCK,
            5 * BLOCK + 9,
            PIECE - 1,
            PIECE,
            PIECE + 1,
            2 * PIECE,
            all.len(),
        ] {
            let data = &all[..size];
            std::fs::write(&path, data).unwrap();
            let (digest, values) = file_tree(&path, &none).unwrap();
            assert_eq!(digest, blake3::hash(data), "{size}");
            assert_eq!(file_digest(&path, &none).unwrap(), digest.to_hex().to_string());
            let expected = if size > BLOCK { blocks(size) } else { 0 };
            assert_eq!(values.len(), expected, "{size}");
            if size > BLOCK {
                assert_eq!(root(&values, size), Some(digest));
                assert_eq!(root(&values[1..], size), None);
                let mut other = values.clone();
                other[1][31] ^= 1;
                assert_ne!(root(&other, size), Some(digest));
            }
        }
        std::fs::remove_file(&path).unwrap();
        let gone = file_digest(&path, &none).unwrap_err();
        assert!(matches!(gone, Error::Damaged(_)));
        let cause = std::error::Error::source(&gone).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        assert_eq!(cause.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
        assert_eq!(root(&[], 0), None);
    }
}
