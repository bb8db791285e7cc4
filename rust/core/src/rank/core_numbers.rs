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
    // Remaining degree of a node; after its removal, its core number.
    let mut left: Vec<u32> = room(n, WHAT)?;
    left.extend((0..n).map(|node| edges.range(node).len() as u32));
    let most = left.iter().copied().max().unwrap_or(0) as usize;
    // Nodes by remaining degree: those with degree d begin at `first[d]`.
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
            // It swaps places with the first node of its bucket, which then begins after it.
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
    use crate::error::Error;
    use crate::sparse::Csr;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn run(rows: &[Vec<u32>]) -> Result<Vec<i64>> {
        let csr = Csr::from_rows(rows, rows.len())?;
        core_numbers(csr.view(), &Progress::none())
    }

    /// The definition: for each `k` the nodes that remain.
    fn plain(rows: &[Vec<u32>]) -> Vec<i64> {
        let mut cores = vec![0; rows.len()];
        for k in 1..=rows.len() {
            let mut inside: BTreeSet<u32> = (0..rows.len() as u32).collect();
            loop {
                let few = |node: &u32| rows[*node as usize].iter().filter(|o| inside.contains(o)).count() < k;
                let gone: Vec<u32> = inside.iter().copied().filter(few).collect();
                if gone.is_empty() {
                    break;
                }
                gone.iter().for_each(|node| {
                    inside.remove(node);
                });
            }
            inside.iter().for_each(|&node| cores[node as usize] = k as i64);
        }
        cores
    }

    #[test]
    fn a_triangle_with_a_tail_and_a_lone_node() {
        let rows = [vec![1, 2], vec![0, 2], vec![0, 1, 3], vec![2], vec![]];
        assert_eq!(run(&rows), Ok(vec![2, 2, 2, 1, 0]));
        assert_eq!(run(&[]), Ok(vec![]));
        assert_eq!(run(&[vec![]]), Ok(vec![0]));
    }

    #[test]
    fn a_directed_graph_is_refused_and_a_stop_is_seen() {
        assert!(run(&[vec![1], vec![]]).unwrap_err().to_string().contains("undirected"));
        let csr = Csr::from_rows(&[[1u32], [0]], 2).unwrap();
        let progress = Progress::none();
        progress.stop();
        assert_eq!(core_numbers(csr.view(), &progress), Err(Error::Cancelled));
    }

    proptest! {
        #[test]
        fn equals_the_definition(n in 1usize..14, pairs in prop::collection::vec((0u32..14, 0u32..14), 0..70)) {
            let mut rows = vec![BTreeSet::new(); n];
            for (a, b) in pairs.into_iter().filter(|&(a, b)| a != b && (a.max(b) as usize) < n) {
                rows[a as usize].insert(b);
                rows[b as usize].insert(a);
            }
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
            prop_assert_eq!(run(&rows).unwrap(), plain(&rows));
        }
    }
}
