//! Values of an array in a file, verified and unpacked before they are read.

use crate::guard::Guard;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, Range, RangeFrom};

/// Values of an array whose blocks become ready on first access: every read checks the guard, if there is one.
///
/// ```
/// use ketrag_base::items::Items;
///
/// let items = Items::from(&[5u32, 6, 7][..]);
/// assert_eq!((items.len(), &items[1..], items[0]), (3, &[6, 7][..], 5));
/// ```
pub struct Items<'a, T> {
    start: *const T,
    len: usize,
    guard: Option<Guard<'a>>,
    values: PhantomData<&'a [T]>,
}

// SAFETY: it is a shared slice with a guard; what is behind the guard is `Sync`.
unsafe impl<T: Sync> Send for Items<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Items<'_, T> {}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<T> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<'a, T> From<&'a [T]> for Items<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self { start: values.as_ptr(), len: values.len(), guard: None, values: PhantomData }
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Items<'a, T> {
    fn from(values: &'a [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T> From<&'a Vec<T>> for Items<'a, T> {
    fn from(values: &'a Vec<T>) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T> Items<'a, T> {
    /// Values of a slice whose blocks are verified on first access.
    pub fn guarded(values: &'a [T], guard: Option<Guard<'a>>) -> Self {
        Self { guard, ..Self::from(values) }
    }

    /// # Safety
    /// `start` must be aligned and valid for `len` values for `'a`. After `guard.check(range)` returns, the
    /// values of the range must be initialised, and nobody may write to them until `'a` ends.
    pub unsafe fn unpacked(start: *const T, len: usize, guard: Guard<'a>) -> Self {
        Self { start, len, guard: Some(guard), values: PhantomData }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Return some values. Panics if there are fewer.
    #[inline]
    pub fn get(&self, range: Range<usize>) -> &'a [T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} values", self.len);
        if let Some(guard) = &self.guard {
            guard.check(range.clone());
        }
        // SAFETY: the range is inside the array, and the guard has made it ready.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }

    /// Return one value, if there is one at this position.
    #[inline]
    pub fn value(&self, at: usize) -> Option<&'a T> {
        if at < self.len {
            self.get(at..at + 1).first()
        } else {
            None
        }
    }

    /// Return all values.
    pub fn all(&self) -> &'a [T] {
        self.get(0..self.len)
    }

    /// Return the first value, if there is one.
    pub fn first(&self) -> Option<&'a T> {
        self.value(0)
    }

    /// Return the last value, if there is one.
    pub fn last(&self) -> Option<&'a T> {
        self.value(self.len.wrapping_sub(1))
    }

    /// Return the first position in a range whose value does not satisfy `is_before`, which holds for the values before
    /// it. Only the values that the search compares are read.
    pub fn partition_point(&self, range: Range<usize>, is_before: impl Fn(&T) -> bool) -> usize {
        let Range { start: mut low, end: mut high } = range;
        while low < high {
            let middle = (low + high) / 2;
            match is_before(&self[middle]) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Return the values at `at` and `at + 1`: where a row starts and ends. Panics if there are fewer.
    #[inline]
    pub fn pair(&self, at: usize) -> [T; 2]
    where
        T: Copy,
    {
        assert!(self.len >= 2 && at < self.len - 1);
        if self.guard.is_some() {
            self.make_ready(at, 2);
        }
        // SAFETY: both are inside the array, and ready.
        unsafe { [*self.start.add(at), *self.start.add(at + 1)] }
    }

    /// Check the guard for some values. Not inlined, so that loops over arrays without a guard stay small.
    #[inline(never)]
    fn make_ready(&self, at: usize, count: usize) {
        if let Some(guard) = &self.guard {
            guard.check(at..at + count);
        }
    }

    /// Return the address of a value, whether or not it is verified.
    #[inline]
    pub(crate) fn address(&self, at: usize) -> Option<*const T> {
        // SAFETY: the address is inside the array; nothing is read.
        (at < self.len).then(|| unsafe { self.start.add(at) })
    }
}

impl<T> Index<usize> for Items<'_, T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        assert!(at < self.len);
        if self.guard.is_some() {
            self.make_ready(at, 1);
        }
        // SAFETY: the value is inside the array, and ready.
        unsafe { &*self.start.add(at) }
    }
}

impl<T> Index<Range<usize>> for Items<'_, T> {
    type Output = [T];

    #[inline]
    fn index(&self, range: Range<usize>) -> &[T] {
        self.get(range)
    }
}

impl<T> Index<RangeFrom<usize>> for Items<'_, T> {
    type Output = [T];

    #[inline]
    fn index(&self, range: RangeFrom<usize>) -> &[T] {
        self.get(range.start..self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "of 2 values")]
    fn what_is_not_there_is_not_read() {
        let _ = Items::from(&[1u32, 2][..]).get(1..3);
    }
}
