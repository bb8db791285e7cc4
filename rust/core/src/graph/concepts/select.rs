//! Selection of the chunks with the most important concepts.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::select::select_ranked;
use crate::sparse::CsrView;

/// Return the best `count` chunks by the sum of the ranks of their concepts, best first. Ties are decided by
/// the smaller id, and chunks without concepts come last. `chunk_concepts` holds the distinct concepts of
/// each chunk, ascending; `ranks` holds one rank per concept.
pub fn choose_chunks(
    chunk_concepts: CsrView<'_>,
    ranks: &[f64],
    count: usize,
    progress: &Progress,
) -> Result<Vec<u32>> {
    if ranks.len() != chunk_concepts.columns {
        let (ranks, concepts) = (ranks.len(), chunk_concepts.columns);
        return Err(Error::input(format!("there are {ranks} ranks for {concepts} concepts")));
    }
    if let Some(i) = ranks.iter().position(|rank| !(rank.is_finite() && *rank >= 0.0)) {
        return Err(Error::input(format!("rank {i} is {}, not a finite number from 0 up", ranks[i])));
    }
    let mut scores = Vec::with_capacity(chunk_concepts.rows());
    for chunk in 0..chunk_concepts.rows() {
        progress.check()?;
        let row = chunk_concepts.row(chunk);
        scores.push(row.iter().map(|&concept| ranks[concept as usize]).sum::<f64>());
    }
    select_ranked(&scores, count)
}
