//! What k-means is told, and the distance that decides.

use crate::vector::simd::Level;

/// What memory is asked for, in errors.
pub(super) const WHAT: &str = "k-means";

/// Values that one thread adds up at a time, and less than which no other thread is started for.
pub(super) const VALUES: usize = 1 << 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub seed: u64,
    /// Lloyd's iterations at most; centres that no longer move stay where they are.
    pub iterations: u32,
    pub threads: usize,
    pub level: Level,
}

/// The squared distance that decides: differences exact in f64, their squares added in order.
pub(super) fn distance(vector: &[f32], centre: &[f64]) -> f64 {
    vector.iter().zip(centre).fold(0.0, |sum, (&x, &c)| sum + (f64::from(x) - c) * (f64::from(x) - c))
}
