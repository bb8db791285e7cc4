//! Byte-pair encoding of one piece with an embedded vocabulary.
//!
//! The adjacent pair whose merged token has the lowest number is merged, the leftmost first, until no pair
//! can be merged. Short pieces (nearly all) are scanned for the lowest pair each time; long ones keep their
//! pairs in a heap, so that the time stays near-linear.
//!
//! An embedded vocabulary lists for each token the two earlier tokens that it consists of, or its number in a
//! vocabulary that also has it (`data/make_vocabularies.py`), because a wheel compresses numbers better than bytes.
//! Its table is built on first use in a few milliseconds. Crates that embed whole automata are faster on long
//! pieces but add 40 MB.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Marks the absence of a token.
const NONE: u32 = u32::MAX;
/// Pieces up to this many bytes are scanned; longer ones use a heap.
const SHORT: usize = 96;

/// A vocabulary: token `t` is the `t`-th of the list.
pub(crate) struct Merges {
    /// The bytes of all tokens, each after its length.
    data: Vec<u8>,
    /// Start of each token's bytes in `data`.
    starts: Vec<u32>,
    /// Open addressing, at most half full.
    slots: Vec<u32>,
}

impl Merges {
    /// Build the table from a vocabulary file, given the vocabulary `base` that it refers to.
    pub(crate) fn new(file: &[u8], base: Option<&Self>) -> Self {
        let (bytes, file) = file.split_at(256);
        let (count, file) = file.split_at(4);
        let count = count.iter().rev().fold(0, |count, &byte| count << 8 | usize::from(byte));
        let (flags, file) = file.split_at(count.div_ceil(8));
        let known: usize = flags.iter().map(|byte| byte.count_ones() as usize).sum();
        let (known, pairs) = file.split_at(3 * known);
        let (left, right) = pairs.split_at(pairs.len() / 2);
        let mut data = Vec::with_capacity(count * 9);
        let mut starts = Vec::with_capacity(256 + count);
        for &byte in bytes {
            starts.push(data.len() as u32 + 1);
            data.extend([1, byte]);
        }
        let (mut next_known, mut next_pair) = (0, 0);
        for i in 0..count {
            let at = data.len();
            starts.push(at as u32 + 1);
            data.push(0);
            if flags[i / 8] >> (i % 8) & 1 == 1 {
                let token = number(known, next_known);
                data.extend_from_slice(base.map_or(&[], |base| base.bytes(token)));
                next_known += 1;
            } else {
                for part in [number(left, next_pair), number(right, next_pair)] {
                    let start = starts[part] as usize;
                    data.extend_from_within(start..start + data[start - 1] as usize);
                }
                next_pair += 1;
            }
            data[at] = (data.len() - at - 1) as u8;
        }
        let mut slots = vec![NONE; (starts.len() * 2).next_power_of_two()];
        let mask = slots.len() - 1;
        for (token, &start) in starts.iter().enumerate() {
            let start = start as usize;
            let bytes = &data[start..start + data[start - 1] as usize];
            let mut slot = hash_of(bytes) & mask;
            while slots[slot] != NONE {
                slot = (slot + 1) & mask;
            }
            slots[slot] = token as u32;
        }
        Self { data, starts, slots }
    }

    pub(crate) fn token_len(&self, token: u32) -> usize {
        self.data[self.starts[token as usize] as usize - 1] as usize
    }

    fn bytes(&self, token: usize) -> &[u8] {
        let start = self.starts[token] as usize;
        &self.data[start..][..self.token_len(token as u32)]
    }

    fn find(&self, bytes: &[u8]) -> u32 {
        let mask = self.slots.len() - 1;
        let mut slot = hash_of(bytes) & mask;
        loop {
            let token = self.slots[slot];
            if token == NONE {
                return NONE;
            }
            let start = self.starts[token as usize] as usize;
            if self.data[start - 1] as usize == bytes.len() && &self.data[start..start + bytes.len()] == bytes
            {
                return token;
            }
            slot = (slot + 1) & mask;
        }
    }

    pub(crate) fn count(&self, piece: &[u8]) -> usize {
        let mut count = 0;
        self.each(piece, |_| count += 1);
        count
    }

    pub(crate) fn encode(&self, piece: &[u8]) -> Vec<u32> {
        let mut tokens = Vec::new();
        self.each(piece, |part| tokens.push(self.find(part)));
        tokens
    }

    /// Call `see` with the bytes of each token.
    fn each<'p>(&self, piece: &'p [u8], see: impl FnMut(&'p [u8])) {
        if piece.len() <= 1 || self.find(piece) != NONE {
            Some(piece).filter(|p| !p.is_empty()).into_iter().for_each(see);
        } else if piece.len() <= SHORT {
            self.search(piece, see);
        } else {
            self.heap(piece, see);
        }
    }

    fn search<'p>(&self, piece: &'p [u8], see: impl FnMut(&'p [u8])) {
        // Part i starts at starts[i]; pairs[i] is the token of parts i and i + 1.
        let mut starts = [0u8; SHORT + 1];
        let mut pairs = [NONE; SHORT];
        let mut parts = piece.len();
        for (i, start) in starts.iter_mut().enumerate() {
            *start = i as u8;
        }
        for (pair, both) in pairs.iter_mut().zip(piece.windows(2)) {
            *pair = self.find(both);
        }
        loop {
            let mut best = 0;
            for i in 1..parts - 1 {
                if pairs[i] < pairs[best] {
                    best = i;
                }
            }
            if parts < 2 || pairs[best] == NONE {
                break;
            }
            starts.copy_within(best + 2..=parts, best + 1);
            if best + 2 < parts {
                pairs.copy_within(best + 2..parts, best + 1);
            }
            parts -= 1;
            let pair = |i: usize| {
                if i + 2 > parts {
                    return NONE;
                }
                self.find(&piece[starts[i] as usize..starts[i + 2] as usize])
            };
            pairs[best] = pair(best);
            if best > 0 {
                pairs[best - 1] = pair(best - 1);
            }
        }
        starts[..=parts].windows(2).map(|w| &piece[w[0] as usize..w[1] as usize]).for_each(see);
    }

    fn heap<'p>(&self, piece: &'p [u8], see: impl FnMut(&'p [u8])) {
        let length = piece.len();
        // next[i] is the end of the part that starts at i, or 0 if no part starts there. before[i] is the
        // start of the preceding part.
        let mut next: Vec<u32> = (1..=length as u32).collect();
        let mut before: Vec<u32> = (0..length as u32).map(|i| i.saturating_sub(1)).collect();
        let mut heap = BinaryHeap::with_capacity(length);
        let pair = |start: usize, end: usize| match self.find(&piece[start..end]) {
            NONE => None,
            token => Some(Reverse((token, start as u32, end as u32))),
        };
        heap.extend((0..length - 1).filter_map(|i| pair(i, i + 2)));
        while let Some(Reverse((_, start, end))) = heap.pop() {
            let (start, end) = (start as usize, end as usize);
            let middle = next[start] as usize;
            // The pair is stale, because one of its parts was merged with another part.
            if middle == 0 || middle >= length || next[middle] as usize != end {
                continue;
            }
            next[middle] = 0;
            next[start] = end as u32;
            if end < length {
                before[end] = start as u32;
                heap.extend(pair(start, next[end] as usize));
            }
            if start > 0 {
                heap.extend(pair(before[start] as usize, end));
            }
        }
        let mut at = 0;
        std::iter::from_fn(|| {
            let start = at;
            (start < length).then(|| {
                at = next[start] as usize;
                &piece[start..at]
            })
        })
        .for_each(see);
    }
}

/// Return a number of three bytes, which are in three planes.
fn number(planes: &[u8], at: usize) -> usize {
    let count = planes.len() / 3;
    (0..3).map(|byte| usize::from(planes[byte * count + at]) << (8 * byte)).sum()
}

fn hash_of(bytes: &[u8]) -> usize {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let x = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        hash = (hash.rotate_left(23) ^ x).wrapping_mul(K);
    }
    let mut last = 0u64;
    for &b in chunks.remainder() {
        last = last << 8 | u64::from(b);
    }
    hash = (hash.rotate_left(23) ^ last).wrapping_mul(K);
    (hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::super::bpe::Encoding;
    use super::*;
    use proptest::prelude::*;

    /// The literal definition.
    fn plain(merges: &Merges, piece: &[u8]) -> Vec<u32> {
        let mut parts: Vec<&[u8]> = piece.chunks(1).collect();
        let mut ends: Vec<usize> = (0..=piece.len()).collect();
        loop {
            let pairs = ends.windows(3).map(|w| merges.find(&piece[w[0]..w[2]]));
            match pairs.enumerate().min_by_key(|&(_, token)| token) {
                Some((i, token)) if token != NONE => {
                    ends.remove(i + 1);
                }
                _ => break,
            }
        }
        parts.clear();
        parts.extend(ends.windows(2).map(|w| &piece[w[0]..w[1]]));
        parts.into_iter().map(|part| merges.find(part)).collect()
    }

    proptest! {
        #[test]
        fn both_ways_are_the_rule(piece in prop_oneof!["[a-e ]{2,90}", "(the|ing|er|é|中文|x){1,30}", "(ab|a|!){100,140}", any::<String>()]) {
            for encoding in [Encoding::Cl100k, Encoding::O200k] {
                let merges = encoding.merges();
                let bytes = piece.as_bytes();
                prop_assume!(!bytes.is_empty());
                let expected = plain(merges, bytes);
                let collect = |heap: bool| {
                    let mut tokens = Vec::new();
                    if heap { merges.heap(bytes, |p| tokens.push(merges.find(p))) } else { merges.search(bytes, |p| tokens.push(merges.find(p))) }
                    tokens
                };
                prop_assert_eq!(&collect(true), &expected);
                if bytes.len() <= SHORT {
                    prop_assert_eq!(&collect(false), &expected);
                }
                prop_assert_eq!(merges.count(bytes), merges.encode(bytes).len());
                let lengths: usize = expected.iter().map(|&t| merges.token_len(t)).sum();
                prop_assert_eq!(lengths, bytes.len());
            }
        }
    }

    #[test]
    fn every_token_is_found() {
        for (encoding, size) in [(Encoding::Cl100k, 100_256), (Encoding::O200k, 199_998)] {
            let merges = encoding.merges();
            assert_eq!(merges.starts.len(), size);
            for token in 0..size as u32 {
                let start = merges.starts[token as usize] as usize;
                assert_eq!(merges.find(&merges.data[start..start + merges.token_len(token)]), token);
            }
        }
    }
}
