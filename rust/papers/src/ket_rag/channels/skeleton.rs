//! Local search over the skeleton (KET-RAG, Algorithm 2): tables of the entities nearest to the query, of
//! their relations, and of the units to which they are linked.

use crate::channels::{need, published, silent, Channel, Options, Printed, Query, Room, Scratch, Section};
use crate::error::Result;
use crate::generation::{once, Arrays, Parts};
use crate::ket_rag::local::{self, LocalContext, Tables};
use crate::ket_rag::view::Skeleton as View;
use crate::progress::Progress;
use crate::search::render::Context;
use crate::sparse::{top_k, Mask, Scored};
use crate::text::bpe::Encoding;
use crate::vector::simd::Level;
use crate::vector::{self, Filter};
use std::sync::{LazyLock, OnceLock};

/// The channel over the entities and relations of the skeleton.
pub struct Skeleton<'a> {
    arrays: &'a Arrays,
    view: OnceLock<View<'a>>,
}

/// Name of the vectors for which the caller may supply candidates of an approximate search.
const LIST: &str = "entities";
/// The channel name of its sections.
const TABLES: &str = "kg";

/// The option `seed_entities`: number of entities from which local search starts.
fn seeds(options: &Options) -> Result<usize> {
    options.count("skeleton", "seed_entities")
}

/// Return the printer of tables in an encoding. All indexes share it, because it holds only numbers of tokens.
fn tables(encoding: Encoding, published: bool) -> &'static Tables<Encoding> {
    type Printer = LazyLock<Tables<Encoding>>;
    static CL100K: [Printer; 2] = [
        LazyLock::new(|| Tables::new(Encoding::Cl100k, false)),
        LazyLock::new(|| Tables::new(Encoding::Cl100k, true)),
    ];
    static O200K: [Printer; 2] = [
        LazyLock::new(|| Tables::new(Encoding::O200k, false)),
        LazyLock::new(|| Tables::new(Encoding::O200k, true)),
    ];
    match encoding {
        Encoding::Cl100k => &CL100K[usize::from(published)],
        Encoding::O200k => &O200K[usize::from(published)],
    }
}

impl<'a> Skeleton<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self { arrays, view: OnceLock::new() }
    }

    /// Return whether the index has a skeleton, which may be empty.
    pub fn is_built(&self) -> bool {
        self.arrays.has("entities.entity_vectors")
    }

    fn view(&self, units: usize) -> Result<&View<'a>> {
        once(&self.view, || View::new(self.arrays, units))
    }
}

impl Channel for Skeleton<'_> {
    fn name(&self) -> &str {
        "skeleton"
    }

    fn missing(&self, _parts: &Parts<'_>) -> Option<&'static str> {
        (!self.is_built()).then_some("an entity skeleton (index with --llm)")
    }

    fn is_empty(&self, parts: &Parts<'_>) -> Result<bool> {
        Ok(self.view(parts.len())?.graph.entities() == 0)
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
        let skeleton = self.view(query.parts.len())?;
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
        let tables = tables(*query.printers.encoding(), published(self.name(), query.options)?);
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
