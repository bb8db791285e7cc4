//! KET-RAG's keyword channel: keywords near the query add the units that contain them to a sorted pool of
//! limited size.

use crate::error::{Error, Result};
use crate::items::Items;
use crate::sparse::{leaves, rank_order, top_k, CsrView, Mask, Scored};
use crate::vector::quantised::QuantisedView;
use crate::vector::simd::Level;
use crate::vector::{Asked, Filter, Rows, Scratch, Search, Vectors};

/// Tokens of the pool per keyword in the first batch. Each next batch is four times as large, until the pool
/// is full. A budget of 12,000 tokens uses about 100 to 200 keywords, and a second batch costs another pass
/// over the scores.
const TOKENS_PER_KEYWORD: u64 = 96;
/// With a filter that passes few units, the first batch is enlarged by at most this factor.
const SPREAD: usize = 4;
const FIRST_BATCH: std::ops::RangeInclusive<u64> = 64..=256;

/// The arrays of the channel. All are borrowed and may be mapped files.
#[derive(Debug, Clone, Copy)]
pub struct KeywordChannel<'a> {
    keywords: Vectors<'a>,
    quantised: Option<QuantisedView<'a>>,
    word_units: CsrView<'a>,
    units: Rows<'a>,
    unit_tokens: Items<'a, u32>,
    left: Option<(&'a Mask, CsrView<'a>)>,
}

/// A unit of the pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    pub unit: u32,
    /// Its similarity to the query.
    pub score: f64,
    /// The keyword that added the unit.
    pub keyword: u32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pool {
    /// Score descending, then id ascending.
    pub units: Vec<Pooled>,
    /// The keywords visited, in order, with their scores.
    pub seeds: Vec<Scored>,
    /// The sum of the units' costs.
    pub tokens: u64,
}

/// Buffers that the queries of one thread reuse.
#[derive(Debug, Default)]
pub struct PoolScratch {
    search: Scratch,
    /// Similarity of each unit. Valid if `seen` holds the number of the current query.
    scores: Vec<f64>,
    seen: Vec<u32>,
    pooled: Vec<u32>,
    question: u32,
}

impl PoolScratch {
    fn next(&mut self, units: usize) {
        if self.question == u32::MAX || self.seen.len() != units {
            (self.seen, self.pooled, self.scores) = (vec![0; units], vec![0; units], vec![0.0; units]);
            self.question = 0;
        }
        self.question += 1;
    }
}

impl<'a> KeywordChannel<'a> {
    /// `keywords`: means of sentences, not normalised;
    /// `quantised`: codes of the same; `word_units`: keyword -> units, ascending; `unit_tokens[i]`: cost of
    /// printing unit `i`, including title and row marks.
    pub fn new(
        keywords: Vectors<'a>,
        quantised: Option<QuantisedView<'a>>,
        word_units: CsrView<'a>,
        units: impl Into<Rows<'a>>,
        unit_tokens: impl Into<Items<'a, u32>>,
    ) -> Result<Self> {
        word_units.require_sorted()?;
        Self::stored(keywords, quantised, word_units, units, unit_tokens)
    }

    /// Like `new`, for rows that were checked before they were written. Only the shapes are checked.
    pub fn stored(
        keywords: Vectors<'a>,
        quantised: Option<QuantisedView<'a>>,
        word_units: CsrView<'a>,
        units: impl Into<Rows<'a>>,
        unit_tokens: impl Into<Items<'a, u32>>,
    ) -> Result<Self> {
        let (units, unit_tokens) = (units.into(), unit_tokens.into());
        let differ = |what: &str, a: usize, b: usize| Err(Error::input(format!("{what}: {a} and {b}")));
        if keywords.dim() != units.dim() {
            return differ("dimensions of keywords and units differ", keywords.dim(), units.dim());
        }
        if keywords.len() != word_units.rows() {
            return differ(
                "vectors and rows of keywords differ in number",
                keywords.len(),
                word_units.rows(),
            );
        }
        if word_units.columns != units.len() || unit_tokens.len() != units.len() {
            let other =
                if word_units.columns == units.len() { unit_tokens.len() } else { word_units.columns };
            return differ("arrays over units differ in length", units.len(), other);
        }
        if let Some(quantised) = &quantised {
            quantised.matches(&keywords)?;
        }
        Ok(Self { keywords, quantised, word_units, units, unit_tokens, left: None })
    }

    /// Return the units of each keyword.
    pub fn rows(&self) -> CsrView<'a> {
        self.word_units
    }

    /// Return the channel restricted to the units that pass a filter. Other units are not added and cost
    /// nothing, and keywords without a passing unit are skipped. `words` are the keywords of each unit.
    pub fn only<'m>(self, mask: &'m Mask, words: CsrView<'m>) -> Result<KeywordChannel<'m>>
    where
        'a: 'm,
    {
        mask.check(self.units.len())?;
        if (words.rows(), words.columns) != (self.units.len(), self.keywords.len()) {
            return Err(Error::input("the keywords of units belong to another index"));
        }
        Ok(KeywordChannel { left: Some((mask, words)), ..self })
    }

    /// Return bits of the keywords that have a unit which passes the filter, if computing them is worth the
    /// time. If all keywords may be tried, keywords that add nothing do not change the result.
    fn holding(&self, most_seeds: Option<usize>) -> Option<Vec<u64>> {
        let (mask, words) = self.left?;
        if most_seeds.is_none() && mask.count() > self.units.len() / 2 {
            return None;
        }
        let mut bits = vec![0u64; self.keywords.len().div_ceil(64)];
        for unit in mask.ids() {
            for &word in words.row(unit as usize) {
                bits[word as usize / 64] |= 1 << (word % 64);
            }
        }
        Some(bits)
    }

    /// Return the pool for a query. Keywords are visited by (inner product descending, id ascending). Each
    /// adds its new units by (similarity descending, id ascending), until a unit would make the cost exceed
    /// `limit` (twice the channel's budget) or `most_seeds` keywords are used. A zero vector has an empty
    /// pool.
    pub fn pool(
        &self,
        query: &[f32],
        limit: u64,
        most_seeds: Option<usize>,
        level: Level,
        scratch: &mut PoolScratch,
    ) -> Result<Pool> {
        let mut pool = Pool::default();
        if self.keywords.check_query(query)? == 0.0 {
            return Ok(pool);
        }
        let asked = self.units.ask(query)?;
        scratch.next(self.units.len());
        let holding = self.holding(most_seeds);
        let count = |bits: &Vec<u64>| bits.iter().map(|word| word.count_ones() as usize).sum();
        let there = holding.as_ref().map_or(self.keywords.len(), count);
        let most = most_seeds.unwrap_or(usize::MAX).min(there);
        let (quantised, left) =
            (self.quantised.as_ref(), holding.as_deref().map_or(Filter::All, Filter::Bits));
        let search = Search::new(&self.keywords, quantised, query, left, level, &mut scratch.search)?;
        let first = (limit / TOKENS_PER_KEYWORD).clamp(*FIRST_BATCH.start(), *FIRST_BATCH.end());
        let spread = self.left.map_or(1, |(mask, _)| mask.spread(SPREAD));
        let mut batch = (first as usize * spread).min(most);
        while pool.seeds.len() < most {
            let seeds = search.best(batch, &mut scratch.search);
            if self.take(&seeds[pool.seeds.len()..], &asked, limit, scratch, &mut pool) {
                break;
            }
            batch = batch.saturating_mul(4).min(most);
        }
        pool.units.sort_unstable_by(|a, b| rank_order(&a.scored(), &b.scored()));
        Ok(pool)
    }

    /// [`KeywordChannel::pool`] restricted to the keywords `near` (strictly ascending ids, found by an
    /// approximate search); `None` if there are too few of them to fill the pool.
    pub fn pool_near(
        &self,
        query: &[f32],
        limit: u64,
        most_seeds: Option<usize>,
        near: &[u32],
        scratch: &mut PoolScratch,
    ) -> Result<Option<Pool>> {
        let mut pool = Pool::default();
        Filter::Ids(near).check(self.keywords.len())?;
        if self.keywords.check_query(query)? == 0.0 {
            return Ok(Some(pool));
        }
        let asked = self.units.ask(query)?;
        scratch.next(self.units.len());
        let most = most_seeds.unwrap_or(usize::MAX);
        let seeds = top_k(self.keywords.score_many(near, query), most.min(near.len()));
        let full = self.take(&seeds, &asked, limit, scratch, &mut pool) || seeds.len() == most;
        pool.units.sort_unstable_by(|a, b| rank_order(&a.scored(), &b.scored()));
        Ok(full.then_some(pool))
    }

    /// Add the units of the next keywords. Returns true once the pool is full or holds all units.
    fn take(
        &self,
        seeds: &[Scored],
        asked: &Asked<'_>,
        limit: u64,
        scratch: &mut PoolScratch,
        pool: &mut Pool,
    ) -> bool {
        let mut fresh = Vec::new();
        for &seed in seeds {
            pool.seeds.push(seed);
            self.fresh_units(seed.id, asked, scratch, &mut fresh);
            for unit in &fresh {
                let cost = u64::from(self.unit_tokens[unit.id as usize]);
                if pool.tokens + cost > limit {
                    return true;
                }
                pool.tokens += cost;
                scratch.pooled[unit.id as usize] = scratch.question;
                pool.units.push(Pooled { unit: unit.id, score: unit.score, keyword: seed.id });
            }
        }
        let there = self.left.map_or(self.units.len(), |left| left.0.count());
        pool.units.len() >= there // no keyword has units left to add
    }

    /// Return the units of a keyword that are not in the pool yet, best first.
    fn fresh_units(
        &self,
        keyword: u32,
        asked: &Asked<'_>,
        scratch: &mut PoolScratch,
        fresh: &mut Vec<Scored>,
    ) {
        fresh.clear();
        let mask = self.left.map(|left| left.0);
        for &id in self.word_units.row(keyword as usize) {
            let at = id as usize;
            if scratch.pooled[at] == scratch.question || !leaves(mask, id) {
                continue;
            }
            if scratch.seen[at] != scratch.question {
                scratch.seen[at] = scratch.question;
                scratch.scores[at] = asked.score(id);
            }
            fresh.push(Scored { id, score: scratch.scores[at] });
        }
        fresh.sort_unstable_by(rank_order);
    }
}

impl Pooled {
    fn scored(&self) -> Scored {
        Scored { id: self.unit, score: self.score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;
    use crate::sparse::Csr;
    use crate::testing::awkward;
    use crate::vector::quantised::Quantised;
    use proptest::prelude::*;

    /// The definition, implemented literally.
    fn plain(channel: &KeywordChannel, query: &[f32], limit: u64, most: usize) -> Pool {
        let scored = |vectors: Rows, ids: &mut dyn Iterator<Item = u32>| {
            let asked = vectors.ask(query).unwrap();
            top_k(ids.map(|id| Scored { id, score: asked.score(id) }).collect(), usize::MAX)
        };
        let mut pool = Pool::default();
        let seeds = scored(channel.keywords.into(), &mut (0..channel.keywords.len() as u32));
        'all: for seed in seeds.into_iter().take(most) {
            pool.seeds.push(seed);
            let row = channel.word_units.row(seed.id as usize);
            for unit in scored(channel.units, &mut row.iter().copied()) {
                if pool.units.iter().any(|p| p.unit == unit.id) {
                    continue;
                }
                let cost = u64::from(channel.unit_tokens[unit.id as usize]);
                if pool.tokens + cost > limit {
                    break 'all;
                }
                pool.tokens += cost;
                pool.units.push(Pooled { unit: unit.id, score: unit.score, keyword: seed.id });
            }
            if pool.units.len() == channel.units.len() {
                break;
            }
        }
        pool.units.sort_by(|a, b| rank_order(&a.scored(), &b.scored()));
        pool
    }

    proptest! {
        #[test]
        fn equals_the_paper_word_for_word(
            seed in prop::collection::vec(-1f32..1.0, 97), m in 1usize..30, d in 1usize..20,
            rows in prop::collection::vec(prop::collection::btree_set(0u32..30, 0..7), 0..400),
            limit in 0u64..900, most in prop::option::of(0usize..100), long in prop::collection::vec(-1f32..1.0, 60),
        ) {
            let rows: Vec<Vec<u32>> = rows.iter().map(|r| r.iter().copied().filter(|&u| (u as usize) < m).collect()).collect();
            let (words, units) = (awkward(&seed, rows.len(), d), awkward(&long, m, d));
            let keywords = Vectors::new(&words, d).unwrap();
            let codes = Quantised::build(&keywords, 1, &Progress::none()).unwrap();
            let csr = Csr::from_rows(&rows, m).unwrap();
            let tokens: Vec<u32> = (0..m as u32).map(|i| 5 + i * 7 % 40).collect();
            let mut scratch = PoolScratch::default();
            for quantised in [None, Some(codes.view())] {
                let units = Vectors::new(&units, d).unwrap();
                let channel = KeywordChannel::new(keywords, quantised, csr.view(), units, &tokens).unwrap();
                for level in Level::all() {
                    let found = channel.pool(&seed[..d], limit, most, level, &mut scratch).unwrap();
                    let wanted = plain(&channel, &seed[..d], limit, most.unwrap_or(usize::MAX));
                    prop_assert_eq!(&found.units, &wanted.units);
                    prop_assert_eq!(found.tokens, wanted.tokens);
                    // If all keywords are candidates, the pool is the same. Too few candidates give `None`.
                    let every: Vec<u32> = (0..rows.len() as u32).collect();
                    let near = channel.pool_near(&seed[..d], limit, most, &every, &mut scratch).unwrap();
                    prop_assert!(near.is_none_or(|pool| pool.units == wanted.units));
                    let few = &every[..rows.len() / 3];
                    if let Some(pool) = channel.pool_near(&seed[..d], limit, most, few, &mut scratch).unwrap() {
                        prop_assert!(pool.seeds.iter().all(|seed| few.contains(&seed.id)));
                        prop_assert!(pool.tokens <= limit);
                    }
                    // With a filter the pool contains only passing units, and their keywords.
                    for every in [2, 5] {
                        let mask = Mask::from_fn(m, |id| id % every == 0);
                        let own = |row: &Vec<u32>| row.iter().copied().filter(|&id| mask.has(id)).collect();
                        let left: Vec<Vec<u32>> = rows.iter().map(own).collect();
                        let held: Vec<usize> = (0..left.len()).filter(|&w| !left[w].is_empty()).collect();
                        let of_held: Vec<f32> = held.iter().flat_map(|&w| &words[w * d..(w + 1) * d]).copied().collect();
                        let of_held = Vectors::new(&of_held, d).unwrap();
                        let left: Vec<Vec<u32>> = held.iter().map(|&w| left[w].clone()).collect();
                        let left = Csr::from_rows(&left, m).unwrap();
                        let alone = KeywordChannel::new(of_held, None, left.view(), units, &tokens).unwrap();
                        let turned = csr.view().transpose().unwrap();
                        let some = channel.only(&mask, turned.view()).unwrap();
                        let some = some.pool(&seed[..d], limit, most, level, &mut scratch).unwrap();
                        let wanted = plain(&alone, &seed[..d], limit, most.unwrap_or(usize::MAX));
                        let told = |pool: &Pool| pool.units.iter().map(|p| p.scored()).collect::<Vec<_>>();
                        prop_assert_eq!((told(&some), some.tokens), (told(&wanted), wanted.tokens));
                    }
                    // A full pool stops the visit at the end of a batch.
                    let shared = found.seeds.len().min(wanted.seeds.len());
                    prop_assert_eq!(&found.seeds[..shared], &wanted.seeds[..shared]);
                    prop_assert!(found.tokens <= limit);
                }
            }
        }
    }

    #[test]
    fn bad_input_is_refused_and_nothing_gives_nothing() {
        let one = Vectors::new(&[1.0, 0.0], 2).unwrap();
        let wide = Vectors::new(&[1.0, 0.0, 0.0], 3).unwrap();
        let csr = Csr::from_rows(&[vec![0u32]], 1).unwrap();
        let two = Csr::from_rows(&[vec![0u32], vec![]], 1).unwrap();
        assert!(KeywordChannel::new(one, None, csr.view(), wide, &[1]).is_err());
        assert!(KeywordChannel::new(one, None, two.view(), one, &[1]).is_err());
        assert!(KeywordChannel::new(one, None, csr.view(), one, &[1, 2]).is_err());
        assert!(KeywordChannel::new(one, Some(Quantised::default().view()), csr.view(), one, &[1]).is_err());
        let channel = KeywordChannel::new(one, None, csr.view(), one, &[4]).unwrap();
        let mut scratch = PoolScratch::default();
        let mut ask = |query: &[f32], limit| channel.pool(query, limit, None, Level::best(), &mut scratch);
        assert!(ask(&[1.0], 9).is_err());
        assert!(ask(&[f32::NAN, 0.0], 9).is_err());
        assert_eq!(ask(&[0.0, 0.0], 9), Ok(Pool::default()));
        assert_eq!(ask(&[1.0, 0.0], 3).unwrap().units, []);
        assert_eq!(ask(&[1.0, 0.0], 4).unwrap().units, [Pooled { unit: 0, score: 1.0, keyword: 0 }]);
        let none = Vectors::new(&[], 2).unwrap();
        let empty = Csr::from_rows::<Vec<u32>>(&[], 0).unwrap();
        let channel = KeywordChannel::new(none, None, empty.view(), none, &[]).unwrap();
        assert_eq!(channel.pool(&[1.0, 0.0], 9, None, Level::best(), &mut scratch), Ok(Pool::default()));
    }
}
