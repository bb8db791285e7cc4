//! Fallible allocation of arrays whose size comes from the caller or grows with the index. An ordinary
//! allocation that fails ends the process.
//!
//! ```
//! use ketrag_base::memory::zeros;
//! use ketrag_base::Error;
//!
//! assert_eq!(zeros::<u32>(3, "counts")?, [0, 0, 0]);
//! assert!(matches!(zeros::<u64>(1 << 60, "counts"), Err(Error::Memory(_))));
//! # Ok::<(), Error>(())
//! ```

use crate::error::{Error, Result};
use bytemuck::Zeroable;

/// Slices of at least this many bytes get large pages.
pub const LARGE: usize = 4 << 20;
/// A multiple of every page size that the system uses for small allocations.
#[cfg(target_os = "linux")]
const PAGE: usize = 1 << 16;

/// Return an empty vector with capacity for exactly `n` items; `what` names the array in errors.
pub fn room<T>(n: usize, what: &str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(n).map_err(|_| lacking::<T>(n, what))?;
    Ok(values)
}

/// Return `n` zeros. Pages that are never touched cost nothing.
pub fn zeros<T: Zeroable>(n: usize, what: &str) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(n).map_err(|()| lacking::<T>(n, what))
}

/// Return `n` copies of `value`.
pub fn filled<T: Clone>(value: T, n: usize, what: &str) -> Result<Vec<T>> {
    let mut values = room(n, what)?;
    values.resize(n, value);
    Ok(values)
}

/// Collect an iterator of known length.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>, what: &str) -> Result<Vec<T>> {
    let mut values = room(items.len(), what)?;
    values.extend(items);
    Ok(values)
}

/// Request large pages for a slice that is accessed randomly, before it is touched, so that distant accesses
/// do not need a walk through the page tables. Does nothing for slices of less than [`LARGE`] bytes, or if
/// the system has no large pages.
pub fn use_large_pages<T>(values: &mut [T]) {
    let bytes = size_of_val(values);
    #[cfg(target_os = "linux")]
    if bytes >= LARGE {
        let start = values.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE).min(bytes);
        // SAFETY: the range is inside the slice, and the advice changes no byte of it.
        unsafe {
            libc::madvise(start.add(skipped).cast(), bytes - skipped, libc::MADV_HUGEPAGE);
        }
    }
    let _ = bytes;
}

fn lacking<T>(n: usize, what: &str) -> Error {
    let bytes = n.saturating_mul(size_of::<T>());
    Error::memory(format!("{what} needs {bytes} bytes, more than this machine can allocate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_change_no_value() {
        let mut values = zeros::<u32>(LARGE / 2, "a list").unwrap();
        use_large_pages(&mut values[1..]);
        values.iter_mut().zip(0..).for_each(|(value, at)| *value = at);
        assert!(values.iter().zip(0..).all(|(&value, at)| value == at));
        use_large_pages::<u8>(&mut []);
    }

    #[test]
    fn what_cannot_be_had_is_an_error_and_what_can_is_filled() {
        for n in [1 << 60, usize::MAX / 2, usize::MAX] {
            assert!(matches!(room::<u64>(n, "a list"), Err(Error::Memory(text)) if text.contains("a list")));
            assert!(matches!(zeros::<u64>(n, "a list"), Err(Error::Memory(_))));
            assert!(matches!(filled(7u64, n, "a list"), Err(Error::Memory(_))));
        }
        assert_eq!(zeros::<u32>(3, "a list"), Ok(vec![0; 3]));
        assert_eq!(filled(7, 2, "a list"), Ok(vec![7, 7]));
        assert_eq!(collected([3, 1].into_iter(), "a list"), Ok(vec![3, 1]));
        assert!(matches!(collected(0..1usize << 60, "a list"), Err(Error::Memory(_))));
        assert!(room::<u8>(9, "a list").unwrap().capacity() >= 9);
    }
}
