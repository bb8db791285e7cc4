//! Selection of chunks by concepts: those with the most important concepts.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::select::select_ranked;
use crate::sparse::{quantise, CsrView};

/// How a chunk's score is computed from the ranks of its concepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    Sum,
    /// Compare chunks by their best concept, then by the next, and so on.
    Max,
    Mean,
}

/// Return the best `count` chunks, best first; ties go to the smaller id, and chunks without concepts come
/// last. `chunk_concepts`: the distinct concepts of each chunk, ascending; `ranks`: one per concept.
pub fn choose_chunks(
    chunk_concepts: CsrView<'_>,
    ranks: &[f64],
    score: Score,
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
    if score == Score::Max {
        return by_the_best(chunk_concepts, ranks, count, progress);
    }
    let mut scores = Vec::with_capacity(chunk_concepts.rows());
    for chunk in 0..chunk_concepts.rows() {
        progress.check()?;
        let row = chunk_concepts.row(chunk);
        let sum: f64 = row.iter().map(|&concept| ranks[concept as usize]).sum();
        let shared = if score == Score::Mean { row.len().max(1) as f64 } else { 1.0 };
        scores.push(sum / shared);
    }
    select_ranked(&scores, count)
}

/// Order lists of ranks, each descending, lexicographically; if one is a prefix of the other, the longer one
/// comes first.
fn by_the_best(
    chunk_concepts: CsrView<'_>,
    ranks: &[f64],
    count: usize,
    progress: &Progress,
) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = (0..ranks.len() as u32).collect();
    order.sort_by(|&a, &b| quantise(ranks[b as usize]).total_cmp(&quantise(ranks[a as usize])));
    // Positions in that order, equal for equal ranks: smaller is better.
    let mut place = vec![0u32; ranks.len()];
    for pair in order.windows(2) {
        let (before, own) = (pair[0] as usize, pair[1] as usize);
        place[own] = place[before] + u32::from(quantise(ranks[own]) != quantise(ranks[before]));
    }
    let mut lists: Vec<(Vec<u32>, u32)> = Vec::with_capacity(chunk_concepts.rows());
    for chunk in 0..chunk_concepts.rows() {
        progress.check()?;
        let mut list: Vec<u32> =
            chunk_concepts.row(chunk).iter().map(|&concept| place[concept as usize]).collect();
        list.sort_unstable();
        list.push(u32::MAX); // an end marker that sorts after everything
        lists.push((list, chunk as u32));
    }
    lists.sort_unstable();
    Ok(lists.into_iter().take(count).map(|(_, chunk)| chunk).collect())
}
