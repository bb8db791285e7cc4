//! What a candidate shares with the partners (units, and blocks of their sentences) that the question
//! does not name.

use crate::rank::links_view::LinksView;
use crate::sparse::CsrView;

/// Marks what the question names; the bits below it are its place in the question.
const ASKED: u32 = 1 << 31;
/// Sentences of a unit are taken in blocks of so many: the bits of a number.
pub(crate) const BLOCK: usize = 64;

/// Up to [`BLOCK`] neighbouring sentences of one partner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// The partner, by its place among the partners.
    pub partner: usize,
    /// Its sentences: numbered over the sentences of all partners.
    pub first: usize,
    pub count: usize,
}

/// A thing that sentences of the candidate and of a block have, and its weight.
#[derive(Debug, Clone, Copy)]
struct Shared {
    weight: f64,
    own: u64,
    other: u64,
    next: u32,
}

/// Partners and blocks by thing (keyword or name), and what the present candidate shares with them.
#[derive(Debug, Default)]
pub(crate) struct Bridges {
    /// By id of the thing: 0 unknown to the partners, from [`ASKED`] on asked for, else its place + 1.
    slot: Vec<u32>,
    used: Vec<u32>,
    /// (idf / ln n)^8 by place.
    weights: Vec<f64>,
    /// By place: the partners that have it, as bits.
    units: Vec<u32>,
    /// By place: the blocks that have it, and which of their sentences do.
    start: Vec<u32>,
    blocks: Vec<(u32, u64)>,
    /// By place, and zero between calls: sentences that have it. `touched` are those that are not zero.
    marks: Vec<u64>,
    touched: Vec<u32>,
    /// Of the present candidate, by block: the sum of all shared weights, and their chain.
    pub sums: Vec<f64>,
    heads: Vec<u32>,
    chain: Vec<Shared>,
}

impl Bridges {
    /// `of_unit` and `of_sentence` are rows of things; partners (at most 32) are units.
    #[allow(clippy::too_many_arguments)] // two of each kind of row, from one call
    pub fn build(
        &mut self,
        links: &LinksView<'_>,
        of_unit: &CsrView<'_>,
        of_sentence: &CsrView<'_>,
        idf: &[f64],
        asked: &[u32],
        partners: &[u32],
        blocks: &[Block],
    ) {
        debug_assert!(partners.len() <= 32);
        for &x in &self.used {
            self.slot[x as usize] = 0;
        }
        self.used.clear();
        self.weights.clear();
        self.units.clear();
        self.marks.clear();
        if self.slot.len() < idf.len() {
            self.slot.resize(idf.len(), 0);
        }
        for (k, &x) in asked.iter().enumerate() {
            self.slot[x as usize] = ASKED | k as u32;
            self.used.push(x);
        }
        let log = (links.units().max(2) as f64).ln();
        let Self { slot, used, weights, units, marks, touched, .. } = self;
        let mut place = |x: u32, units: &mut Vec<u32>, marks: &mut Vec<u64>| -> Option<usize> {
            let known = &mut slot[x as usize];
            if *known == 0 {
                let rarity = idf[x as usize] / log;
                let square = rarity * rarity;
                weights.push((square * square) * (square * square));
                units.push(0);
                marks.push(0);
                used.push(x);
                *known = weights.len() as u32;
            }
            (*known < ASKED).then(|| *known as usize - 1)
        };
        for (i, &unit) in partners.iter().enumerate() {
            for &x in of_unit.row(unit as usize) {
                if let Some(p) = place(x, units, marks) {
                    units[p] |= 1 << i;
                }
            }
        }
        let mut found: Vec<(u32, u32, u64)> = Vec::new();
        let mut before = 0;
        for (b, block) in blocks.iter().enumerate() {
            let sentences = links.sentences(partners[block.partner] as usize);
            if b > 0 && blocks[b - 1].partner == block.partner {
                before += blocks[b - 1].count;
            } else {
                before = 0;
            }
            for k in 0..block.count {
                for &x in of_sentence.row(sentences.start + before + k) {
                    if let Some(p) = place(x, units, marks) {
                        mark(marks, touched, p, k);
                    }
                }
            }
            found.extend(touched.drain(..).map(|p| (p, b as u32, std::mem::take(&mut marks[p as usize]))));
        }
        self.start.clear();
        self.start.resize(weights.len() + 1, 0);
        for &(p, _, _) in &found {
            self.start[p as usize] += 1;
        }
        let mut end = 0;
        for start in &mut self.start {
            end += *start;
            *start = end;
        }
        self.blocks.clear();
        self.blocks.resize(found.len(), (0, 0));
        for &(p, b, set) in found.iter().rev() {
            self.start[p as usize] -= 1;
            self.blocks[self.start[p as usize] as usize] = (b, set);
        }
        self.sums.clear();
        self.sums.resize(blocks.len(), 0.0);
        self.heads.clear();
        self.heads.resize(blocks.len(), 0);
    }

    /// `sums[i] +=` weight of every thing of `row` that partner i has as a unit. What was asked for is
    /// handed to `asked` by its place in the question and in the row.
    pub fn add_units(&self, row: &[u32], sums: &mut [f64; 32], mut asked: impl FnMut(usize, usize)) {
        for (at, &x) in row.iter().enumerate() {
            let slot = self.slot[x as usize];
            if slot >= ASKED {
                asked((slot - ASKED) as usize, at);
            } else if slot != 0 {
                let (mut set, weight) = (self.units[slot as usize - 1], self.weights[slot as usize - 1]);
                while set != 0 {
                    sums[set.trailing_zeros() as usize] += weight;
                    set &= set - 1;
                }
            }
        }
    }

    /// Takes sentences of a candidate, at most [`BLOCK`], in place of those before. What was asked for is
    /// handed to `asked` by sentence and place in the question.
    pub fn take(
        &mut self,
        rows: &CsrView<'_>,
        sentences: std::ops::Range<usize>,
        mut asked: impl FnMut(usize, usize),
    ) {
        self.sums.fill(0.0);
        self.heads.fill(0);
        self.chain.clear();
        for (k, sentence) in sentences.enumerate() {
            for &x in rows.row(sentence) {
                let slot = self.slot[x as usize];
                if slot >= ASKED {
                    asked(k, (slot - ASKED) as usize);
                } else if slot != 0 {
                    mark(&mut self.marks, &mut self.touched, slot as usize - 1, k);
                }
            }
        }
        for p in self.touched.drain(..) {
            let p = p as usize;
            let (own, weight) = (std::mem::take(&mut self.marks[p]), self.weights[p]);
            for &(block, other) in &self.blocks[self.start[p] as usize..self.start[p + 1] as usize] {
                let b = block as usize;
                self.sums[b] += weight;
                self.chain.push(Shared { weight, own, other, next: self.heads[b] });
                self.heads[b] = self.chain.len() as u32;
            }
        }
    }

    /// The weights of all that sentence `own` of the candidate shares with sentence `other` of a block.
    #[inline]
    pub fn between(&self, block: usize, own: usize, other: usize) -> f64 {
        let (mut at, mut sum) = (self.heads[block], 0.0);
        while at != 0 {
            let shared = &self.chain[at as usize - 1];
            if (shared.own >> own) & (shared.other >> other) & 1 == 1 {
                sum += shared.weight;
            }
            at = shared.next;
        }
        sum
    }
}

#[inline]
fn mark(marks: &mut [u64], touched: &mut Vec<u32>, place: usize, k: usize) {
    if marks[place] == 0 {
        touched.push(place as u32);
    }
    marks[place] |= 1 << k;
}
