use super::quantised::{worst_error, Quantised, QuantisedView};
use super::simd::Level;
use super::*;
use crate::progress::Progress;
use crate::sparse::Scored;
use proptest::prelude::*;

fn plain(vectors: &Vectors, query: &[f32], k: usize, keep: impl Fn(usize) -> bool) -> Vec<Scored> {
    let all = (0..vectors.len())
        .filter(|&id| keep(id))
        .map(|id| Scored { id: id as u32, score: vectors.score(id as u32, query) })
        .collect();
    crate::sparse::top_k(all, k)
}

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
    fn equals_the_plain_order_by_every_path(
        seed in prop::collection::vec(-1f32..1.0, 97), n in 0usize..400, d in 1usize..40, k in 0usize..30,
        bits in prop::collection::vec(any::<u64>(), 7),
    ) {
        let values = awkward(&seed, n, d);
        let vectors = Vectors::new(&values, d).unwrap();
        let codes = Quantised::build(&vectors, 2, &Progress::none()).unwrap();
        let codes = QuantisedView::new(&codes.codes, &codes.scale, &codes.residual, d).unwrap();
        let ids: Vec<u32> = (0..n as u32).filter(|i| bits[6] >> (i % 64) & 1 == 1).collect();
        let query = &seed[..d];
        let mut scratch = Scratch::default();
        for level in Level::all() {
            for quantised in [None, Some(&codes)] {
                let mut ask = |filter| top_k(&vectors, quantised, query, k, filter, level, &mut scratch).unwrap();
                prop_assert_eq!(ask(Filter::All), plain(&vectors, query, k, |_| true));
                prop_assert_eq!(ask(Filter::Ids(&ids)), plain(&vectors, query, k, |i| ids.contains(&(i as u32))));
                prop_assert_eq!(ask(Filter::Bits(&bits)), plain(&vectors, query, k, |i| bits[i / 64] >> (i % 64) & 1 == 1));
            }
        }
    }

    #[test]
    fn codes_stay_within_their_bounds(seed in prop::collection::vec(-1f32..1.0, 97), d in 1usize..40) {
        let values = awkward(&seed, 60, d);
        let vectors = Vectors::new(&values, d).unwrap();
        let codes = Quantised::build(&vectors, 1, &Progress::none()).unwrap();
        prop_assert!(worst_error(&vectors, &codes.view(), &seed[..d]) <= 1.0);
    }

    #[test]
    fn threads_change_nothing(seed in prop::collection::vec(-1f32..1.0, 97), n in 0usize..50) {
        let values = awkward(&seed, n, 5);
        let vectors = Vectors::new(&values, 5).unwrap();
        let ask = |threads| top_k_many(&vectors, None, &seed[..45], 7, Filter::All, (Level::best(), threads), &Progress::none());
        prop_assert_eq!(ask(1).unwrap(), ask(3).unwrap());
    }
}

#[test]
fn bad_input_is_refused_and_extremes_are_survived() {
    assert!(Vectors::new(&[1.0], 0).is_err());
    assert!(Vectors::new(&[1.0, 2.0, 3.0], 2).is_err());
    assert!(Vectors::new(&[1.0, f32::NAN], 2).is_err());
    assert!(Vectors::new(&[1.0, f32::INFINITY], 2).is_err());
    assert!(Vectors::trusted(&[1.0], 1, f64::NAN).is_err());
    assert!(QuantisedView::new(&[1, 2, 3], &[1.0], &[0.0], 2).is_err());
    assert!(QuantisedView::new(&[1, -128], &[1.0], &[0.0], 2).is_err());
    assert!(QuantisedView::new(&[1, 2], &[f32::NAN], &[0.0], 2).is_err());
    // Products that overflow f32 are still ordered correctly.
    let values = [1e30f32, 1e38, -1e38, 0.0, 3e38, 2e38];
    let vectors = Vectors::new(&values, 1).unwrap();
    let codes = Quantised::build(&vectors, 1, &Progress::none()).unwrap();
    let mut scratch = Scratch::default();
    for quantised in [None, Some(&codes.view())] {
        let mut ask =
            |query: &[f32], filter| top_k(&vectors, quantised, query, 3, filter, Level::best(), &mut scratch);
        let ids = |found: Vec<Scored>| found.iter().map(|s| s.id).collect::<Vec<_>>();
        assert_eq!(ids(ask(&[1e30], Filter::All).unwrap()), [4, 5, 1]);
        assert_eq!(ids(ask(&[0.0], Filter::All).unwrap()), [0, 1, 2]);
        assert_eq!(ids(ask(&[0.0], Filter::Ids(&[2, 5])).unwrap()), [2, 5]);
        assert!(ask(&[f32::NAN], Filter::All).is_err());
        assert!(ask(&[1.0, 1.0], Filter::All).is_err());
        assert!(ask(&[1.0], Filter::Ids(&[3, 3])).is_err());
        assert!(ask(&[1.0], Filter::Ids(&[6])).is_err());
        assert!(ask(&[1.0], Filter::Bits(&[])).is_err());
    }
    let none = Vectors::new(&[], 3).unwrap();
    assert!(none.is_empty());
    assert_eq!(top_k(&none, None, &[1.0; 3], 5, Filter::All, Level::best(), &mut scratch).unwrap(), []);
    assert!(Quantised::default().view().matches(&vectors).is_err());
}

#[test]
fn a_million_ties_need_little_memory() {
    let values = vec![0.5f32; 200_000];
    let vectors = Vectors::new(&values, 1).unwrap();
    let mut scratch = Scratch::default();
    let found = top_k(&vectors, None, &[1.0], 3, Filter::All, Level::best(), &mut scratch).unwrap();
    assert_eq!(found.iter().map(|s| s.id).collect::<Vec<_>>(), [0, 1, 2]);
}
