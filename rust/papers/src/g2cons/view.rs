//! View of the concepts: their vectors, units and edges.

use super::search::ConceptIndex;
use crate::error::{Error, Result};
use crate::generation::vectors::{codes, vectors};
use crate::generation::{damaged, Arrays};
use crate::sparse::CsrView;
use crate::vector::quantised::QuantisedView;
use crate::vector::{Rows, Vectors};

/// Concepts with their vectors, their units, and the edges between them.
pub struct Concepts<'a> {
    vectors: Option<Vectors<'a>>,
    codes: Option<QuantisedView<'a>>,
    edges: CsrView<'a>,
    units: CsrView<'a>,
}

impl<'a> Concepts<'a> {
    pub fn in_index(arrays: &Arrays) -> bool {
        arrays.has("concepts.vectors") && arrays.has("concept_graph.edges_indptr")
    }

    pub fn new(arrays: &'a Arrays, units: usize) -> Result<Self> {
        let n = arrays.shape("concepts.vectors")?.0;
        let edges = arrays.csr("concept_graph.edges", n, n)?;
        let units = arrays.csr("concepts.concept_units", n, units)?;
        if !arrays.by_blocks() {
            units.require_sorted().map_err(|e| damaged("concepts.concept_units", e))?;
        }
        if n == 0 {
            return Ok(Self { vectors: None, codes: None, edges, units });
        }
        let codes = codes(arrays, "concepts.concept")?;
        let vectors = vectors(arrays, "concepts.vectors", n, Some(&codes))?;
        Ok(Self { vectors: Some(vectors), codes: Some(codes), edges, units })
    }

    /// Return the searchable form, together with the units' vectors.
    pub fn index<'b>(&'b self, unit_vectors: Option<Rows<'b>>) -> Result<ConceptIndex<'b>> {
        let missing = || Error::damaged("the index has concepts and no vectors of units");
        Ok(ConceptIndex {
            vectors: self.vectors,
            codes: self.codes.as_ref(),
            edges: self.edges,
            units: self.units,
            unit_vectors: unit_vectors.ok_or_else(missing)?,
            mask: None,
        })
    }
}
