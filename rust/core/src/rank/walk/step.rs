//! One step of the walk: from units to their keywords, names and subjects, and on to other units that have
//! them, skipping what the query contains.

use super::ties::round_mass;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::rank::sparse_sum::SparseSum;
use crate::sparse::{keep_best, prefetch, prefetch_range, Scored};

/// How stage 1 is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Options {
    /// Every unit and node, as in the definition. Otherwise the local form, whose cost does not grow with the
    /// index: the fields below.
    pub exact: bool,
    /// Nodes with more units are skipped.
    pub max_df: u64,
    /// Number of units that pass mass on to the next step.
    pub keep: usize,
    pub steps: usize,
    /// Number of nodes of each graph that pass mass on: those with the most.
    pub nodes: usize,
}

impl Options {
    /// Round a mass for the selection of the greatest. The exact form drops none.
    #[inline]
    pub fn ordered_mass(&self, mass: f64) -> f64 {
        if self.exact {
            mass
        } else {
            round_mass(mass)
        }
    }
}

/// Share of the mass that returns to the start in each step.
pub(crate) const TELEPORT: f64 = 0.5;
const SHARE_KEYWORD: f64 = 0.34;
const SHARE_OTHER: f64 = 0.33;

/// One step from units over the nodes of the three graphs to units: 1 - [`TELEPORT`] of the mass.
pub(crate) fn walk_step(
    links: &LinksView<'_>,
    question: &Question,
    mass: &[Scored],
    options: Options,
    nodes: &mut SparseSum,
    heads: &mut Vec<Scored>,
    arrived: &mut SparseSum,
) {
    let n = links.units();
    // The idf, which is read anyway, shows which nodes have too many units.
    let rare = if options.exact { f64::NEG_INFINITY } else { least_idf(n, options.max_df) };
    arrived.clear();

    to_keywords(links, mass, rare, nodes);
    let heavy = best_nodes(nodes, &question.keywords, SHARE_KEYWORD, options, heads);
    from_keywords(links, heavy, arrived);

    let others = [
        (&links.unit_names, &links.name_units, links.name_idf, &question.names, n),
        (&links.unit_subjects, &links.subject_units, links.subject_idf, &question.subjects, 2 * n),
    ];
    for (to_nodes, to_units, idf, asked, sums) in others {
        nodes.clear();
        for m in mass {
            let sum = links.unit_sums[sums + m.id as usize];
            if sum <= 0.0 {
                continue;
            }
            for &x in to_nodes.row(m.id as usize) {
                let idf = idf[x as usize];
                if idf >= rare {
                    nodes.add(x, m.score / sum * idf);
                }
            }
        }
        for node in best_nodes(nodes, asked, SHARE_OTHER, options, heads) {
            let units = to_units.row(node.id as usize);
            let push = node.score / units.len() as f64;
            units.iter().for_each(|&unit| arrived.add(unit, push));
        }
    }
}

/// Move mass from units to their keywords, in proportion to their weights; not to keywords with an idf below
/// `rare`.
#[inline]
fn to_keywords(links: &LinksView<'_>, mass: &[Scored], rare: f64, nodes: &mut SparseSum) {
    nodes.clear();
    for (at, m) in mass.iter().enumerate() {
        if let Some(far) = mass.get(at + 4) {
            prefetch(links.unit_keywords.indptr, far.id as usize);
            prefetch(links.unit_sums, far.id as usize);
            prefetch(links.unit_norm, far.id as usize);
        }
        if let Some(next) = mass.get(at + 2) {
            let range = links.unit_keywords.range(next.id as usize);
            prefetch_range(links.unit_keywords.indices, range.clone());
            prefetch_range(links.unit_tf, range);
        }
        let (unit, sum) = (m.id as usize, links.unit_sums[m.id as usize]);
        if sum <= 0.0 {
            continue;
        }
        let (share, norm) = (m.score / sum, links.unit_norm[unit]);
        let range = links.unit_keywords.range(unit);
        for (&x, &tf) in links.unit_keywords.indices[range.clone()].iter().zip(&links.unit_tf[range]) {
            let idf = links.keyword_idf[x as usize];
            if idf >= rare {
                let tf = f64::from(tf);
                nodes.add(x, share * idf * (tf / (tf + norm)));
            }
        }
    }
}

/// Move mass from keywords to the units that have them, in proportion to their weights.
#[inline]
fn from_keywords(links: &LinksView<'_>, heavy: &[Scored], arrived: &mut SparseSum) {
    for (at, node) in heavy.iter().enumerate() {
        if let Some(far) = heavy.get(at + 4) {
            prefetch(links.keyword_units.indptr, far.id as usize);
            prefetch(links.keyword_sum, far.id as usize);
        }
        if let Some(next) = heavy.get(at + 2) {
            let range = links.keyword_units.range(next.id as usize);
            prefetch_range(links.keyword_units.indices, range.clone());
            prefetch_range(links.keyword_tf, range);
        }
        let x = node.id as usize;
        let push = node.score * links.keyword_idf[x] / links.keyword_sum[x];
        let range = links.keyword_units.range(x);
        let units = &links.keyword_units.indices[range.clone()];
        for (&unit, &tf) in units.iter().zip(&links.keyword_tf[range]) {
            let tf = f64::from(tf);
            arrived.add(unit, push * (tf / (tf + links.unit_norm[unit as usize])));
        }
    }
}

/// Return a threshold below the idf of a node with `most` of `n` units, and above that of one with more.
fn least_idf(n: usize, most: u64) -> f64 {
    let (n, df) = (n as f64, most as f64 + 0.5);
    match df < n {
        true => (1.0 + (n - df + 0.5) / (df + 0.5)).ln(),
        false => f64::NEG_INFINITY,
    }
}

/// Return the nodes that pass mass on, ascending: without those that the query contains; in the local form
/// only the best, rescaled so that together they have the share of this graph.
fn best_nodes<'a>(
    nodes: &mut SparseSum,
    asked: &[u32],
    share: f64,
    options: Options,
    heads: &'a mut Vec<Scored>,
) -> &'a [Scored] {
    asked.iter().for_each(|&x| nodes.erase(x));
    heads.clear();
    let found = nodes.touched().iter().map(|&id| Scored { id, score: options.ordered_mass(nodes.get(id)) });
    heads.extend(found.filter(|node| node.score > 0.0));
    if !options.exact && heads.len() > options.nodes {
        keep_best(heads, options.nodes);
    }
    heads.sort_unstable_by_key(|node| node.id);
    let total: f64 = heads.iter().map(|node| node.score).sum();
    let scale = (1.0 - TELEPORT) * share / total;
    heads.iter_mut().for_each(|node| node.score *= scale);
    heads
}
