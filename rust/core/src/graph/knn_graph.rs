//! The k-nearest-neighbour graph: neighbour lists merged into one simple undirected graph.

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::sparse::Csr;

/// An empty slot of a neighbour list.
const NOBODY: u32 = u32::MAX;

/// Return the undirected, unweighted graph of all pairs {i, j} with j in a list of i (KET-RAG, Algorithm 3,
/// lines 3 to 6). Each pair appears once in either row, rows are ascending, there are no self-loops; a degree
/// may exceed the length of the lists.
///
/// `lists`: neighbour matrices as (ids row after row, ids per row), each with `nodes` rows; `u32::MAX` is an
/// empty slot. An id of the row itself is ignored.
///
/// Errors: `Input` for a matrix of another size or an id that is not a node.
///
/// ```
/// use ketrag_core::graph::knn_graph::knn_graph;
///
/// let graph = knn_graph(3, &[(&[1, 0, 1], 1)])?; // the neighbour of node 2 is node 1
/// assert_eq!(graph.view().row(1), [0, 2]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn knn_graph(nodes: usize, lists: &[(&[u32], usize)]) -> Result<Csr> {
    if u32::try_from(nodes).is_err() {
        return Err(Error::input("there are more nodes than 32-bit ids"));
    }
    for (which, (ids, k)) in lists.iter().enumerate() {
        if nodes.checked_mul(*k) != Some(ids.len()) {
            return Err(Error::input(format!(
                "neighbour list {which} holds {} ids, not {k} for each of {nodes} nodes",
                ids.len()
            )));
        }
        if let Some(at) = ids.iter().position(|&id| id != NOBODY && id as usize >= nodes) {
            return Err(Error::input(format!(
                "neighbour list {which} names {} for node {}, of {nodes} nodes",
                ids[at],
                at / k
            )));
        }
    }
    let each = |visit: &mut dyn FnMut(usize, usize)| {
        for (ids, k) in lists {
            for (at, &id) in ids.iter().enumerate() {
                // An id exists, so k is not 0.
                let (node, other) = (at / k, id as usize);
                if id != NOBODY && node != other {
                    visit(node, other);
                }
            }
        }
    };
    // Both directions with repeats first, in one array; then each row is sorted and deduplicated.
    let mut starts = vec![0usize; nodes + 1];
    each(&mut |a, b| {
        starts[a + 1] += 1;
        starts[b + 1] += 1;
    });
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut ids = zeros::<u32>(starts[nodes], "the neighbours' graph")?;
    each(&mut |a, b| {
        ids[next[a]] = b as u32;
        ids[next[b]] = a as u32;
        next[a] += 1;
        next[b] += 1;
    });
    let mut indptr = Vec::with_capacity(nodes + 1);
    indptr.push(0);
    let mut kept = 0;
    for node in 0..nodes {
        let row = starts[node]..starts[node + 1];
        ids[row.clone()].sort_unstable();
        let first = kept;
        for at in row {
            if kept == first || ids[kept - 1] != ids[at] {
                ids[kept] = ids[at];
                kept += 1;
            }
        }
        indptr.push(kept as u64);
    }
    ids.truncate(kept);
    ids.shrink_to_fit();
    Ok(Csr { indptr, indices: ids, columns: nodes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn twins_share_one_edge_and_many_neighbours_make_the_complete_graph() {
        let twins = knn_graph(2, &[(&[1, 0], 1), (&[1, 0], 1)]).unwrap();
        assert_eq!(twins, Csr { indptr: vec![0, 1, 2], indices: vec![1, 0], columns: 2 });
        let n = 7u32;
        let all: Vec<u32> = (0..n).flat_map(|i| (0..n).filter(move |&j| j != i).chain([NOBODY; 3])).collect();
        let complete = knn_graph(7, &[(&all, 9)]).unwrap();
        assert_eq!(complete.indices.len(), 7 * 6);
    }

    #[test]
    fn nothing_gives_nothing_and_strangers_are_refused() {
        assert_eq!(knn_graph(0, &[(&[], 3)]).unwrap().indptr, [0]);
        assert_eq!(knn_graph(3, &[(&[], 0)]).unwrap().indptr, [0, 0, 0, 0]);
        assert_eq!(knn_graph(2, &[(&[0, NOBODY], 1)]).unwrap().indptr, [0, 0, 0]);
        for (nodes, ids, k) in [(2, vec![1, 2], 1), (2, vec![1], 1), (2, vec![1, 0, 1], 2), (3, vec![0], 0)] {
            let error = knn_graph(nodes, &[(&[], 0), (&ids, k)]).unwrap_err();
            assert!(matches!(error, Error::Input(text) if text.contains("list 1")));
        }
    }

    proptest! {
        #[test]
        fn equals_a_set_of_pairs(
            n in 1usize..12, a in 0usize..4, b in 0usize..4,
            draws in prop::collection::vec(0u32..13, 96),
        ) {
            let id = |x: u32| if x as usize >= n { NOBODY } else { x };
            let lexical: Vec<u32> = draws[..n * a].iter().map(|&x| id(x)).collect();
            let semantic: Vec<u32> = draws[48..48 + n * b].iter().map(|&x| id(x)).collect();
            let mut pairs = BTreeSet::new();
            for (ids, k) in [(&lexical, a), (&semantic, b)] {
                for (at, &x) in ids.iter().enumerate() {
                    if x != NOBODY && x as usize != at / k {
                        pairs.insert(((at / k) as u32, x));
                        pairs.insert((x, (at / k) as u32));
                    }
                }
            }
            let graph = knn_graph(n, &[(&lexical, a), (&semantic, b)]).unwrap();
            graph.view().require_sorted().unwrap();
            let found: Vec<(u32, u32)> =
                (0..n).flat_map(|i| graph.view().row(i).iter().map(move |&j| (i as u32, j)).collect::<Vec<_>>()).collect();
            prop_assert_eq!(found, pairs.into_iter().collect::<Vec<_>>());
        }
    }
}
