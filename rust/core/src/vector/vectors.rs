//! Sets of vectors, and the plain f64 sum that decides every comparison.

use crate::cpu::wide;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::sparse::Scored;
use std::ops::Range;

/// Return the reference similarity: products in index order, each exact in f64, summed in f64. For normalised
/// vectors this is the cosine.
pub fn reference_dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (&x, &y)| sum + f64::from(x) * f64::from(y))
}

/// [`reference_dot`] of a query with every row.
pub fn reference_dots_with(rows: &[f32], query: &[f32], out: &mut [f64]) {
    let rows = rows.chunks_exact(query.len().max(1));
    out.iter_mut().zip(rows).for_each(|(out, row)| *out = reference_dot(row, query));
}

/// Scale a vector to length 1, in place. A vector shorter than 1e-12 becomes zero.
pub fn normalise(vector: &mut [f32]) {
    divide(vector, reference_dot(vector, vector).sqrt());
}

/// [`normalise`] of every row.
pub fn normalise_rows(values: &mut [f32], d: usize) {
    let mut squares = vec![0f64; values.len() / d.max(1)];
    reference_dots(values, d, &mut squares);
    divide_rows(values, d, &squares);
}

/// [`reference_dot`] of every row with itself. A sum in a fixed order is a chain of dependent additions, so
/// several rows are summed in parallel.
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

/// Scale every row to length 1; `squares` are the squares of their lengths.
pub fn divide_rows(values: &mut [f32], d: usize, squares: &[f64]) {
    divide_wide(values, d.max(1), squares);
}

/// Scale a vector of length `norm` to length 1.
#[inline(always)]
fn divide(row: &mut [f32], norm: f64) {
    if norm >= 1e-12 {
        row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    } else {
        row.fill(0.0);
    }
}

/// Concatenated vectors of `d` values (row-major f32), with a bound on their lengths.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'a> {
    values: &'a [f32],
    d: usize,
    norm: f64,
    guard: Option<Guard<'a>>,
}

impl<'a> Vectors<'a> {
    /// Check the shape and that every value is finite, in one pass over the values.
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

    /// For values checked before (a stored array with a checksum): `norm` must be their [`Vectors::norm`]. A
    /// wrong one gives wrong results, never undefined behaviour.
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

    /// Verify rows of a mapped file on first access.
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

    /// Return an upper bound of the lengths of the rows.
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

    /// Return the reference similarity of row `id` and a query of [`Vectors::dim`] values.
    pub fn score(&self, id: u32, query: &[f32]) -> f64 {
        reference_dot(self.row(id as usize), query)
    }

    /// [`Vectors::score`] of many rows, four at a time, each summed in order, so the bits are identical.
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

    /// Return the length of a query after checking its shape and values.
    pub fn check_query(&self, query: &[f32]) -> Result<f64> {
        check_query(query, self.d)
    }
}

/// Return the length of a query for vectors of `d` values after checking its shape and values.
pub(super) fn check_query(query: &[f32], d: usize) -> Result<f64> {
    if query.len() != d {
        return Err(Error::input(format!("a query of {} values, vectors of {d}", query.len())));
    }
    let square = reference_dot(query, query);
    if !square.is_finite() {
        return Err(Error::input("the query holds NaN or an infinity"));
    }
    Ok(square.sqrt())
}
