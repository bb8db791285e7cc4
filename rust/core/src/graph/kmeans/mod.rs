//! k-means clustering with results that are identical to the last bit on every machine and any number of
//! threads.
//!
//! Centres are seeded by k-means++ (Arthur and Vassilvitskii 2007) with ChaCha8 and moved by Lloyd's
//! iterations. The squared distance in f64, added in the order of the dimensions, decides; products in f32
//! only exclude centres that cannot be nearest ([`nearest`]).

use crate::error::{Error, Result};
use crate::graph::cosine_knn::floats::{pack, product, PANEL, ROWS};
use crate::memory::{filled, room};
use crate::parallel::{map_ranges, map_ranges_with};
use crate::progress::Progress;
use crate::rank::select::{below, stage_rng};
use crate::sparse::{rank_order, Scored};
use crate::vector::simd::{dot_error, dots, dots_chain, Level};
use crate::vector::{reference_dot, Vectors};
use rand_chacha::rand_core::Rng;
use std::ops::Range;

/// The result of k-means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clusters {
    /// The nearest centre of each vector; the first if several are equally near.
    pub labels: Vec<u32>,
    /// f64[centres, d].
    pub centres: Vec<f64>,
}

/// Cluster `vectors` around `centres` centres, or one per vector if there are fewer vectors. A centre is the
/// mean of its vectors, added in the order of their ids. A centre without vectors moves to the vector that is
/// farthest from its centre, the first if several are equally far. Each such centre moves to a different
/// vector.
pub fn kmeans(
    vectors: &Vectors<'_>,
    centres: usize,
    settings: &Settings,
    progress: &Progress,
) -> Result<Clusters> {
    let n = vectors.len();
    if n == 0 {
        return Ok(Clusters::default());
    }
    if centres == 0 {
        return Err(Error::input(format!("no centres for {n} vectors: there must be at least one")));
    }
    let settings = &Settings { level: settings.level.usable(), ..*settings };
    let k = centres.min(n);
    let steps = u64::from(settings.iterations) + 1;
    progress.expect((n as u64).saturating_mul(steps).saturating_add(k as u64));
    let nearest = Nearest::new(vectors, settings)?;
    let mut centres = seeds(&nearest, k, progress)?;
    for _ in 0..settings.iterations {
        let labels = nearest.labels(&centres, progress)?;
        let moved = means(vectors, &labels, &centres, settings, progress)?;
        let still = moved.iter().zip(&centres).all(|(a, b)| a.to_bits() == b.to_bits());
        if still {
            return Ok(Clusters { labels, centres });
        }
        centres = moved;
    }
    let labels = nearest.labels(&centres, progress)?;
    Ok(Clusters { labels, centres })
}

/// Return the centres of the next iteration.
fn means(
    vectors: &Vectors<'_>,
    labels: &[u32],
    before: &[f64],
    settings: &Settings,
    progress: &Progress,
) -> Result<Vec<f64>> {
    let (n, d) = (vectors.len(), vectors.dim());
    let k = before.len() / d;
    // The ids of each centre's vectors, ascending.
    let mut ends = vec![0usize; k + 1];
    labels.iter().for_each(|&label| ends[label as usize + 1] += 1);
    (0..k).for_each(|c| ends[c + 1] += ends[c]);
    let mut next = ends.clone();
    let mut ids: Vec<u32> = crate::memory::zeros(n, WHAT)?;
    for (id, &label) in labels.iter().enumerate() {
        ids[next[label as usize]] = id as u32;
        next[label as usize] += 1;
    }
    let grain = (VALUES / d).max(1) * k / n;
    let watched = Progress::none();
    let parts = map_ranges(k, grain, settings.threads, &watched, |range| {
        let mut part = room(range.len() * d, WHAT)?;
        for centre in range {
            progress.check()?;
            let members = &ids[ends[centre]..ends[centre + 1]];
            let mut sum = vec![0.0f64; d];
            for &id in members {
                sum.iter_mut().zip(vectors.row(id as usize)).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            part.extend(sum.iter().map(|sum| sum / members.len().max(1) as f64));
        }
        Ok(part)
    })?;
    let mut centres = parts.concat();
    let empty: Vec<usize> = (0..k).filter(|&c| ends[c] == ends[c + 1]).collect();
    if !empty.is_empty() {
        let own = |id: usize| &before[labels[id] as usize * d..][..d];
        let mut far: Vec<Scored> =
            (0..n).map(|id| Scored { id: id as u32, score: distance(vectors.row(id), own(id)) }).collect();
        far.sort_unstable_by(rank_order);
        for (centre, far) in empty.into_iter().zip(far) {
            let row = vectors.row(far.id as usize).iter().map(|&x| f64::from(x));
            centres[centre * d..][..d].iter_mut().zip(row).for_each(|(c, x)| *c = x);
        }
    }
    Ok(centres)
}

// Settings of k-means, and the exact distance that decides.

/// Purpose of the allocations, for error messages.
pub(super) const WHAT: &str = "k-means";

/// Number of values that one thread sums at a time. For fewer values no further thread is started.
pub(super) const VALUES: usize = 1 << 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub seed: u64,
    /// Maximum number of Lloyd's iterations; it stops earlier when no centre moves.
    pub iterations: u32,
    pub threads: usize,
    pub level: Level,
}

/// Return the exact squared distance: differences exact in f64, their squares added in order.
pub(super) fn distance(vector: &[f32], centre: &[f64]) -> f64 {
    vector.iter().zip(centre).fold(0.0, |sum, (&x, &c)| sum + (f64::from(x) - c) * (f64::from(x) - c))
}

// Initial centres by k-means++.

/// Return `k` vectors as initial centres, of at least `k` vectors. The first is drawn uniformly, each next
/// one with a probability proportional to its squared distance from the nearest centre so far. If all others
/// coincide with centres, the first that is not a centre yet is used.
pub fn seeds(nearest: &Nearest<'_>, k: usize, progress: &Progress) -> Result<Vec<f64>> {
    let (n, d) = (nearest.vectors.len(), nearest.vectors.dim());
    let mut random = stage_rng(nearest.settings.seed, "kmeans");
    let mut least: Vec<f64> = filled(f64::INFINITY, n, WHAT)?;
    let mut taken = vec![false; n];
    let mut centres: Vec<f64> = room(k.saturating_mul(d), WHAT)?;
    let mut id = below(&mut random, n as u64) as usize;
    loop {
        taken[id] = true;
        centres.extend(nearest.vectors.row(id).iter().map(|&x| f64::from(x)));
        progress.advance(1);
        if centres.len() == k * d {
            return Ok(centres);
        }
        nearest.lower(id, &mut least, progress)?;
        let total: f64 = least.iter().sum();
        id = if total > 0.0 {
            // 53 random bits, in [0, 1).
            let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            at(&least, share * total)
        } else {
            taken.iter().position(|&taken| !taken).unwrap_or(0)
        };
    }
}

/// Return the first index at which the running sum exceeds `target`. If rounding prevents that, return the
/// last index that adds to the sum.
fn at(least: &[f64], target: f64) -> usize {
    let mut sum = 0.0;
    let found = least.iter().position(|value| {
        sum += value;
        sum > target
    });
    found.or_else(|| least.iter().rposition(|&value| value > 0.0)).unwrap_or(0)
}

// The nearest centre of each vector.

/// Number of rows that stay in the cache while all centres are processed.
const BAND: usize = 16 * ROWS;
/// If products of lengths exceed this limit, they may overflow in f32, so every distance is computed in full.
const MOST: f64 = 1e37;
/// Twice the rounding error of a term of a sum in f64.
const ROUNDOFF: f64 = 2.3e-16;

pub struct Nearest<'a> {
    pub vectors: &'a Vectors<'a>,
    pub settings: &'a Settings,
    lengths: Vec<f64>,
}

/// Centres in the layout of the fast products.
struct Table {
    panels: Vec<f32>,
    /// Half the squared length of each centre.
    halves: Vec<f64>,
    longest: f64,
}

impl<'a> Nearest<'a> {
    pub fn new(vectors: &'a Vectors<'a>, settings: &'a Settings) -> Result<Self> {
        let mut lengths = room(vectors.len(), WHAT)?;
        lengths.extend((0..vectors.len()).map(|i| reference_dot(vectors.row(i), vectors.row(i)).sqrt()));
        Ok(Self { vectors, settings, lengths })
    }

    /// Return the number of threads for `work` products of values. Small workloads start no further thread.
    fn threads(&self, work: usize) -> usize {
        if work < VALUES {
            1
        } else {
            self.settings.threads
        }
    }

    /// Return the nearest of `centres` for each vector, the first if several are equally near.
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
                // If fewer rows are left, the last one is multiplied repeatedly.
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

    /// Return the nearest centre of one vector, given its approximate products with all centres. If `half -
    /// dot` of a centre exceeds the least value by more than both errors, the centre is certainly farther.
    fn choose(&self, row: usize, dots: &[f32], table: &Table, centres: &[f64]) -> u32 {
        let (vector, length, d) = (self.vectors.row(row), self.lengths[row], self.vectors.dim());
        let key = |c: usize| table.halves[c] - f64::from(dots[c]);
        let least = (0..table.halves.len()).map(key).fold(f64::INFINITY, f64::min);
        let norms = length * table.longest;
        // Error of the product, of the f32 centres, and of the f64 sums.
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

    /// Update `least`, the squared distance of each vector to its nearest centre, with a new centre, the
    /// vector `id`. Distances that cannot become smaller are not computed.
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
