//! The content hash of a file: BLAKE3, which is fast enough to check an index each time it is opened.

use crate::error::{Error, Result};
use crate::progress::Progress;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Read in pieces of this size, so that memory stays small and a stop is seen soon.
const PIECE: usize = 1 << 20;

/// Lower-case hexadecimal BLAKE3 of the file's bytes.
pub fn file_digest(path: &Path, progress: &Progress) -> Result<String> {
    let failed = |e: std::io::Error| Error::Io(format!("{}: {e}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0u8; PIECE];
    loop {
        progress.check()?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize().to_hex().to_string()),
            Ok(n) => {
                hasher.update(&piece[..n]);
                progress.advance(n as u64);
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_bytes() {
        let path = std::env::temp_dir().join(format!("ketrag-digest-{}", std::process::id()));
        let bytes = vec![7u8; 3 * PIECE + 5];
        std::fs::write(&path, &bytes).unwrap();
        let digest = file_digest(&path, &Progress::none()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(digest, blake3::hash(&bytes).to_hex().to_string());
        assert!(matches!(file_digest(&path, &Progress::none()), Err(Error::Io(_))));
    }
}
