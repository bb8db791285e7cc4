//! Classification of the system's errors on files: out of memory, out of descriptors, or an ordinary I/O
//! error.

use crate::error::Error;

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
