//! Bindings for functions that Python's standard library offers only on Unix. On systems other than Windows
//! they do nothing.

use pyo3::prelude::*;

/// Return the bytes of the machine's memory and the available ones; None except on Windows.
#[pyfunction]
pub fn windows_memory() -> Option<(u64, u64)> {
    #[cfg(windows)]
    return ketrag_base::windows::machine_memory();
    #[cfg(not(windows))]
    None
}

/// Return the peak memory of this process in bytes; None except on Windows.
#[pyfunction]
pub fn windows_peak_memory() -> Option<u64> {
    #[cfg(windows)]
    return ketrag_base::windows::peak_memory();
    #[cfg(not(windows))]
    None
}

/// Limit the memory of this process to `limit` bytes; return whether the system accepted it, which only Windows does.
#[pyfunction]
pub fn windows_limit_memory(limit: usize) -> bool {
    #[cfg(windows)]
    return ketrag_base::windows::limit_memory(limit);
    #[cfg(not(windows))]
    {
        let _ = limit;
        false
    }
}
