//! Coverage: the share of the query's keywords that sets of them contain.

use crate::rank::links_view::LinksView;
use crate::rank::question::Question;

/// A query's keywords are bits of one number: of longer queries only the rarest count.
const MAX_TERMS: usize = 64;

/// Weighted share of the query's keywords, for sets of them given as bits.
pub(crate) struct Cover {
    /// The bit of each of the query's keywords; those that do not count have none.
    pub bits: Vec<Option<u8>>,
    /// By bit; their sum is the weight of full coverage.
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
