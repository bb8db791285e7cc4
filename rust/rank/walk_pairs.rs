//! Stage 2 of the walk: a candidate is as good as the best linked pair it forms with a partner.

use crate::error::Result;
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::rank::walk::{dot, Dense};
use crate::rank::walk_bridges::{Block, Bridges, BLOCK};
use crate::sparse::{prefetch, prefetch_range, Scored};

/// At most [`LANES`].
const PARTNERS: usize = 30;
/// Partners are bits of a number and lanes of a register.
const LANES: usize = 32;
const STAGE1_WEIGHT: f64 = 0.1;
const COVER_WEIGHT: f64 = 6.0;
const COVER_WEIGHT_C: f64 = 9.0;
const DENSE_WEIGHT: f64 = 6.0;
const LINK_WEIGHT: f64 = 3.5;
const LINK_NAME: f64 = 0.3;
const LINK_KEYWORD: f64 = 0.7;
const LINK_SUBJECT: f64 = 0.6;
const SENTENCE_SHARE: f64 = 0.5;
const MAX_COSINE: f64 = 0.98;
/// A question's keywords as bits of one number: of longer questions the rarest count.
const MAX_TERMS: usize = 64;

/// Buffers of stage 2.
#[derive(Debug, Default)]
pub(crate) struct PairScratch {
    keywords: Bridges,
    names: Bridges,
}

/// Share of the question's keywords, by weight, for sets of them given as bits.
struct Cover {
    /// The bit of each of the question's keywords; those that do not count have none.
    bits: Vec<Option<u8>>,
    weights: Vec<f64>,
    tables: Vec<[f64; 256]>,
}

impl Cover {
    fn new(links: &LinksView<'_>, question: &Question, weight: f64) -> Self {
        let idf = |t: u32| links.keyword_idf[t as usize];
        let asked = &question.keywords;
        let mut kept: Vec<usize> = (0..asked.len()).collect();
        if kept.len() > MAX_TERMS {
            kept.sort_by(|&a, &b| idf(asked[b]).total_cmp(&idf(asked[a])).then(a.cmp(&b)));
            kept.truncate(MAX_TERMS);
            kept.sort_unstable();
        }
        let total: f64 = kept.iter().map(|&k| idf(asked[k])).sum();
        let weights: Vec<f64> = kept.iter().map(|&k| weight * idf(asked[k]) / total.max(1e-9)).collect();
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
    fn bit(&self, asked: usize) -> u64 {
        self.bits[asked].map_or(0, |bit| 1 << bit)
    }

    #[inline]
    fn of(&self, set: u64) -> f64 {
        let byte = |k: usize| (set >> (8 * k)) as usize & 255;
        self.tables.iter().enumerate().map(|(k, table)| table[byte(k)]).sum()
    }
}

/// x^(1/8).
#[inline]
fn root(x: f64) -> f64 {
    x.sqrt().sqrt().sqrt()
}

/// At least x^(1/8) for x >= 0, within some 7 % (or 1e-38), without a root. The bits of a positive number
/// are a piecewise linear logarithm: at most .0861 below it, and at least as great when read back.
#[inline]
fn root_bound(x: f64) -> f64 {
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const SLACK: u64 = (0.0861 * (1u64 << 52) as f64) as u64 + 1;
    f64::from_bits((x.to_bits() >> 3) + (ONE - ONE / 8 + SLACK / 8 + 2))
}

fn link(keywords: f64, names: f64) -> f64 {
    LINK_WEIGHT * (LINK_KEYWORD * root(keywords) + LINK_NAME * root(names))
}

#[inline]
fn link_bound(keywords: f64, names: f64) -> f64 {
    LINK_WEIGHT * (LINK_KEYWORD * root_bound(keywords) + LINK_NAME * root_bound(names))
}

/// Length of the projection of the question on the plane of two vectors: a, b their similarities to
/// it, c that of the two.
fn explained(a: f64, b: f64, c: f64) -> f64 {
    let c = c.clamp(-MAX_COSINE, MAX_COSINE);
    ((a * a + b * b - 2.0 * a * b * c) / (1.0 - c * c)).max(0.0).sqrt()
}

/// BM25's saturation of the `at`-th keyword of a unit.
#[inline]
fn saturation(links: &LinksView<'_>, unit: u32, at: usize) -> f64 {
    let tf = f64::from(links.unit_tf[links.unit_keywords.indptr[unit as usize] as usize + at]);
    tf / (tf + links.unit_norm[unit as usize])
}

/// Subjects with the partner that owns or mentions each, ascending: what a mention is worth.
struct Mentions<'a> {
    links: &'a LinksView<'a>,
    question: &'a Question,
    owned: Vec<(u32, usize)>,
    mentioned: Vec<(u32, usize)>,
    log: f64,
}

impl<'a> Mentions<'a> {
    fn new(links: &'a LinksView<'a>, question: &'a Question, partners: &[u32]) -> Self {
        let (mut owned, mut mentioned) = (Vec::new(), Vec::new());
        for (i, &unit) in partners.iter().enumerate() {
            let subject = links.unit_subject[unit as usize];
            owned.extend((subject != NONE).then_some((subject, i)));
            mentioned.extend(links.unit_mentions.row(unit as usize).iter().map(|&s| (s, i)));
        }
        owned.sort_unstable();
        mentioned.sort_unstable();
        Self { links, question, owned, mentioned, log: (links.units().max(2) as f64).ln() }
    }

    fn worth(&self, subject: u32) -> f64 {
        match self.question.subjects.binary_search(&subject) {
            Ok(_) => 0.0,
            Err(_) => self.links.subject_idf[subject as usize] / self.log,
        }
    }

    /// `out[i]`: the better of what the unit's mention of partner i's subject is worth and the reverse.
    fn of(&self, unit: u32, out: &mut [f64; LANES]) {
        out.fill(0.0);
        let mut add = |subject: u32, among: &[(u32, usize)]| {
            let first = among.partition_point(|&(s, _)| s < subject);
            let same = among[first..].iter().take_while(|&&(s, _)| s == subject);
            let mut worth = None;
            for &(_, i) in same {
                out[i] = out[i].max(*worth.get_or_insert_with(|| self.worth(subject)));
            }
        };
        let subject = self.links.unit_subject[unit as usize];
        if subject != NONE {
            add(subject, &self.mentioned);
        }
        self.links.unit_mentions.row(unit as usize).iter().for_each(|&s| add(s, &self.owned));
    }
}

/// V of every candidate, in the order of `pool` (best T first).
///
/// Every partner gets a bound on the pair's worth that needs no root and no look at single sentences;
/// partners are then looked at closely, best bound first, for as long as they could win.
pub(crate) fn pair_scores(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    question: &Question,
    pool: &[Scored],
    scratch: &mut PairScratch,
    progress: &Progress,
) -> Result<Vec<f64>> {
    let partners: Vec<u32> = pool.iter().take(PARTNERS).map(|p| p.id).collect();
    let mut blocks: Vec<Block> = Vec::new();
    let mut partner_sentences: Vec<usize> = Vec::new();
    for (partner, &unit) in partners.iter().enumerate() {
        let sentences = links.sentences(unit as usize);
        for first in sentences.clone().step_by(BLOCK) {
            let count = (sentences.end - first).min(BLOCK);
            blocks.push(Block { partner, first: partner_sentences.len(), count });
            partner_sentences.extend(first..first + count);
        }
    }
    let PairScratch { keywords, names } = scratch;
    let (of_unit, of_sentence) = (&links.unit_keywords, &links.sentence_keywords);
    let (idf, asked) = (links.keyword_idf, &question.keywords);
    keywords.build(links, of_unit, of_sentence, idf, asked, &partners, &blocks);
    let (of_unit, of_sentence) = (&links.unit_names, &links.sentence_names);
    names.build(links, of_unit, of_sentence, links.name_idf, &question.names, &partners, &blocks);

    // What the partners and their sentences have of the question.
    let cover = Cover::new(links, question, if dense.is_some() { COVER_WEIGHT } else { COVER_WEIGHT_C });
    let width = cover.weights.len();
    let mut saturated = vec![[0f64; LANES]; width];
    let mut unused = [0f64; LANES];
    for (i, &unit) in partners.iter().enumerate() {
        keywords.add_units(of_unit_row(links, unit), &mut unused, |k, at| {
            if let Some(bit) = cover.bits[k] {
                saturated[usize::from(bit)][i] = saturation(links, unit, at);
            }
        });
    }
    let mut covered_alone = [0f64; LANES];
    for (row, &w) in saturated.iter().zip(&cover.weights) {
        covered_alone.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * w);
    }
    let mut sets = vec![0u64; partner_sentences.len()];
    for (set, &sentence) in sets.iter_mut().zip(&partner_sentences) {
        let places = links.sentence_keywords.row(sentence).iter().map(|x| asked.binary_search(x));
        *set = places.fold(0, |set, place| set | place.map_or(0, |k| cover.bit(k)));
    }
    let unions: Vec<u64> = blocks
        .iter()
        .map(|b| sets[b.first..b.first + b.count].iter().fold(0, |all, set| all | set))
        .collect();
    let unit_near: Vec<f64> =
        dense.map_or(Vec::new(), |d| partners.iter().map(|&u| dot(d.query, d.unit(u))).collect());
    let sentence_near: Vec<f64> = dense
        .map_or(Vec::new(), |d| partner_sentences.iter().map(|&s| dot(d.query, d.sentence(s))).collect());

    // With c cut at .98 the projection of q is at most sqrt(2.02) |q|, for vectors of length 1.
    let explained_at_most =
        dense.map_or(0.0, |d| DENSE_WEIGHT * 1.5 * dot(d.query, d.query).sqrt().max(1e-3));
    let mentions = Mentions::new(links, question, &partners);
    let mut named = [0f64; LANES];
    let mut own = vec![0f64; width];
    let mut own_sets = [0u64; BLOCK];
    let mut scores = Vec::with_capacity(pool.len());
    for (at, candidate) in pool.iter().enumerate() {
        ask_ahead(links, pool, at);
        let unit = candidate.id;
        // Units: all of X but the link's roots, and a bound on those.
        let (mut unit_keywords, mut unit_names) = ([0f64; LANES], [0f64; LANES]);
        own.fill(0.0);
        keywords.add_units(of_unit_row(links, unit), &mut unit_keywords, |k, at| {
            if let Some(bit) = cover.bits[k] {
                own[usize::from(bit)] = saturation(links, unit, at);
            }
        });
        names.add_units(links.unit_names.row(unit as usize), &mut unit_names, |_, _| ());
        mentions.of(unit, &mut named);
        let mut plain = covered_alone;
        for ((&x, row), &w) in own.iter().zip(&saturated).zip(&cover.weights) {
            if x > 0.0 {
                for (sum, &y) in plain.iter_mut().zip(row) {
                    *sum += if x > y { (x - y) * w } else { 0.0 };
                }
            }
        }
        let mut strength_bound = [0f64; LANES];
        for i in 0..LANES {
            plain[i] += LINK_WEIGHT * LINK_SUBJECT * named[i];
            strength_bound[i] = plain[i] + link_bound(unit_keywords[i], unit_names[i]);
        }
        let near = dense.map_or(0.0, |d| dot(d.query, d.unit(unit)));
        if let Some(d) = dense {
            for (i, &partner) in partners.iter().enumerate() {
                let both = dot(d.unit(unit), d.unit(partner));
                let gained = DENSE_WEIGHT * explained(near, unit_near[i], both);
                plain[i] += gained;
                strength_bound[i] += gained;
            }
        }

        let mut best = 0.0f64;
        let sentences = links.sentences(unit as usize);
        let mut first = sentences.start;
        loop {
            progress.check()?;
            let taken = first..(first + BLOCK).min(sentences.end);
            own_sets[..taken.len()].fill(0);
            keywords.take(&links.sentence_keywords, taken.clone(), |x, k| own_sets[x] |= cover.bit(k));
            names.take(&links.sentence_names, taken.clone(), |_, _| ());
            let every = own_sets[..taken.len()].iter().fold(0, |all, set| all | set);
            let mut hopes = [0f64; LANES];
            if !taken.is_empty() {
                for (b, block) in blocks.iter().enumerate() {
                    let linked = link_bound(keywords.sums[b], names.sums[b]);
                    let hope = cover.of(every | unions[b]) + explained_at_most + linked;
                    hopes[block.partner] = hopes[block.partner].max(hope);
                }
            }
            let mut bounds = [f64::NEG_INFINITY; LANES];
            for (i, &partner) in partners.iter().enumerate() {
                if partner != unit {
                    bounds[i] = (1.0 - SENTENCE_SHARE) * strength_bound[i] + SENTENCE_SHARE * hopes[i];
                }
            }
            while let Some((i, bound)) = greatest(&bounds) {
                if bound <= best {
                    break;
                }
                bounds[i] = f64::NEG_INFINITY;
                let base = (1.0 - SENTENCE_SHARE) * (plain[i] + link(unit_keywords[i], unit_names[i]));
                best = best.max(base);
                let own_blocks = blocks.iter().enumerate().filter(|(_, block)| block.partner == i);
                for (b, block) in own_blocks {
                    let linked = link_bound(keywords.sums[b], names.sums[b]);
                    for (x, sentence) in taken.clone().enumerate() {
                        let set = own_sets[x];
                        let hope = cover.of(set | unions[b]) + explained_at_most + linked;
                        if base + SENTENCE_SHARE * hope <= best {
                            continue;
                        }
                        let near = dense.map_or(0.0, |d| dot(d.query, d.sentence(sentence)));
                        for y in block.first..block.first + block.count {
                            let mut value = cover.of(set | sets[y]);
                            if base + SENTENCE_SHARE * (value + explained_at_most + linked) <= best {
                                continue;
                            }
                            let k = keywords.between(b, x, y - block.first);
                            let m = names.between(b, x, y - block.first);
                            if let Some(d) = dense {
                                let both = dot(d.sentence(sentence), d.sentence(partner_sentences[y]));
                                value += DENSE_WEIGHT * explained(near, sentence_near[y], both);
                            }
                            if base + SENTENCE_SHARE * (value + link_bound(k, m)) > best {
                                best = best.max(base + SENTENCE_SHARE * (value + link(k, m)));
                            }
                        }
                    }
                }
            }
            first = taken.end;
            if first >= sentences.end {
                break;
            }
        }
        scores.push(STAGE1_WEIGHT * candidate.score + best);
    }
    Ok(scores)
}

/// Asks for what the next candidates need: where their rows are, then the rows.
fn ask_ahead(links: &LinksView<'_>, pool: &[Scored], at: usize) {
    if let Some(far) = pool.get(at + 6) {
        let unit = far.id as usize;
        prefetch(links.unit_keywords.indptr, unit);
        prefetch(links.unit_names.indptr, unit);
        prefetch(links.unit_mentions.indptr, unit);
        prefetch(links.first_sentence, unit);
        prefetch(links.unit_subject, unit);
        prefetch(links.unit_norm, unit);
    }
    if let Some(next) = pool.get(at + 4) {
        let unit = next.id as usize;
        prefetch_range(links.unit_keywords.indices, links.unit_keywords.range(unit));
        prefetch_range(links.unit_names.indices, links.unit_names.range(unit));
        prefetch_range(links.unit_mentions.indices, links.unit_mentions.range(unit));
        let sentences = links.sentences(unit);
        prefetch_range(links.sentence_keywords.indptr, sentences.clone());
        prefetch_range(links.sentence_names.indptr, sentences);
    }
    if let Some(next) = pool.get(at + 2) {
        let sentences = links.sentences(next.id as usize);
        for rows in [&links.sentence_keywords, &links.sentence_names] {
            let (start, end) = (rows.indptr[sentences.start], rows.indptr[sentences.end]);
            prefetch_range(rows.indices, start as usize..end as usize);
        }
    }
}

fn of_unit_row<'a>(links: &LinksView<'a>, unit: u32) -> &'a [u32] {
    links.unit_keywords.row(unit as usize)
}

/// The greatest of some numbers, and where it is: the first of equal ones. NaN is passed over.
fn greatest(numbers: &[f64; LANES]) -> Option<(usize, f64)> {
    let mut found = None;
    let mut most = f64::NEG_INFINITY;
    for (i, &x) in numbers.iter().enumerate() {
        if x > most {
            (found, most) = (Some(i), x);
        }
    }
    found.map(|i| (i, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bound_is_a_bound_and_close(exponent in -60.0f64..5.0) {
            let x = exponent.exp2();
            prop_assert!(root_bound(x) >= root(x));
            prop_assert!(root_bound(x) <= 1.08 * root(x));
        }
    }

    #[test]
    fn nothing_shared_is_worth_nothing() {
        assert_eq!(link(0.0, 0.0), 0.0);
        assert!(root_bound(0.0) < 1e-37);
        assert!((explained(0.6, 0.8, 0.0) - 1.0).abs() < 1e-12);
        assert!(explained(1.0, 1.0, 1.0).is_finite());
    }
}
