//! The work of one thread: a group of texts is compared with all blocks.

use crate::error::Result;
use crate::ket_rag::cooccurrence::lanes::prefetch;
use crate::ket_rag::cooccurrence::options::{Kernel, Options, Tuning};
use crate::ket_rag::cooccurrence::plan::Plan;
use crate::ket_rag::cooccurrence::rare::{group_end, Rare};
use crate::ket_rag::cooccurrence::slices::{Counts, Row, TEXTS};
use crate::memory::zeros;
use crate::progress::Progress;
use std::ops::Range;

/// Number of texts compared with a block between two checks of the progress, about 50 microseconds.
const GLANCE: usize = 512;

/// Maximum number of neighbours held for one group (8 bytes each).
const HELD: usize = 4 << 20;

/// State that a thread reuses from group to group.
pub struct Walk<'a> {
    plan: &'a Plan,
    k: usize,
    kernel: Kernel,
    allow_zero: bool,
    tuning: Tuning,
    /// A row per frequent word: the texts of the current block that contain it.
    table: Vec<Row>,
    rare: Rare,
    order: Order,
    block: Block,
}

/// The texts of a group with their frequent words, sorted by the number of these. If adjacent texts have
/// equal lengths, every branch of the adders is predictable, which is a third faster.
#[derive(Default)]
struct Order {
    texts: Vec<u32>,
    /// For each text (minus the first of the group): its index in `texts`.
    places: Vec<u16>,
    ends: Vec<usize>,
    slots: Vec<u32>,
}

impl Order {
    fn set(&mut self, plan: &Plan, group: &Range<usize>) {
        self.texts.clear();
        self.texts.extend(group.clone().map(|text| text as u32));
        self.texts.sort_by_key(|&text| plan.frequent(text as usize).len());
        self.places.resize(group.len(), 0);
        self.ends.clear();
        self.slots.clear();
        for (place, &text) in self.texts.iter().enumerate() {
            // A group has at most `rare::GROUP` texts, so the index fits.
            self.places[text as usize - group.start] = place as u16;
            self.slots.extend_from_slice(plan.frequent(text as usize));
            self.ends.push(self.slots.len());
        }
    }

    fn slots(&self, place: usize) -> &[u32] {
        let from = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.slots[from..self.ends[place]]
    }
}

/// Ids and counts of the texts of a range, `k` each.
type Part = (Vec<u32>, Vec<u32>);

impl<'a> Walk<'a> {
    pub fn new(plan: &'a Plan, k: usize, kernel: Kernel, options: &Options) -> Self {
        Self {
            plan,
            k,
            kernel,
            allow_zero: options.allow_zero,
            tuning: options.tuning,
            table: vec![Row::NONE; plan.slots],
            rare: Rare::default(),
            order: Order::default(),
            block: Block::new(),
        }
    }

    pub fn range(&mut self, texts: Range<usize>, progress: &Progress) -> Result<Part> {
        let size = texts.len() * self.k;
        let mut part = (vec![u32::MAX; size], vec![0; size]);
        let run = self.tuning.run.max(1);
        let most = self.tuning.group.min(HELD / self.k.min(self.plan.texts)).max(1);
        let mut from = texts.start;
        while from < texts.end {
            let end = group_end(self.plan, from, texts.end, most, run, self.tuning.rare);
            let mut best = self.group(from..end, progress)?;
            for text in from..end {
                let row = (text - texts.start) * self.k..(text - texts.start + 1) * self.k;
                let (ids, counts) = (&mut part.0[row.clone()], &mut part.1[row]);
                let mut length = 0;
                for (count, id) in best.take(self.order.places[text - from] as usize) {
                    (ids[length], counts[length]) = (id, count);
                    length += 1;
                }
                if self.allow_zero && length < self.k {
                    self.fill_up(text, ids, length);
                    if text % GLANCE == 0 {
                        progress.check()?;
                    }
                }
            }
            from = end;
        }
        Ok(part)
    }

    /// Add the texts with the smallest ids that are not neighbours yet, with a count of 0.
    fn fill_up(&self, text: usize, ids: &mut [u32], length: usize) {
        let (there, free) = ids.split_at_mut(length);
        let mut there = there.to_vec();
        there.push(text as u32);
        there.sort_unstable();
        let mut taken = there.iter().peekable();
        let mut others = (0..self.plan.texts as u32).filter(|id| taken.next_if_eq(&id).is_none());
        for (place, id) in free.iter_mut().zip(&mut others) {
            *place = id;
        }
    }

    fn group(&mut self, group: Range<usize>, progress: &Progress) -> Result<Best> {
        let blocks = self.plan.texts.div_ceil(TEXTS);
        let mut best = Best::new(group.len(), self.k.min(self.plan.texts - 1))?;
        self.order.set(self.plan, &group);
        self.rare.begin(self.plan, &group, progress)?;
        let mut first = 0;
        while first < blocks {
            let run = first..(first + self.tuning.run.max(1)).min(blocks);
            self.rare.fill(self.plan, &self.order.places, &run, progress)?;
            for b in run.clone() {
                let here = b * TEXTS..((b + 1) * TEXTS).min(self.plan.texts);
                self.set_table(&here);
                self.rare.enter(b - run.start);
                for (place, &text) in self.order.texts.iter().enumerate() {
                    if place % GLANCE == 0 {
                        progress.check()?;
                    }
                    // Prefetch rows of the next text: the table is larger than the L2 cache.
                    if place + 1 < self.order.texts.len() {
                        for &slot in self.order.slots(place + 1) {
                            prefetch(self.table.as_ptr().wrapping_add(slot as usize).cast());
                        }
                    }
                    let (slots, rare) = (self.order.slots(place), self.rare.of(place));
                    let to = (&mut best, place);
                    self.block.visit(self.kernel, &self.table, slots, rare, text as usize, &here, to);
                }
                progress.advance(group.len() as u64);
            }
            first = run.end;
        }
        Ok(best)
    }

    fn set_table(&mut self, here: &Range<usize>) {
        self.table.fill(Row::NONE);
        for text in here.clone() {
            for &slot in self.plan.frequent(text) {
                self.table[slot as usize].set(text - here.start);
            }
        }
    }
}

/// Scratch buffers for one text and one block.
struct Block {
    counts: Counts,
    rare: [u32; TEXTS],
    touched: Vec<u16>,
}

impl Block {
    fn new() -> Self {
        Self { counts: Counts::new(), rare: [0; TEXTS], touched: Vec::with_capacity(TEXTS) }
    }

    /// Offer to `best` the texts of block `here` that may be neighbours of `text`.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn visit(
        &mut self,
        kernel: Kernel,
        table: &[Row],
        slots: &[u32],
        rare: &[u16],
        text: usize,
        here: &Range<usize>,
        (best, g): (&mut Best, usize),
    ) {
        let mut need = best.need(g);
        if slots.len() + rare.len() < need as usize {
            return;
        }
        let mut among = Row::first(here.len());
        if here.contains(&text) {
            among.clear(text - here.start);
        }
        // No text of this block gets more from rare words than one plus the repeated positions. That is
        // nearly always 1, so few blocks contain a possible neighbour.
        let mut met = Row::NONE;
        let mut most = u32::from(!rare.is_empty());
        for &p in rare {
            most += u32::from(met.has(p as usize));
            met.set(p as usize);
        }
        let low = need.saturating_sub(most);
        let Some(possible) = self.counts.add(kernel, table, slots, &among, low) else { return };
        let mut alone = if rare.is_empty() { possible } else { self.counts.at_least(&among, need) };
        let k = best.capacity();
        if alone.count() > k {
            // At first many texts pass, but counts below the k-th largest of this block cannot remain.
            need = need.max(self.counts.kth_largest(alone, k));
            alone = self.counts.at_least(&alone, need);
        }
        for &p in rare {
            if possible.has(p as usize) {
                let shared = &mut self.rare[p as usize];
                if *shared == 0 {
                    self.touched.push(p);
                }
                *shared += 1;
            }
        }
        for p in self.touched.drain(..) {
            let p = p as usize;
            let count = self.counts.at(p) + std::mem::take(&mut self.rare[p]);
            alone.clear(p);
            if count >= need {
                best.offer(g, count, (here.start + p) as u32);
            }
        }
        alone.each(|p| best.offer(g, self.counts.at(p), (here.start + p) as u32));
    }
}

// The best neighbours so far of each text of a group.

/// Encode a neighbour as one number, of which larger is better: count first, then the smaller id.
fn key(count: u32, id: u32) -> u64 {
    u64::from(count) << 32 | u64::from(!id)
}

fn count_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn id_of(key: u64) -> u32 {
    !(key as u32)
}

/// For each text of a group, a heap of at most `k` neighbours with the worst at the root.
struct Best {
    k: usize,
    keys: Vec<u64>,
    lengths: Vec<usize>,
    needs: Vec<u32>,
}

impl Best {
    /// Start with no neighbours for `texts` texts; `k` is at least 1.
    pub fn new(texts: usize, k: usize) -> Result<Self> {
        let keys = zeros(texts.saturating_mul(k), "neighbours of texts")?;
        Ok(Self { k, keys, lengths: vec![0; texts], needs: vec![1; texts] })
    }

    /// Return the number of neighbours held for each text.
    pub fn capacity(&self) -> usize {
        self.k
    }

    /// Return the smallest count with which a text of a larger id than all before can still be added.
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
