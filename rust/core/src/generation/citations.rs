//! View of the citation graph.

use super::arrays::{damaged, Arrays};
use crate::error::{Error, Result};
use crate::rank::messages::Graph;
use crate::search::cited::CitedGraph;
use crate::sparse::CsrView;

pub(super) fn in_index(arrays: &Arrays) -> bool {
    arrays.has("citation_graph.edges_indptr")
}

/// A query reads the whole graph, so it is verified in full.
pub(super) fn graph(arrays: &Arrays, units: usize) -> Result<CitedGraph<'_>> {
    let indptr = arrays.exactly::<u64>("citation_graph.edges_indptr", units + 1)?;
    let indices = arrays.values::<u32>("citation_graph.edges_indices")?;
    let edges = match arrays.by_blocks() {
        true => CsrView::stored(indptr.into(), indices.into(), units),
        false => CsrView::new(indptr, indices, units),
    };
    let edges = edges.map_err(|e| damaged("citation_graph.edges", e))?;
    let kinds = arrays.exactly::<u8>("citation_graph.edge_kind", indices.len())?;
    let alphas = arrays.exactly::<f32>("citation_graph.edge_alpha", indices.len())?;
    if !arrays.by_blocks() && alphas.iter().any(|alpha| !(0.0..=1.0).contains(alpha)) {
        return Err(Error::damaged("citation_graph.edge_alpha is not between 0 and 1"));
    }
    let graph = Graph::new(edges, kinds, alphas).map_err(|e| damaged("citation_graph", e))?;
    Ok(CitedGraph::new(graph))
}
