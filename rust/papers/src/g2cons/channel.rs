//! The channel of G2ConS: searches the graph of concepts.

use super::view::Concepts as View;
use crate::channels::{silent, Channel, Options, Query, Scratch};
use crate::error::{Error, Result};
use crate::g2cons::search::{ConceptIndex, Options as Search, Order};
use crate::generation::{once, Arrays, Parts};
use crate::progress::Progress;
use crate::search::render::Style;
use crate::sparse::Scored;
use crate::vector::simd::Level;
use std::sync::OnceLock;

/// The channel over the graph of concepts.
pub struct Concepts<'a> {
    arrays: &'a Arrays,
    view: OnceLock<View<'a>>,
}

/// The number of edges that a search follows from its initial concepts.
const DEPTH: usize = 2;

impl<'a> Concepts<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self { arrays, view: OnceLock::new() }
    }

    fn options(&self, options: &Options) -> Result<Search> {
        let name = self.name();
        Ok(Search { seeds: options.count(name, "seed_concepts")?, depth: DEPTH, order: self.order(options)? })
    }

    fn order(&self, options: &Options) -> Result<Order> {
        let chosen = options.choice(self.name(), "concept_rerank", &Order::NAMES)?;
        Order::by_name(chosen).ok_or_else(|| Error::Internal(format!("no order {chosen}")))
    }
}

impl Channel for Concepts<'_> {
    fn name(&self) -> &str {
        "concepts"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        vectors.or((!View::in_index(self.arrays)).then_some("the graph of concepts (stage concept_graph)"))
    }

    fn check(&self, options: &Options, _alone: bool) -> Result<()> {
        self.options(options).map(drop)
    }

    fn style(&self, _options: &Options, alone: bool) -> Result<Style> {
        Ok(if alone { Style::Cited } else { Style::Ket })
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        _budget: u64,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let concepts = once(&self.view, || View::new(self.arrays, query.parts.len()))?;
        let vector = query.vector()?;
        if silent(vector) {
            return Ok(Vec::new());
        }
        let index = concepts.index(query.parts.unit_vectors()?)?;
        let index = ConceptIndex { mask: query.mask, ..index };
        let options = self.options(query.options)?;
        let found = index.search(vector, options, wanted, Level::best(), scratch.of(), progress)?;
        Ok(found.into_iter().map(|f| Scored { id: f.unit, score: f.score }).collect())
    }
}
