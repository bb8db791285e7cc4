//! Stage 2 of the walk: a candidate is as good as the best linked pair it forms with a partner.

use crate::error::Result;
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::rank::walk::{dot, Dense};
use crate::rank::walk_bridges::Bridges;
use crate::sparse::Scored;

const PARTNERS: usize = 30;
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
    terms: Vec<u32>,
    weights: Vec<f64>,
    tables: Vec<[f64; 256]>,
}

impl Cover {
    fn new(links: &LinksView<'_>, question: &Question, weight: f64) -> Self {
        let idf = |t: &u32| links.keyword_idf[*t as usize];
        let mut terms = question.keywords.clone();
        if terms.len() > MAX_TERMS {
            terms.sort_by(|a, b| idf(b).total_cmp(&idf(a)).then(a.cmp(b)));
            terms.truncate(MAX_TERMS);
            terms.sort_unstable();
        }
        let total: f64 = terms.iter().map(idf).sum();
        let weights: Vec<f64> = terms.iter().map(|t| weight * idf(t) / total.max(1e-9)).collect();
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
        Self { terms, weights, tables }
    }

    fn bits(&self, row: &[u32]) -> u64 {
        let bit = |x: &u32| self.terms.binary_search(x).map_or(0, |k| 1u64 << k);
        row.iter().fold(0, |set, x| set | bit(x))
    }

    #[inline]
    fn of(&self, set: u64) -> f64 {
        let byte = |k: usize| (set >> (8 * k)) as usize & 255;
        self.tables.iter().enumerate().map(|(k, table)| table[byte(k)]).sum()
    }

    /// BM25's saturation of each term in a unit.
    fn saturation(&self, links: &LinksView<'_>, unit: u32, out: &mut Vec<f64>) {
        let base = out.len();
        out.resize(base + self.terms.len(), 0.0);
        let range = links.unit_keywords.range(unit as usize);
        let row = &links.unit_keywords.indices[range.clone()];
        for (k, term) in self.terms.iter().enumerate() {
            if let Ok(at) = row.binary_search(term) {
                let tf = f64::from(links.unit_tf[range.start + at]);
                out[base + k] = tf / (tf + links.unit_norm[unit as usize]);
            }
        }
    }
}

/// x^(1/8).
#[inline]
fn root(x: f64) -> f64 {
    x.sqrt().sqrt().sqrt()
}

/// At least x^(1/8), within some 7 %, without a root. The bits of a positive number are a piecewise
/// linear logarithm: at most .0861 below it, and at least as great when read back.
#[inline]
fn root_bound(x: f64) -> f64 {
    const ONE: i64 = 0x3ff0_0000_0000_0000;
    const SLACK: i64 = (0.0861 * (1u64 << 52) as f64) as i64 + 1;
    if x <= 0.0 {
        return 0.0;
    }
    f64::from_bits((ONE + ((x.to_bits() as i64 - ONE + SLACK) >> 3) + 1) as u64)
}

fn link(keywords: f64, names: f64) -> f64 {
    LINK_WEIGHT * (LINK_KEYWORD * root(keywords) + LINK_NAME * root(names))
}

fn link_bound(keywords: f64, names: f64) -> f64 {
    LINK_WEIGHT * (LINK_KEYWORD * root_bound(keywords) + LINK_NAME * root_bound(names))
}

/// Length of the projection of the question on the plane of two vectors: a, b their similarities to
/// it, c that of the two.
fn explained(a: f64, b: f64, c: f64) -> f64 {
    let c = c.clamp(-MAX_COSINE, MAX_COSINE);
    ((a * a + b * b - 2.0 * a * b * c) / (1.0 - c * c)).max(0.0).sqrt()
}

/// V of every candidate, in the order of `pool` (best T first).
pub(crate) fn pair_scores(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    question: &Question,
    pool: &[Scored],
    scratch: &mut PairScratch,
    progress: &Progress,
) -> Result<Vec<f64>> {
    let partners: Vec<u32> = pool.iter().take(PARTNERS).map(|p| p.id).collect();
    let PairScratch { keywords, names } = scratch;
    let weight = if dense.is_some() { COVER_WEIGHT } else { COVER_WEIGHT_C };
    let cover = Cover::new(links, question, weight);
    let width = cover.terms.len();
    let (of_unit, of_sentence) = (&links.unit_keywords, &links.sentence_keywords);
    let (idf, asked) = (links.keyword_idf, &question.keywords);
    keywords.build(links, of_unit, of_sentence, idf, asked, |x| cover.bits(&[x]), &partners);
    let (of_unit, of_sentence) = (&links.unit_names, &links.sentence_names);
    names.build(links, of_unit, of_sentence, links.name_idf, &question.names, |_| 0, &partners);

    // What the partners and their sentences have of the question.
    let mut saturated = Vec::new();
    let mut first = vec![0usize];
    let (mut sets, mut unions): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut partner_sentences: Vec<usize> = Vec::new();
    for &unit in &partners {
        cover.saturation(links, unit, &mut saturated);
        partner_sentences.extend(links.sentences(unit as usize));
        sets.extend(links.sentences(unit as usize).map(|s| cover.bits(links.sentence_keywords.row(s))));
        unions.push(sets[first[first.len() - 1]..].iter().fold(0, |all, set| all | set));
        first.push(sets.len());
    }
    let unit_near: Vec<f64> =
        dense.map_or(Vec::new(), |d| partners.iter().map(|&u| dot(d.query, d.unit(u))).collect());
    let sentence_near: Vec<f64> = dense
        .map_or(Vec::new(), |d| partner_sentences.iter().map(|&s| dot(d.query, d.sentence(s))).collect());

    // With c cut at .98 the projection of q is at most sqrt(2.02) |q|, for vectors of length 1.
    let explained_at_most =
        dense.map_or(0.0, |d| DENSE_WEIGHT * 1.5 * dot(d.query, d.query).sqrt().max(1e-3));

    let count = partners.len();
    let log = (links.units().max(2) as f64).ln();
    let worth = |subject: u32| match question.subjects.binary_search(&subject) {
        Ok(_) => 0.0,
        Err(_) => links.subject_idf[subject as usize] / log,
    };
    // What the mention of a partner's subject is worth, and a unit's mention by a partner.
    let mention = |by: u32, of: u32| match links.unit_subject[of as usize] {
        NONE => 0.0,
        s if links.unit_mentions.row(by as usize).binary_search(&s).is_ok() => worth(s),
        _ => 0.0,
    };
    let mut own = Vec::new();
    let (mut unit_keywords, mut unit_names) = (vec![0.0; count], vec![0.0; count]);
    let (mut in_keywords, mut in_names) = (vec![0.0; sets.len()], vec![0.0; sets.len()]);
    let mut strength = vec![0.0; count];
    let mut order: Vec<usize> = (0..count).collect();
    let every = unions.iter().fold(0, |all, set| all | set);
    let mut scores = Vec::with_capacity(pool.len());
    for candidate in pool {
        progress.check()?;
        let unit = candidate.id;
        unit_keywords.fill(0.0);
        unit_names.fill(0.0);
        keywords.add_units(links.unit_keywords.row(unit as usize), &mut unit_keywords);
        names.add_units(links.unit_names.row(unit as usize), &mut unit_names);
        own.clear();
        cover.saturation(links, unit, &mut own);
        let near = dense.map_or(0.0, |d| dot(d.query, d.unit(unit)));
        for (i, &partner) in partners.iter().enumerate() {
            let other = &saturated[i * width..(i + 1) * width];
            let pairs = own.iter().zip(other).zip(&cover.weights);
            let covered: f64 = pairs.map(|((a, b), w)| a.max(*b) * w).sum();
            let named = mention(unit, partner).max(mention(partner, unit));
            strength[i] =
                covered + link(unit_keywords[i], unit_names[i]) + LINK_WEIGHT * LINK_SUBJECT * named;
            if let Some(d) = dense {
                let both = dot(d.unit(unit), d.unit(partner));
                strength[i] += DENSE_WEIGHT * explained(near, unit_near[i], both);
            }
        }
        // The best of .5 X + .5 Y; a pair of sentences is looked at closely only if it could win.
        let mut best = 0.0f64;
        for (i, &partner) in partners.iter().enumerate() {
            if partner != unit {
                best = best.max((1.0 - SENTENCE_SHARE) * strength[i]);
            }
        }
        order.sort_unstable_by(|&a, &b| strength[b].total_cmp(&strength[a]).then(a.cmp(&b)));
        for sentence in links.sentences(unit as usize) {
            in_keywords.fill(0.0);
            in_names.fill(0.0);
            let set = keywords.add_sentences(links.sentence_keywords.row(sentence), &mut in_keywords);
            names.add_sentences(links.sentence_names.row(sentence), &mut in_names);
            let near = dense.map_or(0.0, |d| dot(d.query, d.sentence(sentence)));
            // Strongest partners first: once not even all that any partner has could win, none can.
            let most = |sums: &[f64]| sums.iter().copied().fold(0.0, f64::max);
            let any = link_bound(most(&in_keywords), most(&in_names));
            let ceiling = cover.of(set | every) + explained_at_most + any;
            for &i in &order {
                let (own, base) = (first[i]..first[i + 1], (1.0 - SENTENCE_SHARE) * strength[i]);
                if base + SENTENCE_SHARE * ceiling <= best {
                    break;
                }
                let partner = partners[i];
                let linked = link_bound(most(&in_keywords[own.clone()]), most(&in_names[own.clone()]));
                let hope = cover.of(set | unions[i]) + explained_at_most + linked;
                if partner == unit || base + SENTENCE_SHARE * hope <= best {
                    continue;
                }
                for y in own {
                    let mut value = cover.of(set | sets[y]);
                    if let Some(d) = dense {
                        let both = dot(d.sentence(sentence), d.sentence(partner_sentences[y]));
                        value += DENSE_WEIGHT * explained(near, sentence_near[y], both);
                    }
                    let (k, m) = (in_keywords[y], in_names[y]);
                    if base + SENTENCE_SHARE * (value + link_bound(k, m)) > best {
                        best = best.max(base + SENTENCE_SHARE * (value + link(k, m)));
                    }
                }
            }
        }
        scores.push(STAGE1_WEIGHT * candidate.score + best);
    }
    Ok(scores)
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
        assert_eq!((root_bound(0.0), link(0.0, 0.0)), (0.0, 0.0));
        assert!((explained(0.6, 0.8, 0.0) - 1.0).abs() < 1e-12);
        assert!(explained(1.0, 1.0, 1.0).is_finite());
    }
}
