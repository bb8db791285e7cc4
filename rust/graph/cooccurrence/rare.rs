//! Rare words: for a group of texts and a run of blocks, who shares one with whom.

use super::plan::Plan;
use super::slices::TEXTS;
use crate::error::Result;
use crate::progress::Progress;
use std::ops::Range;

/// For each block of a run, for each text of the group in turn, the positions (within the block)
/// of the texts that share a rare word with it, once for each word shared. Two bytes a shared
/// word; a group is cut so that these stay within a fixed amount (see [`group_end`]).
#[derive(Default)]
pub struct Rare {
    /// By block of the run: the positions of all texts of the group, one after the other.
    positions: Vec<Vec<u16>>,
    /// By block of the run and text of the group: where that text's positions end.
    ends: Vec<u32>,
    texts: usize,
    /// By rare word of each text of the group: how much of its posting has been passed.
    cursors: Vec<u32>,
}

impl Rare {
    /// Starts on the first run of blocks with a new group.
    pub fn begin(&mut self, plan: &Plan, group: &Range<usize>) {
        self.texts = group.len();
        self.cursors.clear();
        self.cursors.resize(group.clone().map(|text| plan.rare(text).len()).sum(), 0);
    }

    /// Collects for the blocks `run`, which follow the last ones.
    pub fn fill(
        &mut self,
        plan: &Plan,
        group: &Range<usize>,
        run: &Range<usize>,
        progress: &Progress,
    ) -> Result<()> {
        let (start, end) = (run.start * TEXTS, run.end * TEXTS);
        self.positions.resize_with(run.len(), Vec::new);
        self.positions.iter_mut().for_each(Vec::clear);
        self.ends.clear();
        self.ends.resize(run.len() * self.texts, 0);
        let mut cursors = self.cursors.iter_mut();
        for (g, text) in group.clone().enumerate() {
            if g % 64 == 0 {
                progress.check()?;
            }
            for (&word, cursor) in plan.rare(text).iter().zip(&mut cursors) {
                for &other in &plan.postings(word)[*cursor as usize..] {
                    let other = other as usize;
                    if other >= end {
                        break;
                    }
                    *cursor += 1;
                    if other != text {
                        let at = other - start;
                        self.positions[at / TEXTS].push((at % TEXTS) as u16);
                    }
                }
            }
            for (b, positions) in self.positions.iter().enumerate() {
                self.ends[b * self.texts + g] = positions.len() as u32;
            }
        }
        Ok(())
    }

    /// The positions for block `b` of the run and text `g` of the group.
    pub fn of(&self, b: usize, g: usize) -> &[u16] {
        let ends = &self.ends[b * self.texts..(b + 1) * self.texts];
        let from = if g == 0 { 0 } else { ends[g - 1] as usize };
        &self.positions[b][from..ends[g] as usize]
    }
}

/// The end of a group that begins with text `from`: at most `texts` texts, whose rare words are
/// found about `budget` times at most in `run` blocks (but one text at least).
pub fn group_end(plan: &Plan, from: usize, last: usize, texts: usize, run: usize, budget: u64) -> usize {
    let blocks = plan.texts.div_ceil(TEXTS).max(1);
    let mut expected = 0u64;
    let mut end = from;
    while end < last && end - from < texts {
        let met: u64 = plan.rare(end).iter().map(|&word| plan.postings(word).len() as u64).sum();
        // Of a posting, the share that falls into one run, were it spread evenly.
        expected += met * run.min(blocks) as u64 / blocks as u64;
        if expected > budget && end > from {
            break;
        }
        end += 1;
    }
    end
}
