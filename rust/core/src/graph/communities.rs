//! Communities of a weighted undirected graph: Louvain's algorithm (Blondel and others 2008), in which every
//! community is connected.
//!
//! Nodes are visited in the order of their ids and move to the community with the largest gain of modularity,
//! the smaller number among equals, until no node moves. The communities then become the nodes of a smaller
//! graph, and the procedure is repeated. Louvain may return a disconnected community (Traag and others 2019),
//! so each community is split into its connected components. They are numbered by size, then by smallest
//! member.

use crate::error::{Error, Result};
use crate::graph::weighted::{undirected, Weighted, WeightedBuf};
use crate::memory::{filled, room, zeros};
use crate::progress::Progress;

const WHAT: &str = "the communities of a graph";

/// Nodes between two checks of the progress.
const NODES: usize = 1 << 12;
/// The maximum number of passes over the nodes of a level.
const ROUNDS: usize = 32;
/// The maximum number of levels.
const LEVELS: usize = 32;
/// The smallest gain that moves a node, relative to the node's weight. Smaller gains are rounding noise.
const LEAST: f64 = 1e-9;

const NONE: u32 = u32::MAX;

/// One level: the graph, and the weight inside each node (both directions).
struct Level {
    graph: WeightedBuf,
    inside: Vec<f64>,
}

/// Return the community of each node. `resolution` above 1 gives smaller communities.
///
/// ```
/// use ketrag_base::progress::Progress;
/// use ketrag_core::graph::communities::communities;
/// use ketrag_core::graph::weighted::undirected;
///
/// let (from, to) = ([0, 1, 2, 3, 4, 3, 2], [1, 2, 0, 4, 5, 5, 3]); // two triangles and a bridge
/// let graph = undirected(6, &from, &to, &[1.0; 7], &Progress::none())?;
/// assert_eq!(communities(graph.view(), 1.0, &Progress::none())?, [0, 0, 0, 1, 1, 1]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn communities(graph: Weighted<'_>, resolution: f64, progress: &Progress) -> Result<Vec<u32>> {
    if !(resolution > 0.0 && resolution.is_finite()) {
        return Err(Error::input(format!("resolution must be positive and finite, got {resolution}")));
    }
    graph.require_undirected()?;
    let n = graph.len();
    let mut labels: Vec<u32> = (0..n as u32).collect();
    let total: f64 = graph.weights.iter().sum();
    if !total.is_finite() {
        return Err(Error::input("the sum of all weights is not finite"));
    }
    let (mut inside, mut owned): (Vec<f64>, Option<Level>) = (zeros(n, WHAT)?, None);
    for _ in 0..LEVELS {
        let now = owned.as_ref().map_or(graph, |level| level.graph.view());
        let moved = move_nodes(now, &inside, total, resolution, progress)?;
        let Some((own, count)) = moved else { break };
        labels.iter_mut().for_each(|label| *label = own[*label as usize]);
        let next = aggregate(now, &inside, &own, count, progress)?;
        inside = next.inside.clone();
        owned = Some(next);
    }
    connected(graph, &labels, progress)
}

/// Return the community of each node of a level, numbered by smallest member, and the number of communities.
/// Returns None if no node moved.
fn move_nodes(
    graph: Weighted<'_>,
    inside: &[f64],
    total: f64,
    resolution: f64,
    progress: &Progress,
) -> Result<Option<(Vec<u32>, usize)>> {
    let n = graph.len();
    let mut strength: Vec<f64> = room(n, WHAT)?;
    strength.extend((0..n).map(|node| graph.around(node).map(|(_, w)| w).sum::<f64>() + inside[node]));
    let mut sums = strength.clone();
    let mut own: Vec<u32> = (0..n as u32).collect();
    let mut weight_to: Vec<f64> = zeros(n, WHAT)?;
    let mut touched: Vec<u32> = Vec::new();
    let mut any = false;
    for _ in 0..ROUNDS {
        let mut moves = 0usize;
        for node in 0..n {
            if node % NODES == 0 {
                progress.check()?;
            }
            for (other, weight) in graph.around(node) {
                let community = own[other as usize];
                if weight_to[community as usize] == 0.0 {
                    touched.push(community);
                }
                weight_to[community as usize] += weight;
            }
            let (from, degree) = (own[node], strength[node]);
            sums[from as usize] -= degree;
            let gain = |community: u32| {
                let expected = resolution * degree * sums[community as usize] / total;
                weight_to[community as usize] - expected
            };
            let (mut to, mut most) = (from, gain(from) + LEAST * degree);
            for &community in &touched {
                let gained = gain(community);
                if gained > most || (gained == most && community < to) {
                    (to, most) = (community, gained);
                }
            }
            touched.drain(..).for_each(|community| weight_to[community as usize] = 0.0);
            sums[to as usize] += degree;
            own[node] = to;
            moves += usize::from(to != from);
        }
        any |= moves > 0;
        if moves == 0 {
            break;
        }
    }
    let count = renumber(&mut own)?;
    Ok(any.then_some((own, count)))
}

/// Number the labels in the order of their first nodes, and return the number of labels.
fn renumber(labels: &mut [u32]) -> Result<usize> {
    let mut number: Vec<u32> = filled(NONE, labels.len(), WHAT)?;
    let mut count = 0;
    for label in labels {
        let slot = &mut number[*label as usize];
        if *slot == NONE {
            *slot = count;
            count += 1;
        }
        *label = *slot;
    }
    Ok(count as usize)
}

/// Return the graph whose nodes are the communities.
fn aggregate(
    graph: Weighted<'_>,
    inside: &[f64],
    own: &[u32],
    count: usize,
    progress: &Progress,
) -> Result<Level> {
    let mut sums: Vec<f64> = zeros(count, WHAT)?;
    let (mut sources, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for node in 0..graph.len() {
        if node % NODES == 0 {
            progress.check()?;
        }
        let a = own[node];
        sums[a as usize] += inside[node];
        for (other, weight) in graph.around(node) {
            let b = own[other as usize];
            if a == b {
                sums[a as usize] += weight;
            } else if node < other as usize {
                sources.push(a);
                targets.push(b);
                weights.push(weight);
            }
        }
    }
    Ok(Level { graph: undirected(count, &sources, &targets, &weights, progress)?, inside: sums })
}

/// Split communities into their connected components, and number these by size descending, then by smallest
/// member.
fn connected(graph: Weighted<'_>, labels: &[u32], progress: &Progress) -> Result<Vec<u32>> {
    let n = graph.len();
    let mut part: Vec<u32> = filled(NONE, n, WHAT)?;
    let mut sizes: Vec<u64> = Vec::new();
    let mut stack: Vec<u32> = Vec::new();
    for start in 0..n {
        if start % NODES == 0 {
            progress.check()?;
        }
        if part[start] != NONE {
            continue;
        }
        let number = sizes.len() as u32;
        sizes.push(0);
        part[start] = number;
        stack.push(start as u32);
        while let Some(node) = stack.pop() {
            sizes[number as usize] += 1;
            for &other in graph.rows.row(node as usize) {
                let same = labels[other as usize] == labels[node as usize];
                if same && part[other as usize] == NONE {
                    part[other as usize] = number;
                    stack.push(other);
                }
            }
        }
    }
    let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(sizes[number as usize]));
    let mut place: Vec<u32> = zeros(sizes.len(), WHAT)?;
    order.iter().enumerate().for_each(|(rank, &number)| place[number as usize] = rank as u32);
    part.iter_mut().for_each(|number| *number = place[*number as usize]);
    Ok(part)
}
