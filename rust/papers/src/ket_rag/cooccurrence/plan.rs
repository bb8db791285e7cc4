//! Partition of the words into bitmaps and postings.

use super::options::{Options, Tuning};
use crate::error::{Error, Result};
use crate::memory::{filled, zeros};
use crate::parallel::{map_ranges, threads};
use crate::progress::Progress;
use crate::sparse::CsrView;
use std::ops::Range;

/// Purpose of the allocations, for error messages.
const WORDS: &str = "the counts of words";

/// Number of texts between two checks of the progress.
const GLANCE: usize = 1024;

/// The words of all texts in two parts. Frequent words have *slots*: positions in a block's table of bitmaps,
/// the most frequent word first, so that the hottest rows are adjacent. Rare words have postings. Words that
/// cannot contribute are dropped: those in one text only, or in more than `max_df_ratio` of the texts.
/// Memory: one `u32` per remaining word of a text, and two per rare word.
pub struct Plan {
    pub texts: usize,
    /// Number of frequent words.
    pub slots: usize,
    frequent: Ragged,
    rare: Ragged,
    postings: Ragged,
}

/// Rows of ids like [`CsrView`], but built here and therefore valid without checks.
#[derive(Default)]
struct Ragged {
    ends: Vec<u64>,
    ids: Vec<u32>,
}

impl Ragged {
    fn row(&self, row: usize) -> &[u32] {
        let from = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.ids[from..self.ends[row] as usize]
    }

    fn append(&mut self, other: Self) {
        let base = self.ids.len() as u64;
        self.ids.extend_from_slice(&other.ids);
        self.ends.extend(other.ends.iter().map(|end| end + base));
    }
}

/// A dropped word.
const NOWHERE: u32 = u32::MAX;

impl Plan {
    pub fn new(mut words: CsrView<'_>, options: &Options, progress: &Progress) -> Result<Self> {
        let texts = words.rows();
        // Words after the last used id need no space.
        words.columns = words.indices.all().iter().max().map_or(0, |&last| last as usize + 1);
        let df = frequencies(words, options.threads, progress)?;
        let most = options.max_df_ratio.map_or(f64::INFINITY, |ratio| ratio * texts as f64);
        let kept = |df: u32| df >= 2 && f64::from(df) <= most;
        let least = frequent_df(&options.tuning, texts);

        let mut frequent: Vec<u32> =
            (0..words.columns as u32).filter(|&w| kept(df[w as usize]) && df[w as usize] >= least).collect();
        frequent.sort_by_key(|&w| std::cmp::Reverse(df[w as usize]));
        // Numbers of frequent words are less than `slots`. Those of rare words follow.
        let slots = frequent.len();
        let mut place = filled(NOWHERE, words.columns, WORDS)?;
        for (slot, &word) in frequent.iter().enumerate() {
            place[word as usize] = slot as u32;
        }
        let mut ends = Vec::new();
        let mut total = 0u64;
        for word in 0..words.columns {
            if kept(df[word]) && df[word] < least {
                place[word] = (slots + ends.len()) as u32;
                total += u64::from(df[word]);
                ends.push(total);
            }
        }
        drop(df);
        let (near, far) = cut(words, &place, slots as u32, options.threads, progress)?;
        drop(place);
        let postings = turned(&far, ends, options.threads, progress)?;
        Ok(Self { texts, slots, frequent: near, rare: far, postings })
    }

    /// Return the slots of a text's frequent words, ascending, all less than [`Self::slots`].
    pub fn frequent(&self, text: usize) -> &[u32] {
        self.frequent.row(text)
    }

    /// Return the rare words of a text.
    pub fn rare(&self, text: usize) -> &[u32] {
        self.rare.row(text)
    }

    pub fn rare_words(&self) -> usize {
        self.postings.ends.len()
    }

    /// Return the texts with a rare word, ascending.
    pub fn postings(&self, rare: u32) -> &[u32] {
        self.postings.row(rare as usize)
    }
}

/// Return the number of texts from which on a word is stored as a bitmap.
fn frequent_df(tuning: &Tuning, texts: usize) -> u32 {
    tuning.frequent_df.unwrap_or(((texts / 1500) as u32).max(8)).max(1)
}

/// Call `work` for `parts` equal ranges of `0..of` on all threads, and return the results in order.
///
/// The parts are not rows of the result, so they are not counted as progress.
fn in_parts<T: Send>(
    of: usize,
    parts: usize,
    threads: usize,
    work: impl Fn(Range<usize>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    map_ranges(of, of.div_ceil(parts.max(1)), threads, &Progress::none(), work)
}

/// Return the number of texts of each word, checking the order of the ids.
fn frequencies(words: CsrView<'_>, asked: usize, progress: &Progress) -> Result<Vec<u32>> {
    let parts = in_parts(words.rows(), threads(asked), asked, |part| {
        let mut df: Vec<u32> = zeros(words.columns, WORDS)?;
        for text in part {
            if text % GLANCE == 0 {
                progress.check()?;
            }
            let row = words.row(text);
            if row.windows(2).any(|w| w[1] <= w[0]) {
                return Err(Error::input(format!("the word ids of text {text} are not strictly ascending")));
            }
            for &word in row {
                df[word as usize] += 1;
            }
        }
        Ok(df)
    })?;
    let mut parts = parts.into_iter();
    // Without texts there are no words, hence no columns.
    let mut df = parts.next().unwrap_or_default();
    for part in parts {
        df.iter_mut().zip(part).for_each(|(sum, more)| *sum += more);
    }
    Ok(df)
}

/// Split the words of each text: (slots, ascending; rare words, ascending).
fn cut(
    words: CsrView<'_>,
    place: &[u32],
    slots: u32,
    asked: usize,
    progress: &Progress,
) -> Result<(Ragged, Ragged)> {
    let parts = in_parts(words.rows(), 4 * threads(asked), asked, |part| {
        let (mut near, mut far) = (Ragged::default(), Ragged::default());
        for text in part {
            if text % GLANCE == 0 {
                progress.check()?;
            }
            let first = near.ids.len();
            for &word in words.row(text) {
                match place[word as usize] {
                    NOWHERE => {}
                    slot if slot < slots => near.ids.push(slot),
                    at => far.ids.push(at - slots),
                }
            }
            // Ascending slots: the rows are then read in one sweep over the table.
            near.ids[first..].sort_unstable();
            near.ends.push(near.ids.len() as u64);
            far.ends.push(far.ids.len() as u64);
        }
        Ok((near, far))
    })?;
    let (mut near, mut far) = (Ragged::default(), Ragged::default());
    near.ids.reserve_exact(parts.iter().map(|(near, _)| near.ids.len()).sum());
    far.ids.reserve_exact(parts.iter().map(|(_, far)| far.ids.len()).sum());
    for (a, b) in parts {
        near.append(a);
        far.append(b);
    }
    Ok((near, far))
}

/// Return the texts of each rare word. Words are processed in portions whose postings stay in the cache: each
/// portion reads all texts, which is cheaper than a cache miss for every word of every text.
fn turned(far: &Ragged, ends: Vec<u64>, asked: usize, progress: &Progress) -> Result<Ragged> {
    const PORTION: u64 = 1 << 20;
    let total = ends.last().copied().unwrap_or(0);
    let portions = (total / PORTION).clamp(threads(asked).min(16) as u64, 16) as usize;
    let start_of = |word: usize| if word == 0 { 0 } else { ends[word - 1] };
    let parts = in_parts(ends.len(), portions, asked, |part| {
        let base = start_of(part.start);
        let mut next: Vec<u64> = part.clone().map(|word| start_of(word) - base).collect();
        let mut ids = vec![0u32; (start_of(part.end) - base) as usize];
        for text in 0..far.ends.len() {
            if text % GLANCE == 0 {
                progress.check()?;
            }
            for &word in far.row(text) {
                if part.contains(&(word as usize)) {
                    let at = &mut next[word as usize - part.start];
                    ids[*at as usize] = text as u32;
                    *at += 1;
                }
            }
        }
        Ok(ids)
    })?;
    let mut ids = Vec::with_capacity(total as usize);
    for part in parts {
        ids.extend_from_slice(&part);
    }
    Ok(Ragged { ends, ids })
}
