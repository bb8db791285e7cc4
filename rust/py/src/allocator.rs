//! The allocator of the extension module: the system's, with an emergency reserve that is released when
//! memory runs out ([`ketrag_base::reserve`]).

use ketrag_base::reserve::again;
use std::alloc::{GlobalAlloc, Layout, System};

#[global_allocator]
static ALLOCATOR: Reserve = Reserve;

/// The system's allocator, which releases the reserve block before it fails.
struct Reserve;

// SAFETY: every call passes the caller's arguments to the system's allocator; the addition only frees a block
// that `reserve` owns, once.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        again(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        again(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; on failure the old memory is unchanged, so the call may be repeated.
        again(size, || unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}
