//! BM25 matches of a query: the units that have any of its keywords, ascending, with their scores.
//!
//! Units are processed in windows, and within a window keyword by keyword, so that the sums and lengths of a
//! window stay in the L1 cache however large the index is. A score is looked up by the unit's bit and the
//! number of bits before it.

use super::links_view::LinksView;
use crate::error::Result;
use crate::progress::Progress;

/// Units per window; a multiple of 64.
const WINDOW: usize = 1 << 12;
/// Windows between two checks of the deadline.
const CHECK: usize = 16;

/// The remaining postings of one keyword.
#[derive(Debug)]
struct Postings<'a> {
    units: &'a [u32],
    counts: &'a [u32],
    idf: f64,
}

/// Scores of matching units, in buffers that are reused from query to query.
#[derive(Debug, Default)]
pub struct Matches {
    /// One bit per unit; and for each 64-bit block, how many units precede it.
    bits: Vec<u64>,
    before: Vec<u32>,
    /// Maximum score of each 64-bit block.
    most: Vec<f64>,
    units: Vec<u32>,
    scores: Vec<f64>,
    window: Vec<f64>,
}

impl Matches {
    /// Compute the score of every unit that has one of the keywords (ids ascending); each keyword's part is
    /// multiplied by its share if shares are given.
    pub fn find(
        &mut self,
        links: &LinksView<'_>,
        keywords: &[u32],
        shares: Option<&[f64]>,
        progress: &Progress,
    ) -> Result<()> {
        let Self { bits, before, most, units, scores, window } = self;
        let n = links.units();
        bits.clear();
        bits.resize(n.div_ceil(64), 0);
        before.clear();
        most.clear();
        units.clear();
        scores.clear();
        window.resize(WINDOW, 0.0);
        let mut left: Vec<Postings<'_>> = Vec::with_capacity(keywords.len());
        for (k, &x) in keywords.iter().enumerate() {
            let idf = links.keyword_idf[x as usize] * shares.map_or(1.0, |shares| shares[k]);
            if idf != 0.0 {
                let range = links.keyword_units.range(x as usize);
                let units = links.keyword_units.indices.get(range.clone());
                left.push(Postings { units, counts: links.keyword_tf.get(range), idf });
            }
        }
        for (number, start) in (0..n).step_by(WINDOW).enumerate() {
            if number % CHECK == 0 {
                progress.check()?;
            }
            let end = (start + WINDOW).min(n);
            let norm = &links.unit_norm[start..end];
            let own = &mut bits[start / 64..end.div_ceil(64)];
            let sums = &mut window[..end - start];
            for list in &mut left {
                let count = match list.units.get(sums.len()) {
                    // Units ascend, so at most this many are in the window.
                    Some(_) => list.units[..sums.len()].partition_point(|&u| (u as usize) < end),
                    None => list.units.partition_point(|&u| (u as usize) < end),
                };
                let (here, after) = list.units.split_at(count);
                let (counts, counts_after) = list.counts.split_at(count);
                (list.units, list.counts) = (after, counts_after);
                for (&unit, &tf) in here.iter().zip(counts) {
                    let at = unit as usize - start;
                    let tf = f64::from(tf);
                    sums[at] += list.idf * (tf / (tf + norm[at]));
                    own[at / 64] |= 1 << (at % 64);
                }
            }
            for (word, &set) in own.iter().enumerate() {
                before.push(units.len() as u32);
                let (mut set, mut best) = (set, 0.0f64);
                while set != 0 {
                    let at = 64 * word + set.trailing_zeros() as usize;
                    set &= set - 1;
                    units.push((start + at) as u32);
                    let score = std::mem::take(&mut sums[at]);
                    best = best.max(score);
                    scores.push(score);
                }
                most.push(best);
            }
        }
        Ok(())
    }

    /// Return the matching units, ascending.
    pub fn units(&self) -> &[u32] {
        &self.units
    }

    /// Return their scores.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Iterate over groups of adjacent matching units: their maximum score, the units, their scores.
    pub fn groups(&self) -> impl Iterator<Item = (f64, &[u32], &[f64])> {
        let ends = self.before.iter().skip(1).copied().chain([self.units.len() as u32]);
        self.before.iter().zip(ends).zip(&self.most).map(|((&start, end), &most)| {
            let range = start as usize..end as usize;
            (most, &self.units[range.clone()], &self.scores[range])
        })
    }

    /// Return the maximum score of a unit's group.
    #[inline]
    pub fn most(&self, unit: u32) -> f64 {
        self.most[unit as usize / 64]
    }

    /// Return the score of a unit: 0 if it does not match.
    #[inline]
    pub fn get(&self, unit: u32) -> f64 {
        let (word, bit) = (unit as usize / 64, unit % 64);
        let set = self.bits[word];
        if set >> bit & 1 == 0 {
            return 0.0;
        }
        self.scores[self.before[word] as usize + (set & ((1 << bit) - 1)).count_ones() as usize]
    }
}
