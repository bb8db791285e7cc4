//! Cache prefetching: a query touches hundreds of scattered rows of mapped arrays once each.

use crate::items::Items;

/// Prefetch the cache line of `slice[at]`; out of range it does nothing.
#[inline]
pub fn prefetch<T>(slice: &[T], at: usize) {
    prefetch_item(slice.into(), at);
}

#[inline]
fn prefetch_address<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a prefetch neither faults nor changes values.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; `prfm` writes neither registers nor flags.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Prefetch the cache line of `items[at]`, without making it ready; out of range it does nothing.
#[inline]
pub fn prefetch_item<T>(items: Items<'_, T>, at: usize) {
    if let Some(address) = items.address(at) {
        prefetch_address(address);
    }
}

/// Prefetch `slice[range]`, at most eight cache lines of it.
#[inline]
pub fn prefetch_range<T>(slice: &[T], range: std::ops::Range<usize>) {
    let step = (64 / std::mem::size_of::<T>().max(1)).max(1);
    let end = range.end.min(slice.len()).min(range.start.saturating_add(8 * step));
    let mut at = range.start;
    while at < end {
        prefetch(slice, at);
        at += step;
    }
}

/// Prefetch values that are behind a guard, at most eight cache lines of them.
#[inline]
pub fn prefetch_items<T>(items: Items<'_, T>, range: std::ops::Range<usize>) {
    if range.start < range.end {
        prefetch_range(items.get(range.clone()), 0..range.len());
    }
}

/// Prefetch all cache lines of `slice[start..start + count]`.
#[inline]
pub fn prefetch_lines<T>(slice: &[T], start: usize, count: usize) {
    let step = (64 / std::mem::size_of::<T>().max(1)).max(1);
    for at in (start..start + count).step_by(step) {
        prefetch(slice, at);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_place_may_be_asked_for() {
        super::prefetch(&[1u8], usize::MAX);
        super::prefetch::<u64>(&[], 0);
        super::prefetch_range(&[1u32; 9], 3..usize::MAX);
        super::prefetch_lines(&[1f32; 9], 3, 99);
    }
}
