//! Relevance: how likely a passage is one that the query asks for, from 0 to 1 on one scale for every mode.
//!
//! A mode's score orders passages and cannot be compared with another mode's. Relevance is a logistic function of
//! what the index knows about a query and a passage: how much of the query's keywords, weighted by rarity, the passage and
//! its best sentence have, and how near their vectors are if the index has a model. A keyword that no passage has
//! counts as the rarest: a query about something else is covered by no passage. Relevance never rises with the rank,
//! so a passage that a mode ranks low is at most as relevant as those before it.
//!
//! The constants are fitted on question sets by `benches/relevance.py`.

use super::links_view::LinksView;
use super::question::Question;
use crate::rank::walk::{asked_keywords, saturation};

/// Constant, and weights of [`Evidence`] in its order, without vectors.
const WORDS: [f64; 5] = [-3.2, 1.0, 3.0, 2.0, 0.0];
/// The same with vectors of a model.
const VECTORS: [f64; 5] = [-4.0, 1.0, 2.0, 1.0, 4.0];
/// Relevance of a passage about which nothing is known: neither keywords nor a vector.
const UNKNOWN: f64 = 0.5;
/// A query whose best passage is less relevant than this has no answer in the index: 5 % of the queries that have one
/// are below it.
pub const FITTING: f64 = 0.2;

/// What is known about a query and a passage, each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// Share of the query's keywords, weighted by idf, that the passage has.
    pub covered: f64,
    /// The same of its best sentence.
    pub sentence: f64,
    /// BM25 score, divided by that of a passage that consists of the query's keywords.
    pub saturated: f64,
    /// Cosine of the vectors of query and passage; `None` without a model.
    pub cosine: Option<f64>,
}

impl Evidence {
    /// Return the relevance of a passage by itself.
    pub fn relevance(&self) -> f64 {
        let weights = if self.cosine.is_some() { VECTORS } else { WORDS };
        let terms = [1.0, self.covered, self.sentence, self.saturated, self.cosine.unwrap_or(0.0)];
        let sum: f64 = weights.iter().zip(terms).map(|(weight, term)| weight * term).sum();
        1.0 / (1.0 + (-sum).exp())
    }
}

/// The keywords of a query with their weights, to compare passages with.
#[derive(Debug)]
pub struct Judge<'a> {
    links: &'a LinksView<'a>,
    question: Question,
    weights: Vec<f64>,
    total: f64,
}

impl<'a> Judge<'a> {
    pub fn new(links: &'a LinksView<'a>, text: &str) -> Self {
        let mut question = Question::default();
        question.read(links, text);
        let idf = |(at, &x): (usize, &u32)| question.share(at) * links.keyword_idf[x as usize];
        let weights: Vec<f64> = question.keywords.iter().enumerate().map(idf).collect();
        let n = links.units() as f64;
        let unseen = question.unknown() as f64 * (1.0 + (n + 0.5) / 0.5).ln();
        let total = weights.iter().sum::<f64>() + unseen;
        Self { links, question, weights, total }
    }

    /// Return what the words tell about a unit.
    pub fn evidence(&self, unit: u32) -> Evidence {
        let Self { links, question, weights, total } = self;
        let row = links.unit_keywords.row(unit as usize);
        let (mut covered, mut saturated) = (0.0, 0.0);
        // Positions in the unit's row of the query's keywords, ascending, with their weights.
        let mut own: Vec<(u32, f64)> = Vec::new();
        for (k, at) in asked_keywords(row, &question.keywords) {
            covered += weights[k];
            saturated += weights[k] * saturation(links, unit, at);
            own.push((row[at], weights[k]));
        }
        if own.is_empty() || *total <= 0.0 {
            return Evidence::default();
        }
        let mut best = 0.0f64;
        for sentence in links.sentences(unit as usize) {
            let ids = links.sentence_keywords.row(unit as usize, sentence);
            let found = ids.filter_map(|x| own.binary_search_by_key(&x, |own| own.0).ok());
            best = best.max(found.map(|at| own[at].1).sum());
        }
        let share = |sum: f64| (sum / total).clamp(0.0, 1.0);
        Evidence {
            covered: share(covered),
            sentence: share(best),
            saturated: share(saturated),
            cosine: None,
        }
    }
}

/// Return the relevance of ranked passages, best first: each at most that of the one before.
pub fn falling(passages: impl IntoIterator<Item = Option<Evidence>>) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let mut next = |evidence: Option<Evidence>| {
        let own = evidence.map_or(UNKNOWN, |evidence| evidence.relevance());
        least = least.min(own);
        least
    };
    passages.into_iter().map(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_evidence_is_more_relevant_and_ranks_never_rise() {
        let of = |covered, cosine| Evidence { covered, sentence: covered, saturated: covered / 2.0, cosine };
        for cosine in [None, Some(0.3)] {
            let all: Vec<f64> = [0.0, 0.3, 0.6, 1.0].map(|x| of(x, cosine).relevance()).to_vec();
            assert!(all.windows(2).all(|w| 0.0 < w[0] && w[0] < w[1] && w[1] < 1.0));
        }
        assert!(of(0.5, Some(0.2)).relevance() < of(0.5, Some(0.7)).relevance());
        let ranked = falling([Some(of(0.5, None)), Some(of(1.0, None)), None, Some(of(0.0, None))]);
        assert!(ranked.windows(2).all(|w| w[0] >= w[1]));
        assert_eq!(ranked[0], ranked[1]);
    }
}
