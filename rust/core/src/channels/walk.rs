//! The channel `walk`: several hops over shared keywords, names and subjects.

use super::channel::Channel;
use super::function_words::by_function_words;
use super::query::{need, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::question::Question;
use crate::rank::walk;
use crate::rank::walk::explain::Trace;
use crate::rank::walk::explain::{explain, Reason};
use crate::rank::walk::words_first;
use crate::sparse::Scored;

pub struct Walk;

/// Return the vectors if query and index have vectors of a model. Vectors fitted on the corpus do not improve
/// the walk, which then runs without vectors.
fn dense<'a>(query: &'a Query<'_, '_>) -> Result<Option<walk::Dense<'a>>> {
    let Some(vector) = query.question.vector else { return Ok(None) };
    let found = query.parts.unit_vectors()?.zip(query.parts.sentence_vectors()?);
    found.map(|(units, sentences)| walk::Dense::new(units, sentences, vector)).transpose()
}

impl Channel for Walk {
    fn name(&self) -> &str {
        "walk"
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
        let links = need(query.parts.links()?)?;
        let (dense, weighed) = (dense(query)?, query.weighed()?);
        if dense.is_none() && weighed.is_none() {
            if let Some(found) = by_function_words(query, wanted, progress)? {
                return Ok(found);
            }
        }
        let units = walk::Units {
            lengths: walk::Lengths::Spans(query.parts.unit_spans()?),
            documents: Some(query.parts.unit_documents()?),
            files: Some(query.parts.files()?),
        };
        let (text, mask, plan) = (query.question.text, query.mask, walk::Plan::new(false));
        let found =
            walk::rank(links, units, dense, weighed, text, wanted, mask, &plan, scratch.of(), progress)?;
        match weighed {
            Some(_) => Ok(found),
            None => words_first::arrange(links, (text, wanted), mask, found, progress),
        }
    }

    fn explain(&self, query: &Query<'_, '_>, units: &[u32], progress: &Progress) -> Result<Vec<Reason>> {
        // Use separate buffers, so that rankings without explanations record no trace.
        let mut scratch = Scratch::default();
        scratch.of::<walk::Scratch>().trace = Trace::wanted();
        self.rank(query, 1, 0, &mut scratch, progress)?;
        let trace = std::mem::take(&mut scratch.of::<walk::Scratch>().trace);
        let links = need(query.parts.links()?)?;
        let mut question = Question::default();
        question.read(links, query.question.text);
        explain(links, dense(query)?.as_ref(), &question, &trace, units, progress)
    }
}
