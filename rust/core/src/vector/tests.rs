use super::quantised::{worst_error, Quantised};
use super::simd::Level;
use super::*;
use crate::progress::Progress;
use proptest::prelude::*;

/// Return rows with exact copies, near-copies (1e-7 apart), zero rows and rows far from unit length.
pub(crate) fn awkward(seed: &[f32], n: usize, d: usize) -> Vec<f32> {
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

proptest! {
    #[test]
    fn codes_stay_within_their_bounds(seed in prop::collection::vec(-1f32..1.0, 97), d in 1usize..40) {
        let values = awkward(&seed, 60, d);
        let vectors = Vectors::new(&values, d).unwrap();
        let codes = Quantised::build(&vectors, 1, &Progress::none()).unwrap();
        prop_assert!(worst_error(&vectors, &codes.view(), &seed[..d]) <= 1.0);
    }
}

#[test]
fn a_million_ties_need_little_memory() {
    let values = vec![0.5f32; 200_000];
    let vectors = Vectors::new(&values, 1).unwrap();
    let mut scratch = Scratch::default();
    let found = top_k(&vectors, None, &[1.0], 3, Filter::All, Level::best(), &mut scratch).unwrap();
    assert_eq!(found.iter().map(|s| s.id).collect::<Vec<_>>(), [0, 1, 2]);
}
