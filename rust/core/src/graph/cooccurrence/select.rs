//! The best neighbours so far of each text of a group.

use crate::error::Result;
use crate::memory::zeros;

/// Encode a neighbour as one number: larger is better (count first, then the smaller id).
fn key(count: u32, id: u32) -> u64 {
    u64::from(count) << 32 | u64::from(!id)
}

fn count_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn id_of(key: u64) -> u32 {
    !(key as u32)
}

/// For each text of a group a heap of at most `k` neighbours with its worst at the root.
pub struct Best {
    k: usize,
    keys: Vec<u64>,
    lengths: Vec<usize>,
    needs: Vec<u32>,
}

impl Best {
    /// Start without neighbours for `texts` texts; `k` is at least 1.
    pub fn new(texts: usize, k: usize) -> Result<Self> {
        let keys = zeros(texts.saturating_mul(k), "neighbours of texts")?;
        Ok(Self { k, keys, lengths: vec![0; texts], needs: vec![1; texts] })
    }

    /// Return the number of neighbours held for each text.
    pub fn capacity(&self) -> usize {
        self.k
    }

    /// Return the smallest count with which a text of larger id than all before can still be added.
    pub fn need(&self, text: usize) -> u32 {
        self.needs[text]
    }

    /// Offer a neighbour (with a count of at least 1). The order of offers does not matter.
    pub fn offer(&mut self, text: usize, count: u32, id: u32) {
        let heap = &mut self.keys[text * self.k..(text + 1) * self.k];
        let length = &mut self.lengths[text];
        let new = key(count, id);
        if *length < self.k {
            let mut at = *length;
            *length += 1;
            while at > 0 && heap[(at - 1) / 2] > new {
                heap[at] = heap[(at - 1) / 2];
                at = (at - 1) / 2;
            }
            heap[at] = new;
        } else if new > heap[0] {
            let mut at = 0;
            loop {
                let mut child = 2 * at + 1;
                if child >= self.k {
                    break;
                }
                if child + 1 < self.k && heap[child + 1] < heap[child] {
                    child += 1;
                }
                if heap[child] >= new {
                    break;
                }
                heap[at] = heap[child];
                at = child;
            }
            heap[at] = new;
        }
        if *length == self.k {
            self.needs[text] = count_of(heap[0]).saturating_add(1);
        }
    }

    /// Remove and return the (count, id) pairs of one text, best first.
    pub fn take(&mut self, text: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let from = text * self.k;
        let found = &mut self.keys[from..from + self.lengths[text]];
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.iter().map(|&key| (count_of(key), id_of(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_the_best_whatever_the_order(
            counts in prop::collection::vec(1u32..6, 0..40),
            k in 1usize..12,
            turn in any::<prop::sample::Index>(),
        ) {
            let mut offers: Vec<(u32, u32)> = counts.iter().enumerate().map(|(i, &c)| (c, i as u32)).collect();
            let mut sorted = offers.clone();
            sorted.sort_by_key(|&(c, i)| (std::cmp::Reverse(c), i));
            sorted.truncate(k);
            if !offers.is_empty() {
                let by = turn.index(offers.len());
                offers.rotate_left(by);
            }
            let mut best = Best::new(3, k).unwrap();
            for &(count, id) in &offers {
                best.offer(1, count, id);
            }
            let need = if sorted.len() == k { sorted[k - 1].0 + 1 } else { 1 };
            prop_assert_eq!(best.need(1), need);
            prop_assert_eq!(best.take(1).collect::<Vec<_>>(), sorted);
            prop_assert_eq!(best.take(0).count() + best.take(2).count(), 0);
        }
    }
}
