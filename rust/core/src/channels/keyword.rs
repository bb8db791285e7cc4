//! The channel of KET-RAG's text-keyword graph (Algorithm 4): keywords near the query select the units that
//! contain them.

use super::channel::{published, Channel};
use super::options::Options;
use super::query::{need, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::search::keyword::PoolScratch;
use crate::search::render::Style;
use crate::sparse::Scored;
use crate::vector::simd::Level;

pub struct Keyword;

/// Name of the vectors for which the caller may supply candidates of an approximate search.
const LIST: &str = "keywords";

/// The option `seed_keywords`: maximum number of keywords that select units.
fn most_seeds(options: &Options) -> Result<Option<usize>> {
    options.bound("keyword", "seed_keywords")
}

impl Channel for Keyword {
    fn name(&self) -> &str {
        "keyword"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        vectors.or((!parts.has_keywords()).then_some("the keyword graph (stage keywords)"))
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
        let mut keywords = need(query.parts.keywords()?)?;
        if let Some(mask) = query.mask {
            keywords = keywords.only(mask, need(query.parts.keywords_of()?)?.view())?;
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
