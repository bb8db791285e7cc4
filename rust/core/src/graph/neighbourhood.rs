//! Parts of a graph that are small enough to draw: the best neighbourhood of the seed nodes, the edges
//! between chosen nodes, and the shortest path between two nodes.
//!
//! The neighbourhood grows best first, as in Dijkstra's algorithm but with products instead of sums. A seed
//! has score 1. Over an edge of weight `w` the score of node `u` passes on to `v` multiplied by `w / max w /
//! sqrt(degree(u)) * degree(v) / (degree(v) + 1)`: strong edges win, the many neighbours of a hub count
//! little, and dead ends come after nodes that lead on. Equal scores are ordered by id.

use crate::error::{Error, Result};
use crate::graph::weighted::Weighted;
use crate::memory::{filled, room, zeros};
use crate::progress::Progress;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

const WHAT: &str = "the neighbourhood of nodes";

/// Edges between two checks of the progress.
const EDGES: usize = 1 << 15;

/// Marks the absence of a node or position.
pub const NONE: u32 = u32::MAX;

/// Chosen nodes, best first, with their scores and the position of the node from which each was reached
/// ([`NONE`] for a seed).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbourhood {
    pub nodes: Vec<u32>,
    pub scores: Vec<f64>,
    pub parents: Vec<u32>,
}

/// Edges between chosen nodes, as pairs of positions, the smaller first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Induced {
    pub sources: Vec<u32>,
    pub targets: Vec<u32>,
    pub weights: Vec<f64>,
    /// The number of edges, including those that were omitted.
    pub total: u64,
}

#[derive(Debug, PartialEq)]
struct Reached {
    score: f64,
    node: u32,
    parent: u32,
}

impl Eq for Reached {}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.node.cmp(&self.node))
            .then_with(|| other.parent.cmp(&self.parent))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Return at most `limit` nodes around `seeds`, which come first in the order given. `hidden` (empty, or one
/// byte for each node) marks nodes that are left out and passed over.
///
/// ```
/// use ketrag_base::progress::Progress;
/// use ketrag_core::graph::neighbourhood::neighbourhood;
/// use ketrag_core::graph::weighted::undirected;
///
/// let graph = undirected(4, &[0, 0, 1], &[1, 2, 3], &[1.0, 3.0, 1.0], &Progress::none())?;
/// let found = neighbourhood(graph.view(), &[0], 3, &[], &Progress::none())?;
/// assert_eq!(found.nodes, [0, 2, 1]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn neighbourhood(
    graph: Weighted<'_>,
    seeds: &[u32],
    limit: usize,
    hidden: &[u8],
    progress: &Progress,
) -> Result<Neighbourhood> {
    let n = graph.len();
    check_ids(seeds, n)?;
    if !hidden.is_empty() && hidden.len() != n {
        return Err(Error::input(format!("hidden has {} marks for {n} nodes", hidden.len())));
    }
    let left_out = |node: u32| hidden.get(node as usize).is_some_and(|&mark| mark != 0);
    let largest = graph.weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut best: Vec<f64> = zeros(n, WHAT)?;
    let mut taken: Vec<u8> = zeros(n, WHAT)?;
    let mut found = Neighbourhood::default();
    let mut heap = BinaryHeap::new();
    let mut fresh: Vec<u32> = room(seeds.len(), WHAT)?;
    for &seed in seeds {
        if !left_out(seed) && best[seed as usize] == 0.0 {
            best[seed as usize] = 1.0;
            fresh.push(seed);
        }
    }
    let mut seen = 0;
    let mut next_seed = fresh.into_iter();
    while found.nodes.len() < limit {
        let reached = match next_seed.next() {
            Some(node) => Reached { score: 1.0, node, parent: NONE },
            None => match heap.pop() {
                Some(reached) => reached,
                None => break,
            },
        };
        let node = reached.node as usize;
        if std::mem::replace(&mut taken[node], 1) != 0 {
            continue;
        }
        let position = found.nodes.len() as u32;
        found.nodes.push(reached.node);
        found.scores.push(reached.score);
        found.parents.push(reached.parent);
        let own = (graph.degree(node) as f64).sqrt();
        for (other, weight) in graph.around(node) {
            seen += 1;
            if seen % EDGES == 0 {
                progress.check()?;
            }
            let degree = graph.degree(other as usize) as f64;
            let score = reached.score * (weight / largest / own * (degree / (degree + 1.0)));
            if score > best[other as usize] && taken[other as usize] == 0 && !left_out(other) {
                best[other as usize] = score;
                heap.push(Reached { score, node: other, parent: position });
            }
        }
    }
    Ok(found)
}

/// Return the edges between `nodes`, ordered by their ends. If there are more than `most`, return the
/// heaviest; ties are decided by the smaller positions.
pub fn induced(graph: Weighted<'_>, nodes: &[u32], most: usize, progress: &Progress) -> Result<Induced> {
    let n = graph.len();
    check_ids(nodes, n)?;
    let mut place: Vec<u32> = filled(NONE, n, WHAT)?;
    for (position, &node) in nodes.iter().enumerate() {
        if std::mem::replace(&mut place[node as usize], position as u32) != NONE {
            return Err(Error::input(format!("node {node} is listed twice")));
        }
    }
    let mut edges: Vec<(u32, u32, f64)> = Vec::new();
    let mut seen = 0;
    for (position, &node) in nodes.iter().enumerate() {
        for (other, weight) in graph.around(node as usize) {
            seen += 1;
            if seen % EDGES == 0 {
                progress.check()?;
            }
            let to = place[other as usize];
            if to != NONE && to as usize > position {
                edges.push((position as u32, to, weight));
            }
        }
    }
    let total = edges.len() as u64;
    if edges.len() > most {
        edges.sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        edges.truncate(most);
    }
    edges.sort_unstable_by_key(|&(a, b, _)| (a, b));
    Ok(Induced {
        sources: edges.iter().map(|e| e.0).collect(),
        targets: edges.iter().map(|e| e.1).collect(),
        weights: edges.iter().map(|e| e.2).collect(),
        total,
    })
}

/// Return the nodes of a shortest path from `start` to `end` by number of edges, including both. Of several
/// paths, return the one with the smallest ids, seen from `end`. Empty if no path exists.
pub fn shortest_path(graph: Weighted<'_>, start: u32, end: u32, progress: &Progress) -> Result<Vec<u32>> {
    check_ids(&[start, end], graph.len())?;
    let mut before: Vec<u32> = filled(NONE, graph.len(), WHAT)?;
    before[start as usize] = start;
    let (mut now, mut next) = (vec![start], Vec::new());
    let mut seen = 0;
    while before[end as usize] == NONE && !now.is_empty() {
        for &node in &now {
            for (other, _) in graph.around(node as usize) {
                seen += 1;
                if seen % EDGES == 0 {
                    progress.check()?;
                }
                if before[other as usize] == NONE {
                    before[other as usize] = node;
                    next.push(other);
                }
            }
        }
        next.sort_unstable(); // the smallest id of a ring reaches the next ring first
        now.clear();
        std::mem::swap(&mut now, &mut next);
    }
    let mut path = Vec::new();
    if before[end as usize] != NONE {
        let mut at = end;
        path.push(at);
        while at != start {
            at = before[at as usize];
            path.push(at);
        }
        path.reverse();
    }
    Ok(path)
}

fn check_ids(ids: &[u32], n: usize) -> Result<()> {
    match ids.iter().find(|&&id| id as usize >= n) {
        Some(id) => Err(Error::input(format!("node {id} is not below the number of nodes, {n}"))),
        None => Ok(()),
    }
}
