//! Relevance: the probability that a passage answers the query, from 0 to 1, on the same scale for every
//! mode.
//!
//! A mode's score orders passages and cannot be compared with another mode's. Relevance is a logistic
//! function of six values: the idf-weighted share of the query's keywords in the passage and in its best
//! sentence, the cosine similarity of query and passage if the index has a model, the number of keywords of
//! the query, the share of keywords that no passage contains, and the rank. A keyword that no passage
//! contains gets the highest idf, so an off-topic query is not covered by any passage. Relevance never rises
//! with the rank, so a passage that a mode ranks low is at most as relevant as those before it.
//!
//! The constants are fitted on question sets by `benches/ranking.py relevance`.

use super::links_view::LinksView;
use super::question::Question;
use crate::rank::walk::{asked_keywords, saturation};

/// Weights of the terms of [`Evidence::terms`].
type Weights = [f64; 8];
/// Without vectors.
const WORDS: Weights = [-5.07, 1.57, 2.31, 1.40, 0.0, -1.04, 1.24, -1.56];
/// With vectors of a model.
const VECTORS: Weights = [-3.94, 1.23, 1.77, 0.80, 2.70, -1.44, 0.63, -1.42];
/// If the best passage is less relevant than this, the index does not answer the query. The two thresholds
/// are without and with vectors. Of the queries that do have an answer, 5 % are below them.
const FITTING: [f64; 2] = [0.165, 0.25];
/// Relevance of a passage about which nothing is known, neither keywords nor a vector.
const UNKNOWN: f64 = 0.5;
/// Keywords beyond this number do not make a query's passages more relevant.
const MOST_KEYWORDS: usize = 32;

/// The evidence about a query and a passage. Shares are between 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// Share of the query's keywords, weighted by idf, that the passage has.
    pub covered: f64,
    /// Share of the query's keywords, weighted by idf, that the passage's best sentence has.
    pub sentence: f64,
    /// BM25 score of the passage, divided by the score of a passage that consists of the query's keywords.
    pub saturated: f64,
    /// Cosine of the vectors of query and passage; `None` without a model.
    pub cosine: Option<f64>,
    /// Number of the query's keywords, at most [`MOST_KEYWORDS`].
    pub keywords: f64,
    /// Share of the query's keywords that no passage has.
    pub unseen: f64,
}

impl Evidence {
    /// Return the terms of the logistic function for a passage at this rank, counted from 0.
    pub fn terms(&self, rank: usize) -> Weights {
        let Self { covered, sentence, saturated, cosine, keywords, unseen } = *self;
        let cosine = cosine.unwrap_or(0.0);
        [1.0, covered, sentence, saturated, cosine, (rank as f64).ln_1p(), keywords.ln_1p(), unseen]
    }

    /// Return the relevance of a single passage at this rank.
    fn relevance(&self, rank: usize) -> f64 {
        let weights = if self.cosine.is_some() { VECTORS } else { WORDS };
        let sum: f64 = weights.iter().zip(self.terms(rank)).map(|(weight, term)| weight * term).sum();
        1.0 / (1.0 + (-sum).exp())
    }
}

/// The weighted keywords of a query, with which passages are compared.
#[derive(Debug)]
pub struct Judge<'a> {
    links: &'a LinksView<'a>,
    question: Question,
    weights: Vec<f64>,
    total: f64,
    /// The keyword evidence for a unit that has none of the keywords.
    nothing: Evidence,
}

impl<'a> Judge<'a> {
    pub fn new(links: &'a LinksView<'a>, text: &str) -> Self {
        let mut question = Question::default();
        question.read(links, text);
        let idf = |(at, &x): (usize, &u32)| question.share(at) * links.keyword_idf[x as usize];
        let weights: Vec<f64> = question.keywords.iter().enumerate().map(idf).collect();
        let n = links.population() as f64;
        let unseen = question.unknown() as f64 * (1.0 + (n + 0.5) / 0.5).ln();
        let total = weights.iter().sum::<f64>() + unseen;
        let all = weights.len() + question.unknown();
        let unseen = question.unknown() as f64 / all.max(1) as f64;
        let nothing = Evidence { keywords: all.min(MOST_KEYWORDS) as f64, unseen, ..Evidence::default() };
        Self { links, question, weights, total, nothing }
    }

    /// Return the keyword evidence for a unit.
    pub fn evidence(&self, unit: u32) -> Evidence {
        let Self { links, question, weights, total, nothing } = self;
        let row = links.unit_keywords.row(unit as usize);
        let (mut covered, mut saturated) = (0.0, 0.0);
        // The query's keywords that the unit has, ascending, with their weights.
        let mut own: Vec<(u32, f64)> = Vec::new();
        for (k, at) in asked_keywords(row, &question.keywords) {
            covered += weights[k];
            saturated += weights[k] * saturation(links, unit, at);
            own.push((row[at], weights[k]));
        }
        if own.is_empty() || *total <= 0.0 {
            return *nothing;
        }
        let mut best = 0.0f64;
        let mut in_sentences = vec![false; own.len()];
        for sentence in links.sentences(unit as usize) {
            let ids = links.sentence_keywords.row(unit as usize, sentence);
            let found = ids.filter_map(|x| own.binary_search_by_key(&x, |own| own.0).ok());
            best = best.max(found.inspect(|&at| in_sentences[at] = true).map(|at| own[at].1).sum());
        }
        // A word of the path or the sender counts for every sentence, like a word of the title, which each of them has.
        let of_fields = own.iter().zip(&in_sentences).filter(|(_, is_in)| !**is_in);
        best += of_fields.map(|(own, _)| own.1).sum::<f64>();
        let share = |sum: f64| (sum / total).clamp(0.0, 1.0);
        let (covered, sentence, saturated) = (share(covered), share(best), share(saturated));
        Evidence { covered, sentence, saturated, ..*nothing }
    }
}

/// Return the relevance of ranked passages, best first. The relevance of a passage is at most that of the one
/// before it.
pub fn falling(passages: impl IntoIterator<Item = Option<Evidence>>) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let next = |(rank, evidence): (usize, Option<Evidence>)| {
        least = least.min(evidence.map_or(UNKNOWN, |evidence| evidence.relevance(rank)));
        least
    };
    passages.into_iter().enumerate().map(next).collect()
}

/// Return whether no passage is relevant enough to answer the query, judging by the evidence about the best
/// one.
pub fn nothing_fits(best: Option<Evidence>) -> bool {
    best.is_some_and(|best| best.relevance(0) < FITTING[usize::from(best.cosine.is_some())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::links::{view, Links, Texts};
    use crate::progress::Progress;
    use crate::text::strings::StringsBuf;

    fn of(share: f64, cosine: Option<f64>) -> Evidence {
        let (covered, sentence, saturated) = (share, share, share / 2.0);
        Evidence { covered, sentence, saturated, cosine, keywords: 5.0, unseen: 0.0 }
    }

    #[test]
    fn more_evidence_is_more_relevant() {
        for cosine in [None, Some(0.3)] {
            let all = [0.0, 0.3, 0.6, 1.0].map(|share| of(share, cosine).relevance(0));
            assert!(all.windows(2).all(|w| 0.0 < w[0] && w[0] < w[1] && w[1] < 1.0));
        }
        assert!(of(0.5, Some(0.2)).relevance(0) < of(0.5, Some(0.7)).relevance(0));
        assert!(Evidence { unseen: 0.5, ..of(0.5, None) }.relevance(0) < of(0.5, None).relevance(0));
    }

    #[test]
    fn relevance_never_rises_with_the_rank() {
        let ranked = falling([Some(of(0.5, None)), Some(of(1.0, None)), None, Some(of(0.0, None))]);
        assert!(ranked.windows(2).all(|w| w[0] >= w[1]));
        assert!(falling([None]) == [UNKNOWN] && falling([]).is_empty());
    }

    #[test]
    fn nothing_fits_without_words_in_common() {
        assert!(nothing_fits(Some(of(0.0, None))) && nothing_fits(Some(of(0.0, Some(0.0)))));
        assert!(!nothing_fits(Some(of(1.0, None))) && !nothing_fits(None));
    }

    /// Four units of two keywords each. A word of a unit that no sentence has counts for every sentence.
    #[test]
    fn evidence_is_the_share_of_the_weights_of_keywords() {
        let texts: StringsBuf =
            ["red boat", "boat harbour", "red harbour", "green sea"].into_iter().collect();
        let titles: StringsBuf = ["", "", "", ""].into_iter().collect();
        let sentences: StringsBuf =
            ["red", "boat", "harbour", "red", "harbour", "green sea"].into_iter().collect();
        let input = Texts {
            titles: titles.view(),
            texts: texts.view(),
            sentences: sentences.view(),
            first_sentence: &[0, 1, 3, 5, 6],
            language: crate::text::detection::Choice::Detect,
        };
        let arrays = Links::build(&input, 1, &Progress::none()).unwrap().into_arrays();
        let weights = std::sync::OnceLock::new();
        let links = view(&arrays, &weights).unwrap();
        let judge = Judge::new(&links, "red boat harbour zebra");
        let (idf, unseen) = (2f64.ln(), 10f64.ln()); // each word is in two of four units, or in none
        let total = 3.0 * idf + unseen;
        for (unit, covered, sentence) in [(0, 2.0, 2.0), (1, 2.0, 1.0), (2, 2.0, 1.0), (3, 0.0, 0.0)] {
            let found = judge.evidence(unit);
            let saturated = covered / 2.2; // tf / (tf + 1.2) in units of mean length
            for (value, share) in
                [(found.covered, covered), (found.sentence, sentence), (found.saturated, saturated)]
            {
                assert!((value - share * idf / total).abs() < 1e-6, "{unit}: {found:?}");
            }
            assert_eq!((found.cosine, found.keywords, found.unseen), (None, 4.0, 0.25));
        }
    }
}
