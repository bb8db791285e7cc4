//! A smaller graph with the same shape: nodes are joined in groups of at most four.
//!
//! Nodes are visited by degree, the smallest first, so that the leaves of a hub find their groups before the
//! hub does. A node joins the neighbour with the heaviest edge for its size. Nodes that find no group, such as
//! most leaves of a hub, are grouped with others that have the same heaviest neighbour.

use crate::error::Result;
use crate::graph::weighted::{undirected, Weighted, WeightedBuf};
use crate::memory::{filled, zeros};
use crate::progress::Progress;

const WHAT: &str = "the layout of a graph";

/// The maximum number of nodes of a group.
const MOST: u32 = 4;
const NONE: u32 = u32::MAX;
/// Nodes between two checks of the progress.
const NODES: usize = 1 << 12;

/// Return the group of each node, numbered by smallest member, and the graph of the groups.
pub fn coarsen(graph: Weighted<'_>, progress: &Progress) -> Result<(Vec<u32>, WeightedBuf)> {
    let n = graph.len();
    let mut group: Vec<u32> = filled(NONE, n, WHAT)?;
    let mut size: Vec<u32> = zeros(n, WHAT)?; // of the group that is named after this node
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&node| graph.degree(node as usize));
    for (at, &node) in order.iter().enumerate() {
        if at % NODES == 0 {
            progress.check()?;
        }
        if group[node as usize] != NONE {
            continue;
        }
        let Some(other) = partner(graph, node as usize, &group, &size) else { continue };
        if group[other as usize] == NONE {
            group[other as usize] = other;
            size[other as usize] = 1;
        }
        let own = group[other as usize];
        group[node as usize] = own;
        size[own as usize] += 1;
    }
    group_the_rest(graph, &mut group);
    let count = renumber(&mut group)?;
    let (mut sources, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for node in 0..n {
        if node % NODES == 0 {
            progress.check()?;
        }
        for (other, weight) in graph.around(node).filter(|&(other, _)| (other as usize) > node) {
            sources.push(group[node]);
            targets.push(group[other as usize]);
            weights.push(weight);
        }
    }
    let coarse = undirected(count, &sources, &targets, &weights, progress)?;
    Ok((group, coarse))
}

/// Return the neighbour to join: the heaviest edge for the size of the group, the smallest id among equals.
fn partner(graph: Weighted<'_>, node: usize, group: &[u32], size: &[u32]) -> Option<u32> {
    let mut best: Option<(f64, u32)> = None;
    for (other, weight) in graph.around(node) {
        let members = match group[other as usize] {
            NONE => 1,
            own => size[own as usize],
        };
        let score = weight / f64::from(members);
        if members < MOST && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, other));
        }
    }
    best.map(|(_, other)| other)
}

/// Group the nodes without a group by their heaviest neighbour, in the order of their ids.
fn group_the_rest(graph: Weighted<'_>, group: &mut [u32]) {
    let heaviest = |node: u32| {
        let mut best = (0.0, NONE);
        for (other, weight) in graph.around(node as usize) {
            if weight > best.0 {
                best = (weight, other);
            }
        }
        best.1
    };
    let left = (0..group.len() as u32).filter(|&node| group[node as usize] == NONE);
    let mut rest: Vec<(u32, u32)> = left.map(|node| (heaviest(node), node)).collect();
    rest.sort_unstable();
    for same in rest.chunk_by(|a, b| a.0 == b.0) {
        for members in same.chunks(MOST as usize) {
            members.iter().for_each(|&(_, node)| group[node as usize] = members[0].1);
        }
    }
}

fn renumber(group: &mut [u32]) -> Result<usize> {
    let mut number: Vec<u32> = filled(NONE, group.len(), WHAT)?;
    let mut count = 0;
    for own in group {
        let slot = &mut number[*own as usize];
        if *slot == NONE {
            *slot = count;
            count += 1;
        }
        *own = *slot;
    }
    Ok(count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::weighted::tests::graph;

    #[test]
    fn groups_are_small_and_the_leaves_of_a_star_are_grouped() {
        let star = graph(100, &(1..100).map(|leaf| (0, leaf, 1.0)).collect::<Vec<_>>());
        let (group, coarse) = coarsen(star.view(), &Progress::none()).unwrap();
        let count = coarse.indptr.len() - 1;
        assert!(count < 30, "{count} groups");
        for own in 0..count as u32 {
            assert!((1..=4).contains(&group.iter().filter(|&&g| g == own).count()));
        }
        // Every leaf outside the group of the hub keeps its edge.
        let inside = group.iter().filter(|&&g| g == group[0]).count() as f64 - 1.0;
        assert_eq!(coarse.weights.iter().sum::<f64>(), 2.0 * (99.0 - inside));
    }
}
