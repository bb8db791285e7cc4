//! Values for tests.

use crate::vector::normalise;

/// Return rows with exact copies, near-copies (1e-7 apart), zero rows and rows far from unit length.
pub fn awkward(seed: &[f32], n: usize, d: usize) -> Vec<f32> {
    let mut values: Vec<f32> = (0..n * d).map(|i| seed[(i * 31 + i / d) % seed.len()]).collect();
    for i in 1..n {
        let (before, row) = values.split_at_mut(i * d);
        let twin = &before[(i / 2) * d..(i / 2 + 1) * d];
        match i % 6 {
            0 | 1 => row[..d].copy_from_slice(twin),
            2 => {
                row[..d].copy_from_slice(twin);
                row[0] += 1e-7;
            }
            3 => row[..d].fill(0.0),
            4 => row[..d].iter_mut().for_each(|x| *x *= 30.0),
            _ => normalise(&mut row[..d]),
        }
    }
    values
}
