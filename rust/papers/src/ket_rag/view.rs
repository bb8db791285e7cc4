//! View of the skeleton: its graph, and the vectors of its entities.

use super::local::graph::{EntityGraph, SkeletonArrays};
use crate::error::Result;
use crate::generation::vectors::{codes, vectors};
use crate::generation::{damaged, Arrays};
use crate::vector::quantised::QuantisedView;
use crate::vector::Vectors;

/// The skeleton with the vectors of its entities.
pub struct Skeleton<'a> {
    pub graph: EntityGraph<'a>,
    /// `None` if there are no entities.
    pub vectors: Option<Vectors<'a>>,
    pub codes: Option<QuantisedView<'a>>,
}

impl<'a> Skeleton<'a> {
    pub fn new(arrays: &'a Arrays, units: usize) -> Result<Self> {
        let names = arrays.strings("skeleton.entity_name")?;
        let sources: &[u32] = arrays.values("skeleton.relation_source")?;
        let (entities, relations) = (names.len(), sources.len());
        let found = SkeletonArrays {
            names,
            descriptions: arrays.strings("skeleton.entity_description")?,
            ranks: arrays.values("skeleton.entity_rank")?,
            units: arrays.csr("skeleton.entity_units", entities, units)?,
            row_tokens: arrays.values("skeleton.entity_row_tokens")?,
            sources,
            targets: arrays.values("skeleton.relation_target")?,
            relation_descriptions: arrays.strings("skeleton.relation_description")?,
            weights: arrays.values("skeleton.relation_weight")?,
            relation_ranks: arrays.values("skeleton.relation_rank")?,
            relation_units: arrays.csr("skeleton.relation_units", relations, units)?,
            relation_row_tokens: arrays.values("skeleton.relation_row_tokens")?,
        };
        let graph = match arrays.by_blocks() {
            true => EntityGraph::stored(found),
            false => EntityGraph::new(found),
        }
        .map_err(|e| damaged("skeleton", e))?;
        if entities == 0 {
            return Ok(Self { graph, vectors: None, codes: None });
        }
        let codes = match arrays.has("entities.entity_codes") {
            true => Some(codes(arrays, "entities.entity")?),
            false => None,
        };
        let vectors = vectors(arrays, "entities.entity_vectors", entities, codes.as_ref())?;
        Ok(Self { graph, vectors: Some(vectors), codes })
    }
}
