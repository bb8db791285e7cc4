//! Several hops over shared keywords, names and subjects.

use super::channel::Channel;
use super::options::Options;
use super::query::{need, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::question::Question;
use crate::rank::walk_explain::{explain, Reason};
use crate::rank::walk_trace::Trace;
use crate::rank::{walk, walk2};
use crate::sparse::{leaves, Scored};

pub struct Walk;

/// The option `walk`: the second form has a second round and chains of three.
fn second(options: &Options) -> Result<bool> {
    Ok(options.choice("walk", "walk", &["first", "second"])? == "second")
}

/// The vectors, where question and index have a model's. The space fitted on the corpus does not help the
/// walk (25-walk): it then runs without.
fn dense<'a>(query: &'a Query<'_, '_>) -> Result<Option<walk::Dense<'a>>> {
    let Some(vector) = query.question.vector else { return Ok(None) };
    let (units, sentences) = (query.parts.unit_vectors()?, query.parts.sentence_vectors()?);
    Ok(units.zip(sentences).map(|(units, sentences)| walk::Dense {
        unit_vectors: units.rows(0..units.len()),
        sentence_vectors: sentences.rows(0..sentences.len()),
        dim: units.dim(),
        query: vector,
    }))
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
        let dense = dense(query)?;
        let text = query.question.text;
        if second(query.options)? {
            let lengths = Some(query.parts.unit_lengths()?);
            let plan = walk2::Plan::new(false);
            let mask = query.mask;
            return walk2::rank(links, lengths, dense, text, wanted, mask, &plan, scratch.of(), progress);
        }
        // Nothing was ever left out of the first form: all of its ranking, and of that what is left.
        let most = if query.mask.is_some() { links.units() } else { wanted };
        let mut found =
            walk::rank(links, dense, text, most, walk::Options::default(), scratch.of(), progress)?;
        found.retain(|one| leaves(query.mask, one.id));
        found.truncate(wanted);
        Ok(found)
    }

    fn explain(&self, query: &Query<'_, '_>, units: &[u32], progress: &Progress) -> Result<Vec<Reason>> {
        // Buffers of its own, so that a ranking for nothing but its result keeps no trace.
        let mut scratch = Scratch::default();
        scratch.of::<walk::Scratch>().trace = Trace::wanted();
        scratch.of::<walk2::Scratch>().trace = Trace::wanted();
        self.rank(query, 1, 0, &mut scratch, progress)?;
        let trace = match second(query.options)? {
            true => std::mem::take(&mut scratch.of::<walk2::Scratch>().trace),
            false => std::mem::take(&mut scratch.of::<walk::Scratch>().trace),
        };
        let links = need(query.parts.links()?)?;
        let mut question = Question::default();
        question.read(links, query.question.text);
        explain(links, dense(query)?.as_ref(), &question, &trace, units, progress)
    }
}
