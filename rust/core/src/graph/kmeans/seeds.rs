//! Initial centres by k-means++.

use super::nearest::Nearest;
use super::settings::WHAT;
use crate::error::Result;
use crate::memory::{filled, room};
use crate::progress::Progress;
use crate::rank::select::{below, stage_rng};
use rand_chacha::rand_core::Rng;

/// Return `k` vectors (of at least as many) as centres: the first drawn uniformly, each next one with a
/// probability proportional to its squared distance from the nearest centre so far. If all others coincide
/// with centres, the first that is not one yet is used.
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

/// Return the first index at which the running sum exceeds `target`, or, if rounding prevents that, the last
/// that adds to it.
fn at(least: &[f64], target: f64) -> usize {
    let mut sum = 0.0;
    let found = least.iter().position(|value| {
        sum += value;
        sum > target
    });
    found.or_else(|| least.iter().rposition(|&value| value > 0.0)).unwrap_or(0)
}
