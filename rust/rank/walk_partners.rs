//! The partners' side of stage 2: what does not depend on the candidate.

use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::rank::walk::{dot, Dense};
use crate::rank::walk_bridges::{Block, Bridges, Rows, BLOCK};
use crate::rank::walk_cover::Cover;
use crate::rank::walk_mentions::Mentions;
use crate::rank::walk_pairs::LANES;

/// What the parts of a pair's worth weigh.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worth {
    /// Of the question's keywords, without and with vectors.
    pub cover: f64,
    pub cover_dense: f64,
    /// The candidate mentions the partner's subject.
    pub mentions: f64,
    /// The partner mentions the candidate's subject.
    pub mentioned: f64,
}

/// Buffers of stage 2.
#[derive(Debug, Default)]
pub(crate) struct PairScratch {
    pub keywords: Bridges,
    pub names: Bridges,
    pub mentions: Mentions,
}

/// The partners, their sentences, and what they have of the question.
pub(crate) struct Partners<'a> {
    pub ids: &'a [u32],
    pub blocks: Vec<Block>,
    /// Partner i's blocks are `block_ends[i - 1]..block_ends[i]`.
    block_ends: Vec<usize>,
    /// The sentences of all partners.
    pub sentences: Vec<u32>,
    pub cover: Cover,
    /// By the question's keyword: its saturation in each partner.
    pub saturated: Vec<[f64; LANES]>,
    /// What each partner covers of the question on its own.
    pub alone: [f64; LANES],
    /// What each sentence has of the question, and what all sentences of each partner, of each block have.
    pub sets: Vec<u64>,
    pub unit_unions: [u64; LANES],
    pub unions: Vec<u64>,
    /// Similarity of partners and sentences to the question; empty without vectors.
    pub unit_near: Vec<f64>,
    pub sentence_near: Vec<f64>,
}

impl<'a> Partners<'a> {
    pub fn new(
        links: &LinksView<'_>,
        dense: Option<&Dense<'_>>,
        question: &Question,
        ids: &'a [u32],
        worth: &Worth,
        scratch: &mut PairScratch,
    ) -> Self {
        let (mut blocks, mut block_ends, mut sentences) = (Vec::new(), Vec::new(), Vec::new());
        for (partner, &unit) in ids.iter().enumerate() {
            let own = links.sentences(unit as usize);
            for first in own.clone().step_by(BLOCK) {
                let count = (own.end - first).min(BLOCK);
                blocks.push(Block { partner, first: sentences.len(), count });
                sentences.extend((first..first + count).map(|s| s as u32));
            }
            block_ends.push(blocks.len());
        }
        let PairScratch { keywords, names, mentions } = scratch;
        keywords.build(links, &keyword_rows(links), &question.keywords, ids, &blocks);
        names.build(links, &name_rows(links), &question.names, ids, &blocks);
        mentions.build(links, question, ids);

        let cover =
            Cover::new(links, question, if dense.is_some() { worth.cover_dense } else { worth.cover });
        let mut saturated = vec![[0f64; LANES]; cover.weights.len()];
        for (i, &unit) in ids.iter().enumerate() {
            for (k, at) in asked_keywords(links.unit_keywords.row(unit as usize), &question.keywords) {
                if let Some(bit) = cover.bits[k] {
                    saturated[usize::from(bit)][i] = saturation(links, unit, at);
                }
            }
        }
        let mut alone = [0f64; LANES];
        for (row, &w) in saturated.iter().zip(&cover.weights) {
            alone.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * w);
        }
        let set_of = |&sentence: &u32| {
            let own = asked_keywords(links.sentence_keywords.row(sentence as usize), &question.keywords);
            own.fold(0, |set, (k, _)| set | cover.bit(k))
        };
        let sets: Vec<u64> = sentences.iter().map(set_of).collect();
        let union_of = |b: &Block| sets[b.first..b.first + b.count].iter().fold(0, |all, set| all | set);
        let unions: Vec<u64> = blocks.iter().map(union_of).collect();
        let mut unit_unions = [0; LANES];
        blocks.iter().zip(&unions).for_each(|(block, set)| unit_unions[block.partner] |= set);
        let near = |d: &Dense<'_>, vector: &[f32]| dot(d.query, vector);
        let unit_near = dense.map_or(Vec::new(), |d| ids.iter().map(|&u| near(d, d.unit(u))).collect());
        let sentence_near = dense
            .map_or(Vec::new(), |d| sentences.iter().map(|&s| near(d, d.sentence(s as usize))).collect());
        Self {
            ids,
            blocks,
            block_ends,
            sentences,
            cover,
            saturated,
            alone,
            sets,
            unit_unions,
            unions,
            unit_near,
            sentence_near,
        }
    }

    /// The numbers of partner i's blocks.
    pub fn blocks_of(&self, i: usize) -> std::ops::Range<usize> {
        i.checked_sub(1).map_or(0, |last| self.block_ends[last])..self.block_ends[i]
    }
}

/// BM25's saturation of the `at`-th keyword of a unit.
#[inline]
pub(crate) fn saturation(links: &LinksView<'_>, unit: u32, at: usize) -> f64 {
    let tf = f64::from(links.unit_tf[links.unit_keywords.indptr[unit as usize] as usize + at]);
    tf / (tf + links.unit_norm[unit as usize])
}

/// Which of the question's keywords a row has: their places in the question and in the row.
pub(crate) fn asked_keywords<'a>(
    row: &'a [u32],
    asked: &'a [u32],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    row.iter().enumerate().filter_map(|(at, x)| asked.binary_search(x).ok().map(|k| (k, at)))
}

fn keyword_rows<'a>(links: &LinksView<'a>) -> Rows<'a> {
    let (of_unit, of_sentence) = (links.unit_keywords, links.sentence_keywords);
    Rows { of_unit, of_sentence, idf: links.keyword_idf }
}

fn name_rows<'a>(links: &LinksView<'a>) -> Rows<'a> {
    Rows { of_unit: links.unit_names, of_sentence: links.sentence_names, idf: links.name_idf }
}
