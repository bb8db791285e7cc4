//! Local search over the skeleton (KET-RAG, Algorithm 2): tables of the entities nearest to the query, of
//! their relations, and of the units to which they are linked.

use super::channel::{published, Channel};
use super::options::Options;
use super::print::{Printed, Room, Section};
use super::query::{need, silent, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::{Parts, Skeleton as View};
use crate::progress::Progress;
use crate::search::local::{self, LocalContext};
use crate::search::render::Context;
use crate::sparse::{top_k, Mask, Scored};
use crate::vector::simd::Level;
use crate::vector::{self, Filter};

pub struct Skeleton;

/// Name of the vectors for which the caller may supply candidates of an approximate search.
const LIST: &str = "entities";
/// The channel name of its sections.
const TABLES: &str = "kg";

/// The option `seed_entities`: number of entities from which local search starts.
fn seeds(options: &Options) -> Result<usize> {
    options.count("skeleton", "seed_entities")
}

impl Channel for Skeleton {
    fn name(&self) -> &str {
        "skeleton"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        (!parts.has_skeleton()).then_some("an entity skeleton (index with --llm)")
    }

    fn is_empty(&self, parts: &Parts<'_>) -> Result<bool> {
        Ok(need(parts.skeleton()?)?.graph.entities() == 0)
    }

    fn check(&self, options: &Options, _alone: bool) -> Result<()> {
        seeds(options)?;
        published(self.name(), options).map(drop)
    }

    fn print(
        &self,
        query: &Query<'_, '_>,
        room: &Room<'_>,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Printed>> {
        let skeleton = need(query.parts.skeleton()?)?;
        let units = query.parts.units()?;
        let vector = query.vector()?;
        let no_match = silent(vector);
        if no_match || skeleton.graph.entities() == 0 {
            return Ok(vec![Printed { no_match, ..Printed::default() }; room.budgets.len()]);
        }
        progress.check()?;
        let nearest = nearest(skeleton, query, vector, scratch)?;
        if nearest.is_empty() && query.mask.is_some() {
            return Ok(vec![Printed { no_match: true, ..Printed::default() }; room.budgets.len()]);
        }
        let selected: Vec<u32> = nearest.iter().map(|s| s.id).collect();
        let tables = query.printers.tables(published(self.name(), query.options)?);
        let options = local::Options {
            most_sources: room.units,
            rollover: room.rollover,
            without: room.without,
            mask: query.mask,
            policy: query.policy,
            oversize: query.oversize,
            ..local::Options::default()
        };
        let print = |&budget: &u64| {
            let found = tables.search(&skeleton.graph, units, &selected, budget, options, progress)?;
            Ok(printed(found, &nearest))
        };
        room.budgets.iter().map(print).collect()
    }
}

/// Return the entities nearest to the query. The caller's candidates are used if they are enough.
fn nearest(
    skeleton: &View<'_>,
    query: &Query<'_, '_>,
    vector: &[f32],
    scratch: &mut Scratch,
) -> Result<Vec<Scored>> {
    let (vectors, codes) = (need(skeleton.vectors)?, skeleton.codes.as_ref());
    let count = seeds(query.options)?.min(vectors.len());
    if let Some(mask) = query.mask {
        // A row depends on its sources, so an entity without a source that passes the filter is hidden.
        let sources = skeleton.graph.arrays.units;
        let left = Mask::from_fn(vectors.len(), |entity| mask.any(sources.row(entity)));
        let left = Filter::Bits(left.bits());
        return vector::top_k(&vectors, codes, vector, count, left, Level::best(), scratch.of());
    }
    if let Some(near) = query.near(LIST).filter(|near| near.len() >= count) {
        vectors.check_query(vector)?;
        Filter::Ids(near).check(vectors.len())?;
        return Ok(top_k(vectors.score_many(near, vector), count));
    }
    vector::top_k(&vectors, codes, vector, count, Filter::All, Level::best(), scratch.of())
}

/// Give each source the score of the entity that is linked to it.
fn printed(found: LocalContext, nearest: &[Scored]) -> Printed {
    let scores = found.brought_by.iter().map(|&place| nearest[place].score).collect();
    let sections = found.sections.iter().map(|s| Section {
        name: s.name,
        channel: TABLES.to_owned(),
        tokens: s.tokens,
        start: s.start,
        end: s.end,
    });
    let sections = sections.collect();
    let context = Context { text: found.text, tokens: found.tokens, rows: found.sources };
    Printed { context, scores, sections, ..Printed::default() }
}
