//! The graph of nearest chunks, from lists of neighbours.

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::sparse::Csr;

/// An empty slot of a list of neighbours.
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
/// use ketrag_papers::ket_rag::knn_graph::knn_graph;
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
                // Some id exists, so k is not 0.
                let (node, other) = (at / k, id as usize);
                if id != NOBODY && node != other {
                    visit(node, other);
                }
            }
        }
    };
    // First collect both directions, with repeats, in one array. Then sort and deduplicate each row.
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
