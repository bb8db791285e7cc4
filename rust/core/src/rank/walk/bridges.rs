//! Bridges: keywords and names that a candidate shares with its partners and that the query does not contain.
//! They are counted for whole units and for blocks of sentences.

use super::worth::LANES;
use crate::items::Items;
use crate::rank::links_view::LinksView;
use crate::rank::numbers::Numbers;
use crate::rank::sentence_rows::SentenceRows;
use crate::sparse::CsrView;

/// Flag of items of the query. The lower bits hold the item's position in the query.
const ASKED: u32 = 1 << 31;
/// Sentences of a unit are processed in blocks of this size, one bit per sentence.
pub(crate) const BLOCK: usize = 64;

/// Up to [`BLOCK`] adjacent sentences of one partner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Index of the partner.
    pub partner: usize,
    /// Its sentences, numbered across the sentences of all partners.
    pub first: usize,
    pub count: usize,
}

/// The rows of units and of sentences for one kind of item (keywords or names), and the items' rarity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub of_unit: CsrView<'a>,
    pub of_sentence: SentenceRows<'a>,
    pub idf: Items<'a, f64>,
    /// Items less rare than this (idf / ln n) are ignored.
    pub least: f64,
}

/// The state of an item.
enum Place {
    /// Index among the partners' items.
    At(usize),
    /// Position in the query.
    Asked(usize),
    /// Ignored because it is too common.
    Common,
}

/// An item shared by sentences of the candidate and of a block, and its weight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    /// The order in which items first occurred in the candidate's sentences.
    turn: u32,
    weight: f64,
    own: u64,
    other: u64,
}

/// State of one of the partners' items.
#[derive(Debug, Clone, Copy, Default)]
struct Thing {
    /// (idf / ln n)^8.
    weight: f64,
    /// The partners whose units have the item, as bits.
    units: u64,
    /// The partners that have the item only in a sentence, as bits.
    extra: u64,
    /// The current candidate's sentences that have the item, as bits.
    own: u64,
    /// The turn in which these sentences first had the item, and the last candidate whose unit had it.
    turn: u32,
    candidate: u32,
}

/// An item of the query, by its position `k` there, in a partner or in one of the partners' sentences.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked {
    /// The unit in a lane has the item at index `at` of its row.
    Unit {
        lane: usize,
        k: usize,
        at: usize,
    },
    Sentence {
        sentence: usize,
        k: usize,
    },
}

/// The partners and blocks that have each item (keyword or name), and the items that the current candidate
/// shares with them.
#[derive(Debug, Default)]
pub(crate) struct Bridges {
    /// State by item id: 0 if no partner has the item, at least [`ASKED`] if it is part of the query,
    /// otherwise its index + 1.
    slot: Numbers,
    things: Vec<Thing>,
    /// The items of block b are `of_block[ends[b - 1]..ends[b]]`: the item's index, and the sentences of the
    /// block that have it.
    of_block: Vec<(u32, u64)>,
    ends: Vec<usize>,
    /// Items of the current candidate's sentences, in order of first occurrence.
    touched: Vec<u32>,
    candidate: u32,
    /// The values of `slot` for the current candidate's row, and the positions of the non-zero ones.
    own: Vec<u32>,
    hits: Vec<u32>,
}

impl Bridges {
    /// Reset the partners and set the query's items. `count` is the number of item ids.
    pub fn begin_question(&mut self, count: usize, asked: &[u32]) {
        let Self { slot, things, of_block, ends, touched, candidate, .. } = self;
        slot.fit(count);
        things.clear();
        of_block.clear();
        ends.clear();
        touched.clear();
        *candidate = 0;
        for (k, &x) in asked.iter().enumerate() {
            slot.set(x, ASKED | k as u32);
        }
    }

    /// Add partners (units, the first of them in lane `lane`, less than [`LANES`]) and the blocks of their
    /// sentences. Items of the query that the partners have are passed to `asked`.
    pub fn extend(
        &mut self,
        links: &LinksView<'_>,
        rows: &Rows<'_>,
        lane: usize,
        partners: &[u32],
        blocks: &[Block],
        mut asked: impl FnMut(Asked),
    ) {
        debug_assert!(lane + partners.len() <= LANES);
        let Self { slot, things, of_block, ends, touched, .. } = self;
        touched.drain(..).for_each(|p| things[p as usize].own = 0);
        let log = (links.population().max(2) as f64).ln();
        let mut place = |x: u32, things: &mut Vec<Thing>| {
            let mut known = slot.get(x);
            if known == 0 {
                let rarity = rows.idf[x as usize] / log;
                if rarity < rows.least {
                    return Place::Common;
                }
                let square = rarity * rarity;
                let weight = (square * square) * (square * square);
                things.push(Thing { weight, ..Thing::default() });
                known = things.len() as u32;
                slot.set(x, known);
            }
            match known < ASKED {
                true => Place::At(known as usize - 1),
                false => Place::Asked((known - ASKED) as usize),
            }
        };
        for (i, &unit) in partners.iter().enumerate() {
            for (at, &x) in rows.of_unit.row(unit as usize).iter().enumerate() {
                match place(x, things) {
                    Place::At(p) => things[p].units |= 1 << (lane + i),
                    Place::Asked(k) => asked(Asked::Unit { lane: lane + i, k, at }),
                    Place::Common => (),
                }
            }
        }
        let mut before = 0;
        for (b, block) in blocks.iter().enumerate() {
            let unit = partners[block.partner - lane] as usize;
            let sentences = links.sentences(unit);
            before = match b.checked_sub(1).map(|last| &blocks[last]) {
                Some(last) if last.partner == block.partner => before + last.count,
                _ => 0,
            };
            for k in 0..block.count {
                for x in rows.of_sentence.row(unit, sentences.start + before + k) {
                    match place(x, things) {
                        Place::At(p) => mark(things, touched, p, k),
                        Place::Asked(of) => asked(Asked::Sentence { sentence: block.first + k, k: of }),
                        Place::Common => (),
                    }
                }
            }
            for p in touched.drain(..) {
                let thing = &mut things[p as usize];
                thing.extra |= (1 << block.partner) & !thing.units;
                of_block.push((p, std::mem::take(&mut thing.own)));
            }
            ends.push(of_block.len());
        }
    }

    /// Start the next candidate. For every item of its row, add the item's weight to `sums[i]` if partner i
    /// has it as a unit, and to `more[i]` if partner i has it only in a sentence. Items of the query are
    /// passed to `asked` with their positions in the query and in the row.
    pub fn begin(
        &mut self,
        row: &[u32],
        sums: &mut [f64; LANES],
        more: &mut [f64; LANES],
        mut asked: impl FnMut(usize, usize),
    ) {
        let Self { slot, things, candidate, own, hits, .. } = self;
        *candidate += 1;
        slot.read(row, own);
        places_of_others(own, hits);
        for &at in &*hits {
            let slot = own[at as usize];
            if slot >= ASKED {
                asked((slot - ASKED) as usize, at as usize);
            } else {
                let thing = &mut things[slot as usize - 1];
                thing.candidate = *candidate;
                add(sums, thing.units, thing.weight);
                add(more, thing.extra, thing.weight);
            }
        }
    }

    /// Load at most [`BLOCK`] sentences of the candidate `unit`, replacing the previous ones. Add to
    /// `more[i]` the weight of the items that they share with partner i and that the candidate does not have
    /// as a unit. Items of the query are passed to `asked` with the sentence and the position in the query.
    pub fn take(
        &mut self,
        rows: &SentenceRows<'_>,
        unit: u32,
        sentences: std::ops::Range<usize>,
        more: &mut [f64; LANES],
        mut asked: impl FnMut(usize, usize),
    ) {
        let Self { slot, things, touched, candidate, own, hits, .. } = self;
        touched.drain(..).for_each(|p| things[p as usize].own = 0);
        for (k, sentence) in sentences.enumerate() {
            let mut meet = |slot: u32| {
                if slot >= ASKED {
                    asked(k, (slot - ASKED) as usize);
                } else if slot != 0 {
                    mark(things, touched, slot as usize - 1, k);
                }
            };
            let ids = rows.row(unit as usize, sentence);
            match ids.positions() {
                Some(positions) => {
                    slots_of_others(own, positions, hits);
                    hits.iter().for_each(|&slot| meet(slot));
                }
                None => ids.for_each(|x| meet(slot.get(x))),
            }
        }
        for (turn, &p) in touched.iter().enumerate() {
            let thing = &mut things[p as usize];
            thing.turn = turn as u32;
            if thing.candidate != *candidate {
                add(more, thing.units | thing.extra, thing.weight);
            }
        }
    }

    /// Collect the items that the loaded sentences share with block b, latest first, and return the sum of
    /// their weights.
    pub fn shared(&self, block: usize, out: &mut Vec<Shared>) -> f64 {
        out.clear();
        let start = block.checked_sub(1).map_or(0, |last| self.ends[last]);
        let mut sum = 0.0;
        for &(p, other) in &self.of_block[start..self.ends[block]] {
            let thing = &self.things[p as usize];
            if thing.own != 0 {
                sum += thing.weight;
                out.push(Shared { turn: thing.turn, weight: thing.weight, own: thing.own, other });
            }
        }
        // The order of summation is fixed and does not depend on the partners.
        out.sort_unstable_by_key(|shared| std::cmp::Reverse(shared.turn));
        sum
    }
}

/// Set `places` to the positions of the non-zero numbers. Which numbers are zero is hard to predict, so every
/// position is written, and the length grows only if the number is not zero.
fn places_of_others(numbers: &[u32], places: &mut Vec<u32>) {
    places.resize(numbers.len(), 0);
    let mut count = 0;
    for (at, &number) in (0u32..).zip(numbers) {
        places[count] = at;
        count += usize::from(number != 0);
    }
    places.truncate(count);
}

/// Set `others` to the non-zero numbers at the given positions, in the same branch-free way.
fn slots_of_others(numbers: &[u32], positions: &[u32], others: &mut Vec<u32>) {
    others.resize(positions.len(), 0);
    let mut count = 0;
    for &at in positions {
        let number = numbers[at as usize];
        others[count] = number;
        count += usize::from(number != 0);
    }
    others.truncate(count);
}

/// Return, as bits, the candidate's sentences that share any item with a block, and the sentences of the
/// block that do.
#[inline]
pub(crate) fn meeting(keywords: &[Shared], names: &[Shared]) -> (u64, u64) {
    let all = keywords.iter().chain(names);
    all.fold((0, 0), |(own, other), s| (own | s.own, other | s.other))
}

/// Return the weights of all items that sentence `own` of the candidate shares with sentence `other` of a
/// block.
#[inline]
pub(crate) fn between(shared: &[Shared], own: usize, other: usize) -> f64 {
    shared.iter().fold(0.0, |sum, shared| {
        let both = (shared.own >> own) & (shared.other >> other) & 1 == 1;
        sum + if both { shared.weight } else { 0.0 }
    })
}

/// Return the weights of all shared keywords and names, if a single pair of sentences shares all of them.
pub(crate) fn in_one_pair(keywords: &[Shared], names: &[Shared]) -> Option<(f64, f64)> {
    let all = keywords.iter().chain(names);
    let (own, other) = all.fold((!0, !0), |(own, other), s| (own & s.own, other & s.other));
    let sum = |shared: &[Shared]| shared.iter().fold(0.0, |sum, s| sum + s.weight);
    (own != 0 && other != 0).then(|| (sum(keywords), sum(names)))
}

#[inline]
fn add(sums: &mut [f64; LANES], mut set: u64, weight: f64) {
    while set != 0 {
        sums[set.trailing_zeros() as usize] += weight;
        set &= set - 1;
    }
}

#[inline]
fn mark(things: &mut [Thing], touched: &mut Vec<u32>, place: usize, k: usize) {
    let own = &mut things[place].own;
    if *own == 0 {
        touched.push(place as u32);
    }
    *own |= 1 << k;
}
