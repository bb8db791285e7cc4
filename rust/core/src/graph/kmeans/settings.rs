//! Settings of k-means, and the distance that decides.

use crate::vector::simd::Level;

/// Purpose of the allocations, for error messages.
pub(super) const WHAT: &str = "k-means";

/// Values that one thread sums at a time; for fewer no further thread is started.
pub(super) const VALUES: usize = 1 << 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub seed: u64,
    /// Maximum number of Lloyd's iterations; it stops earlier when no centre moves.
    pub iterations: u32,
    pub threads: usize,
    pub level: Level,
}

/// Return the squared distance that decides: differences exact in f64, their squares added in order.
pub(super) fn distance(vector: &[f32], centre: &[f64]) -> f64 {
    vector.iter().zip(centre).fold(0.0, |sum, (&x, &c)| sum + (f64::from(x) - c) * (f64::from(x) - c))
}
