//! One step of the walk: from units to their keywords, names and subjects, and on to other units that have
//! them. Items of the query are skipped.

use super::ties::round_mass;
use crate::items::Items;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::rank::sparse_sum::SparseSum;
use crate::sparse::{keep_best, prefetch, prefetch_item, prefetch_items, CsrView, Scored};

/// How stage 1 is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Options {
    /// Visit every unit and node, as in the definition. Otherwise use the local form, whose cost does not
    /// grow with the index and which the fields below configure.
    pub exact: bool,
    /// Nodes with more units than this are skipped.
    pub max_df: u64,
    /// Number of units that pass mass on to the next step.
    pub keep: usize,
    pub steps: usize,
    /// Number of nodes of each graph that pass mass on: those with the most mass.
    pub nodes: usize,
    /// Additional weight of vectors if their nearest unit is nearer than chance explains.
    pub trust: f64,
    /// Additional weight of vectors if their nearest units are code.
    pub code_vectors: f64,
}

impl Options {
    /// Round a mass for the selection of the greatest. The exact form does not drop masses.
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
/// Unit of the integer sums of saturations: each saturation is less than 1 and is added in steps of 1 over
/// this number.
const ONE: f64 = (1u64 << 52) as f64;
/// Number of saturations whose sum fits into a 64-bit integer.
const FITTING: usize = 1 << 10;

/// Walk one step from units over the nodes of the three graphs to units. It moves 1 - [`TELEPORT`] of the
/// mass.
pub(crate) fn walk_step(
    links: &LinksView<'_>,
    question: &Question,
    mass: &[Scored],
    options: Options,
    nodes: &mut SparseSum,
    heads: &mut Vec<Scored>,
    arrived: &mut SparseSum,
) {
    let n = links.population();
    // The idf is read anyway and shows which nodes have too many units.
    let rare = if options.exact { f64::NEG_INFINITY } else { least_idf(n, options.max_df) };
    arrived.clear();

    to_keywords(links, mass, rare, nodes);
    let heavy = best_nodes(nodes, &question.keywords, SHARE_KEYWORD, options, heads);
    from_keywords(links, heavy, arrived);

    to_others(mass, |unit| links.unit_names.row(unit).iter().copied(), links.name_idf, rare, nodes);
    let [_, of_names, of_subjects] = links.frequencies();
    let heavy = best_nodes(nodes, &question.names, SHARE_OTHER, options, heads);
    from_others(heavy, &links.name_units, of_names, arrived);
    to_others(mass, |unit| links.unit_subjects(unit), links.subject_idf, rare, nodes);
    let heavy = best_nodes(nodes, &question.subjects, SHARE_OTHER, options, heads);
    from_others(heavy, &links.subject_units, of_subjects, arrived);
}

/// Return the keywords, names and subjects through which a walk leaves units of these masses (ids ascending), each
/// with its mass.
pub(crate) fn leading(
    links: &LinksView<'_>,
    question: &Question,
    mass: &[Scored],
    options: Options,
) -> [Vec<Scored>; 3] {
    let rare = least_idf(links.population(), options.max_df);
    let (mut nodes, mut heads) = (SparseSum::default(), Vec::new());
    nodes.fit(links.keywords.len().max(links.names.len()).max(links.subjects.len()));
    to_keywords(links, mass, rare, &mut nodes);
    let keywords = best_nodes(&mut nodes, &question.keywords, SHARE_KEYWORD, options, &mut heads).to_vec();
    let names = |unit| links.unit_names.row(unit).iter().copied();
    to_others(mass, names, links.name_idf, rare, &mut nodes);
    let names = best_nodes(&mut nodes, &question.names, SHARE_OTHER, options, &mut heads).to_vec();
    to_others(mass, |unit| links.unit_subjects(unit), links.subject_idf, rare, &mut nodes);
    let subjects = best_nodes(&mut nodes, &question.subjects, SHARE_OTHER, options, &mut heads).to_vec();
    [keywords, names, subjects]
}

/// Move mass from units to their names or subjects, in proportion to their idf. Items with an idf below
/// `rare` get none.
#[inline]
fn to_others<I: Iterator<Item = u32> + Clone>(
    mass: &[Scored],
    row_of: impl Fn(usize) -> I,
    idf: Items<'_, f64>,
    rare: f64,
    nodes: &mut SparseSum,
) {
    nodes.clear();
    for m in mass {
        let row = row_of(m.id as usize);
        let sum: f64 = row.clone().map(|x| idf[x as usize]).sum();
        if sum <= 0.0 {
            continue;
        }
        let share = m.score / sum;
        // Adding zero is faster than a branch that is hard to predict.
        let part = |idf: f64| if idf >= rare { share * idf } else { 0.0 };
        nodes.add_each(row.map(|x| (x, part(idf[x as usize]))));
    }
}

/// Move mass from names or subjects to the units that have them, in equal parts. If only some of these units are at
/// hand, the parts of the others are lost.
#[inline]
fn from_others(
    heavy: &[Scored],
    to_units: &CsrView<'_>,
    frequencies: Option<&[u64]>,
    arrived: &mut SparseSum,
) {
    for node in heavy {
        let units = to_units.row(node.id as usize);
        let count = frequencies.map_or(units.len() as f64, |counts| counts[node.id as usize] as f64);
        let push = node.score / count;
        arrived.add_each(units.iter().map(|&unit| (unit, push)));
    }
}

/// Move mass from units to their keywords, in proportion to their weights. Keywords with an idf below `rare`
/// get none.
#[inline]
fn to_keywords(links: &LinksView<'_>, mass: &[Scored], rare: f64, nodes: &mut SparseSum) {
    nodes.clear();
    let mut parts: Vec<f64> = Vec::new();
    for (at, m) in mass.iter().enumerate() {
        if let Some(far) = mass.get(at + 4) {
            prefetch_item(links.unit_keywords.indptr, far.id as usize);
            prefetch(links.unit_length, far.id as usize);
        }
        if let Some(next) = mass.get(at + 2) {
            let range = links.unit_keywords.range(next.id as usize);
            prefetch_items(links.unit_keywords.indices, range.clone());
            prefetch_items(links.unit_tf, range);
        }
        let unit = m.id as usize;
        let (range, length) = (links.unit_keywords.range(unit), links.unit_length[unit]);
        let row = (&links.unit_keywords.indices[range.clone()], &links.unit_tf[range]);
        parts.clear();
        parts.extend(row.1.iter().map(|&tf| links.saturations.of(length, tf)));
        let idf = |x: u32| links.keyword_idf[x as usize];
        let row = || row.0.iter().zip(&parts).map(|(&x, &part)| (x, idf(x), part));
        // Sum in the order of the keywords.
        let sum = row().fold(0.0, |sum, (_, idf, part)| sum + idf * part);
        if sum <= 0.0 {
            continue;
        }
        let share = m.score / sum;
        nodes.add_each(row().map(|(x, idf, part)| (x, if idf >= rare { share * idf * part } else { 0.0 })));
    }
}

/// Move mass from keywords to the units that have them, in proportion to their weights. Units that are not at hand are
/// taken to have the mean weight, and their parts are lost.
#[inline]
fn from_keywords(links: &LinksView<'_>, heavy: &[Scored], arrived: &mut SparseSum) {
    let [frequencies, _, _] = links.frequencies();
    let mut parts: Vec<f64> = Vec::new();
    for (at, node) in heavy.iter().enumerate() {
        if let Some(far) = heavy.get(at + 4) {
            prefetch_item(links.keyword_units.indptr, far.id as usize);
        }
        if let Some(next) = heavy.get(at + 2) {
            let range = links.keyword_units.range(next.id as usize);
            prefetch_items(links.keyword_units.indices, range.clone());
            prefetch_items(links.keyword_tf, range);
        }
        let x = node.id as usize;
        let range = links.keyword_units.range(x);
        let units = &links.keyword_units.indices[range.clone()];
        let row = units.iter().zip(&links.keyword_tf[range]);
        parts.clear();
        parts.extend(row.map(|(&unit, &tf)| links.saturations.of(links.unit_length[unit as usize], tf)));
        // An integer sum does not depend on the order of the units.
        let sums = parts.chunks(FITTING).map(|some| some.iter().map(|part| (part * ONE) as i64).sum::<i64>());
        let sum: i128 = sums.map(i128::from).sum();
        let lost = frequencies.map_or(1.0, |counts| counts[x] as f64 / units.len().max(1) as f64);
        let push = node.score / (sum as f64 / ONE * lost);
        arrived.add_each(units.iter().zip(&parts).map(|(&unit, part)| (unit, push * part)));
    }
}

/// Return a threshold between the idf of a node with `most` of `n` units and that of a node with one more
/// unit.
fn least_idf(n: usize, most: u64) -> f64 {
    let (n, df) = (n as f64, most as f64 + 0.5);
    match df < n {
        true => (1.0 + (n - df + 0.5) / (df + 0.5)).ln(),
        false => f64::NEG_INFINITY,
    }
}

/// Return the nodes that pass mass on, ascending, without those that the query contains. In the local form
/// only the best nodes are returned, rescaled so that their sum is the share of this graph.
fn best_nodes<'a>(
    nodes: &mut SparseSum,
    asked: &[u32],
    share: f64,
    options: Options,
    heads: &'a mut Vec<Scored>,
) -> &'a [Scored] {
    asked.iter().for_each(|&x| nodes.erase(x));
    heads.clear();
    let found = nodes.iter().map(|(id, mass)| Scored { id, score: options.ordered_mass(mass) });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_between_two_frequencies() {
        let idf = |n: f64, df: f64| (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
        for (n, most) in [(100, 1), (100, 50), (100, 98), (7, 3)] {
            let least = least_idf(n, most);
            let (n, most) = (n as f64, most as f64);
            assert!(idf(n, most + 1.0) < least && least < idf(n, most), "{n} {most}");
        }
        assert_eq!(least_idf(7, 7), f64::NEG_INFINITY); // every node passes mass on
    }
}
