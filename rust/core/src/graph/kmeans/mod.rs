//! k-means clustering with results that are identical to the last bit on every machine and any number of
//! threads.
//!
//! Centres are seeded by k-means++ (Arthur and Vassilvitskii 2007) with ChaCha8 and moved by Lloyd's
//! iterations. The squared distance in f64, added in the order of the dimensions, decides; products in f32
//! only exclude centres that cannot be nearest ([`nearest`]).

mod nearest;
mod seeds;
mod settings;

use crate::error::{Error, Result};
use crate::memory::room;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::{rank_order, Scored};
use crate::vector::Vectors;
use nearest::Nearest;
pub use settings::Settings;
use settings::{distance, VALUES, WHAT};

/// The result of k-means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clusters {
    /// The nearest centre of each vector; the first among equally near ones.
    pub labels: Vec<u32>,
    /// f64[centres, d].
    pub centres: Vec<f64>,
}

/// Cluster `vectors` around `centres` centres, or one per vector if there are fewer. A centre is the mean of
/// its vectors, added in the order of their ids; a centre without vectors moves to the vector that is
/// farthest from its centre (the first among equally far ones; each such centre to a different vector).
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
    let mut centres = seeds::seeds(&nearest, k, progress)?;
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
    // The ids by centre, ascending within each.
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

#[cfg(test)]
mod tests;
