//! Stage 1 of the walk: the pool of candidates, reached through items that units share outside the query,
//! with requests for the rows that are read next.

use super::code::Files;
use super::dense::Dense;
use super::step::{walk_step, Options, TELEPORT};
use super::ties::{round_mass, round_score, settle};
use crate::error::Result;
use crate::items::Items;
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::matches::{Matches, Sought};
use crate::rank::moments::Moments;
use crate::rank::question::Question;
use crate::rank::sparse_sum::SparseSum;
use crate::rank::terms::Weighed;
use crate::sparse::prefetch;
use crate::sparse::prefetch_item;
use crate::sparse::prefetch_items;
use crate::sparse::{keep_best, leaves, Leaders, Mask, Scored};
use crate::text::code::{is_code, looks_like_code};

const RESTART_TOP: usize = 20;
/// Number of nearest units of which the share of code is counted.
const CODE_NEAREST: usize = 20;
const WALK_WEIGHT: f64 = 1.5;
pub(crate) const TINY: f64 = 1e-9;
/// A standard deviation up to this limit is rounding noise.
const NO_SPREAD: f64 = 1e-6;
/// Rounding twice changes a score by at most this amount.
const ROUNDED: f64 = 2e-9;

/// Standardisation: (x - mean) / deviation, or 0 if all values are equal.
#[derive(Debug, Clone, Copy, Default)]
struct Standard {
    mean: f64,
    deviation: f64,
}

impl Standard {
    fn new(moments: Moments) -> Self {
        Self { mean: moments.mean(), deviation: moments.deviation() }
    }

    fn of(values: &[f64]) -> Self {
        Self::new(Moments::of(values.iter().copied()))
    }

    /// Return a bound below which every value has a standardised score less than `z`, regardless of rounding.
    fn least(&self, z: f64) -> f64 {
        if self.deviation > NO_SPREAD {
            let away = z * self.deviation;
            self.mean + away - 1e-9 * (self.mean.abs() + away.abs())
        } else {
            f64::NEG_INFINITY
        }
    }

    fn z(&self, x: f64) -> f64 {
        if self.deviation > NO_SPREAD {
            (x - self.mean) / self.deviation
        } else {
            0.0
        }
    }
}

/// A bound as a linear function.
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    #[inline]
    fn at(&self, x: f64) -> f64 {
        self.start + self.slope * x
    }
}

/// The vectors of stage 1, and the document of each unit with the files, which show whether units are code.
#[derive(Clone, Copy)]
pub(crate) struct Near<'a> {
    pub dense: &'a Dense<'a>,
    pub files: Option<(Items<'a, u32>, Files<'a>)>,
}

/// Buffers of stage 1.
#[derive(Debug, Default)]
pub(crate) struct PoolScratch {
    matches: Matches,
    arrived: SparseSum,
    nodes: SparseSum,
    /// With vectors: the direct match f of every unit.
    direct: Vec<f64>,
    mass: Vec<Scored>,
    heads: Vec<Scored>,
}

/// T = f + 1.5 z(ln P) of every unit that the walk reached.
pub(crate) struct Reach<'s> {
    n: usize,
    /// Whether every unit is ranked. Otherwise only units that match or that the walk reached are ranked.
    every: bool,
    words: &'s Matches,
    /// With vectors: the direct match f of every unit.
    direct: Option<&'s [f64]>,
    standard: Standard,
    arrived: &'s SparseSum,
    spread: Standard,
    logs: Vec<f64>,
}

/// Walk from the units that match the query best, by learned weights if there are any, otherwise by BM25. If
/// shares are given, each keyword is multiplied by its share.
#[allow(clippy::too_many_arguments)] // the graph, the start and the walk's parameters
pub(crate) fn reach<'s>(
    links: &LinksView<'_>,
    near: Option<Near<'_>>,
    question: &Question,
    weighed: Option<Weighed<'_>>,
    shares: Option<&[f64]>,
    options: Options,
    scratch: &'s mut PoolScratch,
    progress: &Progress,
) -> Result<Reach<'s>> {
    let n = links.units();
    let PoolScratch { matches: words, arrived, nodes, direct, mass, heads } = scratch;
    let both: Vec<f64>;
    let is_first = shares.is_none();
    let shares = match (question.shares(), shares) {
        (Some(own), Some(shares)) => {
            both = own.iter().zip(shares).map(|(a, b)| a * b).collect();
            Some(&both[..])
        }
        (own, shares) => shares.or(own),
    };
    let sought = match &weighed {
        Some(weighed) => Sought::Terms { weighed, units: n },
        None => Sought::Keywords { links, keywords: &question.keywords, shares },
    };
    words.find(sought, progress)?;
    // Matches of the whole query are counted over all indexes; those of its uncovered part over the candidates.
    let of_all = links.whole.and_then(|whole| whole.matches).filter(|_| is_first && weighed.is_none());
    let moments = of_all.unwrap_or(words.moments());
    let standard = Standard::new(moments.with(0.0, links.population() - moments.count()));
    if let Some(Near { dense, files }) = near {
        dense.every_unit(direct, progress)?;
        let dense = Standard::of(direct);
        let nearest = direct.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let code = 1.0 + options.code_vectors * files.map_or(0.0, |files| code_share(direct, files));
        let weight = code * (1.0 + options.trust * trust(dense.z(nearest), n));
        for (u, x) in direct.iter_mut().enumerate() {
            *x = weight * dense.z(*x) + standard.z(words.get(u as u32));
        }
        let both = Standard::of(direct);
        direct.iter_mut().for_each(|x| *x = round_score(both.z(*x)));
    }
    let direct = near.map(|_| direct.as_slice());
    let every = options.exact || direct.is_some();
    arrived.fit(n);
    nodes.fit(links.keywords.len().max(links.names.len()).max(links.subjects.len()));
    let unwalked =
        Reach { n, every, words, direct, standard, arrived, spread: Standard::default(), logs: Vec::new() };
    let mut first = Leaders::new(RESTART_TOP);
    unwalked.push_others(&mut first, 0.0, false, None);
    let mut best = first.finish();
    if let Some(last) = best.get(RESTART_TOP - 1).map(|last| last.score).filter(|_| !options.exact) {
        match direct {
            Some(direct) => {
                settle(links, &mut best, (0..).zip(direct).map(|(id, &score)| Scored { id, score }))
            }
            None => settle(links, &mut best, unwalked.matches_from(last)),
        }
    }
    let restart = softmax(best);
    mass.clear();
    mass.extend_from_slice(&restart);
    for step in 1..=options.steps {
        progress.check()?;
        walk_step(links, question, mass, options, nodes, heads, arrived);
        restart.iter().for_each(|r| arrived.add(r.id, TELEPORT * r.score));
        if step < options.steps {
            mass.clear();
            let ordered = |(id, mass)| Scored { id, score: options.ordered_mass(mass) };
            mass.extend(arrived.iter().map(ordered));
            if !options.exact && mass.len() > options.keep {
                keep_best(mass, options.keep);
                settle(links, mass, arrived.iter().map(ordered));
            }
            mass.sort_unstable_by_key(|m| m.id);
        }
    }
    // ln P is standardised over every unit, or in the local form over the reached units.
    let logs: Vec<f64> = arrived.iter().map(|(_, mass)| (mass + TINY).ln()).collect();
    let rest = if options.exact { n - logs.len() } else { 0 };
    let spread = Standard::new(Moments::of(logs.iter().copied()).with(TINY.ln(), rest));
    Ok(Reach { n, every, words, direct, standard, arrived, spread, logs })
}

/// Return how much nearer the nearest of `n` units is than chance explains: the number of standard deviations
/// by which its similarity exceeds the expected maximum of `n` normally distributed similarities, about
/// sqrt(2 ln n), or 0.
///
/// It shows without labels how far to trust vectors. On code, paragraphs and articles the nearest unit is 1.2
/// to 2.3 above, and vectors find more than keywords; on chats 0.4 to 0.8, and keywords find more. The
/// rarity of the query's keywords, their coverage by the best unit, and the agreement of both rankings add
/// nothing to it.
fn trust(nearest: f64, n: usize) -> f64 {
    (nearest - (2.0 * (n.max(1) as f64).ln()).sqrt()).max(0.0)
}

/// Return the share of code among the units with the greatest similarities. Files of code do not count: `code` ranks
/// them.
fn code_share(similarities: &[f64], (documents, files): (Items<'_, u32>, Files<'_>)) -> f64 {
    let mut nearest = Leaders::new(CODE_NEAREST);
    for (id, &score) in (0..).zip(similarities) {
        nearest.push(Scored { id, score: round_score(score) });
    }
    let nearest = nearest.finish();
    let is_passage_of_code = |unit: usize| {
        looks_like_code(files.texts.get(unit)) && !is_code(files.ids.get(documents[unit] as usize))
    };
    let code = nearest.iter().filter(|one| is_passage_of_code(one.id as usize)).count();
    code as f64 / nearest.len().max(1) as f64
}

impl Reach<'_> {
    /// Return the direct match of one unit.
    pub fn f(&self, u: u32) -> f64 {
        self.direct.map_or_else(|| self.matched(self.words.get(u)), |direct| direct[u as usize])
    }

    /// Return the direct match, without vectors, of a unit with this BM25 score.
    fn matched(&self, score: f64) -> f64 {
        round_score(self.standard.z(score))
    }

    /// Return T of one unit.
    pub fn value(&self, u: u32) -> f64 {
        round_score(self.f(u) + WALK_WEIGHT * self.spread.z((self.arrived.get(u) + TINY).ln()))
    }

    /// Return the best `want` units by T, best first.
    pub fn best(&self, want: usize) -> Vec<Scored> {
        self.best_of(want, None)
    }

    /// Like [`Reach::best`], for the units that pass a filter.
    pub fn best_of(&self, want: usize, mask: Option<&Mask>) -> Vec<Scored> {
        let mut best = Leaders::new(want);
        let mut least = self.least_match(best.floor());
        for ((id, _), &log) in self.arrived.iter().zip(&self.logs) {
            // Most units are rejected by the best match of their group, which is cheaper to read than their
            // own score.
            if self.direct.is_none() && self.words.most(id) < least.at(log) {
                continue;
            }
            if leaves(mask, id) {
                let score = round_score(self.f(id) + WALK_WEIGHT * self.spread.z(log));
                if best.push(Scored { id, score }) {
                    least = self.least_match(best.floor());
                }
            }
        }
        self.push_others(&mut best, WALK_WEIGHT * self.spread.z(TINY.ln()), true, mask);
        best.finish()
    }

    /// Return the BM25 score that a unit needs for a T of `floor`, regardless of rounding, as a linear
    /// function of the logarithm of its mass.
    fn least_match(&self, floor: f64) -> Line {
        if self.standard.deviation <= NO_SPREAD || !floor.is_finite() {
            return Line { start: f64::NEG_INFINITY, slope: 0.0 };
        }
        let slope = match self.spread.deviation > NO_SPREAD {
            true => self.standard.deviation * WALK_WEIGHT / self.spread.deviation,
            false => 0.0,
        };
        let away = self.standard.deviation * (floor - ROUNDED);
        // Logarithms of masses are between ln 1e-9 and ln 2.
        let most = self.standard.mean.abs() + away.abs() + slope * (self.spread.mean.abs() + 32.0);
        Line { start: self.standard.mean + away + slope * self.spread.mean - 1e-9 * most, slope: -slope }
    }

    /// Iterate over the units that match, with their direct matches, without most of those below `floor`.
    fn matches_from(&self, floor: f64) -> impl Iterator<Item = Scored> + '_ {
        let least = self.standard.least(floor - ROUNDED);
        let groups = self.words.groups().filter(move |(most, _)| *most >= least);
        let units = groups.flat_map(|(_, units)| units).filter(move |(_, x)| *x >= least);
        units.map(|(id, x)| Scored { id, score: self.matched(x) })
    }

    /// Push every unit with its direct match plus a constant. Units that the walk reached can be excluded.
    fn push_others(&self, leaders: &mut Leaders, plus: f64, unreached: bool, mask: Option<&Mask>) {
        let left_out = |u: u32| (unreached && self.arrived.has(u)) || !leaves(mask, u);
        if self.every {
            for id in (0..self.n as u32).filter(|&u| !left_out(u)) {
                leaders.push(Scored { id, score: round_score(self.f(id) + plus) });
            }
            return;
        }
        let least_of = |leaders: &Leaders| self.standard.least(leaders.floor() - plus - ROUNDED);
        let mut least = least_of(leaders);
        for (most, units) in self.words.groups() {
            if most < least {
                continue;
            }
            for (id, x) in units {
                let score = || round_score(self.matched(x) + plus);
                if x >= least && !left_out(id) && leaders.push(Scored { id, score: score() }) {
                    least = least_of(leaders);
                }
            }
        }
    }
}

/// Return at most `most` rounded masses after one step from the given units with equal weights, greatest
/// first. All masses remain in `arrived` of the scratch buffers, for [`stepped`].
pub(crate) fn step_from(
    links: &LinksView<'_>,
    question: &Question,
    seeds: &[u32],
    most: usize,
    options: Options,
    scratch: &mut PoolScratch,
) -> Vec<Scored> {
    let PoolScratch { arrived, nodes, mass, heads, .. } = scratch;
    arrived.fit(links.units());
    nodes.fit(links.keywords.len().max(links.names.len()).max(links.subjects.len()));
    mass.clear();
    mass.extend(seeds.iter().map(|&id| Scored { id, score: 1.0 / seeds.len() as f64 }));
    mass.sort_unstable_by_key(|m| m.id);
    walk_step(links, question, mass, options, nodes, heads, arrived);
    mass.iter().for_each(|m| arrived.add(m.id, TELEPORT * m.score));
    let mut best = Leaders::new(most);
    let mut push = |id: u32| {
        best.push(Scored { id, score: round_mass(arrived.get(id)) });
    };
    if options.exact {
        (0..links.units() as u32).for_each(&mut push);
    } else {
        arrived.iter().for_each(|(id, _)| push(id));
    }
    best.finish()
}

/// Return the mass of one unit after [`step_from`].
pub(crate) fn stepped(scratch: &PoolScratch, unit: u32) -> f64 {
    scratch.arrived.get(unit)
}

fn softmax(mut best: Vec<Scored>) -> Vec<Scored> {
    let top = best.first().map_or(0.0, |b| b.score);
    best.iter_mut().for_each(|b| b.score = (b.score - top).exp());
    let total: f64 = best.iter().map(|b| b.score).sum();
    best.iter_mut().for_each(|b| b.score /= total);
    best
}

/// Prefetch for the next candidates: first the row offsets, then the rows.
pub(crate) fn ask_ahead(links: &LinksView<'_>, pool: &[Scored], at: usize) {
    if let Some(far) = pool.get(at + 6) {
        let unit = far.id as usize;
        prefetch_item(links.unit_keywords.indptr, unit);
        prefetch_item(links.unit_names.indptr, unit);
        prefetch_item(links.unit_mentions.indptr, unit);
        prefetch_item(links.first_sentence, unit);
        prefetch_item(links.unit_subject, unit);
        prefetch(links.unit_length, unit);
    }
    if let Some(next) = pool.get(at + 4) {
        let unit = next.id as usize;
        prefetch_items(links.unit_keywords.indices, links.unit_keywords.range(unit));
        prefetch_items(links.unit_names.indices, links.unit_names.range(unit));
        prefetch_items(links.unit_mentions.indices, links.unit_mentions.range(unit));
        let sentences = links.sentences(unit);
        prefetch_items(links.sentence_keywords.stored.indptr, sentences.clone());
        prefetch_items(links.sentence_names.stored.indptr, sentences);
    }
    if let Some(next) = pool.get(at + 2) {
        let sentences = links.sentences(next.id as usize);
        for rows in [links.sentence_keywords.stored, links.sentence_names.stored] {
            let (start, end) = (rows.indptr[sentences.start], rows.indptr[sentences.end]);
            prefetch_items(rows.indices, start as usize..end as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_unit_is_trusted_beyond_the_maximum_that_chance_explains() {
        let expected = |n: f64| (2.0 * n.ln()).sqrt();
        assert!((trust(5.0, 1_000) - (5.0 - expected(1_000.0))).abs() < 1e-12);
        assert!(trust(5.0, 1_000) < trust(5.0, 100) && trust(4.0, 100) < trust(5.0, 100));
        assert_eq!(trust(expected(1_000.0) - 0.1, 1_000), 0.0);
        assert_eq!(trust(1.5, 0), 1.5); // no unit, or one: nothing is explained
    }
}
