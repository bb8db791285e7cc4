//! Stored rows of vectors in any format: f32, eight or four bits per value. Everything that ranks stored vectors by
//! their products with a query uses [`Rows`].

use super::bytes;
use super::filter::{Filter, BLOCK};
use super::nibbles;
use super::quantised::{QuantisedView, MAX_DIM};
use super::search::{Scratch, Search};
use super::simd::Level;
use super::vectors::{check_query, Vectors};
use crate::error::{Error, Result};
use crate::sparse::{Leaders, Scored};
use std::ops::Range;

/// Rows of vectors with the same number of values.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// Rows in f32, with byte codes that preselect the rows of a search.
    Floats(Vectors<'a>, Option<QuantisedView<'a>>),
    /// Rows stored only as codes, whose products are exact integers.
    Coded(Coded<'a>),
}

/// Codes of vectors, and the factor of each row.
#[derive(Debug, Clone, Copy)]
pub struct Coded<'a> {
    codes: Codes<'a>,
    scale: &'a [f32],
    d: usize,
}

#[derive(Debug, Clone, Copy)]
enum Codes<'a> {
    Nibbles(&'a [u8]),
    Bytes(&'a [i8]),
}

impl<'a> Coded<'a> {
    /// Rows of four bits ([`nibbles::pack`]).
    pub fn nibbles(codes: &'a [u8], scale: &'a [f32], d: usize) -> Result<Self> {
        Self::new(Codes::Nibbles(codes), (codes.len(), nibbles::width(d)), scale, d)
    }

    /// Rows of eight bits ([`super::quantised::Quantised`]).
    pub fn bytes(codes: &'a [i8], scale: &'a [f32], d: usize) -> Result<Self> {
        Self::new(Codes::Bytes(codes), (codes.len(), d), scale, d)
    }

    fn new(codes: Codes<'a>, (length, width): (usize, usize), scale: &'a [f32], d: usize) -> Result<Self> {
        if d == 0 || d > MAX_DIM || scale.len().checked_mul(width) != Some(length) {
            let rows = scale.len();
            return Err(Error::input(format!(
                "{length} codes and {rows} scales do not make rows of {d} values"
            )));
        }
        if scale.len() >= u32::MAX as usize {
            return Err(Error::input("more vectors than ids of 32 bits"));
        }
        if scale.iter().any(|x| !x.is_finite() || *x < 0.0) {
            return Err(Error::input("scales must be finite and not negative"));
        }
        Ok(Self { codes, scale, d })
    }

    fn prepare(&self, query: &[f32]) -> Prepared<'static> {
        match self.codes {
            Codes::Nibbles(_) => Prepared::Nibbles(nibbles::Query::of(query)),
            Codes::Bytes(_) => {
                let (codes, scale) = bytes::Query::of(query);
                Prepared::Bytes(codes, scale)
            }
        }
    }

    fn prepare_row(&self, id: usize) -> Prepared<'static> {
        match self.codes {
            Codes::Nibbles(codes) => {
                let width = nibbles::width(self.d);
                Prepared::Nibbles(nibbles::Query::of_row(&codes[id * width..][..width], self.scale[id]))
            }
            Codes::Bytes(codes) => {
                let mut query = bytes::Query::default();
                codes[id * self.d..][..self.d].iter().for_each(|&code| query.push(i16::from(code)));
                Prepared::Bytes(query, f64::from(self.scale[id]))
            }
        }
    }

    /// Compute the scores of adjacent rows. `products` is a buffer for intermediate results.
    fn scores(
        &self,
        level: Level,
        query: &Prepared<'_>,
        rows: Range<usize>,
        products: &mut [i32],
        out: &mut [f64],
    ) {
        let by = match (self.codes, query) {
            (Codes::Nibbles(codes), Prepared::Nibbles(query)) => {
                let width = nibbles::width(self.d);
                nibbles::dots(level, query, &codes[rows.start * width..rows.end * width], width, products);
                query.scale
            }
            (Codes::Bytes(codes), Prepared::Bytes(query, scale)) => {
                bytes::dots(level, query, &codes[rows.start * self.d..rows.end * self.d], products);
                *scale
            }
            _ => return out.fill(0.0), // `prepare` never returns a query of another format
        };
        let scales = self.scale[rows].iter();
        for ((out, &product), &scale) in out.iter_mut().zip(&*products).zip(scales) {
            *out = f64::from(scale) * by * f64::from(product);
        }
    }
}

impl<'a> Rows<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Floats(vectors, _) => vectors.len(),
            Self::Coded(coded) => coded.scale.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn dim(&self) -> usize {
        match self {
            Self::Floats(vectors, _) => vectors.dim(),
            Self::Coded(coded) => coded.d,
        }
    }

    /// Return the length of a query after checking its shape and values.
    pub fn check_query(&self, query: &[f32]) -> Result<f64> {
        check_query(query, self.dim())
    }

    /// Prepare a query for scoring rows.
    pub fn ask<'q>(&self, query: &'q [f32]) -> Result<Asked<'q>>
    where
        'a: 'q,
    {
        self.check_query(query)?;
        let prepared = match self {
            Self::Floats(..) => Prepared::Floats(query),
            Self::Coded(coded) => coded.prepare(query),
        };
        Ok(Asked { rows: *self, query: prepared, level: Level::best() })
    }

    /// Prepare one of the rows as a query.
    pub fn ask_row(&self, id: u32) -> Asked<'a> {
        let query = match self {
            Self::Floats(vectors, _) => Prepared::Floats(vectors.row(id as usize)),
            Self::Coded(coded) => coded.prepare_row(id as usize),
        };
        Asked { rows: *self, query, level: Level::best() }
    }

    /// Score the rows that pass a filter. [`RowSearch::best`] can then return more and more of them.
    pub fn search<'q>(
        &'q self,
        query: &'q [f32],
        filter: Filter<'q>,
        level: Level,
        scratch: &mut Scratch,
    ) -> Result<RowSearch<'q>> {
        match self {
            Self::Floats(vectors, codes) => {
                Search::new(vectors, codes.as_ref(), query, filter, level, scratch).map(RowSearch::Floats)
            }
            Self::Coded(coded) => {
                self.check_query(query)?;
                filter.check(self.len())?;
                let (prepared, level) = (coded.prepare(query), level.usable());
                let Scratch { products, exact, .. } = scratch;
                exact.resize(self.len(), 0.0);
                products.resize(products.len().max(BLOCK), 0);
                filter.runs(self.len(), |run| {
                    let products = &mut products[..run.len()];
                    coded.scores(level, &prepared, run.clone(), products, &mut exact[run]);
                });
                Ok(RowSearch::Coded { rows: self.len(), filter })
            }
        }
    }

    /// Return the best `k` rows for `query`, score descending, then id ascending; fewer if there are fewer rows.
    pub fn top_k(
        &self,
        query: &[f32],
        k: usize,
        filter: Filter,
        level: Level,
        scratch: &mut Scratch,
    ) -> Result<Vec<Scored>> {
        Ok(self.search(query, filter, level, scratch)?.best(k, scratch))
    }
}

impl<'a> From<Vectors<'a>> for Rows<'a> {
    fn from(vectors: Vectors<'a>) -> Self {
        Self::Floats(vectors, None)
    }
}

/// Rows scored for one query.
pub enum RowSearch<'a> {
    Floats(Search<'a>),
    Coded { rows: usize, filter: Filter<'a> },
}

impl RowSearch<'_> {
    /// Return the best `k` rows. `scratch` must be the one passed to [`Rows::search`], not used by another
    /// search since.
    pub fn best(&self, k: usize, scratch: &mut Scratch) -> Vec<Scored> {
        match self {
            Self::Floats(search) => search.best(k, scratch),
            Self::Coded { rows, filter } => {
                let mut best = Leaders::new(k);
                filter.runs(*rows, |run| {
                    for id in run.filter(|&id| filter.leaves(id)) {
                        best.push(Scored { id: id as u32, score: scratch.exact[id] });
                    }
                });
                best.finish()
            }
        }
    }
}

/// A query in the format of the rows.
#[derive(Debug, Clone)]
enum Prepared<'q> {
    Floats(&'q [f32]),
    Nibbles(nibbles::Query),
    Bytes(bytes::Query, f64),
}

/// A query prepared for the rows of one set.
#[derive(Debug, Clone)]
pub struct Asked<'q> {
    rows: Rows<'q>,
    query: Prepared<'q>,
    level: Level,
}

impl Asked<'_> {
    /// Return the score of a row, which is the same as in [`Rows::top_k`].
    pub fn score(&self, id: u32) -> f64 {
        match (&self.rows, &self.query) {
            (Rows::Floats(vectors, _), Prepared::Floats(query)) => vectors.score(id, query),
            _ => self.near(id),
        }
    }

    /// Return [`Asked::score`] of many rows.
    pub fn score_many(&self, ids: &[u32]) -> Vec<Scored> {
        match (&self.rows, &self.query) {
            (Rows::Floats(vectors, _), Prepared::Floats(query)) => vectors.score_many(ids, query),
            _ => ids.iter().map(|&id| Scored { id, score: self.near(id) }).collect(),
        }
    }

    /// Return a score that is fast in f32 too: with codes [`Asked::score`], otherwise a sum in f32 lanes.
    pub fn near(&self, id: u32) -> f64 {
        let (row, mut score) = (id as usize..id as usize + 1, [0.0]);
        match &self.rows {
            Rows::Coded(coded) => coded.scores(self.level, &self.query, row, &mut [0], &mut score),
            Rows::Floats(..) => self.near_all(row, &mut score),
        }
        score[0]
    }

    /// Compute [`Asked::near`] of any number of adjacent rows.
    pub fn scores(&self, rows: Range<usize>, out: &mut [f64]) {
        for (start, out) in rows.step_by(BLOCK).zip(out.chunks_mut(BLOCK)) {
            self.near_all(start..start + out.len(), out);
        }
    }

    /// Compute [`Asked::near`] of adjacent rows, at most 256.
    ///
    /// # Panics
    /// If `out` has not as many values as there are rows.
    pub fn near_all(&self, rows: Range<usize>, out: &mut [f64]) {
        assert!(rows.len() == out.len() && out.len() <= BLOCK);
        match (&self.rows, &self.query) {
            (Rows::Coded(coded), query) => {
                let mut products = [0; BLOCK];
                coded.scores(self.level, query, rows.clone(), &mut products[..rows.len()], out);
            }
            (Rows::Floats(vectors, _), Prepared::Floats(query)) => {
                let rows = vectors.rows(rows).chunks_exact(vectors.dim());
                out.iter_mut().zip(rows).for_each(|(out, row)| *out = lane_dot(query, row));
            }
            _ => out.fill(0.0),
        }
    }
}

/// Sum of products in sixteen f32 lanes, always in the same order, so the bits are the same on every machine.
#[inline]
fn lane_dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0f32; 16];
    let (x, y) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    for (x, y) in x.zip(y) {
        for k in 0..16 {
            lanes[k] += x[k] * y[k];
        }
    }
    lanes.iter().map(|&x| f64::from(x)).sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;
    use crate::sparse::top_k;
    use crate::vector::quantised::Quantised;
    use proptest::prelude::*;

    /// Every way of scoring and ranking gives the same numbers, in both formats and at every level.
    fn check(rows: Rows<'_>, query: &[f32], k: usize, ids: &[u32]) {
        let asked = rows.ask(query).unwrap();
        let all: Vec<Scored> =
            (0..rows.len() as u32).map(|id| Scored { id, score: asked.score(id) }).collect();
        let some: Vec<Scored> = ids.iter().map(|&id| all[id as usize]).collect();
        assert_eq!(asked.score_many(ids), some);
        for level in Level::all() {
            let mut scratch = Scratch::default();
            let found = rows.top_k(query, k, Filter::All, level, &mut scratch).unwrap();
            assert_eq!(found, top_k(all.clone(), k));
            let found = rows.top_k(query, k, Filter::Ids(ids), level, &mut scratch).unwrap();
            assert_eq!(found, top_k(some.clone(), k));
        }
    }

    proptest! {
        #[test]
        fn searches_are_exact_in_every_format(
            d in 1usize..40, n in 1usize..30, k in 0usize..8,
            values in prop::collection::vec(-1f32..1.0, 1200), query in prop::collection::vec(-1f32..1.0, 40),
        ) {
            let (values, query) = (&values[..n * d], &query[..d]);
            let vectors = Vectors::new(values, d).unwrap();
            let ids: Vec<u32> = (0..n as u32).filter(|id| id % 3 != 1).collect();
            let packed = nibbles::pack(&vectors, 1, &Progress::none()).unwrap();
            let bytes = Quantised::build(&vectors, 1, &Progress::none()).unwrap();
            let coarse = Rows::Coded(Coded::nibbles(&packed.codes, &packed.scale, d).unwrap());
            let fine = Rows::Coded(Coded::bytes(&bytes.codes, &bytes.scale, d).unwrap());
            check(coarse, query, k, &ids);
            check(fine, query, k, &ids);
            check(Rows::Floats(vectors, Some(bytes.view())), query, k, &ids);
            for (rows, most) in [(coarse, 0.1), (fine, 0.01)] {
                let asked = rows.ask(query).unwrap();
                for id in 0..n as u32 {
                    // Error of half a step per value, for rows of length at most 1.6 sqrt(d).
                    prop_assert!((asked.score(id) - vectors.score(id, query)).abs() <= most * d as f64);
                    let own = rows.ask_row(id);
                    prop_assert!((own.near(id) - vectors.score(id, vectors.row(id as usize))).abs() <= most * d as f64);
                }
            }
        }
    }

    #[test]
    fn wrong_shapes_are_refused() {
        assert!(Coded::nibbles(&[0; 8], &[1.0, 1.0], 9).is_err());
        assert!(Coded::bytes(&[0; 8], &[1.0], 9).is_err());
        assert!(Coded::bytes(&[0; 9], &[f32::NAN], 9).is_err());
        let rows = Rows::Coded(Coded::bytes(&[0; 9], &[1.0], 9).unwrap());
        assert!(rows.ask(&[1.0; 8]).is_err() && rows.ask(&[f32::NAN; 9]).is_err());
    }
}
