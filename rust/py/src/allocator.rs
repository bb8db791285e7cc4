//! The allocator of the extension module: the system's, with a block put by for the moment when there is no more
//! memory ([`ketrag_base::reserve`]).

use ketrag_base::reserve::again;
use std::alloc::{GlobalAlloc, Layout, System};

#[global_allocator]
static ALLOCATOR: Reserve = Reserve;

/// The system's allocator, which gives the block back before it gives up.
struct Reserve;

// SAFETY: every call goes to the system's allocator with the caller's own arguments; what is added frees a block
// that `reserve` alone knows, once.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        again(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        again(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; where it fails the old memory is as it was, and may be handed over once more.
        again(|| unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}
