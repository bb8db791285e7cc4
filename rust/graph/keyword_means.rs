//! A keyword's vector: the mean of the vectors of its sentences (KET-RAG 1.2 step 9, 1.9 #4).

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::parallel::fill_rows;
use crate::progress::Progress;
use crate::search::vectors::{normalise, Vectors};
use crate::sparse::{prefetch_lines, CsrView};
use crate::wide::wide;

/// Sums that stay in registers while the rows to be added pass by.
const LANES: usize = 32;
/// Rows that are added to one part of the sums after another: they stay in the nearest cache.
const BLOCK: usize = 16;
/// Rows that are asked for before they are added: they lie anywhere in memory.
const AHEAD: usize = 6;

/// Adds the rows `ids` of `dense` to `sum`, one after the other. `next` are the ids that follow after
/// [`AHEAD`] more, those of later keywords too.
#[inline(always)]
fn add_rows_body(ids: &[u32], next: &[u32], dense: &[f32], sum: &mut [f64]) {
    let d = sum.len();
    for (block, ids) in ids.chunks(BLOCK).enumerate() {
        let next = next.get(block * BLOCK..).unwrap_or(&[]);
        let mut parts = sum.chunks_exact_mut(LANES);
        let mut start = 0;
        for part in &mut parts {
            let mut lanes = [0f64; LANES];
            lanes.copy_from_slice(part);
            for (at, &id) in ids.iter().enumerate() {
                if let (0, Some(&later)) = (start, next.get(at)) {
                    prefetch_lines(dense, later as usize * d, d);
                }
                let row = &dense[id as usize * d + start..][..LANES];
                for k in 0..LANES {
                    lanes[k] += f64::from(row[k]);
                }
            }
            part.copy_from_slice(&lanes);
            start += LANES;
        }
        let rest = parts.into_remainder();
        for &id in ids {
            let row = &dense[id as usize * d + start..(id as usize + 1) * d];
            rest.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
    }
}
wide!(add_rows, add_rows_body, (ids: &[u32], next: &[u32], dense: &[f32], sum: &mut [f64]));

/// For each row of `word_sentences` (keyword -> its sentences, strictly ascending) the mean of those
/// rows of `sentences`: summed in f64 in ascending order, divided, cast to f32. Each sentence counts
/// once. Lengths are left as they are unless `unit`, because the length says how well a keyword's
/// sentences agree; a keyword of no sentence gets zeros. Returns f32[keywords, d], row-major.
pub fn keyword_means(
    word_sentences: CsrView,
    sentences: &Vectors,
    unit: bool,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    let d = sentences.dim();
    if word_sentences.columns > sentences.len() {
        return Err(Error::input(format!(
            "keywords name {} sentences, but there are {} vectors",
            word_sentences.columns,
            sentences.len()
        )));
    }
    word_sentences.require_sorted()?;
    progress.expect(word_sentences.rows() as u64);
    let mut means: Vec<f32> = zeros(word_sentences.rows().saturating_mul(d), "the vectors of keywords")?;
    let dense = sentences.rows(0..sentences.len());
    fill_rows(&mut means, d, 64, threads, progress, |words, part| {
        let mut sum = vec![0f64; d];
        for (word, mean) in words.zip(part.chunks_exact_mut(d)) {
            let row = word_sentences.range(word);
            sum.fill(0.0);
            for start in row.clone().step_by(4096) {
                progress.check()?;
                let ids = &word_sentences.indices[start..(start + 4096).min(row.end)];
                let next = word_sentences.indices.get(start + AHEAD..).unwrap_or(&[]);
                add_rows(ids, next, dense, &mut sum);
            }
            let count = row.len().max(1) as f64;
            mean.iter_mut().zip(&sum).for_each(|(mean, x)| *mean = (x / count) as f32);
            if unit {
                normalise(mean);
            }
        }
        Ok(())
    })?;
    Ok(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;
    use proptest::prelude::*;

    #[test]
    fn each_sentence_counts_once() {
        // Acceptance 9: the word is twice in sentence 0 and once in sentence 1.
        let words = Csr::from_rows(&[vec![0, 1], vec![], vec![2]], 3).unwrap();
        let values = [1.0, 0.0, 0.0, 1.0, 3.0, 4.0];
        let vectors = Vectors::new(&values, 2).unwrap();
        let ask = |unit| keyword_means(words.view(), &vectors, unit, 1, &Progress::none()).unwrap();
        assert_eq!(ask(false), [0.5, 0.5, 0.0, 0.0, 3.0, 4.0]);
        assert_eq!(ask(true)[2..], [0.0, 0.0, 0.6, 0.8]);
    }

    #[test]
    fn bad_input_is_refused() {
        let vectors = Vectors::new(&[1.0, 2.0], 1).unwrap();
        for rows in [vec![vec![2u32]], vec![vec![1, 1]]] {
            let words = Csr::from_rows(&rows, 3).unwrap();
            assert!(keyword_means(words.view(), &vectors, false, 1, &Progress::none()).is_err());
        }
        let unsorted = Csr::from_rows(&[vec![1, 0]], 2).unwrap();
        assert!(keyword_means(unsorted.view(), &vectors, false, 1, &Progress::none()).is_err());
    }

    proptest! {
        #[test]
        fn equals_the_plain_mean_on_any_threads(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..30, 0..20), 0..200),
            seed in prop::collection::vec(-1f32..1.0, 90),
        ) {
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
            let words = Csr::from_rows(&rows, 30).unwrap();
            let vectors = Vectors::new(&seed, 3).unwrap();
            let ask = |threads| keyword_means(words.view(), &vectors, false, threads, &Progress::none()).unwrap();
            let plain: Vec<f32> = rows.iter().flat_map(|row| (0..3).map(|k| {
                let sum: f64 = row.iter().map(|&s| f64::from(seed[s as usize * 3 + k])).sum();
                (sum / row.len().max(1) as f64) as f32
            })).collect();
            prop_assert_eq!(ask(1), plain.clone());
            prop_assert_eq!(ask(3), plain);
        }
    }
}
