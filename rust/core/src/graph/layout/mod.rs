//! Positions of the nodes of a graph for drawing: a multilevel force-directed layout.
//!
//! The forces are those of ForceAtlas2 (Jacomy and others 2014): nodes repel each other with the product of
//! their masses (degree plus 1) over their distance, edges attract with their weight times their length, and a
//! weak pull towards the centre holds the parts together. As in Walshaw's and Hu's multilevel methods, the
//! graph is first coarsened ([`coarsen`]); the smallest level is laid out from random positions, and each
//! finer level starts from the positions of the coarser one. A node moves by its force over the sum of its
//! attractions, but not farther than a limit that falls to zero. Repulsion is summed over a quadtree
//! ([`repulsion`]).
//!
//! Each node's force is summed in an order that depends only on the positions, and only correctly rounded
//! operations are used, so positions are the same bits on any number of threads and on every machine.

mod repulsion;

use crate::error::{Error, Result};
use crate::graph::weighted::{undirected, Weighted, WeightedBuf};
use crate::memory::{filled, room, zeros};
use crate::parallel::fill_rows;
use crate::progress::Progress;
use repulsion::Tree;

const WHAT: &str = "the layout of a graph";

/// Coarsening stops at this number of nodes.
const SMALLEST: usize = 100;
const LEVELS: usize = 40;
/// Number of steps on the smallest level for each step on the largest.
const SMALLEST_STEPS: usize = 4;
/// Share of the force that a step follows.
const DAMPING: f64 = 0.5;
/// Strength of the pull towards the centre per unit of mass.
const GRAVITY: f64 = 0.1;
/// Limit of the first step, relative to the radius of the drawing.
const FIRST_LIMIT: f64 = 0.1;
/// Weights are divided by their mean and clamped to these limits.
const WEIGHTS: (f64, f64) = (0.2, 5.0);
/// Number of nodes in a thread's unit of work.
const GRAIN: usize = 1 << 10;

/// Settings of the layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub seed: u64,
    /// Number of steps on the largest level.
    pub steps: usize,
    /// Ratio of size to distance below which far nodes count as one; 0 for exact sums.
    pub theta: f64,
    /// Number of threads; 0 for every core.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: 42, steps: 60, theta: 1.1, threads: 0 }
    }
}

/// One level: a graph with the mass of each node, and the node of the next coarser level that holds it.
struct Level {
    graph: WeightedBuf,
    mass: Vec<f64>,
    parent: Vec<u32>,
}

/// Return x and y of each node, one after the other, centred and within -1 to 1.
///
/// ```
/// use ketrag_base::progress::Progress;
/// use ketrag_core::graph::layout::{layout, Settings};
/// use ketrag_core::graph::weighted::undirected;
///
/// let path = undirected(3, &[0, 1], &[1, 2], &[1.0, 1.0], &Progress::none())?;
/// let xy = layout(path.view(), &Settings::default(), &Progress::none())?;
/// let apart = |a: usize, b: usize| (xy[2 * a] - xy[2 * b]).hypot(xy[2 * a + 1] - xy[2 * b + 1]);
/// assert!(apart(0, 2) > apart(0, 1) && apart(0, 2) > apart(1, 2));
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn layout(graph: Weighted<'_>, settings: &Settings, progress: &Progress) -> Result<Vec<f64>> {
    if !(0.0..=10.0).contains(&settings.theta) {
        return Err(Error::input(format!("theta must be between 0 and 10, got {}", settings.theta)));
    }
    if settings.steps > 100_000 {
        return Err(Error::input(format!("steps must be at most 100000, got {}", settings.steps)));
    }
    graph.require_undirected()?;
    let levels = levels_of(graph, progress)?;
    let steps_of = |depth: usize| match depth + 1 == levels.len() {
        true => settings.steps * SMALLEST_STEPS,
        false => settings.steps,
    };
    let work = levels.iter().enumerate().map(|(depth, level)| level.mass.len() * steps_of(depth));
    progress.expect(work.sum::<usize>() as u64);
    let mut xy: Vec<f64> = Vec::new();
    for (depth, level) in levels.iter().enumerate().rev() {
        xy = match levels.get(depth + 1) {
            None => random_positions(&level.mass, settings.seed)?,
            Some(coarser) => spread_out(level, coarser, &xy, settings.seed, depth)?,
        };
        settle(level, &mut xy, steps_of(depth), settings, progress)?;
    }
    fit(&mut xy);
    Ok(xy)
}

/// Return the graph and its coarser versions, the smallest last.
fn levels_of(graph: Weighted<'_>, progress: &Progress) -> Result<Vec<Level>> {
    let n = graph.len();
    let mean = graph.weights.iter().map(|w| w / graph.weights.len() as f64).sum::<f64>();
    let mut finest = WeightedBuf {
        indptr: room(n + 1, WHAT)?,
        indices: room(graph.rows.nnz(), WHAT)?,
        weights: room(graph.rows.nnz(), WHAT)?,
    };
    finest.indptr.extend_from_slice(graph.rows.indptr.all());
    finest.indices.extend_from_slice(graph.rows.indices.all());
    finest.weights.extend(graph.weights.iter().map(|w| (w / mean).clamp(WEIGHTS.0, WEIGHTS.1)));
    let mut mass: Vec<f64> = room(n, WHAT)?;
    mass.extend((0..n).map(|node| 1.0 + graph.degree(node) as f64));
    let mut levels = vec![Level { graph: finest, mass, parent: Vec::new() }];
    while levels.len() < LEVELS {
        let Some(last) = levels.last_mut().filter(|level| level.mass.len() > SMALLEST) else { break };
        let (parent, coarse) = coarsen(last.graph.view(), progress)?;
        let count = coarse.indptr.len() - 1;
        if count * 10 > last.mass.len() * 9 {
            break;
        }
        let mut mass: Vec<f64> = zeros(count, WHAT)?;
        parent.iter().zip(&last.mass).for_each(|(&to, m)| mass[to as usize] += m);
        last.parent = parent;
        levels.push(Level { graph: coarse, mass, parent: Vec::new() });
    }
    Ok(levels)
}

/// Return a number from -0.5 to 0.5 for each key (splitmix64).
fn noise(seed: u64, key: u64) -> f64 {
    let mut z = seed.wrapping_add(key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

fn random_positions(mass: &[f64], seed: u64) -> Result<Vec<f64>> {
    let side = 2.0 * mass.iter().sum::<f64>().sqrt();
    let mut xy = room(2 * mass.len(), WHAT)?;
    xy.extend((0..2 * mass.len() as u64).map(|key| side * noise(seed, key)));
    Ok(xy)
}

/// Return positions around those of the coarser level.
fn spread_out(level: &Level, coarser: &Level, xy: &[f64], seed: u64, depth: usize) -> Result<Vec<f64>> {
    let mut out = room(2 * level.mass.len(), WHAT)?;
    let seed = seed ^ ((depth as u64 + 1) << 40);
    for (node, &parent) in level.parent.iter().enumerate() {
        let reach = coarser.mass[parent as usize].sqrt();
        for axis in 0..2 {
            out.push(xy[2 * parent as usize + axis] + reach * noise(seed, 2 * node as u64 + axis as u64));
        }
    }
    Ok(out)
}

/// Move the nodes of a level towards equilibrium, in place.
fn settle(
    level: &Level,
    xy: &mut Vec<f64>,
    steps: usize,
    settings: &Settings,
    progress: &Progress,
) -> Result<()> {
    let n = level.mass.len();
    let graph = level.graph.view();
    let mut next: Vec<f64> = zeros(2 * n, WHAT)?;
    let mut pull: Vec<f64> = room(n, WHAT)?;
    let sum = |node: usize| graph.around(node).map(|(_, w)| w).sum::<f64>();
    pull.extend((0..n).map(|node| sum(node) + GRAVITY * level.mass[node]));
    let mut tree = Tree::default();
    let quiet = Progress::none();
    for step in 0..steps {
        progress.check()?;
        let limit = FIRST_LIMIT * radius(xy) * (1.0 - step as f64 / steps as f64);
        tree.build(xy, &level.mass)?;
        let repelled = tree.forces(settings.theta, settings.threads, progress)?;
        let now: &[f64] = xy;
        fill_rows(&mut next, 2, GRAIN, settings.threads, &quiet, |rows, part| {
            for (node, out) in rows.zip(part.chunks_exact_mut(2)) {
                let (x, y) = (now[2 * node], now[2 * node + 1]);
                let weight = GRAVITY * level.mass[node];
                let (mut fx, mut fy) = (repelled[2 * node] - weight * x, repelled[2 * node + 1] - weight * y);
                for (other, w) in graph.around(node) {
                    fx += w * (now[2 * other as usize] - x);
                    fy += w * (now[2 * other as usize + 1] - y);
                }
                let (dx, dy) = (DAMPING * fx / pull[node], DAMPING * fy / pull[node]);
                let far = (dx * dx + dy * dy).sqrt();
                let part = if far > limit { limit / far } else { 1.0 };
                (out[0], out[1]) = (x + part * dx, y + part * dy);
            }
            Ok(())
        })?;
        std::mem::swap(xy, &mut next);
    }
    Ok(())
}

/// Return the root mean square distance from the origin.
fn radius(xy: &[f64]) -> f64 {
    let squares: f64 = xy.iter().map(|v| v * v).sum();
    (squares / (xy.len() / 2).max(1) as f64).sqrt()
}

/// Centre the positions and scale them into -1 to 1.
fn fit(xy: &mut [f64]) {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for (at, &v) in xy.iter().enumerate() {
        low[at % 2] = low[at % 2].min(v);
        high[at % 2] = high[at % 2].max(v);
    }
    let half = (high[0] - low[0]).max(high[1] - low[1]) / 2.0;
    let scale = if half > 0.0 { 1.0 / half } else { 0.0 };
    for (at, v) in xy.iter_mut().enumerate() {
        *v = ((*v - low[at % 2] - (high[at % 2] - low[at % 2]) / 2.0) * scale).clamp(-1.0, 1.0);
    }
}

// A smaller graph with the same shape: nodes are merged into groups of at most four.
//
// Nodes are visited by degree, the smallest first, so that the leaves of a hub find their groups before the
// hub does. A node joins the neighbour with the heaviest edge relative to the neighbour's size. Nodes that
// find no group, such as most leaves of a hub, are grouped with others that have the same heaviest neighbour.

/// The maximum number of nodes of a group.
const MOST: u32 = 4;
const NONE: u32 = u32::MAX;
/// Nodes between two checks of the progress.
const NODES: usize = 1 << 12;

/// Return the group of each node, numbered by smallest member, and the graph of the groups.
fn coarsen(graph: Weighted<'_>, progress: &Progress) -> Result<(Vec<u32>, WeightedBuf)> {
    let n = graph.len();
    let mut group: Vec<u32> = filled(NONE, n, WHAT)?;
    let mut size: Vec<u32> = zeros(n, WHAT)?; // number of nodes of the group that is named after this node
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

/// Return the neighbour to join: the one with the heaviest edge relative to the size of its group, the
/// smallest id if several are equal.
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
