//! The partners' side of stage 2: everything that does not depend on the candidate.

use super::bridges::{Asked, Block, Bridges, Rows, BLOCK};
use super::cover::Cover;
use super::dense::Dense;
use super::mentions::Mentions;
use super::worth::LANES;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;

/// Buffers of stage 2.
#[derive(Debug, Default)]
pub(crate) struct PairScratch {
    pub keywords: Bridges,
    pub names: Bridges,
    pub mentions: Mentions,
}

/// The partners, their sentences, and the query's keywords in them.
pub(crate) struct Partners {
    pub ids: Vec<u32>,
    pub blocks: Vec<Block>,
    /// Partner i's blocks are `block_ends[i - 1]..block_ends[i]`.
    block_ends: Vec<usize>,
    /// The sentences of all partners.
    pub sentences: Vec<u32>,
    pub cover: Cover,
    /// Less rare keywords are ignored.
    least: f64,
    /// By the query's keyword: its saturation in each partner.
    pub saturated: Vec<[f64; LANES]>,
    /// What each partner by itself covers of the query.
    pub alone: [f64; LANES],
    /// The query's keywords in each sentence, and in all sentences of each partner and of each block.
    pub sets: Vec<u64>,
    pub unit_unions: [u64; LANES],
    pub unions: Vec<u64>,
    /// Similarity of partners and sentences to the query; empty without vectors.
    pub unit_near: Vec<f64>,
    pub sentence_near: Vec<f64>,
}

impl Partners {
    pub fn new(
        links: &LinksView<'_>,
        question: &Question,
        cover_weight: f64,
        least: f64,
        scratch: &mut PairScratch,
    ) -> Self {
        let PairScratch { keywords, names, mentions } = scratch;
        keywords.begin_question(links.keywords.len(), &question.keywords);
        names.begin_question(links.names.len(), &question.names);
        mentions.begin_question(links.subjects.len());
        let cover = Cover::new(links, question, cover_weight);
        let saturated = vec![[0f64; LANES]; cover.weights.len()];
        Self {
            ids: Vec::new(),
            blocks: Vec::new(),
            block_ends: Vec::new(),
            sentences: Vec::new(),
            cover,
            least,
            saturated,
            alone: [0.0; LANES],
            sets: Vec::new(),
            unit_unions: [0; LANES],
            unions: Vec::new(),
            unit_near: Vec::new(),
            sentence_near: Vec::new(),
        }
    }

    /// Add partners, in the lanes after those in use.
    pub fn extend(
        &mut self,
        links: &LinksView<'_>,
        dense: Option<&Dense<'_>>,
        question: &Question,
        more: &[u32],
        scratch: &mut PairScratch,
    ) {
        let (lane, first_block, first_sentence) = (self.ids.len(), self.blocks.len(), self.sentences.len());
        self.ids.extend_from_slice(more);
        for (partner, &unit) in (lane..).zip(more) {
            let own = links.sentences(unit as usize);
            for first in own.clone().step_by(BLOCK) {
                let count = (own.end - first).min(BLOCK);
                self.blocks.push(Block { partner, first: self.sentences.len(), count });
                self.sentences.extend((first..first + count).map(|s| s as u32));
            }
            self.block_ends.push(self.blocks.len());
        }
        self.sets.resize(self.sentences.len(), 0);
        let Self { blocks, least, cover, saturated, alone, sets, unit_unions, unions, .. } = self;
        let blocks = &blocks[first_block..];
        let PairScratch { keywords, names, mentions } = scratch;
        keywords.extend(links, &keyword_rows(links, *least), lane, more, blocks, |asked| match asked {
            Asked::Unit { lane: at_lane, k, at } => {
                if let Some(bit) = cover.bits[k] {
                    saturated[usize::from(bit)][at_lane] = saturation(links, more[at_lane - lane], at);
                }
            }
            Asked::Sentence { sentence, k } => sets[sentence] |= cover.bit(k),
        });
        names.extend(links, &name_rows(links), lane, more, blocks, |_| ());
        mentions.extend(links, question, lane, more);
        for (row, &w) in saturated.iter().zip(&cover.weights) {
            alone[lane..].iter_mut().zip(&row[lane..]).for_each(|(sum, x)| *sum += x * w);
        }
        for block in blocks {
            let all = sets[block.first..block.first + block.count].iter().fold(0, |all, set| all | set);
            unions.push(all);
            unit_unions[block.partner] |= all;
        }
        if let Some(d) = dense {
            self.unit_near.extend(more.iter().map(|&unit| d.unit(unit)));
            let sentences = &self.sentences[first_sentence..];
            self.sentence_near.extend(sentences.iter().map(|&s| d.sentence(s as usize)));
        }
    }

    /// Return the numbers of partner i's blocks.
    pub fn blocks_of(&self, i: usize) -> std::ops::Range<usize> {
        i.checked_sub(1).map_or(0, |last| self.block_ends[last])..self.block_ends[i]
    }
}

/// Return BM25's saturation of the `at`-th keyword of a unit.
#[inline]
pub(crate) fn saturation(links: &LinksView<'_>, unit: u32, at: usize) -> f64 {
    let tf = links.unit_tf[links.unit_keywords.indptr[unit as usize] as usize + at];
    links.saturations.of(links.unit_length[unit as usize], tf)
}

/// Iterate over the query's keywords in a row: their positions in the query and in the row.
pub(crate) fn asked_keywords<'a>(
    row: &'a [u32],
    asked: &'a [u32],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    row.iter().enumerate().filter_map(|(at, x)| asked.binary_search(x).ok().map(|k| (k, at)))
}

fn keyword_rows<'a>(links: &LinksView<'a>, least: f64) -> Rows<'a> {
    let (of_unit, of_sentence) = (links.unit_keywords, links.sentence_keywords);
    Rows { of_unit, of_sentence, idf: links.keyword_idf, least }
}

fn name_rows<'a>(links: &LinksView<'a>) -> Rows<'a> {
    Rows { of_unit: links.unit_names, of_sentence: links.sentence_names, idf: links.name_idf, least: 0.0 }
}
