//! Keyword vectors: the mean of the vectors of a keyword's sentences (KET-RAG, section 4.2).

use crate::cpu::wide;
use crate::embed::dense::{gather_once, Columns};
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::parallel::{fill_rows, map_ranges};
use crate::progress::Progress;
use crate::sparse::{prefetch_lines, CsrView};
use crate::vector::{divide_rows, normalise_rows, reference_dots, Vectors};
use std::ops::Range;
use std::sync::Mutex;

/// Number of sums that stay in registers while rows are added to them.
const LANES: usize = 32;
/// Number of rows that are added to one block of sums in turn, so that they stay in the L1 cache.
const BLOCK: usize = 16;
/// Number of rows that are prefetched before they are added, because they are scattered in memory.
const AHEAD: usize = 6;

/// Add the rows `ids` of `dense` to `sum`, one after the other. `next` are the ids that follow after the next
/// [`AHEAD`], including those of later keywords.
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

/// For each row of `word_sentences` (keyword -> its sentences, strictly ascending) return the mean of those
/// rows of `sentences`: summed in f64 in ascending order, divided, converted to f32. Each sentence counts
/// once. Lengths are preserved unless `unit`, because they measure how well a keyword's sentences agree; a
/// keyword without sentences gets zeros. Returns f32[keywords, d], row-major.
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
    add_columns(&mut means, d, word_sentences, dense, 0..d, threads, progress)?;
    if unit {
        to_unit(&mut means, d, threads)?;
    }
    Ok(means)
}

/// Add the columns `columns` of each row of `means` (of `width` values) from `dense`, which holds these
/// columns of every sentence.
fn add_columns(
    means: &mut [f32],
    width: usize,
    word_sentences: CsrView,
    dense: &[f32],
    columns: Range<usize>,
    threads: usize,
    progress: &Progress,
) -> Result<()> {
    fill_rows(means, width, 64, threads, progress, |words, part| {
        let mut sum = vec![0f64; columns.len()];
        for (word, mean) in words.zip(part.chunks_exact_mut(width)) {
            let row = word_sentences.range(word);
            sum.fill(0.0);
            for start in row.clone().step_by(4096) {
                progress.check()?;
                let ids = &word_sentences.indices[start..(start + 4096).min(row.end)];
                let next = word_sentences.indices.all().get(start + AHEAD..).unwrap_or(&[]);
                add_rows(ids, next, dense, &mut sum);
            }
            let count = row.len().max(1) as f64;
            mean[columns.clone()].iter_mut().zip(&sum).for_each(|(mean, x)| *mean = (x / count) as f32);
        }
        Ok(())
    })
}

fn to_unit(means: &mut [f32], d: usize, threads: usize) -> Result<()> {
    fill_rows(means, d, 64, threads, &Progress::none(), |_, part| {
        normalise_rows(part, d);
        Ok(())
    })
}

/// Maximum size in bytes of the sentence vectors in memory.
pub const ROOM: usize = 896 << 20;
/// Number of sentences that a thread embeds at a time.
const GRAIN: usize = 256;

/// Like [`keyword_means`] of the vectors that [`crate::embed::builtin::embed_rows`] computes from the words of
/// sentences (`sentence_words`, each counted once; `word_sentences` is its transpose), with identical bytes.
/// The vectors of all sentences may be larger than the index: if they exceed `room` bytes, only as many
/// columns as fit are computed at a time. A sentence's length, which needs all columns, is kept from the
/// first pass.
#[allow(clippy::too_many_arguments)] // one call; a struct would only rename the arguments
pub fn keyword_means_by_words(
    basis: &[f32],
    d: usize,
    sentence_words: CsrView,
    word_sentences: CsrView,
    room: usize,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    let (sentences, words) = (sentence_words.rows(), word_sentences.rows());
    if d == 0 || sentence_words.columns.checked_mul(d) != Some(basis.len()) {
        return Err(Error::input(format!(
            "a basis of {} values is not {} words of {d} dimensions",
            basis.len(),
            sentence_words.columns
        )));
    }
    if word_sentences.columns > sentences {
        return Err(Error::input(format!(
            "keywords name {} sentences, but there are {sentences}",
            word_sentences.columns
        )));
    }
    sentence_words.require_sorted()?;
    word_sentences.require_sorted()?;
    let at_once = (room / size_of::<f32>() / sentences.max(1)).clamp(LANES, d.max(LANES));
    // Use as many equal parts as needed, each a whole number of lanes.
    let step = d.div_ceil(d.div_ceil(at_once)).next_multiple_of(LANES);
    progress.expect((d.div_ceil(step) * (sentences + words)) as u64);
    let what = "the vectors of sentences";
    let mut means: Vec<f32> = zeros(words.saturating_mul(d), "the vectors of keywords")?;
    let mut squares: Vec<f64> = zeros(sentences, what)?;
    let mut dense: Vec<f32> = zeros(sentences.saturating_mul(step.min(d)), what)?;
    for first in (0..d).step_by(step) {
        let columns = first..(first + step).min(d);
        let out = &mut dense[..sentences * columns.len()];
        embed_columns(out, &mut squares, basis, d, sentence_words, columns.clone(), threads, progress)?;
        add_columns(&mut means, d, word_sentences, out, columns, threads, progress)?;
    }
    Ok(means)
}

/// Compute some columns of the sentences' vectors. The first call, for column 0, determines their lengths.
#[allow(clippy::too_many_arguments)]
fn embed_columns(
    out: &mut [f32],
    squares: &mut [f64],
    basis: &[f32],
    d: usize,
    rows: CsrView,
    columns: Range<usize>,
    threads: usize,
    progress: &Progress,
) -> Result<()> {
    let (width, unknown) = (columns.len(), columns.start == 0);
    // Gather all columns while lengths are being determined.
    let own = if unknown { 0..d } else { columns.clone() };
    let dense = Columns { values: basis, width: d, first: own.start };
    let parts: Vec<_> =
        out.chunks_mut(GRAIN * width).zip(squares.chunks_mut(GRAIN)).map(Mutex::new).collect();
    map_ranges(rows.rows(), GRAIN, threads, progress, |range| {
        let mut part = parts[range.start / GRAIN].lock().unwrap_or_else(|e| e.into_inner());
        let (out, squares) = &mut *part;
        let mut sums = vec![0f32; range.len() * own.len()];
        for (row, sum) in range.zip(sums.chunks_exact_mut(own.len())) {
            let range = rows.range(row);
            for start in range.clone().step_by(16384) {
                progress.check()?;
                let ids = &rows.indices[start..(start + 16384).min(range.end)];
                gather_once(ids, rows.indices.all().get(start + AHEAD..).unwrap_or(&[]), dense, sum);
            }
        }
        if unknown {
            reference_dots(&sums, d, squares);
        }
        for (sum, out) in sums.chunks_exact(own.len()).zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&sum[..width]);
        }
        divide_rows(out, width, squares);
        Ok(())
    })?;
    Ok(())
}
