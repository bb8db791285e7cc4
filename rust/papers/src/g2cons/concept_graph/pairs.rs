//! The concept graph: edges between concepts that share enough chunks and whose vectors are close.
//!
//! The rows of `B B^T` are computed one after the other (Gustavson's algorithm), each in a dense accumulator.
//! Entries below the threshold are dropped while the row is in the cache, so memory grows only with the
//! number of edges.

use crate::error::{Error, Result};
use crate::graph::transpose::renumber;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::sparse::{Csr, CsrView};
use crate::vector::simd::{dot_error, dots, dots_chain, Level};
use crate::vector::Vectors;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Tolerance for thresholds near 1: sums of rounded products may be slightly less than 1.
const ONE: f64 = 1.0 - 1e-6;

/// Edges in both directions, in rows of ascending ids; `shared` and `cosines` are parallel to the ids.
#[derive(Debug, Clone, PartialEq)]
pub struct ConceptGraph {
    pub edges: Csr,
    /// Number of chunks that contain both concepts.
    pub shared: Vec<u32>,
    pub cosines: Vec<f32>,
    /// `2 * shared / (chunks of one + chunks of the other)` (Dice).
    pub weights: Vec<f64>,
    /// The threshold that was applied.
    pub threshold: f64,
}

struct Edge {
    to: u32,
    shared: u32,
    cosine: f32,
}

#[derive(Default)]
struct Scratch {
    counts: Vec<u32>,
    met: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

/// The rows of the concepts that have enough chunks for an edge, and their transpose.
struct Incidence {
    /// The old ids, ascending. Most concepts have too few chunks and are omitted.
    ids: Vec<u32>,
    chunks: Csr,
    /// For each entry of `chunks`: the end of the concept's position in the row of the chunk.
    after: Vec<u64>,
    concepts: Csr,
}

impl Incidence {
    fn new(chunk_concepts: CsrView<'_>, least: u32) -> Result<Self> {
        let mut df = vec![0u32; chunk_concepts.columns];
        chunk_concepts.indices.all().iter().for_each(|&id| df[id as usize] += 1);
        let ids: Vec<u32> = (0u32..).zip(&df).filter(|(_, &df)| df >= least).map(|(id, _)| id).collect();
        let concepts = renumber(chunk_concepts, &ids)?;
        let (chunks, positions) = concepts.view().transpose_with_positions()?;
        let after = positions.into_iter().map(|at| at + 1).collect();
        Ok(Self { ids, chunks, after, concepts })
    }

    /// Find the concepts after `row` that share at least `least` chunks with it, ascending, with the number
    /// of shared chunks.
    fn pairs(&self, row: usize, least: u32, scratch: &mut Scratch) {
        let Scratch { counts, met, pairs } = scratch;
        counts.resize(self.ids.len(), 0);
        pairs.clear();
        met.clear();
        for at in self.chunks.view().range(row) {
            let chunk = self.chunks.indices[at] as usize;
            let others = self.after[at] as usize..self.concepts.indptr[chunk + 1] as usize;
            for &other in &self.concepts.indices[others] {
                let count = &mut counts[other as usize];
                if *count == 0 {
                    met.push(other);
                }
                *count += 1;
            }
        }
        for &other in met.iter() {
            let count = std::mem::take(&mut counts[other as usize]);
            if count >= least {
                pairs.push((other, count));
            }
        }
        pairs.sort_unstable();
    }
}

/// Maximum number of edges. Each takes about 52 bytes during construction, 7 GB in total.
pub const MOST_EDGES: u64 = 1 << 27;

/// Return the graph of the concepts of `chunk_concepts` (chunks x concepts, ids strictly ascending in each
/// row): an edge connects two concepts that share at least `least` chunks (0 counts as 1) and whose `vectors`
/// have at least the cosine `theta`. More than `most` edges are an error.
pub fn concept_graph(
    chunk_concepts: CsrView<'_>,
    vectors: &Vectors<'_>,
    (least, most): (u32, u64),
    theta: f64,
    threads: usize,
    progress: &Progress,
) -> Result<ConceptGraph> {
    chunk_concepts.require_sorted()?;
    let n = chunk_concepts.columns;
    if vectors.len() != n {
        return Err(Error::input(format!("there are {} vectors for {n} concepts", vectors.len())));
    }
    let least = least.max(1);
    let incidence = Incidence::new(chunk_concepts, least)?;
    if !theta.is_finite() {
        return Err(Error::input(format!("the similarity threshold must be finite, got {theta}")));
    }
    let threshold = theta.min(ONE);
    progress.expect(incidence.ids.len() as u64);
    let level = Level::best();
    let (d, longest) = (vectors.dim(), vectors.norm());
    // A fast product below this limit is certain to be below the threshold.
    let floor = threshold - dot_error(d, longest * longest, dots_chain(d));
    let made = AtomicU64::new(0);
    let rows = map_ranges_with(incidence.ids.len(), 64, threads, progress, Scratch::default, |own, rows| {
        let mut lists = Vec::with_capacity(rows.len());
        for row in rows {
            progress.check()?;
            incidence.pairs(row, least, own);
            let vector = vectors.row(incidence.ids[row] as usize);
            let mut list = Vec::new();
            for &(other, shared) in &own.pairs {
                let id = incidence.ids[other as usize];
                let mut fast = [0f32];
                if threshold > -1.0 {
                    dots(level, vector, vectors.row(id as usize), &mut fast);
                    if f64::from(fast[0]) < floor {
                        continue;
                    }
                }
                let cosine = vectors.score(id, vector);
                if cosine >= threshold || threshold <= -1.0 {
                    list.push(Edge { to: id, shared, cosine: cosine as f32 });
                }
            }
            list.shrink_to_fit();
            if made.fetch_add(list.len() as u64, Relaxed) + list.len() as u64 > most {
                return Err(Error::input(format!(
                    "the thresholds connect more than {most} pairs of concepts: raise theta_co or theta_sem"
                )));
            }
            lists.push(list);
        }
        Ok(lists)
    })?;
    let rows = rows.into_iter().flatten().collect();
    Ok(both_ways(n, chunk_concepts, &incidence.ids, rows, threshold))
}

/// Extend rows that hold only larger ids to full rows. The smaller ids come first, in order.
fn both_ways(
    n: usize,
    chunk_concepts: CsrView<'_>,
    ids: &[u32],
    rows: Vec<Vec<Edge>>,
    threshold: f64,
) -> ConceptGraph {
    let mut df = vec![0u32; n];
    chunk_concepts.indices.all().iter().for_each(|&id| df[id as usize] += 1);
    let mut indptr = vec![0u64; n + 1];
    for (&from, row) in ids.iter().zip(&rows) {
        indptr[from as usize + 1] += row.len() as u64;
        row.iter().for_each(|edge| indptr[edge.to as usize + 1] += 1);
    }
    (0..n).for_each(|i| indptr[i + 1] += indptr[i]);
    let total = indptr[n] as usize;
    let mut next: Vec<u64> = indptr[..n].to_vec();
    let mut indices = vec![0u32; total];
    let (mut shared, mut cosines, mut weights) = (vec![0u32; total], vec![0f32; total], vec![0f64; total]);
    for (&from, row) in ids.iter().zip(rows) {
        for edge in row {
            let sizes = f64::from(df[from as usize]) + f64::from(df[edge.to as usize]);
            for (one, other) in [(from, edge.to), (edge.to, from)] {
                let at = next[one as usize] as usize;
                next[one as usize] += 1;
                indices[at] = other;
                (shared[at], cosines[at]) = (edge.shared, edge.cosine);
                weights[at] = 2.0 * f64::from(edge.shared) / sizes;
            }
        }
    }
    let edges = Csr { indptr, indices, columns: n };
    ConceptGraph { edges, shared, cosines, weights, threshold }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Build the graph of chunks that contain `concepts` each; all vectors are equal.
    fn graph(chunks: &[Vec<u32>], concepts: usize, least: u32, most: u64) -> Result<ConceptGraph> {
        let rows = Csr::from_rows(chunks, concepts)?;
        let values = [1.0, 0.0].repeat(concepts);
        let vectors = Vectors::new(&values, 2)?;
        concept_graph(rows.view(), &vectors, (least, most), -1.0, 2, &Progress::none())
    }

    #[test]
    fn more_edges_than_memory_has_room_for_are_refused() {
        let all: Vec<u32> = (0..5).collect();
        assert_eq!(graph(std::slice::from_ref(&all), 5, 1, 10).unwrap().shared.len(), 20);
        let error = graph(&[all], 5, 1, 9).unwrap_err().to_string();
        assert!(error.contains("more than 9 pairs of concepts"), "{error}");
    }
}
