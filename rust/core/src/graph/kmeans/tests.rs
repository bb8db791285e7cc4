use super::*;
use crate::vector::simd::Level;
use proptest::prelude::*;

fn settings(threads: usize, level: Level) -> Settings {
    Settings { seed: 7, iterations: 25, threads, level }
}

fn run(values: &[f32], d: usize, k: usize, settings: &Settings) -> Clusters {
    kmeans(&Vectors::new(values, d).unwrap(), k, settings, &Progress::none()).unwrap()
}

/// The literal definition, without optimisations.
fn plain(values: &[f32], d: usize, k: usize, settings: &Settings) -> Clusters {
    let vectors = Vectors::new(values, d).unwrap();
    let n = vectors.len();
    let nearest = Nearest::new(&vectors, settings).unwrap();
    let mut centres = seeds::seeds(&nearest, k.min(n), &Progress::none()).unwrap();
    let label = |centres: &[f64]| -> Vec<u32> {
        let best = |row: &[f32]| {
            let all: Vec<f64> = centres.chunks_exact(d).map(|c| distance(row, c)).collect();
            (0..all.len()).fold(0, |best, c| if all[c] < all[best] { c } else { best }) as u32
        };
        values.chunks_exact(d).map(best).collect()
    };
    for _ in 0..settings.iterations {
        let labels = label(&centres);
        centres = means(&vectors, &labels, &centres, settings, &Progress::none()).unwrap();
    }
    Clusters { labels: label(&centres), centres }
}

#[test]
fn two_heaps_and_more_centres_than_vectors() {
    let values = [0.0f32, 0.0, 0.0, 1.0, 9.0, 9.0, 9.0, 8.0, 1.0, 0.0];
    let found = run(&values, 2, 2, &settings(1, Level::Portable));
    assert_eq!(found.labels[0], found.labels[1]);
    assert_eq!(found.labels[0], found.labels[4]);
    assert_eq!(found.labels[2], found.labels[3]);
    assert_ne!(found.labels[0], found.labels[2]);
    let heap = &found.centres[2 * found.labels[2] as usize..][..2];
    assert_eq!(heap, [9.0, 8.5]);
    let own = run(&values, 2, 99, &settings(1, Level::Portable));
    let mut labels = own.labels.clone();
    labels.sort_unstable();
    assert_eq!(labels, [0, 1, 2, 3, 4]);
    assert_eq!(own.centres.len(), 10);
}

#[test]
fn equal_vectors_no_vectors_no_centres_and_a_stop() {
    let same = run(&[2.5; 12], 3, 3, &settings(1, Level::Portable));
    assert_eq!(same, Clusters { labels: vec![0; 4], centres: vec![2.5; 9] });
    assert_eq!(run(&[], 3, 3, &settings(1, Level::Portable)), Clusters::default());
    let vectors = Vectors::new(&[1.0, 2.0], 1).unwrap();
    let with = |k, progress: &Progress| kmeans(&vectors, k, &settings(1, Level::Portable), progress);
    assert!(with(0, &Progress::none()).unwrap_err().to_string().contains("at least one"));
    let stopped = Progress::none();
    stopped.stop();
    assert_eq!(with(2, &stopped), Err(Error::Cancelled));
}

#[test]
fn an_empty_centre_goes_to_the_farthest_and_the_next_to_another() {
    let values = [0.0f32, 1.0, 5.0, 5.0, 3.0];
    let vectors = Vectors::new(&values, 1).unwrap();
    let before = [1.0, 50.0, 60.0];
    let got = means(&vectors, &[0; 5], &before, &settings(1, Level::Portable), &Progress::none()).unwrap();
    assert_eq!(got, [14.0 / 5.0, 5.0, 5.0]);
    let again = means(&vectors, &[0, 0, 2, 0, 0], &before, &settings(1, Level::Portable), &Progress::none());
    assert_eq!(again.unwrap(), [9.0 / 4.0, 5.0, 5.0]);
}

#[test]
fn the_same_bits_with_every_level_and_any_number_of_threads() {
    let (n, d) = (1500usize, 37);
    let value = |i: usize| ((i * 2_654_435_761) % 1_000_003) as f32 / 1_000_003.0 - 0.5;
    let values: Vec<f32> = (0..n * d).map(value).collect();
    let want = plain(&values, d, 40, &Settings { iterations: 4, ..settings(1, Level::Portable) });
    for level in Level::all() {
        for threads in [1, 2, 5] {
            let how = Settings { iterations: 4, ..settings(threads, level) };
            assert_eq!(run(&values, d, 40, &how), want, "{level:?} {threads}");
        }
    }
}

proptest! {
    #[test]
    fn equals_the_definition(
        d in 1usize..5,
        cells in prop::collection::vec(prop_oneof![Just(0.0f32), Just(1.0), Just(0.25), Just(-3.0), Just(1e-30), -1.0f32..1.0], 1..60),
        k in 1usize..9,
        scale in prop::sample::select(vec![1.0f32, 1e-20, 1e30, 3e37]),
        iterations in 0u32..5,
    ) {
        let values: Vec<f32> = cells[..cells.len() / d * d].iter().map(|x| x * scale).collect();
        prop_assume!(!values.is_empty());
        let how = Settings { iterations, ..settings(1, Level::best()) };
        prop_assert_eq!(run(&values, d, k, &how), plain(&values, d, k, &how));
    }
}
