//! Nearest rows of a band of rows, preselected by products in f32.

use super::floats::{pack, product, PANEL, ROWS};
use crate::error::Result;
use crate::progress::Progress;
use crate::sparse::{CsrView, Scored};
use crate::vector::best::Best;
use crate::vector::simd::{dot_error, Level};
use crate::vector::Vectors;

/// Number of values in a packed block of columns: half of a typical L2 cache.
const BLOCK_VALUES: usize = 64 * 1024;
/// State shared by all rows of one call.
pub(super) struct Knn<'a> {
    pub vectors: &'a Vectors<'a>,
    pub exclude: Option<CsrView<'a>>,
    pub k: usize,
    pub level: Level,
    pub progress: &'a Progress,
}

impl Knn<'_> {
    pub fn band(
        &self,
        rows: std::ops::Range<usize>,
        panels: &mut Vec<f32>,
        best: &mut Vec<Best>,
    ) -> Result<Vec<Vec<Scored>>> {
        let (n, d) = (self.vectors.len(), self.vectors.dim());
        let zero: Vec<bool> = rows.clone().map(|i| self.vectors.row(i).iter().all(|&x| x == 0.0)).collect();
        best.resize_with(rows.len().max(best.len()), Best::default);
        best[..rows.len()].iter_mut().for_each(|b| b.reset(self.k));
        let block = (BLOCK_VALUES / d / PANEL).max(1) * PANEL;
        for start in (0..n).step_by(block) {
            pack(self.vectors.rows(start..(start + block).min(n)), d, panels);
            for first in rows.clone().step_by(ROWS) {
                self.progress.check()?;
                self.tile(first..(first + ROWS).min(rows.end), &rows, start, panels, best, &zero);
            }
        }
        Ok(rows
            .clone()
            .map(|i| {
                if zero[i - rows.start] {
                    return self.first_ids(i);
                }
                best[i - rows.start].finish(|j| self.score(i, j))
            })
            .collect())
    }

    /// Score the rows `tile` against every packed panel; `start` is the first packed column.
    fn tile(
        &self,
        tile: std::ops::Range<usize>,
        band: &std::ops::Range<usize>,
        start: usize,
        panels: &[f32],
        best: &mut [Best],
        zero: &[bool],
    ) {
        let (n, d) = (self.vectors.len(), self.vectors.dim());
        // A short tile repeats its last row. The results of the repeats are not read.
        let own: [&[f32]; ROWS] =
            std::array::from_fn(|r| self.vectors.row((tile.start + r).min(tile.end - 1)));
        let error = dot_error(d, self.vectors.norm() * self.vectors.norm(), d);
        let mut out = [[0f32; PANEL]; ROWS];
        for (p, panel) in panels.chunks_exact(d * PANEL).enumerate() {
            product(self.level, own, panel, d, &mut out);
            let from = start + p * PANEL;
            for (i, scores) in tile.clone().zip(&out) {
                let best = &mut best[i - band.start];
                let floor = (best.floor() - error) as f32;
                // NaN, which overflowing products give, must pass.
                let any = scores.iter().fold(false, |any, &s| any | (s >= floor) | s.is_nan());
                if !any || zero[i - band.start] {
                    continue;
                }
                for (j, &score) in (from..n.min(from + PANEL)).zip(scores) {
                    if score < floor || self.left_out(i, j) {
                        continue;
                    }
                    let (lower, upper) = match f64::from(score) {
                        s if s.is_finite() => (s - error, s + error),
                        _ => (f64::NEG_INFINITY, f64::INFINITY),
                    };
                    best.push(j as u32, lower, upper, |j| self.score(i, j));
                }
            }
        }
    }

    pub fn score(&self, i: usize, j: u32) -> f64 {
        self.vectors.score(j, self.vectors.row(i))
    }

    pub fn left_out(&self, i: usize, j: usize) -> bool {
        i == j || self.exclude.is_some_and(|e| e.row(i).binary_search(&(j as u32)).is_ok())
    }

    /// Return the neighbours of a zero row, which scores 0 with every other row: the lowest ids.
    pub fn first_ids(&self, i: usize) -> Vec<Scored> {
        (0..self.vectors.len())
            .filter(|&j| !self.left_out(i, j))
            .take(self.k)
            .map(|j| Scored { id: j as u32, score: 0.0 })
            .collect()
    }
}
