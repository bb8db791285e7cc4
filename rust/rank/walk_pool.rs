//! Stage 1 of the walk: the pool of candidates, reached over what units share outside the question.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::bm25;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::rank::sparse_sum::SparseSum;
use crate::rank::walk::{dot, Dense, Options};
use crate::sparse::{prefetch, prefetch_range, rank_order, top_k, Scored};

const RESTART_TOP: usize = 20;
const TELEPORT: f64 = 0.5;
const SHARE_KEYWORD: f64 = 0.34;
const SHARE_OTHER: f64 = 0.33;
const WALK_WEIGHT: f64 = 1.5;
const TINY: f64 = 1e-9;
/// A standard deviation up to this is rounding noise.
const NO_SPREAD: f64 = 1e-6;
/// Vectors between two looks at the clock.
const CHECK: usize = 4096;

/// How to standardise: (x - mean) / deviation, or 0 where nothing differs.
#[derive(Debug, Clone, Copy, Default)]
struct Standard {
    mean: f64,
    deviation: f64,
}

impl Standard {
    /// Of `values` and `rest` more that all equal `other`.
    fn of(values: impl Iterator<Item = f64> + Clone, rest: usize, other: f64) -> Self {
        let (mut count, mut sum) = (rest as f64, other * rest as f64);
        for x in values.clone() {
            sum += x;
            count += 1.0;
        }
        let mean = sum / count.max(1.0);
        let start = (other - mean) * (other - mean) * rest as f64;
        let square = values.fold(start, |sum, x| sum + (x - mean) * (x - mean));
        Self { mean, deviation: (square / count.max(1.0)).sqrt() }
    }

    fn z(&self, x: f64) -> f64 {
        if self.deviation > NO_SPREAD {
            (x - self.mean) / self.deviation
        } else {
            0.0
        }
    }
}

/// Buffers of stage 1.
#[derive(Debug, Default)]
pub(crate) struct PoolScratch {
    bm25: SparseSum,
    arrived: SparseSum,
    nodes: SparseSum,
    /// With vectors: f of every unit.
    direct: Vec<f64>,
    mass: Vec<Scored>,
    heads: Vec<Scored>,
}

/// The best `want` units by T = f + 1.5 z(ln P), best first. Empty where nothing of the question is
/// known.
pub(crate) fn pool(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    question: &Question,
    want: usize,
    options: Options,
    scratch: &mut PoolScratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let n = links.units();
    let PoolScratch { bm25: words, arrived, nodes, direct, mass, heads } = scratch;
    words.fit(n);
    bm25::scores(links, &question.keywords, progress, words)?;
    let standard = Standard::of(words.touched.iter().map(|&u| words.get(u)), n - words.touched.len(), 0.0);
    let by_words = |u: u32| standard.z(words.get(u));
    if let Some(dense) = dense {
        similarities(dense, direct, progress)?;
        let dense = Standard::of(direct.iter().copied(), 0, 0.0);
        for (u, x) in direct.iter_mut().enumerate() {
            *x = dense.z(*x) + by_words(u as u32);
        }
        let both = Standard::of(direct.iter().copied(), 0, 0.0);
        direct.iter_mut().for_each(|x| *x = both.z(*x));
    }
    let every = options.exact || dense.is_some();
    let f = |u: u32| if dense.is_some() { direct[u as usize] } else { by_words(u) };
    let scored = |u: u32| Scored { id: u, score: f(u) };

    let first: Vec<Scored> = if every {
        (0..n as u32).map(scored).collect()
    } else {
        words.touched.iter().map(|&u| scored(u)).collect()
    };
    let restart = softmax(top_k(first, RESTART_TOP));
    arrived.fit(n);
    nodes.fit(links.keywords.len().max(links.names.len()).max(links.subjects.len()));
    mass.clear();
    mass.extend_from_slice(&restart);
    for step in 1..=options.steps {
        progress.check()?;
        walk_step(links, question, mass, options, nodes, heads, arrived);
        restart.iter().for_each(|r| arrived.add(r.id, TELEPORT * r.score));
        if step < options.steps {
            mass.clear();
            mass.extend(arrived.touched.iter().map(|&id| Scored { id, score: arrived.get(id) }));
            if !options.exact && mass.len() > options.keep {
                mass.select_nth_unstable_by(options.keep, rank_order);
                mass.truncate(options.keep);
            }
            mass.sort_unstable_by_key(|m| m.id);
        }
    }

    // The standard of ln P is that of every unit, or, in the local form, of those that were reached.
    let reached = &arrived.touched;
    let logs: Vec<f64> = reached.iter().map(|&u| (arrived.get(u) + TINY).ln()).collect();
    let rest = if options.exact { n - reached.len() } else { 0 };
    let spread = Standard::of(logs.iter().copied(), rest, TINY.ln());
    let mut all: Vec<Scored> = Vec::with_capacity(reached.len() + words.touched.len());
    let total = |(&id, &log): (&u32, &f64)| Scored { id, score: f(id) + WALK_WEIGHT * spread.z(log) };
    all.extend(reached.iter().zip(&logs).map(total));
    let unreached = WALK_WEIGHT * spread.z(TINY.ln());
    let other = |id: u32| Scored { id, score: f(id) + unreached };
    if every {
        all.extend((0..n as u32).filter(|&u| !arrived.has(u)).map(other));
    } else {
        all.extend(words.touched.iter().copied().filter(|&u| !arrived.has(u)).map(other));
    }
    Ok(top_k(all, want))
}

/// Similarity of the question to every unit.
fn similarities(dense: &Dense<'_>, out: &mut Vec<f64>, progress: &Progress) -> Result<()> {
    out.clear();
    for (unit, vector) in dense.unit_vectors.chunks_exact(dense.dim).enumerate() {
        if unit % CHECK == 0 {
            progress.check()?;
        }
        let x = dot(dense.query, vector);
        if !x.is_finite() {
            return Err(Error::input(format!("the vector of unit {unit} is not finite")));
        }
        out.push(x);
    }
    Ok(())
}

fn softmax(mut best: Vec<Scored>) -> Vec<Scored> {
    let top = best.first().map_or(0.0, |b| b.score);
    best.iter_mut().for_each(|b| b.score = (b.score - top).exp());
    let total: f64 = best.iter().map(|b| b.score).sum();
    best.iter_mut().for_each(|b| b.score /= total);
    best
}

/// One step from units over the nodes of the three graphs to units: 1 - [`TELEPORT`] of the mass.
fn walk_step(
    links: &LinksView<'_>,
    question: &Question,
    mass: &[Scored],
    options: Options,
    nodes: &mut SparseSum,
    heads: &mut Vec<Scored>,
    arrived: &mut SparseSum,
) {
    let n = links.units();
    // Which nodes have too many units their idf says, which is read anyway.
    let rare = if options.exact { f64::NEG_INFINITY } else { least_idf(n, options.max_df) };
    arrived.clear();

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
    let heavy = best_nodes(nodes, &question.keywords, SHARE_KEYWORD, options, heads);
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

/// Below the idf of a node with `most` of `n` units, above that of one with more.
fn least_idf(n: usize, most: u64) -> f64 {
    let (n, df) = (n as f64, most as f64 + 0.5);
    match df < n {
        true => (1.0 + (n - df + 0.5) / (df + 0.5)).ln(),
        false => f64::NEG_INFINITY,
    }
}

/// The nodes that carry mass on, ascending: without what the question names, in the local form only
/// the best, and rescaled so that together they have the share of this graph.
fn best_nodes<'a>(
    nodes: &mut SparseSum,
    asked: &[u32],
    share: f64,
    options: Options,
    heads: &'a mut Vec<Scored>,
) -> &'a [Scored] {
    asked.iter().for_each(|&x| nodes.erase(x));
    heads.clear();
    let found = nodes.touched.iter().map(|&id| Scored { id, score: nodes.get(id) });
    heads.extend(found.filter(|node| node.score > 0.0));
    if !options.exact && heads.len() > options.nodes {
        heads.select_nth_unstable_by(options.nodes, rank_order);
        heads.truncate(options.nodes);
    }
    heads.sort_unstable_by_key(|node| node.id);
    let total: f64 = heads.iter().map(|node| node.score).sum();
    let scale = (1.0 - TELEPORT) * share / total;
    heads.iter_mut().for_each(|node| node.score *= scale);
    heads
}
