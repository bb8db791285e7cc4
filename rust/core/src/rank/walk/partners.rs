//! The partners' side of stage 2: values that do not depend on the candidate.

use crate::rank::links_view::{LinksView, NONE};
use crate::rank::numbers::Numbers;
use crate::rank::question::Question;
use crate::rank::walk::bridges::{Asked, Block, Bridges, Rows, BLOCK};
use crate::rank::walk::dense::Dense;
use crate::rank::walk::worth::LANES;

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
    /// Keywords less rare than this are ignored.
    least: f64,
    /// For each keyword of the query: its saturation in each partner.
    pub saturated: Vec<[f64; LANES]>,
    /// The coverage of the query by each partner alone.
    pub alone: [f64; LANES],
    /// The query's keywords in each sentence, in all sentences of each partner, and in all sentences of each
    /// block.
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

/// Return BM25's saturation of keyword number `at` of a unit.
#[inline]
pub(crate) fn saturation(links: &LinksView<'_>, unit: u32, at: usize) -> f64 {
    let tf = links.unit_tf[links.unit_keywords.indptr[unit as usize] as usize + at];
    links.saturations.of(links.unit_length[unit as usize], tf)
}

/// Iterate over the query's keywords that a row contains: their positions in the query and in the row.
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

// Coverage: the share of the query's keywords that sets of them contain.

/// Maximum number of counted keywords: each is one bit of an integer. Of longer queries only the rarest
/// keywords count.
const MAX_TERMS: usize = 64;

/// Weighted share of the query's keywords, for sets of keywords represented as bits.
pub(super) struct Cover {
    /// The bit of each keyword of the query. Keywords that do not count have no bit.
    pub bits: Vec<Option<u8>>,
    /// The weight of each bit. The sum of all weights is the weight of full coverage.
    pub weights: Vec<f64>,
    tables: Vec<[f64; 256]>,
}

impl Cover {
    pub fn new(links: &LinksView<'_>, question: &Question, weight: f64) -> Self {
        let asked = &question.keywords;
        let rarity = |k: usize| question.share(k) * links.keyword_idf[asked[k] as usize];
        let mut kept: Vec<usize> = (0..asked.len()).collect();
        if kept.len() > MAX_TERMS {
            kept.sort_by(|&a, &b| rarity(b).total_cmp(&rarity(a)).then(a.cmp(&b)));
            kept.truncate(MAX_TERMS);
            kept.sort_unstable();
        }
        let total: f64 = kept.iter().map(|&k| rarity(k)).sum();
        let weights: Vec<f64> = kept.iter().map(|&k| weight * rarity(k) / total.max(1e-9)).collect();
        let mut bits = vec![None; asked.len()];
        kept.iter().zip(0..).for_each(|(&k, bit)| bits[k] = Some(bit));
        let tables = weights
            .chunks(8)
            .map(|part| {
                let mut table = [0.0; 256];
                for set in 1..1usize << part.len() {
                    let low = set.trailing_zeros() as usize;
                    table[set] = table[set & (set - 1)] + part[low];
                }
                table
            })
            .collect();
        Self { bits, weights, tables }
    }

    #[inline]
    pub fn bit(&self, asked: usize) -> u64 {
        self.bits[asked].map_or(0, |bit| 1 << bit)
    }

    #[inline]
    pub fn of(&self, set: u64) -> f64 {
        let byte = |k: usize| (set >> (8 * k)) as usize & 255;
        self.tables.iter().enumerate().map(|(k, table)| table[byte(k)]).sum()
    }
}

// Scores for a candidate that mentions a partner's subject, or the reverse.
//
// A unit that mentions its own subject gets no score for it: the units of a section inherit the section's
// title as their subject, so mentioning it does not link them to each other.

/// Subjects by the partners that own or mention them.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    /// By subject: 0 if no partner has it, otherwise its index + 1.
    slot: Numbers,
    /// By index: the score of a mention, and the partners that have or mention the subject, as bits.
    worth: Vec<f64>,
    owned: Vec<u64>,
    mentioned: Vec<u64>,
}

impl Mentions {
    /// Reset the partners. `count` is the number of subjects.
    pub fn begin_question(&mut self, count: usize) {
        let Self { slot, worth, owned, mentioned } = self;
        slot.fit(count);
        worth.clear();
        owned.clear();
        mentioned.clear();
    }

    /// Add partners, the first of them in lane `lane`.
    pub fn extend(&mut self, links: &LinksView<'_>, question: &Question, lane: usize, partners: &[u32]) {
        let Self { slot, worth, owned, mentioned } = self;
        let log = (links.population().max(2) as f64).ln();
        let mut place = |s: u32, owned: &mut Vec<u64>, mentioned: &mut Vec<u64>| {
            if slot.get(s) == 0 {
                // A subject that the query names does not link units.
                let named = question.subjects.binary_search(&s).is_ok();
                worth.push(if named { 0.0 } else { links.subject_idf[s as usize] / log });
                owned.push(0);
                mentioned.push(0);
                slot.set(s, worth.len() as u32);
            }
            slot.get(s) as usize - 1
        };
        for (i, &unit) in (lane..).zip(partners) {
            let subject = links.unit_subject[unit as usize];
            if subject != NONE {
                let at = place(subject, owned, mentioned);
                owned[at] |= 1 << i;
            }
            for &s in links.unit_mentions.row(unit as usize).iter().filter(|&&s| s != subject) {
                let at = place(s, owned, mentioned);
                mentioned[at] |= 1 << i;
            }
        }
    }

    /// Set `out[i]` to the greater of two scores: the unit mentions partner i's subject (times `mentions`),
    /// or partner i mentions the unit's subject (times `mentioned`).
    pub fn of(
        &self,
        links: &LinksView<'_>,
        unit: u32,
        mentions: f64,
        mentioned: f64,
        out: &mut [f64; LANES],
    ) {
        out.fill(0.0);
        let mut add = |s: u32, sets: &[u64], weight: f64| {
            let Some(at) = (self.slot.get(s) as usize).checked_sub(1) else { return };
            let (mut set, worth) = (sets[at], weight * self.worth[at]);
            while set != 0 {
                let i = set.trailing_zeros() as usize;
                out[i] = out[i].max(worth);
                set &= set - 1;
            }
        };
        let subject = links.unit_subject[unit as usize];
        if subject != NONE {
            add(subject, &self.mentioned, mentioned);
        }
        let others = links.unit_mentions.row(unit as usize).iter().filter(|&&s| s != subject);
        others.for_each(|&s| add(s, &self.owned, mentions));
    }
}

/// Return a unit's saturation of each of the query's keywords.
pub(super) fn saturations(links: &LinksView<'_>, question: &Question, unit: u32) -> Vec<f64> {
    let mut out = vec![0.0; question.keywords.len()];
    for (k, at) in asked_keywords(links.unit_keywords.row(unit as usize), &question.keywords) {
        out[k] = saturation(links, unit, at);
    }
    out
}
