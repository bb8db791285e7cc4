//! Scores of the units that have any keyword of a query: by BM25, or by learned weights of terms.
//!
//! Units are processed in windows, and within a window keyword by keyword, so the sums and lengths of a
//! window stay in the L1 cache for an index of any size.

use super::links_view::LinksView;
use super::moments::Moments;
use super::terms::{Weighed, STEP};
use crate::error::Result;
use crate::progress::Progress;

/// Units per group.
pub const GROUP: usize = 64;
/// Below this number of matches the matches of a group are read one by one. Otherwise all units of the group
/// are read together.
pub const FEW: u32 = 16;
/// Units per window.
const WINDOW: usize = 32 * GROUP;
/// Windows between two checks of the deadline.
const CHECK: usize = 32;

/// The terms by which a query finds units.
#[derive(Clone, Copy)]
pub enum Sought<'a> {
    /// BM25 over keywords (ids ascending). If shares are given, each keyword's part of the score is
    /// multiplied by its share.
    Keywords { links: &'a LinksView<'a>, keywords: &'a [u32], shares: Option<&'a [f64]> },
    /// BM25 over keywords (ids ascending) with these weights: idf times share.
    Weighted { links: &'a LinksView<'a>, keywords: &'a [u32], weights: &'a [f64] },
    /// Learned term weights, in an index of `units` units.
    Terms { weighed: &'a Weighed<'a>, units: usize },
}

impl Sought<'_> {
    fn units(&self) -> usize {
        match self {
            Self::Keywords { links, .. } | Self::Weighted { links, .. } => links.units(),
            Self::Terms { units, .. } => *units,
        }
    }

    /// Return an upper bound of the number of matches.
    fn most(&self) -> usize {
        let (rows, ids) = match self {
            Self::Keywords { links, keywords, .. } | Self::Weighted { links, keywords, .. } => {
                (&links.keyword_units, *keywords)
            }
            Self::Terms { weighed, .. } => (&weighed.postings.units, weighed.query.terms),
        };
        ids.iter().map(|&x| rows.range(x as usize).len()).sum::<usize>().min(self.units())
    }
}

/// The remaining postings of one keyword or term.
trait Postings {
    /// Remove the postings inside the window of `length` units that begins at `start`. For each, call `add`
    /// with its offset in the window and the amount to add to its score.
    fn take_window(&mut self, start: usize, length: usize, add: impl FnMut(usize, f64));
}

struct Counts<'a> {
    links: &'a LinksView<'a>,
    units: &'a [u32],
    counts: &'a [u32],
    idf: f64,
}

impl Postings for Counts<'_> {
    #[inline(always)]
    fn take_window(&mut self, start: usize, length: usize, mut add: impl FnMut(usize, f64)) {
        let lengths = &self.links.unit_length[start..start + length];
        let mut count = 0;
        for (&unit, &tf) in self.units.iter().zip(self.counts) {
            let at = (unit as usize).wrapping_sub(start);
            // Units ascend, so this one is in a later window.
            let Some(&length) = lengths.get(at) else { break };
            add(at, self.idf * self.links.saturations.of(length, tf));
            count += 1;
        }
        (self.units, self.counts) = (&self.units[count..], &self.counts[count..]);
    }
}

struct Impacts<'a> {
    units: &'a [u32],
    impacts: &'a [u8],
    weight: f64,
}

impl Postings for Impacts<'_> {
    #[inline(always)]
    fn take_window(&mut self, start: usize, length: usize, mut add: impl FnMut(usize, f64)) {
        let mut count = 0;
        for (&unit, &impact) in self.units.iter().zip(self.impacts) {
            let at = (unit as usize).wrapping_sub(start);
            if at >= length {
                break;
            }
            add(at, self.weight * f64::from(impact));
            count += 1;
        }
        (self.units, self.impacts) = (&self.units[count..], &self.impacts[count..]);
    }
}

/// Compute the score of every unit that has one of the keywords or terms. For each group of [`GROUP`]
/// adjacent units with a match, in ascending order, call `take` with the group's number, the matches as bits,
/// and the scores of its units (0 for units that do not match).
pub fn each_group(
    sought: Sought<'_>,
    progress: &Progress,
    take: impl FnMut(usize, u64, &[f64; GROUP]),
) -> Result<()> {
    match sought {
        Sought::Keywords { links, keywords, shares } => {
            let weight =
                |(k, &x): (usize, &u32)| links.keyword_idf[x as usize] * shares.map_or(1.0, |s| s[k]);
            let weights: Vec<f64> = keywords.iter().enumerate().map(weight).collect();
            each_group(Sought::Weighted { links, keywords, weights: &weights }, progress, take)
        }
        Sought::Weighted { links, keywords, weights } => {
            let mut lists = Vec::with_capacity(keywords.len());
            for (&x, &idf) in keywords.iter().zip(weights).filter(|(_, &weight)| weight != 0.0) {
                let range = links.keyword_units.range(x as usize);
                let units = links.keyword_units.indices.get(range.clone());
                lists.push(Counts { links, units, counts: links.keyword_tf.get(range), idf });
            }
            add_lists(links.units(), lists, progress, take)
        }
        Sought::Terms { weighed: &Weighed { postings, query }, units } => {
            let list = |(&term, &weight): (&u32, &f32)| {
                let range = postings.units.range(term as usize);
                let units = postings.units.indices.get(range.clone());
                Impacts { units, impacts: postings.impacts.get(range), weight: STEP * f64::from(weight) }
            };
            let lists = query.terms.iter().zip(query.weights).map(list).collect();
            add_lists(units, lists, progress, take)
        }
    }
}

fn add_lists(
    units: usize,
    mut lists: Vec<impl Postings>,
    progress: &Progress,
    mut take: impl FnMut(usize, u64, &[f64; GROUP]),
) -> Result<()> {
    let mut sums = [[0.0; GROUP]; WINDOW / GROUP];
    for (number, start) in (0..units).step_by(WINDOW).enumerate() {
        if number % CHECK == 0 {
            progress.check()?;
        }
        let length = WINDOW.min(units - start);
        let mut matching = [0u64; WINDOW / GROUP];
        for list in &mut lists {
            list.take_window(start, length, |at, part| {
                let (group, at) = (at / GROUP % (WINDOW / GROUP), at % GROUP);
                sums[group][at] += part;
                matching[group] |= 1 << at;
            });
        }
        let groups = sums.iter_mut().zip(matching).enumerate();
        for (group, (sums, set)) in groups.filter(|(_, (_, set))| *set != 0) {
            take(start / GROUP + group, set, sums);
            match set.count_ones() < FEW {
                true => bits(set).for_each(|at| sums[at as usize % GROUP] = 0.0),
                false => sums.fill(0.0),
            }
        }
    }
    Ok(())
}

/// Return the greatest score of a group.
#[inline]
pub fn greatest(scores: &[f64; GROUP]) -> f64 {
    let mut lanes = [0.0; 8];
    for eight in scores.chunks_exact(8) {
        for (lane, &x) in lanes.iter_mut().zip(eight) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    lanes.iter().fold(0.0, |most, &x| if x > most { x } else { most })
}

/// The matches among [`GROUP`] adjacent units.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// One bit per unit.
    set: u64,
    /// The greatest score.
    most: f64,
    /// Number of matches before this group.
    before: u32,
}

/// Scores of matching units, in buffers that are reused from query to query. The score of a unit is found by
/// its bit and the number of bits set before it.
#[derive(Debug, Default)]
pub struct Matches {
    groups: Vec<Group>,
    scores: Vec<f64>,
    moments: Moments,
}

impl Matches {
    /// Compute and store the scores: see [`each_group`].
    pub fn find(&mut self, sought: Sought<'_>, progress: &Progress) -> Result<()> {
        let Self { groups, scores, moments } = self;
        groups.clear();
        groups.resize(sought.units().div_ceil(GROUP), Group::default());
        scores.clear();
        // Reserve room for all scores at once. Memory that is never written costs nothing.
        scores.reserve_exact(sought.most());
        *moments = Moments::default();
        each_group(sought, progress, |number, set, sums| {
            let (mut most, before) = (0.0, scores.len() as u32);
            for at in bits(set) {
                let score = sums[at as usize % GROUP];
                most = if score > most { score } else { most };
                moments.add(score);
                scores.push(score);
            }
            groups[number] = Group { set, most, before };
        })
    }

    /// Return the moments (count, sum, sum of squares) of the scores.
    pub fn moments(&self) -> Moments {
        self.moments
    }

    /// Return the number of matching units.
    pub fn count(&self) -> usize {
        self.scores.len()
    }

    /// Iterate over groups of adjacent units with matches. Yields each group's greatest score and its units
    /// with their scores.
    pub fn groups(&self) -> impl Iterator<Item = (f64, impl Iterator<Item = (u32, f64)> + '_)> {
        self.groups.iter().enumerate().filter(|(_, group)| group.set != 0).map(|(number, group)| {
            let scores = self.scores[group.before as usize..].iter();
            let units = bits(group.set).map(move |at| (GROUP * number) as u32 + at);
            (group.most, units.zip(scores.copied()))
        })
    }

    /// Iterate over the matching units, ascending, with their scores.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.groups().flat_map(|(_, units)| units)
    }

    /// Return the greatest score of a unit's group.
    #[inline]
    pub fn most(&self, unit: u32) -> f64 {
        self.groups[unit as usize / GROUP].most
    }

    /// Return the score of a unit: 0 if it does not match.
    #[inline]
    pub fn get(&self, unit: u32) -> f64 {
        let (group, bit) = (self.groups[unit as usize / GROUP], unit as usize % GROUP);
        if group.set >> bit & 1 == 0 {
            return 0.0;
        }
        self.scores[group.before as usize + (group.set & ((1 << bit) - 1)).count_ones() as usize]
    }

    /// Return the number of bytes of the buffers that a query has touched.
    pub fn bytes(&self) -> usize {
        size_of::<Group>() * self.groups.len() + 8 * self.scores.len()
    }
}

/// Iterate over the positions of the set bits, ascending.
#[inline]
pub fn bits(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = (set != 0).then(|| set.trailing_zeros());
        set &= set.wrapping_sub(1);
        at
    })
}
