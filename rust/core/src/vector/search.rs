//! Exact nearest neighbours of a query: a fast product preselects rows with a proven error margin, and the
//! plain f64 sum decides. The result is the same on every machine.

use super::best::Best;
use super::bytes;
use super::filter::{Filter, BLOCK};
use super::quantised::{CodedQuery, QuantisedView};
use super::simd::{dot_error, dots, dots_chain, Level};
use super::vectors::Vectors;
use crate::error::{Error, Result};
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::sparse::{self, Scored};
use std::ops::Range;

/// If at most this many rows remain in addition to twice the requested number, they are scored in full
/// without a second pass in f32.
const FEW: usize = 64;

/// Buffers that the searches of one thread reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    best: Best,
    scores: Vec<f32>,
    pub(super) products: Vec<i32>,
    /// Scores of rows in codes.
    pub(super) exact: Vec<f64>,
    codes: bytes::Query,
}

/// A query against a set of vectors, scored approximately once; [`Search::best`] can then return more and
/// more rows.
pub struct Search<'a> {
    vectors: &'a Vectors<'a>,
    quantised: Option<(&'a QuantisedView<'a>, CodedQuery)>,
    query: &'a [f32],
    length: f64,
    level: Level,
    filter: Filter<'a>,
}

impl<'a> Search<'a> {
    pub fn new(
        vectors: &'a Vectors,
        quantised: Option<&'a QuantisedView>,
        query: &'a [f32],
        filter: Filter<'a>,
        level: Level,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let length = vectors.check_query(query)?;
        filter.check(vectors.len())?;
        let level = level.usable();
        let Scratch { scores, products, codes, .. } = scratch;
        let mut search = Self { vectors, quantised: None, query, length, level, filter };
        if let Some(quantised) = quantised {
            quantised.matches(vectors)?;
            let coded = quantised.code_query(query, length, vectors.norm(), codes);
            products.resize(vectors.len(), 0);
            filter.runs(vectors.len(), |run| quantised.dots(level, codes, run.clone(), &mut products[run]));
            search.quantised = Some((quantised, coded));
        } else {
            scores.resize(vectors.len(), 0.0);
            filter.runs(vectors.len(), |run| {
                dots(level, query, vectors.rows(run.clone()), &mut scores[run]);
            });
        }
        Ok(search)
    }

    /// Return the best `k` rows. `scratch` must be the one passed to [`Search::new`], not used by another
    /// search since.
    pub fn best(&self, k: usize, scratch: &mut Scratch) -> Vec<Scored> {
        let Scratch { best, scores, products, .. } = scratch;
        let rows = self.vectors.len();
        if k == 0 || rows == 0 {
            return Vec::new();
        }
        if self.length == 0.0 {
            let mut first = Vec::new();
            self.filter.runs(rows, |run| {
                let room = k - first.len();
                let run = run.filter(|&row| self.filter.leaves(row));
                first.extend(run.take(room).map(|id| Scored { id: id as u32, score: 0.0 }));
            });
            return first;
        }
        let exact = |id| self.vectors.score(id, self.query);
        best.reset(k);
        if let Some((quantised, coded)) = &self.quantised {
            self.filter.runs(rows, |run| quantised.push(coded, run, products, self.filter, best, exact));
            // The f32 product preselects among the rows that the codes left, before the exact sum.
            let left = best.left();
            if left.len() <= 2 * k + FEW {
                return sparse::top_k(self.vectors.score_many(&left, self.query), k);
            }
            best.reset(k);
            scores.resize(scores.len().max(BLOCK), 0.0);
            Filter::Ids(&left).runs(rows, |run| {
                let out = &mut scores[..run.len()];
                dots(self.level, self.query, self.vectors.rows(run.clone()), out);
                self.push(run, out, best);
            });
        } else {
            self.filter.runs(rows, |run| self.push(run.clone(), &scores[run], best));
        }
        sparse::top_k(self.vectors.score_many(&best.left(), self.query), k)
    }

    fn push(&self, rows: Range<usize>, scores: &[f32], best: &mut Best) {
        let d = self.vectors.dim();
        let error = dot_error(d, self.vectors.norm() * self.length, dots_chain(d));
        for (start, scores) in rows.step_by(16).zip(scores.chunks(16)) {
            // Most rows are far below the floor, so skip sixteen at once. NaN, which overflowing products
            // give, is not below it.
            let floor = (best.floor() - error) as f32;
            if !scores.iter().fold(false, |any, &s| any | (s >= floor) | s.is_nan()) {
                continue;
            }
            for (id, &score) in (start..).zip(scores).filter(|one| self.filter.leaves(one.0)) {
                let (lower, upper) = match f64::from(score) {
                    s if s.is_finite() => (s - error, s + error),
                    // The fast product overflowed, so nothing is known about this row yet.
                    _ => (f64::NEG_INFINITY, f64::INFINITY),
                };
                best.push(id as u32, lower, upper, |id| self.vectors.score(id, self.query));
            }
        }
    }
}

/// Return the best `k` rows for `query` by [`super::reference_dot`], score descending, then id ascending;
/// fewer if there are fewer rows. A zero query scores 0 with every row. With `quantised` (codes of the same
/// vectors) a quarter of the memory is read; the result is the same.
///
/// ```
/// use ketrag_core::vector::{simd::Level, top_k, Filter, Scratch, Vectors};
///
/// let values = [1.0, 0.0, 0.6, 0.8, 0.0, 1.0];
/// let vectors = Vectors::new(&values, 2)?;
/// let scratch = &mut Scratch::default();
/// let best = top_k(&vectors, None, &[0.0, 1.0], 2, Filter::All, Level::best(), scratch)?;
/// assert_eq!(best.iter().map(|row| row.id).collect::<Vec<_>>(), [2, 1]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn top_k(
    vectors: &Vectors,
    quantised: Option<&QuantisedView>,
    query: &[f32],
    k: usize,
    filter: Filter,
    level: Level,
    scratch: &mut Scratch,
) -> Result<Vec<Scored>> {
    Ok(Search::new(vectors, quantised, query, filter, level, scratch)?.best(k, scratch))
}

/// [`top_k`] for many queries (concatenated), on several threads.
pub fn top_k_many(
    vectors: &Vectors,
    quantised: Option<&QuantisedView>,
    queries: &[f32],
    k: usize,
    filter: Filter,
    (level, threads): (Level, usize),
    progress: &Progress,
) -> Result<Vec<Vec<Scored>>> {
    if !queries.len().is_multiple_of(vectors.dim()) {
        return Err(Error::input(format!(
            "{} values are not whole queries of {}",
            queries.len(),
            vectors.dim()
        )));
    }
    let count = queries.len() / vectors.dim();
    progress.expect(count as u64);
    let one = |scratch: &mut Scratch, range: Range<usize>| {
        let query = &queries[range.start * vectors.dim()..range.end * vectors.dim()];
        top_k(vectors, quantised, query, k, filter, level, scratch)
    };
    map_ranges_with(count, 1, threads, progress, Scratch::default, one)
}
