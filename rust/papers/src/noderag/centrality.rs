//! Centrality of nodes: core numbers, and betweenness from a sample of pivots, the number of shortest paths from the
//! pivots through each node.
//!
//! Brandes' algorithm (2001) without weights. A breadth-first search from each pivot `s` counts the shortest
//! paths; on the way back each node collects its dependency: the sum over its successors `w` of `paths(v) /
//! paths(w) * (1 + dependency(w))`. The result is the unscaled sum of the dependencies over the pivots. The
//! end nodes of a path are not counted.

use crate::error::{Error, Result};
use crate::memory::{filled, room, zeros};
use crate::parallel::{map_ranges_with, threads as cores};
use crate::progress::Progress;
use crate::sparse::CsrView;

const WHAT: &str = "the centrality of nodes";

/// Nodes between two checks of the progress.
const NODES: usize = 1 << 14;

/// Below this number of nodes and edges, starting a thread takes longer than the search from one pivot.
const PARALLEL: usize = 50_000;

/// Path counts above this limit are divided by it, because a layered graph can have more paths than a float
/// can count. It is a power of two, so scaling does not round.
const LARGE: f64 = (1u128 << 127) as f64;

/// Return the sum over `pivots` of each node's dependency, in an undirected simple graph (each edge in both
/// directions). A pivot that is given twice counts twice.
pub fn betweenness(
    edges: CsrView<'_>,
    pivots: &[u32],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f64>> {
    edges.require_undirected()?;
    let n = edges.rows();
    if let Some(i) = pivots.iter().position(|&pivot| pivot as usize >= n) {
        return Err(Error::input(format!("pivots[{i}] is {}: there are {n} nodes", pivots[i])));
    }
    let mut sums: Vec<f64> = zeros(n, WHAT)?;
    if pivots.is_empty() {
        return Ok(sums);
    }
    progress.expect(pivots.len() as u64);
    let threads = if n + edges.nnz() < PARALLEL { 1 } else { cores(threads) };
    // The number of concurrent searches is the number of threads, so memory does not grow with the number of
    // pivots. Results are summed in the order of the pivots.
    let mut kept: Vec<Search> = Vec::new();
    for wave in pivots.chunks(threads) {
        kept.truncate(wave.len());
        let spare = std::sync::Mutex::new(std::mem::take(&mut kept));
        kept = map_ranges_with(
            wave.len(),
            1,
            threads,
            progress,
            || (),
            |(), range| {
                let free = spare.lock().unwrap_or_else(|e| e.into_inner()).pop();
                let mut search = free.map_or_else(|| Search::new(n), Ok)?;
                search.run(edges, wave[range.start], progress)?;
                Ok(search)
            },
        )?;
        for search in &mut kept {
            search.add_to(&mut sums);
        }
    }
    Ok(sums)
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Number of shortest paths to the node, in the scale of its level. On the way back it first holds the
    /// node's contribution to each predecessor, per path.
    paths: f64,
    /// Distance from the pivot plus one; 0 if the node was not reached.
    level: u32,
}

/// The state of one search, whose buffers are reused.
struct Search {
    nodes: Vec<Node>,
    /// The nodes in order of distance.
    order: Vec<u32>,
    /// For each level: its end in `order`, and the factor by which its counts were multiplied.
    levels: Vec<(usize, f64)>,
    dependency: Vec<f64>,
}

impl Search {
    fn new(n: usize) -> Result<Self> {
        Ok(Self {
            nodes: filled(Node { paths: 0.0, level: 0 }, n, WHAT)?,
            order: room(n, WHAT)?,
            levels: Vec::new(),
            dependency: zeros(n, WHAT)?,
        })
    }

    fn run(&mut self, edges: CsrView<'_>, pivot: u32, progress: &Progress) -> Result<()> {
        self.forth(edges, pivot, progress)?;
        self.back(edges, progress)
    }

    /// Count the shortest paths.
    fn forth(&mut self, edges: CsrView<'_>, pivot: u32, progress: &Progress) -> Result<()> {
        let Self { nodes, order, levels, .. } = self;
        nodes[pivot as usize] = Node { paths: 1.0, level: 1 };
        order.push(pivot);
        levels.push((1, 1.0));
        let (mut begin, mut end) = (0, 1);
        while begin < end {
            for at in begin..end {
                if at % NODES == 0 {
                    progress.check()?;
                }
                let from = order[at];
                let Node { paths, level } = nodes[from as usize];
                for &to in edges.row(from as usize) {
                    let node = &mut nodes[to as usize];
                    if node.level == 0 {
                        *node = Node { paths, level: level + 1 };
                        order.push(to);
                    } else if node.level > level {
                        node.paths += paths;
                    }
                }
            }
            (begin, end) = (end, order.len());
            let most = order[begin..end].iter().map(|&i| nodes[i as usize].paths).fold(0.0, f64::max);
            let scale = if most > LARGE { LARGE.recip() } else { 1.0 };
            if scale != 1.0 {
                order[begin..end].iter().for_each(|&i| nodes[i as usize].paths *= scale);
            }
            levels.push((end, scale));
        }
        Ok(())
    }

    /// Compute the dependency of each node. The dependencies of a node's successors are computed first.
    fn back(&mut self, edges: CsrView<'_>, progress: &Progress) -> Result<()> {
        let Self { nodes, order, levels, dependency } = self;
        for (end, scale) in levels.windows(2).map(|w| (w[0].0..w[1].0, w[1].1)).rev() {
            for at in end.rev() {
                if at % NODES == 0 {
                    progress.check()?;
                }
                let from = order[at] as usize;
                let Node { paths, level } = nodes[from];
                let mut sum = 0.0;
                for &to in edges.row(from) {
                    let next = nodes[to as usize];
                    if next.level > level {
                        sum += next.paths;
                    }
                }
                let own = paths * sum;
                dependency[from] = own;
                // A count that underflowed relative to the others of its level contributes nothing.
                let paths = if paths > 0.0 { (1.0 + own) / paths * scale } else { 0.0 };
                nodes[from].paths = paths;
            }
        }
        Ok(())
    }

    /// Add the dependencies of the reached nodes and reset the buffers.
    fn add_to(&mut self, sums: &mut [f64]) {
        for &node in &self.order {
            sums[node as usize] += std::mem::take(&mut self.dependency[node as usize]);
            self.nodes[node as usize].level = 0;
        }
        self.order.clear();
        self.levels.clear();
    }
}

/// Return the core number of each node of an undirected simple graph (each edge in both directions).
pub fn core_numbers(edges: CsrView<'_>, progress: &Progress) -> Result<Vec<i64>> {
    edges.require_undirected()?;
    let n = edges.rows();
    progress.expect(n as u64);
    // Remaining degree of a node; once the node is removed, its core number.
    let mut left: Vec<u32> = room(n, WHAT)?;
    left.extend((0..n).map(|node| edges.range(node).len() as u32));
    let most = left.iter().copied().max().unwrap_or(0) as usize;
    // Nodes by remaining degree: nodes of degree d begin at `first[d]`.
    let mut first: Vec<u32> = zeros(most + 2, WHAT)?;
    left.iter().for_each(|&degree| first[degree as usize + 1] += 1);
    (1..first.len()).for_each(|d| first[d] += first[d - 1]);
    let mut order: Vec<u32> = zeros(n, WHAT)?;
    let mut place: Vec<u32> = zeros(n, WHAT)?;
    let mut free = first.clone();
    for (node, &degree) in left.iter().enumerate() {
        let slot = &mut free[degree as usize];
        order[*slot as usize] = node as u32;
        place[node] = *slot;
        *slot += 1;
    }
    for at in 0..n {
        if at % NODES == 0 {
            progress.check()?;
            progress.advance(NODES.min(n - at) as u64);
        }
        let node = order[at];
        let core = left[node as usize];
        for &other in edges.row(node as usize) {
            let degree = left[other as usize];
            if degree <= core {
                continue;
            }
            // Swap the neighbour with the first node of its bucket, then move the start of the bucket past
            // it.
            let begin = &mut first[degree as usize];
            let (from, to) = (place[other as usize], *begin);
            let moved = order[to as usize];
            (order[from as usize], order[to as usize]) = (moved, other);
            (place[moved as usize], place[other as usize]) = (from, to);
            *begin += 1;
            left[other as usize] = degree - 1;
        }
    }
    let mut cores: Vec<i64> = room(n, WHAT)?;
    cores.extend(left.iter().map(|&core| i64::from(core)));
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;
    use std::collections::BTreeSet;

    fn both_ways(n: usize, pairs: impl IntoIterator<Item = (u32, u32)>) -> Csr {
        let mut rows = vec![BTreeSet::new(); n];
        for (a, b) in pairs.into_iter().filter(|&(a, b)| a != b && (a.max(b) as usize) < n) {
            rows[a as usize].insert(b);
            rows[b as usize].insert(a);
        }
        let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
        Csr::from_rows(&rows, n).unwrap()
    }

    fn run(csr: &Csr, pivots: &[u32], threads: usize) -> Vec<f64> {
        betweenness(csr.view(), pivots, threads, &Progress::none()).unwrap()
    }

    /// 1,500 layers of two nodes have 2^1499 shortest paths from end to end.
    #[test]
    fn more_paths_than_a_float_holds() {
        let layers = 1500u32;
        let pairs = (1..layers)
            .flat_map(|l| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| (2 * l - 2 + a, 2 * l + b)));
        let got = run(&both_ways(2 * layers as usize, pairs), &[0], 1);
        // Half of the paths to each later node pass here; nodes of layer 1 also lie on half of the paths to
        // node 1.
        for layer in 1..layers {
            let want = f64::from(layers - 1 - layer) + if layer == 1 { 0.5 } else { 0.0 };
            for node in [2 * layer, 2 * layer + 1] {
                assert!((got[node as usize] - want).abs() < 1e-6, "{node}: {} {want}", got[node as usize]);
            }
        }
    }
}
