//! Parameters of the walk: limits and weights, for the default form and for the exact form without limits.

use super::collection::Collection;
use super::step::Options;
use super::worth::Worth;
use super::worth::LANES;
use crate::error::{Error, Result};

/// A numeric parameter of a plan, and its conversion from the caller's value.
trait Number: Copy {
    fn of(value: f64) -> Self;
    /// Return whether callers may set this value.
    fn fits(value: f64) -> bool;
}

impl Number for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn fits(value: f64) -> bool {
        value.abs() <= 1e6
    }
}

impl Number for usize {
    fn of(value: f64) -> Self {
        value as usize
    }

    fn fits(value: f64) -> bool {
        (0.0..=1e6).contains(&value) && value.fract() == 0.0
    }
}

macro_rules! plan {
    ($($(#[$about:meta])* $name:ident: $kind:ty = $product:expr, $sketch:expr;)*) => {
        /// Every parameter of the walk.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Plan {
            /// Whether stage 1 covers every unit and node, or is local.
            pub exact: bool,
            $($(#[$about])* pub $name: $kind,)*
        }

        impl Plan {
            /// Return the default parameters, whose cost does not grow with the index, or the exact
            /// parameters, which cover every unit and node.
            pub fn new(exact: bool) -> Self {
                Self { exact, $($name: if exact { $sketch } else { $product },)* }
            }

            /// Set one parameter by its name.
            pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
                match name {
                    $(stringify!($name) if <$kind>::fits(value) => self.$name = Number::of(value),)*
                    $(stringify!($name) => return Err(Error::input(format!(
                        "{name} of the walk cannot be {value}: it must be {}",
                        std::any::type_name::<$kind>().replace("f64", "finite").replace("usize", "a whole number")
                    ))),)*
                    _ => return Err(Error::input(format!(
                        "the walk's plan has no {name:?}; it has {}",
                        [$(stringify!($name)),*].join(", ")
                    ))),
                }
                self.check()
            }
        }
    };
}

plan! {
    /// Number of candidates of round 1, from stage 1.
    pool: usize = 120, 150;
    /// Number of first candidates that serve as partners of every candidate.
    partners: usize = 24, 30;
    /// Number of best units of round 1 from which one more step is walked.
    seeds: usize = 8, 8;
    /// Numbers of candidates added by the walk from the uncovered part of the query, and by the extra step.
    rest_pool: usize = 50, 50;
    step_pool: usize = 30, 30;
    /// Numbers of partners added: the best of round 1, and the best by the uncovered part of the query.
    /// Together with `partners` at most the number of lanes of a pair.
    best_partners: usize = 8, 10;
    rest_partners: usize = 8, 10;
    /// Number of steps of the walk from the query's matches, and from the matches of the uncovered part.
    steps: usize = 2, 3;
    rest_steps: usize = 1, 3;
    /// Limits of the local form: nodes with more units than the first are skipped; the others are the numbers
    /// of units and nodes that pass mass on.
    max_df: usize = 200, 200;
    keep: usize = 50, 100;
    nodes: usize = 100, 100;
    /// Weight of the share of the query that a pair covers, without vectors and with vectors. Without vectors,
    /// 9, 10.5 and 12 differ by less than half a point on MuSiQue and 2WikiMultihopQA; with 9 the example of
    /// `make demo` has the answer at rank 4, with 10 to 12 at rank 3.
    cover: f64 = 10.5, 9.0;
    cover_dense: f64 = 6.0, 6.0;
    /// Weights of the rarest keyword and of the rarest name that a pair shares.
    shared_keyword: f64 = 2.45, 2.45;
    shared_name: f64 = 1.05, 1.05;
    /// Keywords less rare than this (idf / ln n) are ignored.
    least_rarity: f64 = 0.3, 0.0;
    /// Weight if the partner mentions the candidate's subject, and if the candidate mentions the partner's.
    mentioned: f64 = 1.5, 1.5;
    mentions: f64 = 1.0, 1.0;
    /// Weight of a partner whose subject the query names, multiplied by the named share of the subject.
    named_partner: f64 = 2.5, 2.5;
    /// Saturation (1 / 1.5) from which a keyword counts as covered when the uncovered part of the query is
    /// computed.
    saturated: f64 = 1.5, 1.5;
    /// Number of best pairs that chains extend; weight of the keywords that a third unit covers in addition
    /// to the pair; factor by which a pair loses score for its distance from the best pair.
    chains: usize = 10, 10;
    chain_cover: f64 = 5.0, 5.0;
    chain_gap: f64 = 0.5, 0.5;
    /// Directness, from 0 to `direct`: the degree to which the direct match replaces the pairs. It is full if
    /// the share of distinct subjects among the documents of the candidates of round 1 that have one is below
    /// `distinct` minus `distinct_span`, and 0 from `distinct` on.
    ///
    /// Chosen with `benches/kinds.py` on samples of MuSiQue, 2WikiMultihopQA and XQuAD, whole and cut, the first two
    /// also joined and without titles, and of eight other sets as they are; no set was left out of the choice. At
    /// 0.7 without `common`, MuSiQue without titles, cut to 30 tokens, loses 1.2 points of recall@5 and web pages
    /// 2.3 of what no pairs give; 0.65 with `common` loses 1.1 and none. Values between were not tried.
    direct: f64 = 1.0, 0.0;
    distinct: f64 = 0.65, 0.7;
    distinct_span: f64 = 0.2, 0.2;
    /// Added to `distinct` if mentioned subjects are as common as `common` or more; less in proportion.
    common_distinct: f64 = 0.2, 0.0;
    common: f64 = 0.2, 0.2;
    /// Minimum directness for a query that names no subject, if most candidates have a subject and none
    /// mentions that of another unit. It falls to 0 as the share of such mentions rises to this limit.
    unlinked: f64 = 0.5, 0.0;
    mentioning: f64 = 0.1, 0.1;
    /// Weight of the best pair, and of the direct match at full directness. The weight of the pair then falls
    /// to 0.
    pair: f64 = 1.0, 1.0;
    direct_stage1: f64 = 3.0, 3.0;
    /// Weight of a candidate's company at full directness, if all candidates have company.
    company: f64 = 1.5, 0.0;
    /// Share that is subtracted of the company which documents of this length have on average. Without it
    /// (0), recall@5 falls from 34.3 to 32.2 on chats with an assistant (BEAM), from 87.8 to 87.3 on LoCoMo and
    /// from 81.8 to 80.8 on web pages, and rises from 19.7 to 20.1 on contracts.
    company_length: f64 = 1.0, 0.0;
    /// Share of what a candidate contains itself that is subtracted from the match of its company, if the share
    /// of documents that are a single unit is `single` or more; less in proportion. With 0 instead of 1, nDCG@10
    /// falls from 35.2 to 32.1 on BEAM and from 86.8 to 85.5 on LiHua-World. With 1 for all collections it falls
    /// from 48.5 to 43.2 on contracts. `single` 0.2 loses 0.6 on BEAM (docs/internals/ranking.md).
    company_repeated: f64 = 1.0, 0.0;
    single: f64 = 0.1, 0.1;
    /// Additional weight of vectors in the direct match for each standard deviation by which the nearest unit
    /// is nearer than chance explains: see `trust` in `pool`. Chosen on seven sets with all-MiniLM-L6-v2, by
    /// recall@5 and nDCG@10 of the direct match alone, without leaving a set out: the mean is 77.8 with 1, 1.5
    /// and 2, 77.5 with 0.5, and 76.8 with 0; code gains most (78.6 instead of 74.3).
    /// Each of eleven sets left out (the seven, HotpotQA, OTT-QA, BEAM and contracts) chooses 1 or 1.5: their mean
    /// is 73.9 with 1, 73.8 with 1.5, 73.7 with 0.5 and 2, and 73.3 with 0.
    trust: f64 = 1.5, 0.0;
    /// Additional weight of vectors, as a share of the rest, if the nearest units are code; less in
    /// proportion to the share of code among them. Files of code do not count: nDCG@10 on six of semble's
    /// repositories would fall by 0.4 points. Chosen with all-MiniLM-L6-v2 on CoSQA, the only set of functions:
    /// recall@5 is 85.5 with 0, 86.0 with 1, 87.0 with 1.5, 2 and 3, and 87.5 with 4 and for vectors alone;
    /// nDCG@10 is 73.4, 75.2, 76.7, 77.1, 77.1 and 76.9, and 75.6 for vectors alone.
    code_vectors: f64 = 2.0, 0.0;
    /// Added at full directness, for a query in the first person, if a unit is what its author wrote.
    /// recall@5 without a model, with 0, 2, 3, 4, 5 and 6: BEAM, a message each, 35.8, 38.4, 39.6, 40.2, 40.7
    /// and 42.5; an exchange each 46.6, 48.1, 47.8, 48.9, 49.7 and 49.8. No other set has questions in the
    /// first person and such passages, so none can be left out; 4 is less than these would choose.
    own_words: f64 = 4.0, 0.0;
    /// Weights of the sum; in round 1 also `length_early`. Lengths are natural logarithms of characters.
    /// `stage1`: 0.05 to 0.1 differ by less than half a point on wikis; recall in the first three
    /// passages of the example in `examples/polar` is 89 with 0.05 and 85 with 0.1.
    stage1: f64 = 0.05, 0.1;
    rest: f64 = 0.03, 0.03;
    step: f64 = 0.16, 0.16;
    named: f64 = 2.5, 2.5;
    subject: f64 = 1.5, 1.5;
    length_early: f64 = -0.4, -0.4;
    length: f64 = -0.5, -0.5;
    length_dense: f64 = -0.4, -0.4;
    chain: f64 = 0.8, 0.8;
    chain_dense: f64 = 0.5, 0.5;
    /// Number of first ranks at which stage 1 has this extra weight, for questions that one passage answers.
    /// With the ordinary weight, the passage is at rank 1 for 2 to 5 points fewer questions than with BM25.
    first: usize = 2, 2;
    first_stage1: f64 = 1.0, 0.3;
    /// Number of best units among which files of code are put in order, without and with vectors, and the weights of `code`.
    ///
    /// Chosen one after another with `benches/code.py fit` on five of ten repositories of semble's benchmark, without
    /// a model; the values that it tries are in its `GRID`. nDCG@10 on the other five is 0.617 without these rules,
    /// 0.756 with these values, and 0.762 with 0.3, 0.2 and 0.3 for name, folder and body (0.861 instead of 0.875 on the
    /// five). `code_file` 0.6 instead of 0.3 raises the five from 0.872 to 0.875 and changes nothing on the others; 1.0
    /// is equal to 0.6.
    ///
    /// `code_depth_dense`, with all-MiniLM-L6-v2: 100 gives 0.869 on the five, 200 0.873, 300 0.880 and 500 0.872; the
    /// other five have 0.779, 0.784, 0.783 and 0.783. Without a model 300 gives what 100 gives on the five, and 0.760
    /// instead of 0.762 on the others.
    ///
    /// `code_near`, with all-MiniLM-L6-v2: 0.4 and 0.6 give 0.872 on the five, 0.3 gives 0.869, and 0 gives 0.857. The other
    /// five, which were seen too, have 0.788 with 0.4, 0.783 with 0.6 and 0.780 with 0.
    ///
    /// `code_cover`, without a model: 0 gives 0.878 on the five and 0.784 on the other five, 0.2 gives 0.874 and 0.789, 0.3
    /// 0.874 and 0.795, 0.4 0.875 and 0.795. Chosen without each repository in turn it is 0.3 to 0.6, which raises the
    /// mean of the repositories left out from 0.830 to 0.832; the five alone choose 0. With
    /// all-MiniLM-L6-v2 0.3 lowers 0.882 and 0.801 to 0.875 and 0.802, so it does not count there. `code_old` 0.5 instead of 1 raises
    /// zod, the only repository with folders of versions, from 0.612 to 0.647.
    ///
    /// `code_page`, on 20 questions that pages answer and 20 that code answers in three repositories (this one, httpx,
    /// ripgrep), which were written before any was asked; mean reciprocal rank of both: 0 gives 0.761 and 0.771, 0.5 0.863
    /// and 0.764, 0.7 0.900 and 0.762, 1 0.900 and 0.699. It was 0.599 and 0.767 when pages kept their ranks. semble's
    /// repositories have no pages.
    code_depth: usize = 100, 0;
    code_depth_dense: usize = 300, 0;
    code_name: f64 = 0.6, 0.6;
    code_folder: f64 = 0.3, 0.3;
    code_body: f64 = 0.2, 0.2;
    code_cover: f64 = 0.3, 0.3;
    code_symbol: f64 = 0.4, 0.4;
    code_file: f64 = 0.6, 0.6;
    code_aside: f64 = 0.3, 0.3;
    code_imports: f64 = 0.5, 0.5;
    code_old: f64 = 0.5, 0.5;
    code_page: f64 = 0.7, 0.7;
    code_again: f64 = 0.3, 0.3;
    code_near: f64 = 0.4, 0.4;
}

impl Plan {
    /// Check the limits that other code relies on.
    fn check(&self) -> Result<()> {
        let partners = self.partners + self.best_partners + self.rest_partners;
        match (self.pool, self.partners) {
            (1.., 1..) if partners <= LANES => Ok(()),
            _ => Err(Error::input(format!(
                "the walk needs at least one candidate and one partner, and has at most {LANES} partners, not {partners}"
            ))),
        }
    }

    /// Return the plan for a collection. If links are weak evidence, the direct match and other matches of
    /// the document replace pairs.
    pub(super) fn among(&self, found: &Collection) -> Self {
        let positive = |span: f64| span.max(f64::MIN_POSITIVE);
        let common = (found.common / positive(self.common)).min(1.0);
        let distinct = self.distinct + self.common_distinct * common;
        let few = ((distinct - found.distinct()) / positive(self.distinct_span)).clamp(0.0, 1.0);
        let alone = match found.is_titled() && !found.named {
            true => self.unlinked * (1.0 - found.linked() / positive(self.mentioning)).max(0.0),
            false => 0.0,
        };
        let direct = (self.direct * few).max(alone);
        let stage1 = self.stage1 + direct * (self.direct_stage1 - self.stage1);
        let company = self.company * direct * found.company();
        let company_repeated = self.company_repeated * (found.single / positive(self.single)).min(1.0);
        let (pair, own_words) = (self.pair * (1.0 - direct), self.own_words * direct);
        Self { stage1, pair, company, company_repeated, own_words, ..self.clone() }
    }

    /// Return the number of best units among which files of code are put in order.
    pub(super) fn code_depth_of(&self, has_vectors: bool) -> usize {
        if has_vectors {
            self.code_depth_dense
        } else {
            self.code_depth
        }
    }

    /// A mention has full weight. It is added to the unit items, which have half weight.
    pub(super) fn worth(&self) -> Worth {
        Worth {
            cover: self.cover,
            cover_dense: self.cover_dense,
            link: 1.0,
            keyword: self.shared_keyword,
            name: self.shared_name,
            least: self.least_rarity,
            mentions: 2.0 * self.mentions,
            mentioned: 2.0 * self.mentioned,
        }
    }

    /// Return the options of stage 1 from the query's matches, or from those of its uncovered part.
    pub(super) fn options(&self, steps: usize) -> Options {
        let Self { exact, max_df, keep, nodes, trust, code_vectors, .. } = *self;
        Options { exact, max_df: max_df as u64, keep, steps, nodes, trust, code_vectors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNCHANGED: [f64; 3] = [0.05, 1.0, 0.0];

    /// The weights of the direct match, of pairs and of company for a set of candidates.
    fn weights(found: &Collection) -> [f64; 3] {
        let plan = Plan::new(false).among(found);
        [plan.stage1, plan.pair, plan.company].map(|weight| (weight * 1e9).round() / 1e9)
    }

    #[test]
    fn the_direct_match_replaces_pairs_among_units_of_few_subjects() {
        let of = |subjects, titled| Collection {
            candidates: 120,
            documents: 100,
            subjects,
            titled,
            mentioning: 120,
            accompanied: 90,
            ..Collection::default()
        };
        assert_eq!(weights(&of(65, 100)), UNCHANGED);
        // If most documents have no subject, they say nothing about those that have one.
        assert_eq!(weights(&of(50, 70)), UNCHANGED);
        assert_eq!(weights(&of(55, 100)), [1.525, 0.5, 0.5625]);
        for few in [of(10, 50), of(20, 20), of(0, 0)] {
            assert_eq!(weights(&few), [3.0, 0.0, 1.125]);
        }
        assert_eq!(Plan::new(true).among(&of(0, 100)), Plan::new(true));
    }

    #[test]
    fn common_subjects_need_more_of_them_to_count_as_distinct() {
        let of = |subjects, common| Collection {
            candidates: 120,
            documents: 100,
            subjects,
            titled: 100,
            mentioning: 120,
            common,
            ..Collection::default()
        };
        assert_eq!(weights(&of(75, 0.0)), UNCHANGED);
        assert_eq!(weights(&of(75, 0.1)), UNCHANGED);
        for common in [0.2, 1.0] {
            assert_eq!(weights(&of(75, common)), [1.525, 0.5, 0.0]);
            assert_eq!(weights(&of(85, common)), UNCHANGED);
        }
    }

    #[test]
    fn the_direct_match_counts_more_where_no_subject_is_mentioned() {
        let of = |mentioning, named| Collection {
            candidates: 100,
            documents: 100,
            subjects: 100,
            titled: 100,
            mentioning,
            named,
            ..Collection::default()
        };
        assert_eq!(weights(&of(0, false)), [1.525, 0.5, 0.0]);
        assert_eq!(weights(&of(5, false)), [0.7875, 0.75, 0.0]);
        for same in [of(10, false), of(60, false), of(0, true)] {
            assert_eq!(weights(&same), UNCHANGED);
        }
        assert_eq!(Plan::new(true).among(&of(0, false)), Plan::new(true));
        assert_eq!(weights(&Collection::default()), [3.0, 0.0, 0.0]);
    }

    #[test]
    fn what_the_author_of_a_query_wrote_counts_only_where_the_direct_match_does() {
        let of = |subjects| {
            let named = true;
            let found = Collection {
                candidates: 9,
                documents: 100,
                subjects,
                titled: 100,
                named,
                ..Collection::default()
            };
            Plan::new(false).among(&found).own_words
        };
        assert_eq!([of(10), of(100)], [4.0, 0.0]);
    }

    #[test]
    fn numbers_are_set_by_name_and_checked() {
        let mut plan = Plan::new(false);
        plan.set("chain", 0.0).unwrap();
        plan.set("chains", 4.0).unwrap();
        assert_eq!((plan.chain, plan.chains), (0.0, 4));
        for (name, value) in
            [("chain", f64::NAN), ("chains", 1.5), ("pool", 0.0), ("partners", 60.0), ("no", 1.0)]
        {
            assert!(Plan::new(false).set(name, value).is_err(), "{name}");
        }
    }
}
