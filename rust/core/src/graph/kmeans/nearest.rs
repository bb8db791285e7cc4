//! The nearest centre of each vector.

use super::settings::{distance, Settings, VALUES, WHAT};
use crate::error::Result;
use crate::graph::cosine_knn::floats::{pack, product, PANEL, ROWS};
use crate::memory::room;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::vector::simd::{dot_error, dots, dots_chain};
use crate::vector::{reference_dot, Vectors};
use std::ops::Range;

/// Rows that stay in the cache while all centres pass.
const BAND: usize = 16 * ROWS;
/// If products of lengths exceed this, they may overflow in f32; then every distance is computed in full.
const MOST: f64 = 1e37;
/// Twice the rounding error of each term of a sum in f64.
const ROUNDOFF: f64 = 2.3e-16;

pub struct Nearest<'a> {
    pub vectors: &'a Vectors<'a>,
    pub settings: &'a Settings,
    lengths: Vec<f64>,
}

/// Centres in the layout of the fast products.
struct Table {
    panels: Vec<f32>,
    /// Half of the squared length of each centre.
    halves: Vec<f64>,
    longest: f64,
}

impl<'a> Nearest<'a> {
    pub fn new(vectors: &'a Vectors<'a>, settings: &'a Settings) -> Result<Self> {
        let mut lengths = room(vectors.len(), WHAT)?;
        lengths.extend((0..vectors.len()).map(|i| reference_dot(vectors.row(i), vectors.row(i)).sqrt()));
        Ok(Self { vectors, settings, lengths })
    }

    /// Return the number of threads for `work` products of values: small work starts no further thread.
    fn threads(&self, work: usize) -> usize {
        if work < VALUES {
            1
        } else {
            self.settings.threads
        }
    }

    /// Return the nearest of `centres` to each vector; the first among equally near ones.
    pub fn labels(&self, centres: &[f64], progress: &Progress) -> Result<Vec<u32>> {
        let (n, d) = (self.vectors.len(), self.vectors.dim());
        let single: Vec<f32> = centres.iter().map(|&c| c as f32).collect();
        let mut table = Table { panels: Vec::new(), halves: Vec::new(), longest: 0.0 };
        pack(&single, d, &mut table.panels);
        for centre in centres.chunks_exact(d) {
            let square: f64 = centre.iter().map(|c| c * c).sum();
            table.halves.push(square / 2.0);
            table.longest = table.longest.max(square.sqrt());
        }
        let threads = self.threads(n.saturating_mul(centres.len()));
        let parts = map_ranges_with(n, BAND, threads, progress, Vec::new, |keys, band| {
            Ok(self.band(band, &table, centres, keys))
        })?;
        let mut labels = room(n, WHAT)?;
        parts.iter().for_each(|part| labels.extend_from_slice(part));
        Ok(labels)
    }

    fn band(&self, band: Range<usize>, table: &Table, centres: &[f64], keys: &mut Vec<f32>) -> Vec<u32> {
        let d = self.vectors.dim();
        let panels = table.halves.len().div_ceil(PANEL);
        let width = panels * PANEL;
        keys.resize(band.len() * width, 0.0);
        for (p, panel) in table.panels.chunks_exact(PANEL * d).enumerate() {
            for first in band.clone().step_by(ROWS) {
                // Fewer rows are left: the last is multiplied again.
                let row = |r: usize| self.vectors.row((first + r).min(band.end - 1));
                let mut out = [[0f32; PANEL]; ROWS];
                product(self.settings.level, std::array::from_fn(row), panel, d, &mut out);
                for (row, out) in (first..band.end).zip(&out) {
                    keys[(row - band.start) * width + p * PANEL..][..PANEL].copy_from_slice(out);
                }
            }
        }
        band.zip(keys.chunks_exact(width)).map(|(row, dots)| self.choose(row, dots, table, centres)).collect()
    }

    /// Return the nearest centre of one vector, given its approximate products with all centres: if `half -
    /// dot` exceeds the least one by more than both errors, a centre is farther.
    fn choose(&self, row: usize, dots: &[f32], table: &Table, centres: &[f64]) -> u32 {
        let (vector, length, d) = (self.vectors.row(row), self.lengths[row], self.vectors.dim());
        let key = |c: usize| table.halves[c] - f64::from(dots[c]);
        let least = (0..table.halves.len()).map(key).fold(f64::INFINITY, f64::min);
        let norms = length * table.longest;
        // Error of the product, of the centres in f32, and of the sums in f64.
        let error = dot_error(d, norms * (1.0 + 1e-6), d + 2)
            + norms * 6e-8
            + (d as f64 + 8.0) * (ROUNDOFF * (length + table.longest).powi(2) + length.max(1.0) * 3e-45);
        let limit = if norms > MOST || table.longest > MOST { f64::INFINITY } else { least + 2.0 * error };
        let mut can = (0..table.halves.len()).filter(|&c| key(c) <= limit || limit == f64::INFINITY);
        let first = can.next().unwrap_or(0);
        let mut best: Option<(usize, f64)> = None;
        for c in can {
            let measured = |c: usize| distance(vector, &centres[c * d..][..d]);
            let (_, near) = *best.get_or_insert_with(|| (first, measured(first)));
            let found = measured(c);
            if found < near {
                best = Some((c, found));
            }
        }
        best.map_or(first, |best| best.0) as u32
    }

    /// Lower `least`, the squared distance of each vector to its nearest centre, by a new centre: the vector
    /// `id`. Distances that cannot become smaller are not computed.
    pub fn lower(&self, id: usize, least: &mut [f64], progress: &Progress) -> Result<()> {
        let (d, query) = (self.vectors.dim(), self.vectors.row(id));
        let (length, own) = (self.lengths[id], query.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        let grain = (VALUES / d).max(1);
        let threads = self.threads(least.len().saturating_mul(d) / 4);
        let watched = Progress::none();
        crate::parallel::fill_rows(least, 1, grain, threads, &watched, |rows, least| {
            progress.check()?;
            let mut near = vec![0f32; rows.len()];
            dots(self.settings.level, query, self.vectors.rows(rows.clone()), &mut near);
            for ((row, least), &dot) in rows.zip(least).zip(&near) {
                let other = self.lengths[row];
                let norms = length * other;
                let error = 2.0 * dot_error(d, norms, dots_chain(d))
                    + (d as f64 + 8.0) * ROUNDOFF * (length + other).powi(2);
                let about = length * length + other * other - 2.0 * f64::from(dot);
                if about - error <= *least || norms > MOST {
                    *least = least.min(distance(self.vectors.row(row), &own));
                }
            }
            Ok(())
        })
    }
}
