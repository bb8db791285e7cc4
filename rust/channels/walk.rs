//! Several hops over shared keywords, names and subjects.

use super::channel::Channel;
use super::options::Options;
use super::query::{need, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::{walk, walk2};
use crate::sparse::Scored;

pub struct Walk;

/// The option `walk`: the second form has a second round and chains of three.
fn second(options: &Options) -> Result<bool> {
    Ok(options.choice("walk", "walk", &["first", "second"])? == "second")
}

impl Channel for Walk {
    fn name(&self) -> &str {
        "walk"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        (!parts.has_links()).then_some("the word index (stage links)")
    }

    fn check(&self, options: &Options, alone: bool) -> Result<()> {
        second(options)?;
        self.style(options, alone).map(drop)
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        _budget: u64,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let links = need(query.parts.links()?)?;
        let (units, sentences) = match query.question.vector {
            Some(_) => (query.parts.unit_vectors()?, query.parts.sentence_vectors()?),
            None => (None, None),
        };
        // The space fitted on the corpus does not help the walk (25-walk): it then runs without.
        let dense = match (query.question.vector, units, sentences) {
            (Some(query), Some(units), Some(sentences)) => Some(walk::Dense {
                unit_vectors: units.rows(0..units.len()),
                sentence_vectors: sentences.rows(0..sentences.len()),
                dim: units.dim(),
                query,
            }),
            _ => None,
        };
        let (text, options) = (query.question.text, walk::Options::default());
        if second(query.options)? {
            let lengths = Some(query.parts.unit_lengths()?);
            return walk2::rank(links, lengths, dense, text, wanted, options, scratch.of(), progress);
        }
        walk::rank(links, dense, text, wanted, options, scratch.of(), progress)
    }
}
