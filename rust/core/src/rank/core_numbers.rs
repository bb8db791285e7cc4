//! Core numbers (k-core decomposition): how deep inside a graph a node is.
//!
//! The k-core is the subgraph left after repeatedly removing nodes with fewer than `k` neighbours; a node's
//! core number is the largest `k` whose core contains it. Nodes are removed in order of their remaining
//! degree, from buckets, in time linear in the edges (Batagelj and Zaversnik 2003).

use crate::error::Result;
use crate::memory::{room, zeros};
use crate::progress::Progress;
use crate::sparse::CsrView;

const WHAT: &str = "the core numbers";

/// Nodes between two checks of the progress.
const NODES: usize = 1 << 14;

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
