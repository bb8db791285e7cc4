//! Emergency memory reserve. An allocation that fails ends the process, and most allocations of these crates
//! are small and infallible; only large ones go through [`crate::memory`].
//!
//! During a call the process holds a block of untouched address space, which costs no physical memory. When
//! the system refuses an allocation, an allocator that calls [`again`] gets the memory of the block, and the
//! next [`crate::progress::Progress::check`] ends the call with [`Error::Memory`]. Library crates do not
//! install such an allocator; the extension module does. Without one the block is never released.

use crate::error::{Error, Result};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Size of the block. If it cannot be allocated, a quarter of the size is tried, and so on.
const MOST: usize = 64 << 20;
/// A smaller block would not be enough to reach the next check of a call.
const LEAST: usize = 4 << 20;
const ALIGN: usize = 16;
/// Pauses in milliseconds after each failed attempt of an allocation.
const WAITS: Range<u64> = 0..23;

/// The reserve block of this process.
static HELD: Held = Held::new();

/// Allocate the reserve block if it is not held; `Memory` if not even a small one can be allocated.
pub fn keep() -> Result<()> {
    HELD.keep()
}

/// Call an allocator for `bytes`; if it fails, release the reserve block and call it again.
///
/// Another thread may be releasing the block at this moment, or may take its memory for a new one. The calls of other
/// threads also end at their next check and free what they hold. So a request that the block could serve is repeated
/// for a quarter of a second.
#[inline]
pub fn again(bytes: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let found = ask();
    if found.is_null() {
        return repeat(bytes, ask);
    }
    found
}

#[cold]
fn repeat(bytes: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let waits = if bytes <= MOST { WAITS } else { 0..1 };
    for wait in waits {
        HELD.give_back();
        let found = ask();
        if !found.is_null() {
            return found;
        }
        sleep(Duration::from_millis(wait));
    }
    null_mut()
}

/// Return `Memory` if the block has been released.
#[inline]
pub fn check() -> Result<()> {
    HELD.check()
}

/// A block that stores its size in its first bytes, or no block.
struct Held {
    block: AtomicPtr<usize>,
    /// Whether the block was released and could not be allocated again.
    spent: AtomicBool,
}

impl Held {
    const fn new() -> Self {
        Self { block: AtomicPtr::new(null_mut()), spent: AtomicBool::new(false) }
    }

    fn keep(&self) -> Result<()> {
        if !self.block.load(Ordering::Relaxed).is_null() {
            return Ok(());
        }
        let mut bytes = MOST;
        while bytes >= LEAST {
            // SAFETY: the size is not zero.
            let block = unsafe { System.alloc(layout(bytes)) }.cast::<usize>();
            if !block.is_null() {
                // SAFETY: the block is larger than a number and aligned for it.
                unsafe { block.write(bytes) };
                self.spent.store(false, Ordering::Relaxed);
                let before =
                    self.block.compare_exchange(null_mut(), block, Ordering::AcqRel, Ordering::Relaxed);
                if before.is_err() {
                    free(block); // another thread was faster
                }
                return Ok(());
            }
            bytes /= 4;
        }
        Err(lacking())
    }

    #[cold]
    fn give_back(&self) {
        let block = self.block.swap(null_mut(), Ordering::AcqRel);
        if !block.is_null() {
            self.spent.store(true, Ordering::Relaxed);
            free(block);
        }
    }

    #[inline]
    fn check(&self) -> Result<()> {
        match self.spent.load(Ordering::Relaxed) {
            true => Err(lacking()),
            false => Ok(()),
        }
    }
}

/// `block` comes from `keep` and has no other owner.
fn free(block: *mut usize) {
    // SAFETY: its first bytes hold the size that it was made with.
    unsafe { System.dealloc(block.cast(), layout(*block)) };
}

fn layout(bytes: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and sizes up to MOST do not overflow.
    unsafe { Layout::from_size_align_unchecked(bytes, ALIGN) }
}

fn lacking() -> Error {
    Error::memory("this machine does not have enough memory for the call")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::ptr::NonNull;

    #[test]
    fn a_block_that_is_spent_ends_calls_until_it_is_put_by_again() {
        let held = Held::new();
        assert_eq!(held.check(), Ok(()));
        for _ in 0..2 {
            assert_eq!((held.keep(), held.keep(), held.check()), (Ok(()), Ok(()), Ok(())));
            held.give_back();
            assert!(matches!(held.check(), Err(Error::Memory(_))));
            held.give_back();
        }
        held.keep().unwrap();
        held.give_back();
    }

    #[test]
    fn what_the_system_refuses_is_asked_for_again_until_another_thread_frees_something() {
        let asked = Cell::new(0);
        let after = |n: usize, bytes: usize| {
            asked.set(0);
            let place = again(bytes, || {
                asked.set(asked.get() + 1);
                [null_mut(), NonNull::dangling().as_ptr()][usize::from(asked.get() > n)]
            });
            (!place.is_null(), asked.get())
        };
        assert_eq!(after(0, 8), (true, 1));
        assert_eq!(after(1, 8), (true, 2));
        assert_eq!(after(9, 8192), (true, 10));
        assert_eq!(after(usize::MAX, 8192), (false, 24));
        assert_eq!(after(usize::MAX, MOST + 1), (false, 2)); // waiting would not free enough memory
    }
}
