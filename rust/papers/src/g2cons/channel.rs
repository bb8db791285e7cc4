//! The channel of G2ConS: searches the graph of concepts.

use super::view::Concepts as View;
use crate::channels::{silent, Channel, Options, Query, Scratch};
use crate::error::Result;
use crate::g2cons::search::{ConceptIndex, Options as Search};
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

impl<'a> Concepts<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self { arrays, view: OnceLock::new() }
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

    fn check(&self, _options: &Options, _alone: bool) -> Result<()> {
        Ok(())
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
        let found = index.search(vector, Search::default(), wanted, Level::best(), scratch.of(), progress)?;
        Ok(found.into_iter().map(|f| Scored { id: f.unit, score: f.score }).collect())
    }
}
