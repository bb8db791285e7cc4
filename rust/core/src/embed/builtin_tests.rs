use super::*;
use crate::sparse::Csr;
use crate::vector::reference_dot;
use proptest::prelude::*;

fn fitted(rows: &[Vec<u32>], words: usize, options: &Options, threads: usize) -> (Basis, Vec<f32>) {
    let counts = Csr::from_rows(rows, words).unwrap();
    let repeats: Vec<u32> = counts.indices.iter().map(|w| 1 + w % 3).collect();
    let none = Progress::none();
    let basis = fit(counts.view(), &repeats, options, threads, &none).unwrap();
    assert_eq!(none.state().0, none.state().1);
    let vectors =
        embed_rows(&basis.values, basis.dims, counts.view(), &repeats, threads, &Progress::none()).unwrap();
    (basis, vectors)
}

fn some_rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let row = prop::collection::btree_set(0u32..40, 0..12).prop_map(|r| r.into_iter().collect());
    prop::collection::vec(row, 0..40)
}

proptest! {
    #[test]
    fn threads_change_nothing_and_vectors_are_unit_or_zero(rows in some_rows(), dims in 1usize..20) {
        let options = Options { dims, ..Options::default() };
        let (basis, vectors) = fitted(&rows, 40, &options, 1);
        prop_assert_eq!(&(basis.clone(), vectors.clone()), &fitted(&rows, 40, &options, 3));
        prop_assert!(basis.dims >= 1 && basis.dims <= dims);
        for (row, vector) in rows.iter().zip(vectors.chunks_exact(basis.dims)) {
            let length = reference_dot(vector, vector).sqrt();
            prop_assert!(length == 0.0 || (length - 1.0).abs() < 1e-6);
            prop_assert!(!row.is_empty() || length == 0.0);
        }
    }

    /// With every direction kept, the space has the same angles as the weighted words themselves.
    #[test]
    fn a_full_space_keeps_the_cosines(rows in some_rows()) {
        let (basis, vectors) = fitted(&rows, 40, &Options { dims: 40, rounds: 6, ..Options::default() }, 1);
        let counts = Csr::from_rows(&rows, 40).unwrap();
        let repeats: Vec<u32> = counts.indices.iter().map(|w| 1 + w % 3).collect();
        let weights = word_weights(counts.view(), 2).unwrap();
        let values = unit_rows(counts.view(), &repeats, &weights).unwrap();
        for i in 0..rows.len() {
            for j in 0..i {
                let plain: f64 = counts.view().range(i).map(|a| {
                    counts.view().range(j)
                        .filter(|&b| counts.indices[a] == counts.indices[b])
                        .map(|b| f64::from(values[a]) * f64::from(values[b])).sum::<f64>()
                }).sum();
                let d = basis.dims;
                let cosine = reference_dot(&vectors[i * d..(i + 1) * d], &vectors[j * d..(j + 1) * d]);
                prop_assert!((plain - cosine).abs() < 0.02, "{} {} {} {}", i, j, plain, cosine);
            }
        }
    }
}

#[test]
fn a_sample_gives_every_word_a_vector() {
    let rows: Vec<Vec<u32>> = (0..60u32).map(|i| vec![i % 5, 5 + i % 3, 8 + i]).collect();
    let (basis, _) = fitted(&rows, 68, &Options { dims: 4, sample: 20, ..Options::default() }, 1);
    assert!(basis.values.chunks_exact(basis.dims).all(|v| v.iter().any(|&x| x != 0.0)));
}

#[test]
fn tiny_corpora() {
    let one = fitted(&[vec![0, 2]], 3, &Options::default(), 2);
    assert_eq!(one.0.dims, 1);
    assert_eq!(one.1[0].abs(), 1.0);
    assert_eq!(fitted(&[], 0, &Options::default(), 1).0, Basis { values: vec![], dims: 1 });
    assert_eq!(fitted(&[vec![], vec![]], 2, &Options::default(), 1).1, [0.0, 0.0]);
    // Two identical units and an unrelated one: rank two.
    let (basis, vectors) = fitted(&[vec![0, 1], vec![0, 1], vec![2]], 3, &Options::default(), 1);
    assert_eq!(basis.dims, 2);
    assert!((reference_dot(&vectors[..2], &vectors[2..4]) - 1.0).abs() < 1e-6);
    assert!(reference_dot(&vectors[..2], &vectors[4..]).abs() < 1e-6);
}

#[test]
fn bad_input_is_refused_and_stops_are_seen() {
    let counts = Csr::from_rows(&[vec![0, 1]], 2).unwrap();
    let unsorted = Csr::from_rows(&[vec![1, 0]], 2).unwrap();
    let options = Options::default();
    let none = Progress::none();
    assert!(fit(counts.view(), &[1], &options, 1, &none).is_err());
    assert!(fit(unsorted.view(), &[1, 1], &options, 1, &none).is_err());
    for dims in [0, 5000] {
        assert!(fit(counts.view(), &[1, 1], &Options { dims, ..Options::default() }, 1, &none).is_err());
    }
    assert!(fit(counts.view(), &[1, 1], &Options { sample: 0, ..Options::default() }, 1, &none).is_err());
    assert!(embed_rows(&[0.0; 3], 2, counts.view(), &[1, 1], 1, &none).is_err());
    assert!(embed_rows(&[], 0, counts.view(), &[1, 1], 1, &none).is_err());
    let stopped = Progress::none();
    stopped.stop();
    assert_eq!(fit(counts.view(), &[1, 1], &options, 1, &stopped), Err(Error::Cancelled));
}

#[test]
fn logarithms_are_right() {
    for x in [1.0, 1.5, 2.0, 3.0, 0.1, 1e9, 1.414, 1.4143, 1.0000001] {
        assert!((logarithm(x) - f64::ln(x)).abs() <= 1e-15 * f64::ln(x).abs().max(0.1));
    }
}
