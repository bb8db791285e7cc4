//! Weighted undirected graphs in the form that the drawing kernels read: rows of neighbours with a positive
//! weight for each.

use crate::error::{Error, Result};
use crate::memory::{room, zeros};
use crate::progress::Progress;
use crate::sparse::CsrView;

const WHAT: &str = "a weighted graph";

/// Rows between two checks of the progress.
const ROWS: usize = 1 << 12;

/// An undirected graph that borrows its arrays: `weights[p]` belongs to the edge at position `p` of `rows`.
#[derive(Debug, Clone, Copy)]
pub struct Weighted<'a> {
    pub rows: CsrView<'a>,
    pub weights: &'a [f64],
}

/// The owned form of [`Weighted`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WeightedBuf {
    pub indptr: Vec<u64>,
    pub indices: Vec<u32>,
    pub weights: Vec<f64>,
}

impl<'a> Weighted<'a> {
    /// Check that the rows form a square graph and that every weight is positive and finite. Whether each
    /// edge exists in both directions is checked only by [`Weighted::require_undirected`].
    pub fn new(indptr: &'a [u64], indices: &'a [u32], weights: &'a [f64]) -> Result<Self> {
        let rows = CsrView::new(indptr, indices, indptr.len().saturating_sub(1))?;
        if weights.len() != indices.len() {
            return Err(Error::input(format!(
                "there are {} weights for {} edges",
                weights.len(),
                indices.len()
            )));
        }
        check_weights(weights)?;
        Ok(Self { rows, weights })
    }

    /// Return an error unless the graph is undirected and simple, with the same weight in both directions.
    pub fn require_undirected(&self) -> Result<()> {
        self.rows.require_undirected()?;
        let mut next: Vec<u64> = room(self.len(), WHAT)?;
        next.extend_from_slice(&self.rows.indptr[0..self.len()]);
        for node in 0..self.len() {
            for (other, weight) in self.around(node) {
                let back = &mut next[other as usize];
                if self.weights[*back as usize] != weight {
                    return Err(Error::input(format!(
                        "the weight of the edge from {node} to {other} is not that of the edge back"
                    )));
                }
                *back += 1;
            }
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.rows.rows()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn degree(&self, node: usize) -> usize {
        self.rows.range(node).len()
    }

    /// Iterate over the neighbours of a node with their weights, in the order of the row.
    #[inline]
    pub fn around(&self, node: usize) -> impl Iterator<Item = (u32, f64)> + 'a {
        let range = self.rows.range(node);
        self.rows.indices.get(range.clone()).iter().copied().zip(self.weights[range].iter().copied())
    }
}

impl WeightedBuf {
    pub fn view(&self) -> Weighted<'_> {
        let rows = CsrView::unchecked(&self.indptr, &self.indices, self.indptr.len().saturating_sub(1));
        Weighted { rows, weights: &self.weights }
    }
}

fn check_weights(weights: &[f64]) -> Result<()> {
    match weights.iter().position(|w| !(*w > 0.0 && w.is_finite())) {
        Some(at) => {
            Err(Error::input(format!("weight {at} must be positive and finite, got {}", weights[at])))
        }
        None => Ok(()),
    }
}

/// Build the graph of `nodes` nodes from pairs of ends. Directions are ignored, edges from a node to itself
/// are dropped, and the weights of repeated edges are added in the order given.
///
/// ```
/// use ketrag_base::progress::Progress;
/// use ketrag_core::graph::weighted::undirected;
///
/// let graph = undirected(3, &[2, 0, 1], &[0, 2, 1], &[1.0, 0.5, 9.0], &Progress::none())?;
/// assert_eq!(graph.indices, [2, 0]); // node 1 has no edge but the one to itself
/// assert_eq!(graph.weights, [1.5, 1.5]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn undirected(
    nodes: usize,
    sources: &[u32],
    targets: &[u32],
    weights: &[f64],
    progress: &Progress,
) -> Result<WeightedBuf> {
    if sources.len() != targets.len() || sources.len() != weights.len() {
        return Err(Error::input(format!(
            "sources, targets and weights must have equal length, got {}, {} and {}",
            sources.len(),
            targets.len(),
            weights.len()
        )));
    }
    check_weights(weights)?;
    if let Some(&id) = sources.iter().chain(targets).find(|&&id| id as usize >= nodes) {
        return Err(Error::input(format!("node {id} is not below the number of nodes, {nodes}")));
    }
    let ends = || sources.iter().zip(targets).filter(|(a, b)| a != b);
    let mut first: Vec<u64> = zeros(nodes.saturating_add(1), WHAT)?;
    for (&a, &b) in ends() {
        first[a as usize + 1] += 1;
        first[b as usize + 1] += 1;
    }
    (0..nodes).for_each(|node| first[node + 1] += first[node]);
    progress.check()?;
    let mut next: Vec<u64> = room(nodes, WHAT)?;
    next.extend_from_slice(&first[..nodes]);
    let mut entries: Vec<(u32, f64)> = room(first[nodes] as usize, WHAT)?;
    entries.resize(first[nodes] as usize, (0, 0.0));
    for ((&a, &b), &weight) in sources.iter().zip(targets).zip(weights) {
        if a != b {
            for (from, to) in [(a, b), (b, a)] {
                entries[next[from as usize] as usize] = (to, weight);
                next[from as usize] += 1;
            }
        }
    }
    merged(&first, &mut entries, progress)
}

/// Sort each row by id, keeping the order of equal ids, and add up the weights of equal ids.
fn merged(first: &[u64], entries: &mut [(u32, f64)], progress: &Progress) -> Result<WeightedBuf> {
    let nodes = first.len() - 1;
    let mut out = WeightedBuf {
        indptr: room(first.len(), WHAT)?,
        indices: room(entries.len(), WHAT)?,
        weights: room(entries.len(), WHAT)?,
    };
    out.indptr.push(0);
    for node in 0..nodes {
        if node % ROWS == 0 {
            progress.check()?;
        }
        let row = &mut entries[first[node] as usize..first[node + 1] as usize];
        row.sort_by_key(|&(id, _)| id);
        let begin = out.indices.len();
        for &(id, weight) in row.iter() {
            if out.indices.len() > begin && out.indices.last() == Some(&id) {
                let at = out.weights.len() - 1;
                out.weights[at] += weight;
            } else {
                out.indices.push(id);
                out.weights.push(weight);
            }
        }
        out.indptr.push(out.indices.len() as u64);
    }
    // The same pairs are added in the same order from both ends, so both directions have the same bits.
    if let Some(at) = out.weights.iter().position(|w| !w.is_finite()) {
        return Err(Error::input(format!("the sum of weights at edge {at} is not finite")));
    }
    Ok(out)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Error;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Build the graph of a few edges (source, target, weight).
    pub fn graph(nodes: usize, edges: &[(u32, u32, f64)]) -> WeightedBuf {
        let part = |f: fn(&(u32, u32, f64)) -> u32| edges.iter().map(f).collect::<Vec<_>>();
        let weights: Vec<f64> = edges.iter().map(|e| e.2).collect();
        undirected(nodes, &part(|e| e.0), &part(|e| e.1), &weights, &Progress::none()).unwrap()
    }

    #[test]
    fn bad_input_is_refused() {
        let build = |s: &[u32], t: &[u32], w: &[f64]| undirected(2, s, t, w, &Progress::none());
        assert!(build(&[0], &[2], &[1.0]).unwrap_err().to_string().contains("node 2 is not below"));
        assert!(build(&[0], &[1], &[]).is_err());
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(build(&[0], &[1], &[weight]).unwrap_err().to_string().contains("positive"));
        }
        assert!(build(&[0, 0], &[1, 1], &[f64::MAX, f64::MAX]).is_err());
        assert!(Weighted::new(&[0, 1, 2], &[1, 0], &[1.0]).is_err());
        let uneven = Weighted::new(&[0, 1, 2], &[1, 0], &[1.0, 2.0]).unwrap();
        assert!(uneven.require_undirected().unwrap_err().to_string().contains("edge back"));
        let progress = Progress::none();
        progress.stop();
        assert_eq!(undirected(1, &[], &[], &[], &progress), Err(Error::Cancelled));
    }

    proptest! {
        #[test]
        fn equals_a_map_of_pairs(
            nodes in 1usize..12, edges in prop::collection::vec((0u32..12, 0u32..12, 1u32..9), 0..60)
        ) {
            let edges: Vec<(u32, u32, f64)> = edges
                .into_iter()
                .filter(|e| (e.0.max(e.1) as usize) < nodes)
                .map(|(a, b, w)| (a, b, f64::from(w)))
                .collect();
            let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
            for &(a, b, w) in edges.iter().filter(|e| e.0 != e.1) {
                *sums.entry((a, b)).or_default() += w;
                *sums.entry((b, a)).or_default() += w;
            }
            let built = graph(nodes, &edges);
            built.view().require_undirected().unwrap();
            let mut found = BTreeMap::new();
            for node in 0..nodes {
                found.extend(built.view().around(node).map(|(other, w)| ((node as u32, other), w)));
            }
            prop_assert_eq!(found, sums);
        }
    }
}
