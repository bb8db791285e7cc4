//! Selection of core chunks: the best by rank, or a seeded random sample.

use crate::error::{Error, Result};
use crate::memory::room;
use crate::sparse::{quantise, rank_order, Scored};
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Return the number of core chunks, `min(n, ceil(ratio * n - 1e-9))`. The small term compensates for
/// rounding, so that 0.29 of 100 is 29.
pub fn core_count(n: usize, ratio: f64) -> Result<usize> {
    if !(0.0..=1.0).contains(&ratio) {
        return Err(Error::input(format!("the core ratio must be between 0 and 1, not {ratio}")));
    }
    let count = (ratio * n as f64 - 1e-9).ceil().max(0.0);
    Ok((count as usize).min(n))
}

/// Return the first `count` ids by (score rounded to 1e-12, descending; id ascending), in that order.
pub fn select_ranked(scores: &[f64], count: usize) -> Result<Vec<u32>> {
    id_range(scores.len())?;
    if let Some(i) = scores.iter().position(|s| s.is_nan()) {
        return Err(Error::input(format!("score {i} is not a number")));
    }
    let mut items: Vec<Scored> =
        scores.iter().zip(0u32..).map(|(&s, id)| Scored { id, score: quantise(s) }).collect();
    let count = count.min(items.len());
    if count == 0 {
        return Ok(Vec::new());
    }
    if count < items.len() {
        items.select_nth_unstable_by(count - 1, rank_order);
        items.truncate(count);
    }
    items.sort_unstable_by(rank_order);
    Ok(items.into_iter().map(|s| s.id).collect())
}

/// Return the first `count` ids of a shuffle of `0..n` that depends only on `seed` and `stage`.
pub fn select_uniform(n: usize, count: usize, seed: u64, stage: &str) -> Result<Vec<u32>> {
    id_range(n)?;
    let mut ids: Vec<u32> = room(n, "the draw")?;
    ids.extend(0..n as u32);
    let mut random = stage_rng(seed, stage);
    for i in (1..n).rev() {
        ids.swap(i, below(&mut random, i as u64 + 1) as usize);
    }
    ids.truncate(count);
    Ok(ids)
}

/// Return the generator of one stage: ChaCha8 whose key is the seed (little-endian, then zeros) and whose
/// stream is the 64-bit FNV-1a hash of the stage's name.
pub fn stage_rng(seed: u64, stage: &str) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let stream = stage.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(stream);
    random
}

/// Return an unbiased random number in `0..bound`. Draws from the incomplete last block are repeated.
pub(crate) fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    let excess = (u64::MAX % bound + 1) % bound;
    loop {
        let draw = random.next_u64();
        if draw <= u64::MAX - excess {
            return draw % bound;
        }
    }
}

fn id_range(n: usize) -> Result<()> {
    match u32::try_from(n) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::input(format!("{n} items: ids have 32 bits"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins the generator: every version and `tests/oracles/select.py` must give the same draw.
    #[test]
    fn the_draw_is_pinned() {
        let mut random = stage_rng(42, "core");
        let first = [random.next_u64(), random.next_u64()];
        assert_eq!(first, PINNED_WORDS);
        assert_eq!(select_uniform(10, 10, 42, "core"), Ok(PINNED_ORDER.to_vec()));
    }
    const PINNED_WORDS: [u64; 2] = [5490848319237149390, 5523466285386976263];
    const PINNED_ORDER: [u32; 10] = [7, 4, 5, 2, 3, 1, 8, 9, 6, 0];
}
