//! The channel of KET-RAG's text-keyword graph (Algorithm 4): keywords near the query select the units that
//! contain them.

use crate::channels::{published, Channel, Options, Query, Scratch};
use crate::error::Result;
use crate::generation::vectors::{codes, rows, vectors};
use crate::generation::{damaged, once, Arrays, Parts};
use crate::ket_rag::keyword::{KeywordChannel, PoolScratch};
use crate::progress::Progress;
use crate::search::render::Style;
use crate::sparse::{Csr, Scored};
use crate::transposed::transposed;
use crate::vector::simd::Level;
use std::sync::OnceLock;

/// The channel over the keywords of units.
pub struct Keyword<'a> {
    arrays: &'a Arrays,
    view: OnceLock<KeywordChannel<'a>>,
    /// The keywords of each unit, for a filter that passes few units.
    of_units: OnceLock<Csr>,
}

/// Name of the vectors for which the caller may supply candidates of an approximate search.
const LIST: &str = "keywords";

/// The option `seed_keywords`: maximum number of keywords that select units.
fn most_seeds(options: &Options) -> Result<Option<usize>> {
    options.bound("keyword", "seed_keywords")
}

impl<'a> Keyword<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self { arrays, view: OnceLock::new(), of_units: OnceLock::new() }
    }

    fn open(&self, units: usize) -> Result<KeywordChannel<'a>> {
        let arrays = self.arrays;
        // Keywords of the reference implementation are raw tokens with a separate vocabulary.
        let (vocabulary, graph) = match arrays.has("reference_words.keyword_vocabulary_blob") {
            true => ("reference_words.keyword_vocabulary_offsets", "reference_words.keyword_units"),
            false => ("words.vocabulary_offsets", "words.word_units"),
        };
        let words = arrays.shape(vocabulary)?.0.saturating_sub(1);
        let codes = match arrays.has("keywords.keyword_codes") {
            true => Some(codes(arrays, "keywords.keyword")?),
            false => None,
        };
        let means = vectors(arrays, "keywords.vectors", words, codes.as_ref())?;
        let graph = arrays.csr(graph, words, units)?;
        let (units, tokens) = (rows(arrays, "vectors.unit", units)?, arrays.lazy("units.unit_tokens")?);
        match arrays.by_blocks() {
            true => KeywordChannel::stored(means, codes, graph, units, tokens),
            false => KeywordChannel::new(means, codes, graph, units, tokens),
        }
        .map_err(|e| damaged("keywords", e))
    }
}

impl Channel for Keyword<'_> {
    fn name(&self) -> &str {
        "keyword"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        vectors.or((!self.arrays.has("keywords.vectors")).then_some("the keyword graph (stage keywords)"))
    }

    fn depends_on_budget(&self) -> bool {
        true
    }

    fn check(&self, options: &Options, alone: bool) -> Result<()> {
        most_seeds(options)?;
        self.style(options, alone).map(drop)
    }

    fn style(&self, options: &Options, _alone: bool) -> Result<Style> {
        Ok(if published(self.name(), options)? { Style::Published } else { Style::Ket })
    }

    /// The pool holds twice the budget. It is filled from the supplied keywords near the query if they are
    /// enough.
    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        budget: u64,
        scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let mut keywords = *once(&self.view, || self.open(query.parts.len()))?;
        if let Some(mask) = query.mask {
            keywords = keywords.only(mask, once(&self.of_units, || transposed(keywords.rows()))?.view())?;
        }
        let (vector, most) = (query.vector()?, most_seeds(query.options)?);
        let limit = budget.saturating_mul(2);
        let scratch: &mut PoolScratch = scratch.of();
        // Candidates of an approximate search are used only without a filter. With a filter the search is
        // exact.
        let proposed = query.near(LIST).filter(|_| query.mask.is_none());
        let near = proposed.map(|near| keywords.pool_near(vector, limit, most, near, scratch));
        let pool = match near.transpose()?.flatten() {
            Some(pool) => pool,
            None => keywords.pool(vector, limit, most, Level::best(), scratch)?,
        };
        Ok(pool.units.iter().take(wanted).map(|p| Scored { id: p.unit, score: p.score }).collect())
    }
}
