//! Compressed sparse rows, the representation of every graph and posting list, with masks, top-k selection
//! and the order of results.

mod csr;
mod topk;

use crate::error::Error;
use crate::error::Result;
use crate::items::Items;
pub use csr::{splice, Csr, CsrView, Source, ANY};
pub use topk::{keep_best, quantise, rank_order, top_k, Leaders, Scored};

/// One bit per unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    bits: Vec<u64>,
    units: usize,
    count: usize,
}

impl Mask {
    /// Return an error if the mask covers another number of units.
    pub fn check(&self, units: usize) -> Result<()> {
        match self.units == units {
            true => Ok(()),
            false => Err(Error::input(format!(
                "the filter covers {} units, but the index has {units}",
                self.units
            ))),
        }
    }

    /// Build a mask over `count` items from a predicate.
    pub fn from_fn(count: usize, fits: impl Fn(usize) -> bool) -> Self {
        let mut bits = vec![0u64; count.div_ceil(64)];
        let mut left = 0;
        for at in (0..count).filter(|&at| fits(at)) {
            bits[at / 64] |= 1 << (at % 64);
            left += 1;
        }
        Self { bits, units: count, count: left }
    }

    /// Return whether any of these units passes.
    pub fn any(&self, units: &[u32]) -> bool {
        units.iter().any(|&unit| self.has(unit))
    }

    #[inline]
    pub fn has(&self, unit: u32) -> bool {
        self.bits[unit as usize / 64] >> (unit % 64) & 1 == 1
    }

    /// Return the number of units that pass.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Return how many units to examine for each one that passes, between 1 and `most`.
    pub fn spread(&self, most: usize) -> usize {
        (self.units / self.count.max(1)).clamp(1, most)
    }

    /// Iterate over the units that pass, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter().zip((0u32..).step_by(64)).flat_map(|(&word, start)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let at = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(start + at)
            })
        })
    }

    pub fn bits(&self) -> &[u64] {
        &self.bits
    }
}

/// Return whether a unit passes; without a filter all units pass.
#[inline]
pub fn leaves(mask: Option<&Mask>, unit: u32) -> bool {
    mask.is_none_or(|mask| mask.has(unit))
}

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
    use super::*;

    #[test]
    fn bits_are_those_of_the_units() {
        let mask = Mask::from_fn(130, |i| i % 3 == 0);
        assert_eq!((0..130).filter(|&u| mask.has(u)).count(), mask.count());
        assert!(mask.ids().eq((0..130).filter(|&u| mask.has(u))));
        assert!(mask.has(129) && !mask.has(128));
        assert!(mask.check(130).is_ok() && mask.check(129).is_err());
        assert!(mask.any(&[1, 129]) && !mask.any(&[1, 128]) && !mask.any(&[]));
        assert!(leaves(None, 7) && !leaves(Some(&mask), 7));
    }

    #[test]
    fn any_place_may_be_asked_for() {
        super::prefetch(&[1u8], usize::MAX);
        super::prefetch::<u64>(&[], 0);
        super::prefetch_range(&[1u32; 9], 3..usize::MAX);
        super::prefetch_lines(&[1f32; 9], 3, 99);
    }
}
