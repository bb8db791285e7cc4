//! String interning: map distinct strings to numbers without allocating a `String` for each occurrence.

use crate::memory::use_large_pages;
use crate::sparse::prefetch;
use crate::strings::{Strings, StringsBuf};
use std::ops::Range;

/// Number of strings whose slots are prefetched together.
const AT_ONCE: usize = 32;

/// Hash bytes; the same on every machine and in every run.
pub fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |h: u64, word: u64| {
        let wide = u128::from(h ^ word) * u128::from(K);
        (wide as u64) ^ ((wide >> 64) as u64)
    };
    let mut h = K ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        h = mix(h, u64::from_le_bytes(chunk.try_into().unwrap_or([0; 8])));
    }
    let mut last = [0u8; 8];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(h, u64::from_le_bytes(last)), K)
}

/// Distinct strings in order of first occurrence, with their numbers.
#[derive(Debug, Clone, Default)]
pub struct Interner {
    strings: StringsBuf,
    /// (upper half of the hash, number + 1); 0 marks a free slot. The length is a power of two.
    table: Vec<(u32, u32)>,
}

impl Interner {
    pub fn len(&self) -> usize {
        self.strings.offsets.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return the total number of bytes of all strings.
    pub(crate) fn size(&self) -> usize {
        self.strings.blob.len()
    }

    /// Return the bytes of string `i`, which must exist.
    pub(crate) fn bytes(&self, i: usize) -> &[u8] {
        &self.strings.blob[self.strings.offsets[i] as usize..self.strings.offsets[i + 1] as usize]
    }

    /// Return the slot of `text`, or the free slot where it belongs. The table must not be full.
    fn slot(&self, text: &[u8], h: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut at = h as usize & mask;
        loop {
            let (tag, number) = self.table[at];
            let same = tag == (h >> 32) as u32;
            if number == 0 || (same && self.bytes(number as usize - 1) == text) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Return the number of `text`, if it exists.
    pub fn get(&self, text: &str) -> Option<u32> {
        self.find(text.as_bytes())
    }

    /// Return the number of `text`, adding it if it is new. At most 2^32 - 2 strings.
    pub fn add(&mut self, text: &str) -> u32 {
        self.add_bytes(text.as_bytes())
    }

    /// Return the number in this interner of string `i` of another interner, if it exists.
    pub fn get_of(&self, other: &Self, i: usize) -> Option<u32> {
        self.find(other.bytes(i))
    }

    /// Add the first `count` strings of another interner and return their numbers in this one. A large table
    /// exceeds the caches, so the slots of several strings are prefetched together.
    pub fn add_first(&mut self, other: &Self, count: usize) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(count);
        let mut hashes = [0u64; AT_ONCE];
        for start in (0..count).step_by(AT_ONCE) {
            let some = start..(start + AT_ONCE).min(count);
            let hashes = &mut hashes[..some.len()];
            hashes.iter_mut().zip(some.clone()).for_each(|(h, i)| *h = hash(other.bytes(i)));
            self.prefetch(hashes);
            numbers.extend(some.zip(&*hashes).map(|(i, &h)| self.add_hashed(other.bytes(i), h)));
        }
        numbers
    }

    /// Prefetch the slots of some strings before they are looked up.
    pub fn ask_for<'a>(&self, some: Range<usize>, text: impl Fn(usize) -> &'a [u8]) {
        let mut hashes = [0u64; AT_ONCE];
        for start in some.clone().step_by(AT_ONCE) {
            let some = start..(start + AT_ONCE).min(some.end);
            let hashes = &mut hashes[..some.len()];
            hashes.iter_mut().zip(some).for_each(|(h, i)| *h = hash(text(i)));
            self.prefetch(hashes);
        }
    }

    /// Prefetch the slots of some hashes and their strings: each lookup waits for three dependent loads, and those of
    /// many strings can wait in parallel.
    fn prefetch(&self, hashes: &[u64]) {
        let mask = self.table.len().wrapping_sub(1);
        let slot = |&h: &u64| h as usize & mask;
        hashes.iter().for_each(|h| prefetch(&self.table, slot(h)));
        let number = |h: &u64| self.table.get(slot(h)).map_or(0, |&(_, number)| number) as usize;
        hashes.iter().for_each(|h| prefetch(&self.strings.offsets, number(h).wrapping_sub(1)));
        for h in hashes {
            if let Some(&start) = self.strings.offsets.get(number(h).wrapping_sub(1)) {
                prefetch(&self.strings.blob, start as usize);
            }
        }
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        self.table[self.slot(text, hash(text))].1.checked_sub(1)
    }

    fn add_bytes(&mut self, text: &[u8]) -> u32 {
        self.add_hashed(text, hash(text))
    }

    /// Return the number of `text`, whose hash is `h`, adding it if it is new. It must be UTF-8: it comes from a string
    /// or from another interner.
    fn add_hashed(&mut self, text: &[u8], h: u64) -> u32 {
        if (self.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let at = self.slot(text, h);
        if self.table[at].1 == 0 {
            self.strings.blob.extend_from_slice(text);
            self.strings.offsets.push(self.strings.blob.len() as u64);
            self.table[at] = ((h >> 32) as u32, self.len() as u32);
        }
        self.table[at].1 - 1
    }

    fn grow(&mut self) {
        self.table = vec![(0, 0); (self.table.len() * 2).max(64)];
        use_large_pages(&mut self.table);
        let mask = self.table.len() - 1;
        for i in 0..self.len() {
            let h = hash(self.bytes(i));
            let mut at = h as usize & mask;
            while self.table[at].1 != 0 {
                at = (at + 1) & mask;
            }
            self.table[at] = ((h >> 32) as u32, i as u32 + 1);
        }
    }

    pub fn strings(&self) -> Strings<'_> {
        self.strings.view()
    }

    /// Return the numbers of the strings in ascending byte order.
    pub fn order(&self) -> Vec<u32> {
        // The first eight bytes decide nearly all comparisons. Shorter strings are padded with zeros, and
        // strings with equal keys are compared in full.
        let key = |i: usize| {
            let bytes = self.bytes(i);
            let mut first = [0u8; 8];
            let length = bytes.len().min(8);
            first[..length].copy_from_slice(&bytes[..length]);
            u64::from_be_bytes(first)
        };
        let mut order: Vec<(u64, u32)> = (0..self.len()).map(|i| (key(i), i as u32)).collect();
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.bytes(a.1 as usize).cmp(self.bytes(b.1 as usize)))
        });
        order.into_iter().map(|(_, i)| i).collect()
    }

    /// Return the strings in ascending byte order, and for each number its rank in that order.
    pub fn sorted(&self) -> (StringsBuf, Vec<u32>) {
        let order = self.order();
        let mut place = vec![0; order.len()];
        let mut sorted = StringsBuf::default();
        sorted.blob.reserve(self.strings.blob.len());
        for (rank, &i) in order.iter().enumerate() {
            place[i as usize] = rank as u32;
            sorted.blob.extend_from_slice(self.bytes(i as usize));
            sorted.offsets.push(sorted.blob.len() as u64);
        }
        (sorted, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn numbers_are_stable_and_the_order_is_that_of_bytes(words in prop::collection::vec("[ab\u{e9}]{0,12}", 0..200)) {
            let mut interner = Interner::default();
            let numbers: Vec<u32> = words.iter().map(|w| interner.add(w)).collect();
            let distinct: BTreeSet<&str> = words.iter().map(String::as_str).collect();
            prop_assert_eq!(interner.len(), distinct.len());
            let (sorted, place) = interner.sorted();
            prop_assert_eq!(sorted.view().iter().collect::<Vec<_>>(), distinct.into_iter().collect::<Vec<_>>());
            for (word, &number) in words.iter().zip(&numbers) {
                prop_assert_eq!(interner.get(word), Some(number));
                prop_assert_eq!(sorted.view().get(place[number as usize] as usize), word.as_str());
            }
            prop_assert_eq!(interner.get("never added"), None);
            let (mut other, count) = (Interner::default(), interner.len() * 2 / 3);
            (0..interner.len() / 3).for_each(|i| {
                other.add(interner.strings().get(i));
            });
            prop_assert_eq!(other.add_first(&interner, count), (0..count as u32).collect::<Vec<_>>());
            prop_assert!((0..interner.len()).all(|i| other.get_of(&interner, i).is_some() == (i < count)));
        }
    }
}
