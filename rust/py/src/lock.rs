//! Locks of files: one process at a time builds an index. The system releases the lock of a process that ends.

use pyo3::prelude::*;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A lock that is held until `release`.
#[pyclass(frozen, name = "FileLock", module = "ketrag_fast._core")]
pub struct FileLock(Mutex<Option<File>>);

#[pymethods]
impl FileLock {
    /// Release the lock, also of processes that were forked meanwhile. A second call does nothing.
    fn release(&self) {
        if let Some(file) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = file.unlock(); // closing the file releases it too, if no forked process has it open
        }
    }
}

/// Lock a file, which is created if it is missing. Returns None if another lock is held, by any process or by this one.
#[pyfunction]
pub fn lock_file(py: Python<'_>, path: PathBuf) -> PyResult<Option<FileLock>> {
    py.detach(|| loop {
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) if is_removed(&file)? => continue, // its holder has deleted it, so a new one is locked
            Ok(()) => return Ok(Some(FileLock(Mutex::new(Some(file))))),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    })
    .map_err(|error: std::io::Error| match error.raw_os_error() {
        Some(number) => {
            let system = pyo3::exceptions::PyOSError::new_err;
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            system((number, text, path.display().to_string()))
        }
        None => error.into(),
    })
}

fn open(path: &PathBuf) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
}

#[cfg(unix)]
fn is_removed(file: &File) -> std::io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) == 0)
}

#[cfg(not(unix))]
fn is_removed(_: &File) -> std::io::Result<bool> {
    Ok(false)
}
