//! Stage 2 of the walk: a candidate's score is that of the best linked pair it forms with a partner.
//!
//! An upper bound of the pair's score is computed for every partner, without roots and without single
//! sentences. Partners are then scored exactly, best bound first, until no bound exceeds the best score.

use super::bridges::{between, in_one_pair, meeting, Shared, BLOCK};
use super::dense::Dense;
use super::partners::{saturation, PairScratch, Partners};
use super::worth::{explained, link, link_bound, Worth, LANES};
use crate::error::Result;
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;

const DENSE_WEIGHT: f64 = 6.0;
const SENTENCE_SHARE: f64 = 0.5;

/// The items that one candidate shares with every partner, and the sentences in which they occur.
struct Candidate {
    unit: u32,
    /// For each partner: the weights of keywords and names shared as units, and the weights of those found in
    /// a sentence of one unit and missing from that unit's row.
    keywords: [f64; LANES],
    names: [f64; LANES],
    more_keywords: [f64; LANES],
    more_names: [f64; LANES],
    /// The score of the two units without the roots of the link.
    plain: [f64; LANES],
    mention: [f64; LANES],
    /// Saturation of the query's keywords.
    own: Vec<f64>,
    /// The query's keywords in each of the loaded sentences, and in all of them.
    sets: [u64; BLOCK],
    every: u64,
    taken: std::ops::Range<usize>,
    shared_keywords: Vec<Shared>,
    shared_names: Vec<Shared>,
}

/// All pairs of candidates and partners.
pub(crate) struct Pairs<'a> {
    links: &'a LinksView<'a>,
    dense: Option<&'a Dense<'a>>,
    partners: Partners,
    question: &'a Question,
    scratch: &'a mut PairScratch,
    worth: Worth,
    /// Constant added to the unit score of every pair with partner i.
    pub bonus: [f64; LANES],
    /// Maximum that vectors can add to a pair.
    explained_at_most: f64,
    now: Candidate,
}

impl<'a> Pairs<'a> {
    pub fn new(
        links: &'a LinksView<'a>,
        dense: Option<&'a Dense<'a>>,
        question: &'a Question,
        ids: &[u32],
        worth: Worth,
        scratch: &'a mut PairScratch,
    ) -> Self {
        let cover = if dense.is_some() { worth.cover_dense } else { worth.cover };
        let partners = Partners::new(links, question, cover, worth.least, scratch);
        let now = Candidate {
            unit: 0,
            keywords: [0.0; LANES],
            names: [0.0; LANES],
            more_keywords: [0.0; LANES],
            more_names: [0.0; LANES],
            plain: [0.0; LANES],
            mention: [0.0; LANES],
            own: vec![0.0; partners.saturated.len()],
            sets: [0; BLOCK],
            every: 0,
            taken: 0..0,
            shared_keywords: Vec::new(),
            shared_names: Vec::new(),
        };
        // With c limited to 0.98, the projection of q is at most sqrt(2.02) |q| for vectors of length 1.
        let explained_at_most = dense.map_or(0.0, |d| DENSE_WEIGHT * 1.5 * d.length().max(1e-3));
        let bonus = [0.0; LANES];
        let mut pairs =
            Self { links, dense, partners, question, scratch, worth, bonus, explained_at_most, now };
        pairs.extend(ids);
        pairs
    }

    /// Add partners after the existing ones.
    pub fn extend(&mut self, ids: &[u32]) {
        let Self { links, dense, partners, question, scratch, .. } = self;
        partners.extend(links, *dense, question, ids, scratch);
    }

    /// Return the score of the best pair of a unit with one of the partners `among` other than itself, or
    /// `best` if that is greater.
    pub fn best(
        &mut self,
        unit: u32,
        mut best: f64,
        among: std::ops::Range<usize>,
        progress: &Progress,
    ) -> Result<f64> {
        self.begin(unit);
        for taken in self.chunks(unit) {
            progress.check()?;
            self.take(taken);
            let mut bounds = self.bounds(unit, among.clone());
            while let Some((i, bound)) = greatest(&bounds[among.clone()]) {
                if bound <= best {
                    break;
                }
                bounds[among.start + i] = f64::NEG_INFINITY;
                best = self.closely(among.start + i, best);
            }
        }
        Ok(best)
    }

    /// Return upper bounds for the pairs of a unit with every partner; 0 for the unit itself. Makes the unit
    /// the current candidate.
    pub fn at_most(&mut self, unit: u32) -> [f64; LANES] {
        self.begin(unit);
        let mut most = [f64::NEG_INFINITY; LANES];
        for taken in self.chunks(unit) {
            self.take(taken);
            let bounds = self.bounds(unit, 0..self.partners.ids.len());
            most.iter_mut().zip(bounds).for_each(|(most, x)| *most = most.max(x));
        }
        most
    }

    /// Return the score of the pair of the current candidate, `unit`, with partner i.
    pub fn exactly(&mut self, unit: u32, i: usize) -> f64 {
        let mut best = f64::NEG_INFINITY;
        let chunks = self.chunks(unit);
        let single = chunks.len() == 1;
        for taken in chunks {
            if !single {
                self.take(taken);
            }
            best = self.closely(i, best);
        }
        best
    }

    /// Return the sentences of a unit in blocks; one empty block if it has no sentences.
    fn chunks(&self, unit: u32) -> impl ExactSizeIterator<Item = std::ops::Range<usize>> {
        let all = self.links.sentences(unit as usize);
        let count = all.len().div_ceil(BLOCK).max(1);
        (0..count).map(move |k| {
            let first = all.start + k * BLOCK;
            first..(first + BLOCK).min(all.end)
        })
    }

    /// Start a candidate: compute its score with each partner, except for the roots of the link.
    fn begin(&mut self, unit: u32) {
        let Self { links, dense, partners, scratch, worth, now, bonus, .. } = self;
        let width = partners.ids.len();
        for sums in [&mut now.keywords, &mut now.names, &mut now.more_keywords, &mut now.more_names] {
            sums[..width].fill(0.0);
        }
        now.own.fill(0.0);
        now.unit = unit;
        let row = links.unit_keywords.row(unit as usize);
        scratch.keywords.begin(row, &mut now.keywords, &mut now.more_keywords, |k, at| {
            if let Some(bit) = partners.cover.bits[k] {
                now.own[usize::from(bit)] = saturation(links, unit, at);
            }
        });
        let row = links.unit_names.row(unit as usize);
        scratch.names.begin(row, &mut now.names, &mut now.more_names, |_, _| ());
        scratch.mentions.of(links, unit, worth.mentions, worth.mentioned, &mut now.mention);
        now.plain[..width].copy_from_slice(&partners.alone[..width]);
        for ((&x, row), &w) in now.own.iter().zip(&partners.saturated).zip(&partners.cover.weights) {
            if x > 0.0 {
                for (sum, &y) in now.plain[..width].iter_mut().zip(row) {
                    *sum += if x > y { (x - y) * w } else { 0.0 };
                }
            }
        }
        let more = now.mention.iter().zip(bonus.iter());
        now.plain[..width].iter_mut().zip(more).for_each(|(sum, (mention, bonus))| *sum += mention + bonus);
        if let Some(d) = dense {
            let (near, own) = (d.unit(unit), d.ask_unit(unit));
            for (i, &partner) in partners.ids.iter().enumerate() {
                let both = own.near(partner);
                now.plain[i] += DENSE_WEIGHT * explained(near, partners.unit_near[i], both);
            }
        }
    }

    /// Load at most [`BLOCK`] sentences of the candidate.
    fn take(&mut self, taken: std::ops::Range<usize>) {
        let Self { links, partners, scratch, now, .. } = self;
        now.sets[..taken.len()].fill(0);
        let Candidate { unit, sets, more_keywords, more_names, .. } = now;
        let keywords = &links.sentence_keywords;
        scratch
            .keywords
            .take(keywords, *unit, taken.clone(), more_keywords, |x, k| sets[x] |= partners.cover.bit(k));
        scratch.names.take(&links.sentence_names, *unit, taken.clone(), more_names, |_, _| ());
        now.every = now.sets[..taken.len()].iter().fold(0, |all, set| all | set);
        now.taken = taken;
    }

    /// Return upper bounds of the pairs with each partner, based on the loaded sentences.
    fn bounds(&self, unit: u32, among: std::ops::Range<usize>) -> [f64; LANES] {
        let Self { partners, now, .. } = self;
        let mut bounds = [f64::NEG_INFINITY; LANES];
        for i in among {
            let partner = partners.ids[i];
            let linked = link_bound(
                &self.worth,
                now.keywords[i] + now.more_keywords[i],
                now.names[i] + now.more_names[i],
            );
            let covered = match now.taken.is_empty() || partners.blocks_of(i).is_empty() {
                true => 0.0,
                false => partners.cover.of(now.every | partners.unit_unions[i]) + self.explained_at_most,
            };
            if partner != unit {
                bounds[i] = 1e-12
                    + (1.0 - SENTENCE_SHARE) * (now.plain[i] + linked)
                    + SENTENCE_SHARE * (covered + linked);
            }
        }
        bounds
    }

    /// Return an upper bound of the link between the current candidate and partner i: see [`Self::linked`].
    pub fn linked_at_most(&self, unit: u32, i: usize) -> f64 {
        let now = &self.now;
        if self.partners.ids[i] == unit {
            return 0.0;
        }
        link_bound(&self.worth, now.keywords[i] + now.more_keywords[i], now.names[i] + now.more_names[i])
            + (1.0 - SENTENCE_SHARE) * now.mention[i]
            + 1e-12
    }

    /// Return how strongly the current candidate, `unit`, is linked to partner i, regardless of coverage: by
    /// shared items, best sentences and mentions. 0 for the unit itself. Values up to `floor` may be returned
    /// too low.
    pub fn linked(&mut self, unit: u32, i: usize, floor: f64) -> f64 {
        if self.partners.ids[i] == unit {
            return 0.0;
        }
        let Self { now, worth, .. } = &*self;
        let whole = (1.0 - SENTENCE_SHARE) * (link(worth, now.keywords[i], now.names[i]) + now.mention[i]);
        // Minimum score that a pair of sentences must exceed, reduced slightly because of rounding.
        let least = ((floor - whole) / SENTENCE_SHARE - 1e-9).max(0.0);
        let mut best = least;
        let chunks = self.chunks(unit);
        let single = chunks.len() == 1;
        for taken in chunks {
            if !single {
                self.take(taken);
            }
            let Self { partners, scratch, now, worth, .. } = &mut *self;
            for b in partners.blocks_of(i) {
                let keywords = scratch.keywords.shared(b, &mut now.shared_keywords);
                let names = scratch.names.shared(b, &mut now.shared_names);
                if link_bound(worth, keywords, names) <= best {
                    continue;
                }
                if let Some((k, m)) = in_one_pair(&now.shared_keywords, &now.shared_names) {
                    best = best.max(link(worth, k, m));
                    continue;
                }
                let (own, other) = meeting(&now.shared_keywords, &now.shared_names);
                for x in bits(own) {
                    for y in bits(other) {
                        let k = between(&now.shared_keywords, x, y);
                        let m = between(&now.shared_names, x, y);
                        if link_bound(worth, k, m) > best {
                            best = best.max(link(worth, k, m));
                        }
                    }
                }
            }
        }
        if best == least && least > 0.0 {
            return f64::NEG_INFINITY;
        }
        whole + SENTENCE_SHARE * best
    }

    /// Return how well the current candidate covers each counted keyword of the query, from 0 to 1, as a unit
    /// and in any of its sentences.
    pub fn covers(&mut self, unit: u32, out: &mut Vec<f64>) {
        let mut every = self.now.every;
        let chunks = self.chunks(unit);
        if chunks.len() > 1 {
            for taken in chunks {
                self.take(taken);
                every |= self.now.every;
            }
        }
        out.clear();
        out.extend(self.now.own.iter().enumerate().map(|(bit, &own)| half(own, every, bit)));
    }

    /// Like [`Self::covers`], for partner i.
    pub fn partner_covers(&self, i: usize) -> Vec<f64> {
        let every = self.partners.unit_unions[i];
        self.partners.saturated.iter().enumerate().map(|(bit, row)| half(row[i], every, bit)).collect()
    }

    /// Return the share of each counted keyword of the query. They sum to 1.
    pub fn shares(&self) -> Vec<f64> {
        let full = if self.dense.is_some() { self.worth.cover_dense } else { self.worth.cover };
        self.partners.cover.weights.iter().map(|w| w / full).collect()
    }

    /// Return the greater of `best` and the exact score of the pair with partner i, based on the loaded
    /// sentences.
    fn closely(&mut self, i: usize, mut best: f64) -> f64 {
        let Self { dense, partners, scratch, now, explained_at_most, worth, .. } = self;
        let base = (1.0 - SENTENCE_SHARE) * (now.plain[i] + link(worth, now.keywords[i], now.names[i]));
        best = best.max(base);
        for b in partners.blocks_of(i) {
            let block = &partners.blocks[b];
            let keywords = scratch.keywords.shared(b, &mut now.shared_keywords);
            let names = scratch.names.shared(b, &mut now.shared_names);
            let most = link_bound(worth, keywords, names) + *explained_at_most + 1e-12;
            for (x, sentence) in now.taken.clone().enumerate() {
                let set = now.sets[x];
                if base + SENTENCE_SHARE * (partners.cover.of(set | partners.unions[b]) + most) <= best {
                    continue;
                }
                let near = dense.map_or(0.0, |d| d.sentence(sentence));
                for y in block.first..block.first + block.count {
                    let mut value = partners.cover.of(set | partners.sets[y]);
                    if base + SENTENCE_SHARE * (value + most) <= best {
                        continue;
                    }
                    let k = between(&now.shared_keywords, x, y - block.first);
                    let m = between(&now.shared_names, x, y - block.first);
                    if let Some(d) = dense {
                        let other = partners.sentences[y] as usize;
                        let both = d.sentences(sentence, other);
                        value += DENSE_WEIGHT * explained(near, partners.sentence_near[y], both);
                    }
                    if base + SENTENCE_SHARE * (value + link_bound(worth, k, m)) > best {
                        best = best.max(base + SENTENCE_SHARE * (value + link(worth, k, m)));
                    }
                }
            }
        }
        best
    }
}

/// Iterate over the positions of the set bits, ascending.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        at
    })
}

fn half(saturation: f64, set: u64, bit: usize) -> f64 {
    (1.0 - SENTENCE_SHARE) * saturation + SENTENCE_SHARE * (set >> bit & 1) as f64
}

/// Return the maximum and its index, the first if several are equal. NaN is ignored.
pub(crate) fn greatest(numbers: &[f64]) -> Option<(usize, f64)> {
    let mut found = None;
    let mut most = f64::NEG_INFINITY;
    for (i, &x) in numbers.iter().enumerate() {
        if x > most {
            (found, most) = (Some(i), x);
        }
    }
    found.map(|i| (i, most))
}
