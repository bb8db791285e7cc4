//! Which words become bitmaps and which stay postings.

use super::{Options, Tuning};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::sparse::CsrView;

/// How many texts pass between two looks at the progress.
const GLANCE: usize = 1024;

/// The words of all texts, cut in two: frequent ones as *slots* (positions in a block's table of
/// bitmaps, the most frequent first, so that the rows used most lie together), rare ones with
/// their postings. Words that can add nothing (in one text only, or in more than `max_df_ratio`
/// of the texts) are left out. Holds one `u32` a kept word of a text, and two a rare one.
pub struct Plan {
    pub texts: usize,
    /// Number of frequent words.
    pub slots: usize,
    frequent: Ragged,
    rare: Ragged,
    postings: Ragged,
}

/// Rows of ids, as [`CsrView`], but made here and so known to be whole.
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
}

/// A word that is left out.
const NOWHERE: u32 = u32::MAX;

impl Plan {
    pub fn new(words: CsrView<'_>, options: &Options, progress: &Progress) -> Result<Self> {
        let texts = words.rows();
        let mut df = vec![0u32; words.columns];
        for (i, text) in (0..texts).enumerate() {
            if i % GLANCE == 0 {
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
        let most = options.max_df_ratio.map_or(f64::INFINITY, |ratio| ratio * texts as f64);
        let kept = |df: u32| df >= 2 && f64::from(df) <= most;
        let least = frequent_df(&options.tuning, texts);

        let mut frequent: Vec<u32> =
            (0..words.columns as u32).filter(|&w| kept(df[w as usize]) && df[w as usize] >= least).collect();
        frequent.sort_by_key(|&w| std::cmp::Reverse(df[w as usize]));
        // Places of frequent words lie below `slots`, those of rare ones from there on.
        let slots = frequent.len();
        let mut place = vec![NOWHERE; words.columns];
        for (slot, &word) in frequent.iter().enumerate() {
            place[word as usize] = slot as u32;
        }
        let mut postings = Ragged::default();
        let mut total = 0u64;
        for word in 0..words.columns {
            if kept(df[word]) && df[word] < least {
                place[word] = (slots + postings.ends.len()) as u32;
                // The start for now: moved to the end as the word's texts are written.
                postings.ends.push(total);
                total += u64::from(df[word]);
            }
        }
        drop(df);
        postings.ids = vec![0; total as usize];

        let (mut near, mut far) = (Ragged::default(), Ragged::default());
        for text in 0..texts {
            if text % GLANCE == 0 {
                progress.check()?;
            }
            let first = near.ids.len();
            for &word in words.row(text) {
                let at = place[word as usize];
                if at == NOWHERE {
                    continue;
                }
                if (at as usize) < slots {
                    near.ids.push(at);
                } else {
                    let rare = at - slots as u32;
                    far.ids.push(rare);
                    let end = &mut postings.ends[rare as usize];
                    postings.ids[*end as usize] = text as u32;
                    *end += 1;
                }
            }
            // Rising slots: the rows are then read in one sweep over the table.
            near.ids[first..].sort_unstable();
            near.ends.push(near.ids.len() as u64);
            far.ends.push(far.ids.len() as u64);
        }
        Ok(Self { texts, slots, frequent: near, rare: far, postings })
    }

    /// Slots of the frequent words of a text, ascending; all below [`Self::slots`].
    pub fn frequent(&self, text: usize) -> &[u32] {
        self.frequent.row(text)
    }

    /// Rare words of a text.
    pub fn rare(&self, text: usize) -> &[u32] {
        self.rare.row(text)
    }

    pub fn rare_words(&self) -> usize {
        self.postings.ends.len()
    }

    /// Texts with a rare word, ascending.
    pub fn postings(&self, rare: u32) -> &[u32] {
        self.postings.row(rare as usize)
    }
}

/// The number of texts from which on a word is kept as a bitmap.
fn frequent_df(tuning: &Tuning, texts: usize) -> u32 {
    tuning.frequent_df.unwrap_or(((texts / 1500) as u32).max(8)).max(1)
}
