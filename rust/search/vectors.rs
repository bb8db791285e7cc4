//! The exact best rows of a set of vectors for a query: a fast product preselects with a margin
//! that is proved to be enough, and the plain sum in f64 decides (specs 0.2). The result is the
//! same on every machine.

use super::best::Best;
use super::bytes;
use super::quantised::{CodedQuery, QuantisedView};
use super::simd::{dot_error, dots, dots_chain, Level};
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::sparse::{self, Scored};
use crate::wide::wide;
use std::ops::Range;

/// Rows per call of the fast product: its scores stay in the first cache.
const BLOCK: usize = 256;
/// Rows beyond twice the wanted that are scored in full without a second look in f32.
const FEW: usize = 64;
/// Wanted rows of 64 from which all of these are scored.
const DENSE: u32 = 16;

/// The reference similarity of specs 0.2: products in index order, each exact in f64, summed in
/// f64. For vectors normalised at ingest it is their cosine.
pub fn reference_dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (&x, &y)| sum + f64::from(x) * f64::from(y))
}

/// [`reference_dot`] of a query with every row.
pub(crate) fn reference_dots_with(rows: &[f32], query: &[f32], out: &mut [f64]) {
    let rows = rows.chunks_exact(query.len().max(1));
    out.iter_mut().zip(rows).for_each(|(out, row)| *out = reference_dot(row, query));
}

/// Scales a vector to length 1, in place; one shorter than 1e-12 becomes zero (specs 0.2).
pub fn normalise(vector: &mut [f32]) {
    divide(vector, reference_dot(vector, vector).sqrt());
}

/// [`normalise`] of every row.
pub fn normalise_rows(values: &mut [f32], d: usize) {
    let mut squares = vec![0f64; values.len() / d.max(1)];
    reference_dots(values, d, &mut squares);
    divide_rows(values, d, &squares);
}

/// [`reference_dot`] of every row with itself. A sum in one fixed order waits for each of its steps: those of
/// several rows are made side by side.
pub fn reference_dots(values: &[f32], d: usize, squares: &mut [f64]) {
    squares_of(values, d.max(1), squares);
}

#[inline(always)]
fn squares_body(values: &[f32], d: usize, squares: &mut [f64]) {
    const SIDE: usize = 8;
    for (rows, squares) in values.chunks(SIDE * d).zip(squares.chunks_mut(SIDE)) {
        if rows.len() < SIDE * d {
            for (row, square) in rows.chunks_exact(d).zip(squares) {
                *square = reference_dot(row, row);
            }
            continue;
        }
        let mut sums = [0f64; SIDE];
        for k in 0..d {
            for row in 0..SIDE {
                let x = f64::from(rows[row * d + k]);
                sums[row] += x * x;
            }
        }
        squares.copy_from_slice(&sums);
    }
}
wide!(squares_of, squares_body, (values: &[f32], d: usize, squares: &mut [f64]));

#[inline(always)]
fn divide_body(values: &mut [f32], d: usize, squares: &[f64]) {
    for (row, square) in values.chunks_exact_mut(d).zip(squares) {
        divide(row, square.sqrt());
    }
}
wide!(divide_wide, divide_body, (values: &mut [f32], d: usize, squares: &[f64]));

/// Every row to length 1, `squares` being the squares of their lengths.
pub fn divide_rows(values: &mut [f32], d: usize, squares: &[f64]) {
    divide_wide(values, d.max(1), squares);
}

/// A vector of the length `norm` to length 1.
#[inline(always)]
fn divide(row: &mut [f32], norm: f64) {
    if norm >= 1e-12 {
        row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    } else {
        row.fill(0.0);
    }
}

/// Vectors of `d` values laid end to end (row-major f32), with a bound on their lengths.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'a> {
    values: &'a [f32],
    d: usize,
    norm: f64,
    guard: Option<Guard<'a>>,
}

impl<'a> Vectors<'a> {
    /// Checks the shape and that every value is finite: one pass over the values.
    pub fn new(values: &'a [f32], d: usize) -> Result<Self> {
        let mut set = Self::trusted(values, d, 0.0)?;
        let mut largest = 0f64;
        for (row, vector) in values.chunks_exact(d).enumerate() {
            let mut lanes = [0f64; 8];
            let chunks = vector.chunks_exact(8);
            for (lane, &x) in chunks.remainder().iter().enumerate() {
                lanes[lane] += f64::from(x) * f64::from(x);
            }
            for chunk in chunks {
                for lane in 0..8 {
                    lanes[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
                }
            }
            // The square of a finite f32 is finite in f64.
            let square: f64 = lanes.iter().sum();
            if !square.is_finite() {
                return Err(Error::input(format!("vector {row} holds NaN or an infinity")));
            }
            largest = largest.max(square);
        }
        set.norm = largest.sqrt() * (1.0 + 1e-9);
        Ok(set)
    }

    /// For values checked before (a stored array under a checksum): `norm` must be
    /// [`Vectors::norm`] of them. A wrong one gives wrong results, never undefined behaviour.
    pub fn trusted(values: &'a [f32], d: usize, norm: f64) -> Result<Self> {
        if d == 0 {
            return Err(Error::input("vectors must have at least one dimension"));
        }
        if !values.len().is_multiple_of(d) {
            return Err(Error::input(format!("{} values are not whole vectors of {d}", values.len())));
        }
        if values.len() / d >= u32::MAX as usize {
            return Err(Error::input("more vectors than ids of 32 bits"));
        }
        if !norm.is_finite() || norm < 0.0 {
            return Err(Error::input("the bound on the vectors' lengths must be finite and not negative"));
        }
        Ok(Self { values, d, norm, guard: None })
    }

    /// Verifies rows of a mapped file when they are first read.
    pub fn guarded(mut self, guard: Option<Guard<'a>>) -> Self {
        self.guard = guard;
        self
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.d
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn dim(&self) -> usize {
        self.d
    }

    /// No row is longer than this.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    pub fn row(&self, id: usize) -> &'a [f32] {
        self.rows(id..id + 1)
    }

    pub fn rows(&self, ids: Range<usize>) -> &'a [f32] {
        let values = ids.start * self.d..ids.end * self.d;
        if let Some(guard) = &self.guard {
            guard.check(values.clone());
        }
        &self.values[values]
    }

    /// The reference similarity of row `id` with a query of [`Vectors::dim`] values.
    pub fn score(&self, id: u32, query: &[f32]) -> f64 {
        reference_dot(self.row(id as usize), query)
    }

    /// [`Vectors::score`] of many rows: four at a time, each in its own order, so to the same bits.
    pub fn score_many(&self, ids: &[u32], query: &[f32]) -> Vec<Scored> {
        let mut scored = Vec::with_capacity(ids.len());
        let fours = ids.chunks_exact(4);
        let rest = fours.remainder();
        for four in fours {
            let rows: [&[f32]; 4] = std::array::from_fn(|r| &self.row(four[r] as usize)[..query.len()]);
            let mut sums = [0f64; 4];
            for (k, &q) in query.iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(&rows) {
                    *sum += f64::from(row[k]) * f64::from(q);
                }
            }
            scored.extend(four.iter().zip(sums).map(|(&id, score)| Scored { id, score }));
        }
        scored.extend(rest.iter().map(|&id| Scored { id, score: self.score(id, query) }));
        scored
    }

    /// The length of a query, once its shape and values are checked.
    pub fn check_query(&self, query: &[f32]) -> Result<f64> {
        if query.len() != self.d {
            return Err(Error::input(format!("a query of {} values, vectors of {}", query.len(), self.d)));
        }
        let square = reference_dot(query, query);
        if !square.is_finite() {
            return Err(Error::input("the query holds NaN or an infinity"));
        }
        Ok(square.sqrt())
    }
}

/// Which rows take part in a search.
#[derive(Debug, Clone, Copy, Default)]
pub enum Filter<'a> {
    #[default]
    All,
    /// Strictly ascending ids.
    Ids(&'a [u32]),
    /// Bit `i % 64` of word `i / 64` is row `i`; at least as many bits as rows.
    Bits(&'a [u64]),
}

impl Filter<'_> {
    pub fn check(&self, rows: usize) -> Result<()> {
        match self {
            Self::All => Ok(()),
            Self::Ids(ids) if ids.windows(2).any(|w| w[1] <= w[0]) => {
                Err(Error::input("the ids of a filter must strictly ascend"))
            }
            Self::Ids(ids) if ids.last().is_some_and(|&id| id as usize >= rows) => {
                Err(Error::input(format!("a filter names a row that is not among the {rows}")))
            }
            Self::Bits(words) if words.len() < rows.div_ceil(64) => {
                Err(Error::input(format!("a filter of {} words for {rows} rows", words.len())))
            }
            _ => Ok(()),
        }
    }

    /// Whether a row of [`Filter::runs`] takes part.
    #[inline]
    pub(crate) fn leaves(&self, row: usize) -> bool {
        match self {
            Self::Bits(words) => words[row / 64] >> (row % 64) & 1 == 1,
            Self::All | Self::Ids(_) => true,
        }
    }

    /// Calls `work` on runs of at most [`BLOCK`] neighbouring rows, ascending. Where most of a word of bits are
    /// set all of its rows are among them: they are scored faster together than those that are wanted apart.
    pub(crate) fn runs(&self, rows: usize, mut work: impl FnMut(Range<usize>)) {
        let mut open = 0..0;
        let mut add = |rows: Range<usize>| {
            if open.end == rows.start && open.len() + rows.len() <= BLOCK {
                open.end = rows.end;
            } else {
                let run = std::mem::replace(&mut open, rows);
                if !run.is_empty() {
                    work(run);
                }
            }
        };
        match self {
            Self::All => {
                for start in (0..rows).step_by(BLOCK) {
                    work(start..(start + BLOCK).min(rows));
                }
                return;
            }
            Self::Ids(ids) => ids.iter().for_each(|&id| add(id as usize..id as usize + 1)),
            Self::Bits(words) => {
                for (start, &word) in (0..rows).step_by(64).zip(*words) {
                    let own = start..(start + 64).min(rows);
                    let mut left = word & (u64::MAX >> (64 - own.len()));
                    if left.count_ones() >= DENSE {
                        add(own);
                        continue;
                    }
                    while left != 0 {
                        let row = start + left.trailing_zeros() as usize;
                        left &= left - 1;
                        add(row..row + 1);
                    }
                }
            }
        }
        if !open.is_empty() {
            work(open);
        }
    }
}

/// Memory that searches of one thread use again.
#[derive(Debug, Default)]
pub struct Scratch {
    best: Best,
    scores: Vec<f32>,
    products: Vec<i32>,
    codes: bytes::Query,
}

/// A query against a set of vectors, scored roughly once; [`Search::best`] may then be asked for
/// more and more rows.
pub(crate) struct Search<'a> {
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
            let coded = quantised.code_query(query, length, vectors.norm, codes);
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

    /// The best `k` rows; `scratch` is the one given to [`Search::new`], used by no other search since.
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
            // What the codes leave is thinned by the f32 product before the exact sum.
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
        let d = self.vectors.d;
        let error = dot_error(d, self.vectors.norm * self.length, dots_chain(d));
        for (start, scores) in rows.step_by(16).zip(scores.chunks(16)) {
            // Most rows are far below: sixteen are passed over at once. NaN, from products that
            // overflow, is not below.
            let floor = (best.floor() - error) as f32;
            if !scores.iter().fold(false, |any, &s| any | (s >= floor) | s.is_nan()) {
                continue;
            }
            for (id, &score) in (start..).zip(scores).filter(|one| self.filter.leaves(one.0)) {
                let (lower, upper) = match f64::from(score) {
                    s if s.is_finite() => (s - error, s + error),
                    // The fast product overflowed: nothing is known of this row yet.
                    _ => (f64::NEG_INFINITY, f64::INFINITY),
                };
                best.push(id as u32, lower, upper, |id| self.vectors.score(id, self.query));
            }
        }
    }
}

/// The best `k` rows for `query` by [`reference_dot`], score descending, then id ascending; fewer
/// where there are fewer rows. A zero query scores 0 with every row. With `quantised` (codes of the
/// same vectors) a quarter of the memory is read; the result is the same.
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

/// [`top_k`] of many queries (laid end to end), over threads.
pub fn top_k_many(
    vectors: &Vectors,
    quantised: Option<&QuantisedView>,
    queries: &[f32],
    k: usize,
    filter: Filter,
    (level, threads): (Level, usize),
    progress: &Progress,
) -> Result<Vec<Vec<Scored>>> {
    if !queries.len().is_multiple_of(vectors.d) {
        return Err(Error::input(format!("{} values are not whole queries of {}", queries.len(), vectors.d)));
    }
    let count = queries.len() / vectors.d;
    progress.expect(count as u64);
    let one = |scratch: &mut Scratch, range: Range<usize>| {
        let query = &queries[range.start * vectors.d..range.end * vectors.d];
        top_k(vectors, quantised, query, k, filter, level, scratch)
    };
    map_ranges_with(count, 1, threads, progress, Scratch::default, one)
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
pub(crate) mod tests;
