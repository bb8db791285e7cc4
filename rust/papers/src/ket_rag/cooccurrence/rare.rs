//! Rare words: finds, for a group of texts and a run of blocks, the pairs of texts that share a rare word.
//!
//! Postings are read word by word, in memory order. Reading them text by text costs a cache miss for each
//! rare word of each text and takes four times as long.

use super::plan::Plan;
use super::slices::TEXTS;
use crate::error::Result;
use crate::progress::Progress;
use std::ops::Range;

/// Maximum number of texts in a group. The index of a text in its group takes 16 bits.
pub const GROUP: usize = 1 << 16;

/// Number of words between two checks of the progress.
const GLANCE: usize = 1 << 14;

/// The texts that share rare words with the texts of a group, for one run of blocks at a time. Each shared
/// word takes four bytes. The size of a group is limited so that the total stays within a fixed amount
/// ([`group_end`]).
#[derive(Default)]
pub struct Rare {
    group: Range<usize>,
    words: Vec<Word>,
    /// For each block of the run: (index of a text in the group, position in the block) of each shared word.
    pairs: Vec<Vec<(u16, u16)>>,
    /// The pairs of the current block, grouped by text: the end of each text's positions, and the positions.
    ends: Vec<u32>,
    positions: Vec<u16>,
}

/// A rare word of some text of the group.
struct Word {
    id: u32,
    /// The word's texts that are in the group, as a range.
    from: u32,
    to: u32,
    /// Number of the word's texts that previous runs have processed.
    passed: u32,
}

impl Rare {
    /// Return to the first block with a new group of at most [`GROUP`] texts.
    pub fn begin(&mut self, plan: &Plan, group: &Range<usize>, progress: &Progress) -> Result<()> {
        self.group = group.clone();
        self.words.clear();
        for id in 0..plan.rare_words() as u32 {
            if (id as usize).is_multiple_of(GLANCE) {
                progress.check()?;
            }
            let texts = plan.postings(id);
            let from = texts.partition_point(|&text| (text as usize) < group.start);
            let to = from + texts[from..].partition_point(|&text| (text as usize) < group.end);
            if from < to {
                self.words.push(Word { id, from: from as u32, to: to as u32, passed: 0 });
            }
        }
        Ok(())
    }

    /// Collect the pairs of the blocks `run`, which must follow the previous ones. `places` is, for each text
    /// of the group, the index with which [`Self::of`] will be called.
    pub fn fill(
        &mut self,
        plan: &Plan,
        places: &[u16],
        run: &Range<usize>,
        progress: &Progress,
    ) -> Result<()> {
        let (start, end) = (run.start * TEXTS, run.end * TEXTS);
        self.pairs.resize_with(run.len(), Vec::new);
        self.pairs.iter_mut().for_each(Vec::clear);
        for (i, word) in self.words.iter_mut().enumerate() {
            if i % 256 == 0 {
                progress.check()?;
            }
            let texts = plan.postings(word.id);
            let mine = &texts[word.from as usize..word.to as usize];
            for &other in &texts[word.passed as usize..] {
                if other as usize >= end {
                    break;
                }
                word.passed += 1;
                let at = other as usize - start;
                let (pairs, position) = (&mut self.pairs[at / TEXTS], (at % TEXTS) as u16);
                for &text in mine {
                    if text != other {
                        pairs.push((places[text as usize - self.group.start], position));
                    }
                }
            }
        }
        Ok(())
    }

    /// Sort the pairs of block `b` of the run by text, for [`Self::of`].
    pub fn enter(&mut self, b: usize) {
        let pairs = &self.pairs[b];
        self.ends.clear();
        self.ends.resize(self.group.len() + 1, 0);
        for &(g, _) in pairs {
            self.ends[g as usize + 1] += 1;
        }
        for g in 0..self.group.len() {
            self.ends[g + 1] += self.ends[g];
        }
        // Each start advances to its end as positions are written. Entry g is then the end of text g's
        // positions.
        self.positions.resize(pairs.len().max(self.positions.len()), 0);
        for &(g, position) in pairs {
            let end = &mut self.ends[g as usize];
            self.positions[*end as usize] = position;
            *end += 1;
        }
    }

    /// Return the positions in the current block that share rare words with the text of index `g`, one per
    /// shared word.
    pub fn of(&self, g: usize) -> &[u16] {
        let from = if g == 0 { 0 } else { self.ends[g - 1] as usize };
        &self.positions[from..self.ends[g] as usize]
    }
}

/// Return the end of a group that begins with text `from`: at most `texts` texts, whose rare words have about
/// `budget` postings in `run` blocks, but at least one text.
pub fn group_end(plan: &Plan, from: usize, last: usize, texts: usize, run: usize, budget: u64) -> usize {
    let blocks = plan.texts.div_ceil(TEXTS).max(1);
    let mut expected = 0u64;
    let mut end = from;
    while end < last && end - from < texts.min(GROUP) {
        let met: u64 = plan.rare(end).iter().map(|&word| plan.postings(word).len() as u64).sum();
        // The number of postings in one run if they are spread evenly.
        expected += met * run.min(blocks) as u64 / blocks as u64;
        if expected > budget && end > from {
            break;
        }
        end += 1;
    }
    end
}
