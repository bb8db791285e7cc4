//! The channel `knn`: text search plus the nearest neighbours of each hit (KNNG-RAG). A chunk that is split
//! stands for all of its units.

use super::channel::Channel;
use super::query::{need, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::search::knn;
use crate::sparse::Scored;
use crate::vector::simd::Level;

pub struct Knn;

/// If a filter passes fewer than one chunk in this number, only the passing chunks are scored.
const FEW: usize = 16;

impl Channel for Knn {
    fn name(&self) -> &str {
        "knn"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        vectors.or((!parts.has_knn()).then_some("the KNN graph (stage knn)"))
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        budget: u64,
        scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let (chunks, graph) = (need(query.parts.chunk_vectors()?)?, need(query.parts.knn()?)?);
        let (costs, chunks_of) = (query.parts.chunk_costs()?, query.parts.chunks()?);
        let left = query.mask.map(|mask| chunks_of.left(mask));
        let (vector, left) = (query.vector()?, left.as_ref());
        let few = left.filter(|left| left.count() * FEW <= chunks.len());
        let found = match few {
            Some(few) => {
                let both = (graph, need(query.parts.knn_into()?)?.view());
                knn::few(&chunks, both, costs, vector, budget, few)?
            }
            None => None,
        };
        let best = (Level::best(), scratch.of());
        let order = match found {
            Some(order) => order,
            None => knn::knn_order(&chunks, graph, costs, vector, budget, left, best)?,
        };
        let units = order.iter().flat_map(|visit| {
            chunks_of.units(visit.unit as usize).map(|id| Scored { id, score: visit.score })
        });
        Ok(units.take(wanted).collect())
    }
}
