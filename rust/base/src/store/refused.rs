//! What it means that the system refuses a file.

use crate::error::Error;

/// Of the system's numbers of errors those that say nothing about a file: ENOMEM, EMFILE, ENFILE.
const NO_MEMORY: i32 = 12;
const PROCESS_FILES: i32 = 24;
const SYSTEM_FILES: i32 = 23;

/// What it means that the system does not open, read or map a file.
pub(super) fn refused(name: &str, e: std::io::Error) -> Error {
    let error = match e.raw_os_error() {
        Some(NO_MEMORY) => Error::memory(format!("cannot map {name}: {e}")),
        Some(PROCESS_FILES | SYSTEM_FILES) => Error::limit(format!("cannot open {name}: {e}")),
        _ => Error::damaged(format!("cannot read {name}: {e}")),
    };
    error.caused_by(e)
}
