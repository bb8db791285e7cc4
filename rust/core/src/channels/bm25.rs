//! The channel `bm25`: ranks units by their keywords, or by learned term weights if the index has them.

use super::channel::Channel;
use super::function_words::by_function_words;
use super::query::{need, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::bm25;
use crate::sparse::Scored;

pub struct Bm25;

impl Channel for Bm25 {
    fn name(&self) -> &str {
        "bm25"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        (!parts.has_links()).then_some("the word index (stage links)")
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        _budget: u64,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        if let Some(weighed) = query.weighed()? {
            return bm25::rank_by_terms(weighed, query.parts.len(), wanted, query.mask, progress);
        }
        let links = need(query.parts.links()?)?;
        if let Some(found) = by_function_words(query, wanted, progress)? {
            return Ok(found);
        }
        bm25::rank(links, query.question.text, wanted, query.mask, scratch.of(), progress)
    }
}
