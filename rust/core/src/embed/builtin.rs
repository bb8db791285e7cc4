//! The built-in embedder: a vector space fitted on the corpus itself, without a model. Each word has a vector
//! (its row in the leading right singular vectors of the weighted unit-word matrix, times its weight); the
//! vector of a text is the saturated sum of its words' vectors, normalised. Units, sentences and queries are
//! embedded alike. Latent semantic analysis (Deerwester et al. 1990) by randomised subspace iteration (Halko,
//! Martinsson, Tropp 2011, algorithm 4.4).

use super::dense::{gram, multiply, multiply_into, orthonormal, times, Sparse};
use super::symmetric::eigen;
use crate::error::{Error, Result};
use crate::memory::{collected, filled, room, zeros};
use crate::parallel::fill_rows;
use crate::progress::Progress;
use crate::sparse::CsrView;
use crate::vector::{normalise, normalise_rows};
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Purpose of the allocations, for error messages.
const WORDS: &str = "the vectors of words";
const TEXTS: &str = "the vectors of texts";

/// BM25's saturation of repeated words. Length needs no term: vectors are normalised.
const K1: f64 = 1.2;
/// Directions computed in addition to the requested ones, so that the last requested ones converge too.
const SPARE: usize = 8;
/// A direction weaker than this fraction of the strongest (as eigenvalues) is rounding noise.
const WEAKEST: f64 = 1e-7;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Number of dimensions. A small corpus yields fewer. 128 dimensions are enough for about 2,000 units.
    /// For 9,000 units, the space needs 256 to reach BM25 and 512 to beat it, but its fusion with BM25
    /// already gains at 128.
    pub dims: usize,
    /// Exponent of the inverse document frequency. 2 clearly beats BM25's 1 on multi-hop questions, which
    /// rare names decide.
    pub idf_power: u32,
    /// Rounds of subspace iteration. With 3, coverage varies by about 3 points between seeds. From 5 on it
    /// varies by 1 or 2 points, as with exact directions.
    pub rounds: usize,
    /// Maximum number of units, evenly spaced, from which directions are computed. Word vectors use all
    /// units.
    pub sample: usize,
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { dims: 128, idf_power: 2, rounds: 5, sample: 20_000, seed: 42 }
    }
}

/// Vectors of the words, multiplied by their weights: f32[words, dims], row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Basis {
    pub values: Vec<f32>,
    pub dims: usize,
}

/// Fit the space. `counts` maps units to word ids (columns); `repeats`, parallel to its indices, is the
/// number of occurrences. The result is identical to the byte on any number of threads and any IEEE machine.
/// It has at least one dimension and at most the rank of the matrix.
pub fn fit(
    counts: CsrView,
    repeats: &[u32],
    options: &Options,
    threads: usize,
    progress: &Progress,
) -> Result<Basis> {
    check(counts, repeats)?;
    if options.dims == 0 || options.dims > 4096 {
        return Err(Error::input(format!("dims must be between 1 and 4096, not {}", options.dims)));
    }
    if options.sample == 0 || options.idf_power > 8 || options.rounds > 100 {
        return Err(Error::input("sample must be positive, idf_power at most 8, rounds at most 100"));
    }
    let (units, words) = (counts.rows(), counts.columns);
    let weights = word_weights(counts, options.idf_power)?;
    let values = unit_rows(counts, repeats, &weights)?;
    let all = Sparse { pattern: counts, values: &values };
    let few = sample(all, options.sample)?;
    let rows = few.indptr.len() - 1;
    let width = (options.dims + SPARE).min(rows).min(words);
    if width == 0 || values.iter().all(|&x| x == 0.0) {
        return Ok(Basis { values: zeros(words, WORDS)?, dims: 1 });
    }
    // Words missing from the sample have only zeros in their rows and are left out until the end.
    let place = places(&few)?;
    let few = narrowed(few.view(), &place)?;
    let few_turned = turned(few.view())?;
    let (n, w) = (rows as u64, few.columns as u64);
    let start = if options.rounds == 0 { 2 * n } else { 0 };
    progress
        .expect(start + options.rounds as u64 * (w + 3 * n) + 3 * n + 2 * w + words as u64 + units as u64);
    let run = Run { threads, progress };
    let (basis, energy) = directions(few.view(), few_turned.view(), width, options, &run)?;
    drop((few, few_turned));
    let dims = energy.iter().take(options.dims).filter(|&&x| x > WEAKEST * energy[0]).count().max(1);
    // V = A^T (A V) / eigenvalues over every unit, the next step of the power method. For the sampled units
    // it changes nothing. Words missing from the sample get their vectors here.
    let narrow = cut(&basis, width, dims)?;
    drop(basis);
    let mut units_in = multiply(narrowed(all, &place)?.view(), &narrow, dims, threads, progress)?;
    drop(narrow);
    for row in units_in.chunks_exact_mut(dims) {
        row.iter_mut().zip(&energy).for_each(|(x, &e)| *x = (f64::from(*x) / e) as f32);
    }
    let all_turned = turned(all)?;
    let mut values = multiply(all_turned.view(), &units_in, dims, threads, progress)?;
    for (row, &weight) in values.chunks_exact_mut(dims).zip(&weights) {
        row.iter_mut().for_each(|x| *x *= weight);
    }
    Ok(Basis { values, dims })
}

/// Return the normalised vectors of texts: f32[texts, dims]. `counts` maps texts to word ids. A text without
/// a known word has a zero vector, which is similar to nothing.
pub fn embed_rows(
    basis: &[f32],
    dims: usize,
    counts: CsrView,
    repeats: &[u32],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    check(counts, repeats)?;
    if dims == 0 || counts.columns.checked_mul(dims) != Some(basis.len()) {
        return Err(Error::input(format!(
            "a basis of {} values is not {} words of {dims} dimensions",
            basis.len(),
            counts.columns
        )));
    }
    progress.expect(counts.rows() as u64);
    let values = collected(repeats.iter().map(|&count| saturated(count)), TEXTS)?;
    let mut vectors = multiply(Sparse { pattern: counts, values: &values }, basis, dims, threads, progress)?;
    fill_rows(&mut vectors, dims, 256, threads, &Progress::none(), |_, part| {
        normalise_rows(part, dims);
        Ok(())
    })?;
    Ok(vectors)
}

struct Run<'a> {
    threads: usize,
    progress: &'a Progress,
}

/// Return the leading right singular vectors (words x width) and their eigenvalues, in descending order.
fn directions(
    a: Sparse,
    turned: Sparse,
    width: usize,
    options: &Options,
    run: &Run,
) -> Result<(Vec<f32>, Vec<f64>)> {
    let (threads, progress) = (run.threads, run.progress);
    let mut q = noise(a.pattern.rows().saturating_mul(width), options.seed)?;
    let mut z: Vec<f32> = zeros(turned.pattern.rows().saturating_mul(width), WORDS)?;
    for _ in 0..options.rounds {
        multiply_into(&mut z, turned, &q, width, threads, progress)?;
        multiply_into(&mut q, a, &z, width, threads, progress)?;
        q = orthonormal(q, width, threads, progress)?;
    }
    if options.rounds == 0 {
        q = orthonormal(q, width, threads, progress)?;
    }
    multiply_into(&mut z, turned, &q, width, threads, progress)?;
    let y = multiply(a, &z, width, threads, progress)?;
    let (energy, rotation) = eigen(&gram(&q, &y, width, threads, progress)?, width);
    let inverse: Vec<f64> =
        energy.iter().map(|&e| if e > WEAKEST * energy[0] { 1.0 / e.sqrt() } else { 0.0 }).collect();
    let rotation: Vec<f32> =
        rotation.iter().enumerate().map(|(at, &x)| (x * inverse[at % width]) as f32).collect();
    let p = times(&q, &rotation, width, width, threads, progress)?;
    multiply_into(&mut z, turned, &p, width, threads, progress)?;
    Ok((z, energy))
}

/// Return independent numbers between -1 and 1 to start the iteration. Random signs would not do: in a tiny
/// corpus they cancel.
fn noise(count: usize, seed: u64) -> Result<Vec<f32>> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    collected((0..count).map(|_| (generator.next_u32() >> 8) as f32 / 8_388_608.0 - 1.0), TEXTS)
}

fn check(counts: CsrView, repeats: &[u32]) -> Result<()> {
    if repeats.len() != counts.nnz() {
        return Err(Error::input(format!("{} counts for {} words of texts", repeats.len(), counts.nnz())));
    }
    counts.require_sorted()
}

fn saturated(count: u32) -> f32 {
    let count = f64::from(count);
    (count * (K1 + 1.0) / (count + K1)) as f32
}

/// Return BM25's idf to a power, relative to the maximum.
fn word_weights(counts: CsrView, power: u32) -> Result<Vec<f32>> {
    let mut found: Vec<u32> = zeros(counts.columns, WORDS)?;
    counts.indices.all().iter().for_each(|&word| found[word as usize] += 1);
    let n = counts.rows() as f64;
    let mut idf: Vec<f64> = room(found.len(), WORDS)?;
    idf.extend(found.iter().map(|&df| logarithm(1.0 + (n - f64::from(df) + 0.5) / (f64::from(df) + 0.5))));
    let greatest = idf.iter().fold(f64::MIN_POSITIVE, |m, &x| m.max(x));
    let mut weights = room(idf.len(), WORDS)?;
    weights.extend(idf.iter().map(|&x| (1..=power).fold(1.0, |product, _| product * (x / greatest)) as f32));
    Ok(weights)
}

/// Return the natural logarithm by plain arithmetic: the system's function differs between machines in the
/// last bit, and the bytes of an index must not. `x` is a positive normal number.
fn logarithm(x: f64) -> f64 {
    let mut exponent = ((x.to_bits() >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits(x.to_bits() & 0x000f_ffff_ffff_ffff | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

/// Return the weighted rows, each of length 1.
fn unit_rows(counts: CsrView, repeats: &[u32], weights: &[f32]) -> Result<Vec<f32>> {
    let pairs = counts.indices.all().iter().zip(repeats);
    let mut values =
        collected(pairs.map(|(&word, &count)| saturated(count) * weights[word as usize]), TEXTS)?;
    (0..counts.rows()).for_each(|row| normalise(&mut values[counts.range(row)]));
    Ok(values)
}

struct Owned {
    indptr: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<f32>,
    columns: usize,
}

impl Owned {
    /// Return an empty matrix with capacity for this many rows and entries.
    fn with_room(rows: usize, entries: usize, columns: usize) -> Result<Self> {
        let mut indptr = room(rows.saturating_add(1), TEXTS)?;
        indptr.push(0);
        Ok(Self { indptr, indices: room(entries, TEXTS)?, values: room(entries, TEXTS)?, columns })
    }

    fn view(&self) -> Sparse<'_> {
        let pattern = CsrView::unchecked(&self.indptr, &self.indices, self.columns);
        Sparse { pattern, values: &self.values }
    }
}

/// Return every row, or `most` of them, evenly spaced.
fn sample(all: Sparse, most: usize) -> Result<Owned> {
    let rows = all.pattern.rows();
    let kept = rows.min(most);
    let range_of = |at: usize| all.pattern.range((at as u128 * rows as u128 / kept as u128) as usize);
    let entries = (0..kept).map(|at| range_of(at).len()).sum();
    let mut few = Owned::with_room(kept, entries, all.pattern.columns)?;
    for at in 0..kept {
        let range = range_of(at);
        few.indices.extend_from_slice(&all.pattern.indices[range.clone()]);
        few.values.extend_from_slice(&all.values[range]);
        few.indptr.push(few.indices.len() as u64);
    }
    Ok(few)
}

/// Return for each column its index among those that occur, or `u32::MAX`.
fn places(a: &Owned) -> Result<Vec<u32>> {
    let mut place = filled(u32::MAX, a.columns, WORDS)?;
    a.indices.iter().for_each(|&word| place[word as usize] = 0);
    for (next, place) in (0..).zip(place.iter_mut().filter(|place| **place == 0)) {
        *place = next;
    }
    Ok(place)
}

/// Return the matrix reduced to the columns that have an index.
fn narrowed(a: Sparse, place: &[u32]) -> Result<Owned> {
    let columns = place.iter().filter(|&&place| place != u32::MAX).count();
    let entries = a.pattern.indices.all().iter().filter(|&&word| place[word as usize] != u32::MAX).count();
    let mut kept = Owned::with_room(a.pattern.rows(), entries, columns)?;
    for row in 0..a.pattern.rows() {
        for at in a.pattern.range(row) {
            let word = place[a.pattern.indices[at] as usize];
            if word != u32::MAX {
                kept.indices.push(word);
                kept.values.push(a.values[at]);
            }
        }
        kept.indptr.push(kept.indices.len() as u64);
    }
    Ok(kept)
}

fn turned(a: Sparse) -> Result<Owned> {
    let (csr, positions) = a.pattern.transpose_with_positions()?;
    let values = collected(positions.iter().map(|&at| a.values[at as usize]), TEXTS)?;
    Ok(Owned { indptr: csr.indptr, indices: csr.indices, values, columns: csr.columns })
}

/// Return the first `dims` of `width` columns.
fn cut(matrix: &[f32], width: usize, dims: usize) -> Result<Vec<f32>> {
    let mut kept = room(matrix.len() / width * dims, WORDS)?;
    matrix.chunks_exact(width).for_each(|row| kept.extend_from_slice(&row[..dims]));
    Ok(kept)
}

#[cfg(test)]
mod tests {
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
            embed_rows(&basis.values, basis.dims, counts.view(), &repeats, threads, &Progress::none())
                .unwrap();
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
    }

    #[test]
    fn a_sample_gives_every_word_a_vector() {
        let rows: Vec<Vec<u32>> = (0..60u32).map(|i| vec![i % 5, 5 + i % 3, 8 + i]).collect();
        let (basis, _) = fitted(&rows, 68, &Options { dims: 4, sample: 20, ..Options::default() }, 1);
        assert!(basis.values.chunks_exact(basis.dims).all(|v| v.iter().any(|&x| x != 0.0)));
    }

    #[test]
    fn logarithms_are_right() {
        for x in [1.0, 1.5, 2.0, 3.0, 0.1, 1e9, 1.414, 1.4143, 1.0000001] {
            assert!((logarithm(x) - f64::ln(x)).abs() <= 1e-15 * f64::ln(x).abs().max(0.1));
        }
    }
}
