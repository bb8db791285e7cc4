//! The channel `knn`: text search plus the nearest neighbours of each hit (KNNG-RAG). A chunk that is split
//! stands for all of its units.

use crate::channels::{Channel, Query, Scratch};
use crate::error::Result;
use crate::generation::vectors::rows;
use crate::generation::{once, Arrays, Chunks, Parts};
use crate::ket_rag::knn;
use crate::progress::Progress;
use crate::sparse::{Csr, CsrView, Scored};
use crate::transposed::transposed;
use crate::vector::simd::Level;
use crate::vector::Rows;
use std::sync::OnceLock;

/// The channel over the graph of nearest chunks.
pub struct Knn<'a> {
    arrays: &'a Arrays,
    vectors: OnceLock<Rows<'a>>,
    costs: OnceLock<Vec<u32>>,
    graph: OnceLock<CsrView<'a>>,
    /// The chunks that have each chunk as a neighbour, for a filter that passes few chunks.
    into: OnceLock<Csr>,
}

/// If a filter passes fewer than one chunk in this number, only the passing chunks are scored.
const FEW: usize = 16;

impl<'a> Knn<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        let (vectors, costs, graph, into) = Default::default();
        Self { arrays, vectors, costs, graph, into }
    }

    /// Return the vectors of chunks. A chunk that is not split has the vector of its unit.
    fn vectors(&self, chunks: usize) -> Result<&Rows<'a>> {
        once(&self.vectors, || {
            let own = "chunk_vectors.chunk";
            let has = ["vectors", "scale"].iter().any(|part| self.arrays.has(&format!("{own}_{part}")));
            rows(self.arrays, if has { own } else { "vectors.unit" }, chunks)
        })
    }

    /// Return the cost of printing all units of each chunk.
    fn costs(&self, chunks: Chunks<'_>, parts: &Parts<'_>) -> Result<&[u32]> {
        let made = once(&self.costs, || {
            let tokens = parts.unit_tokens()?;
            let cost = |chunk: usize| {
                let units = chunks.units(chunk);
                let own: &[u32] = &tokens[units.start as usize..units.end as usize];
                own.iter().fold(0u32, |a, &b| a.saturating_add(b))
            };
            Ok((0..chunks.len()).map(cost).collect())
        });
        made.map(Vec::as_slice)
    }
}

impl Channel for Knn<'_> {
    fn name(&self) -> &str {
        "knn"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        vectors.or((!self.arrays.has("knn.graph_indptr")).then_some("the KNN graph (stage knn)"))
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        budget: u64,
        scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let chunks_of = query.parts.chunks()?;
        let (chunks, costs) = (self.vectors(chunks_of.len())?, self.costs(chunks_of, query.parts)?);
        let graph = *once(&self.graph, || self.arrays.csr("knn.graph", chunks_of.len(), chunks_of.len()))?;
        let left = query.mask.map(|mask| chunks_of.left(mask));
        let (vector, left) = (query.vector()?, left.as_ref());
        let few = left.filter(|left| left.count() * FEW <= chunks.len());
        let found = match few {
            Some(few) => {
                let both = (graph, once(&self.into, || transposed(graph))?.view());
                knn::few(chunks, both, costs, vector, budget, few)?
            }
            None => None,
        };
        let best = (Level::best(), scratch.of());
        let order = match found {
            Some(order) => order,
            None => knn::knn_order(chunks, graph, costs, vector, budget, left, best)?,
        };
        let units = order.iter().flat_map(|visit| {
            chunks_of.units(visit.unit as usize).map(|id| Scored { id, score: visit.score })
        });
        Ok(units.take(wanted).collect())
    }
}
