//! Vectors with one byte per value and error bounds on every score. They need a quarter of the memory
//! traffic, and the result is still exact.

use super::best::Best;
use super::bytes::{self, Query};
use super::filter::Filter;
use super::simd::Level;
#[cfg(test)]
use super::vectors::reference_dot;
use super::vectors::Vectors;
use crate::cpu::wide;
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use std::ops::Range;
use std::sync::Mutex;

/// Number of rows that a thread encodes at a time.
const GRAIN: usize = 1024;
/// Purpose of the allocations, for error messages.
const CODES: &str = "byte codes of vectors";

/// The largest dimension for which integer sums fit into 32 bits with a sufficiently precise query.
pub const MAX_DIM: usize = 1 << 16;

/// Row `i` is `scale[i] * codes[i]` plus an error vector no longer than `residual[i]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quantised {
    /// i8[n, d], each in -127..=127.
    pub codes: Vec<i8>,
    /// f32[n]
    pub scale: Vec<f32>,
    /// f32[n], rounded up.
    pub residual: Vec<f32>,
}

impl Quantised {
    /// Encode every row, scaled by its largest value. Rows are encoded independently, so the bytes do not
    /// depend on the number of threads.
    pub fn build(vectors: &Vectors, threads: usize, progress: &Progress) -> Result<Self> {
        let d = vectors.dim();
        check_dim(d)?;
        progress.expect(vectors.len() as u64);
        let mut all = Self {
            codes: zeros(vectors.len() * d, CODES)?,
            scale: zeros(vectors.len(), CODES)?,
            residual: zeros(vectors.len(), CODES)?,
        };
        let parts: Vec<_> = all
            .codes
            .chunks_mut(GRAIN * d)
            .zip(all.scale.chunks_mut(GRAIN).zip(all.residual.chunks_mut(GRAIN)))
            .map(Mutex::new)
            .collect();
        map_ranges(vectors.len(), GRAIN, threads, progress, |rows| {
            let mut part = parts[rows.start / GRAIN].lock().unwrap_or_else(|e| e.into_inner());
            let (codes, (scale, residual)) = &mut *part;
            code(vectors.rows(rows), d, codes, scale, residual);
            Ok(())
        })?;
        drop(parts);
        Ok(all)
    }

    pub fn view(&self) -> QuantisedView<'_> {
        QuantisedView { codes: &self.codes, scale: &self.scale, residual: &self.residual }
    }
}

/// Encode rows of `d` values. The squared errors of each row are summed in order, several rows in parallel,
/// because each sum is a chain of dependent additions.
#[inline(always)]
fn code_body(values: &[f32], d: usize, codes: &mut [i8], scales: &mut [f32], residuals: &mut [f32]) {
    const SIDE: usize = 8;
    let mut errors = vec![0f64; SIDE * d];
    let rows = values.chunks(SIDE * d).zip(codes.chunks_mut(SIDE * d));
    let bounds = scales.chunks_mut(SIDE).zip(residuals.chunks_mut(SIDE));
    for ((values, codes), (scales, residuals)) in rows.zip(bounds) {
        let rows = values.chunks_exact(d).zip(codes.chunks_exact_mut(d));
        for ((row, codes), (scale, errors)) in rows.zip(scales.iter_mut().zip(errors.chunks_exact_mut(d))) {
            let largest = row.iter().fold(0f32, |m, x| m.max(x.abs()));
            *scale = largest / 127.0;
            let by = f64::from(*scale);
            let inverse = if *scale > 0.0 { 1.0 / by } else { 0.0 };
            for ((&x, code), error) in row.iter().zip(codes).zip(errors) {
                let x = f64::from(x);
                let near = nearest(x * inverse).clamp(-127.0, 127.0);
                *error = x - by * near;
                *code = near as i8;
            }
        }
        let mut squares = [0f64; SIDE];
        for k in 0..d {
            for row in 0..SIDE {
                squares[row] += errors[row * d + k] * errors[row * d + k];
            }
        }
        for (residual, square) in residuals.iter_mut().zip(squares) {
            *residual = ((square.sqrt() * (1.0 + 1e-9)) as f32).next_up();
        }
    }
}
wide!(code, code_body, (values: &[f32], d: usize, codes: &mut [i8], scales: &mut [f32], residuals: &mut [f32]));

/// `round_ties_even` of a number far below 2^51, without calling the system's math library.
#[inline]
fn nearest(x: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52: larger numbers have no fractional part
    (x + SHIFT) - SHIFT
}

fn check_dim(d: usize) -> Result<()> {
    if d > MAX_DIM {
        return Err(Error::input(format!("byte codes serve at most {MAX_DIM} dimensions, not {d}")));
    }
    Ok(())
}

/// [`Quantised`] in borrowed arrays.
#[derive(Debug, Clone, Copy)]
pub struct QuantisedView<'a> {
    pub codes: &'a [i8],
    pub scale: &'a [f32],
    pub residual: &'a [f32],
}

/// A quantised query, with the terms that the bounds of each row need.
#[derive(Debug, Clone, Copy)]
pub struct CodedQuery {
    scale: f64,
    length: f64,
    /// Upper bound of the lengths of the rows.
    norm: f64,
    /// The part of the error that does not depend on the row.
    fixed: f64,
    /// Length of the quantisation error of the query.
    residual: f64,
}

impl<'a> QuantisedView<'a> {
    /// Checks the shapes, and that scales and residuals are finite and not negative.
    pub fn new(codes: &'a [i8], scale: &'a [f32], residual: &'a [f32], d: usize) -> Result<Self> {
        check_dim(d)?;
        if scale.len() != residual.len() || scale.len().checked_mul(d) != Some(codes.len()) {
            return Err(Error::input(format!(
                "{} codes, {} scales and {} residuals do not make rows of {d}",
                codes.len(),
                scale.len(),
                residual.len()
            )));
        }
        if scale.iter().chain(residual).any(|x| !x.is_finite() || *x < 0.0) {
            return Err(Error::input("scales and residuals must be finite and not negative"));
        }
        if codes.contains(&i8::MIN) {
            return Err(Error::input("codes lie between -127 and 127"));
        }
        Ok(Self { codes, scale, residual })
    }

    /// For stored codes that were checked before they were written. Only the shapes are checked.
    pub fn stored(codes: &'a [i8], scale: &'a [f32], residual: &'a [f32], d: usize) -> Result<Self> {
        check_dim(d)?;
        if scale.len() != residual.len() || scale.len().checked_mul(d) != Some(codes.len()) {
            return Err(Error::input("codes, scales and residuals do not make rows"));
        }
        Ok(Self { codes, scale, residual })
    }

    /// Return a bound on the lengths of the original vectors, computed from the codes.
    pub fn norm_bound(&self, d: usize) -> f64 {
        let rows = self.codes.chunks_exact(d.max(1)).zip(self.scale.iter().zip(self.residual));
        let length = |(codes, (&scale, &residual)): (&[i8], (&f32, &f32))| {
            // At most 2^16 squares of at most 2^14 fit 32 bits.
            let squares: u32 = codes.iter().map(|&c| u32::from(c.unsigned_abs()).pow(2)).sum();
            f64::from(scale) * f64::from(squares).sqrt() + f64::from(residual)
        };
        rows.map(length).fold(0.0, f64::max) * (1.0 + 1e-9)
    }

    pub fn matches(&self, vectors: &Vectors) -> Result<()> {
        check_dim(vectors.dim())?;
        if self.scale.len() != vectors.len()
            || self.residual.len() != vectors.len()
            || self.codes.len() != vectors.len() * vectors.dim()
        {
            return Err(Error::input("the byte codes belong to other vectors: their shapes differ"));
        }
        Ok(())
    }

    /// Quantise a query of length `length` to at most 16 bits, so that no sum of products overflows.
    pub fn code_query(&self, query: &[f32], length: f64, norm: f64, codes: &mut Query) -> CodedQuery {
        let amplitude = bytes::amplitude(query.len());
        let largest = query.iter().fold(0f64, |m, x| m.max(f64::from(x.abs())));
        let scale = largest / amplitude;
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        codes.clear();
        let mut square = 0f64;
        for &x in query {
            let code = (f64::from(x) * inverse).round_ties_even().clamp(-amplitude, amplitude);
            let error = f64::from(x) - scale * code;
            square += error * error;
            codes.push(code as i16);
        }
        let residual = square.sqrt() * (1.0 + 1e-9);
        // Rounding of the reference sum itself and of the few f64 operations of `bounds`.
        let slack = (query.len() as f64 * 2.3e-16 + 1e-12) * norm * length;
        CodedQuery { scale, length, norm, fixed: norm * residual + slack, residual }
    }

    pub fn dots(&self, level: Level, query: &Query, rows: Range<usize>, out: &mut [i32]) {
        let d = query.len();
        bytes::dots(level, query, &self.codes[rows.start * d..rows.end * d], out);
    }

    /// Return (score, error) of a row: with q = q' + e_q and x = x' + e_x, where x' and q' are the decoded
    /// values, `x.q = x'.q' + x'.e_q + e_x.q` and `|x'| <= |x| + |e_x|`; Cauchy-Schwarz gives the bound.
    #[inline]
    pub fn bounds(&self, query: &CodedQuery, id: usize, product: i32) -> (f64, f64) {
        let score = f64::from(self.scale[id]) * query.scale * f64::from(product);
        let residual = f64::from(self.residual[id]);
        (score, query.fixed + residual * (query.residual + query.length) * (1.0 + 1e-9))
    }
}

impl QuantisedView<'_> {
    /// Push rows to `best` with their bounds.
    pub fn push(
        &self,
        query: &CodedQuery,
        rows: Range<usize>,
        products: &[i32],
        filter: Filter<'_>,
        best: &mut Best,
        exact: impl Fn(u32) -> f64,
    ) {
        // The upper bounds again in f32, to skip sixteen rows at once. Their rounding is a few units of 2^-24
        // of |x'||q'| and the error, each at most 2.1 |x||q|: `slack` is more. Outside of f32's safe range
        // every row is examined.
        let size = query.norm * query.length;
        let slack = if (1e-25..1e25).contains(&size) { 4e-6 * size } else { f64::INFINITY };
        let (factor, fixed) = (query.scale as f32, query.fixed as f32);
        let spread = (query.residual + query.length) as f32;
        for start in rows.clone().step_by(16) {
            let end = (start + 16).min(rows.end);
            let floor = (best.floor() - slack) as f32;
            let (scale, residual) = (&self.scale[start..end], &self.residual[start..end]);
            let any =
                scale.iter().zip(residual).zip(&products[start..end]).fold(false, |any, ((s, r), &p)| {
                    let upper = s * (factor * p as f32) + (fixed + r * spread);
                    any | (upper >= floor) | upper.is_nan()
                });
            if !any {
                continue;
            }
            let rows = (start..).zip(&products[start..end]);
            for (id, &product) in rows.filter(|row| filter.leaves(row.0)) {
                let (score, error) = self.bounds(query, id, product);
                best.push(id as u32, score - error, score + error, &exact);
            }
        }
    }
}

/// Return the largest |reference score - score by codes| relative to its bound, for tests: at most 1.
#[cfg(test)]
pub fn worst_error(vectors: &Vectors, quantised: &QuantisedView, query: &[f32]) -> f64 {
    let mut codes = Query::default();
    let length = reference_dot(query, query).sqrt();
    let coded = quantised.code_query(query, length, vectors.norm(), &mut codes);
    let mut worst = 0f64;
    for id in 0..vectors.len() {
        let mut product = [0];
        quantised.dots(Level::Portable, &codes, id..id + 1, &mut product);
        let (score, error) = quantised.bounds(&coded, id, product[0]);
        worst = worst.max((vectors.score(id as u32, query) - score).abs() / error);
    }
    worst
}
