//! PageRank and personalised PageRank in pull form.
//!
//! One step: `x'(i) = t * r(i) + (1 - t) * (sum over edges j -> i of x(j) * w(j, i) / out(j) + m * r(i))`
//! with the teleport probability `t`, the restart distribution `r` (uniform for plain PageRank) and
//! the mass `m` of the nodes without out-edges (KET-RAG Eq. 1; Brin and Page 1998). Every sum runs
//! in ascending id in f64, so the result is the same on any number of threads.

use crate::error::{Error, Result};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::CsrView;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The stopping criterion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Until {
    /// Stop after `ceil(ln(tol / 2) / ln(1 - teleport))` steps. The L1 distance to the fixed point is then at
    /// most `tol` on any graph.
    Tolerance(f64),
    /// After exactly this number of steps.
    Steps(u32),
    /// Stop as networkx does, once a step changes less than `n * 1e-6` in L1. Only for parity: with many
    /// nodes this is too loose to determine a ranking.
    Networkx,
}

/// What happens with probability `teleport` in each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// Each step returns to the restart distribution with probability `teleport`.
    Teleport,
    /// Each step *stays* with probability `teleport` and never returns, as in NodeRAG's reference
    /// implementation. It drifts to the stationary distribution, so it needs a fixed number of steps. Only
    /// for parity.
    Lazy,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub teleport: f64,
    pub until: Until,
    pub walk: Walk,
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { teleport: 0.15, until: Until::Tolerance(1e-9), walk: Walk::Teleport, threads: 0 }
    }
}

/// networkx gives up after this number of steps.
const NETWORKX_STEPS: u32 = 100;

/// Number of rows in a thread's unit of work.
const GRAIN: usize = 4096;

/// Below this number of edges, starting a thread takes longer than a step.
const PARALLEL_EDGES: usize = 200_000;

/// Return the number of steps that brings the L1 error below `tolerance`.
pub fn steps_for(teleport: f64, tolerance: f64) -> u32 {
    let steps = (tolerance / 2.0).ln() / (1.0 - teleport).ln();
    steps.ceil().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// Return the PageRank of every node, summing to 1 (empty for an empty graph).
///
/// Row `i` of `edges` (square) holds the targets of node `i`; an undirected graph holds each edge in both
/// directions. `weights` are parallel to `indices` (finite, not negative); without them all edges are equal.
/// `restart` (one entry per node, not negative, normalised here) personalises the result. It is also the
/// starting distribution, and it receives the mass of nodes without out-edges.
pub fn pagerank(
    edges: CsrView<'_>,
    weights: Option<&[f64]>,
    restart: Option<&[f64]>,
    settings: &Settings,
    progress: &Progress,
) -> Result<Vec<f64>> {
    let n = edges.rows();
    if edges.columns != n {
        return Err(Error::input(format!(
            "the graph has {n} rows but {} columns: PageRank needs a square one",
            edges.columns
        )));
    }
    let t = settings.teleport;
    if !(t > 0.0 && t <= 1.0) {
        return Err(Error::input(format!("teleport must be in (0, 1], not {t}")));
    }
    if let Until::Tolerance(tolerance) = settings.until {
        if !(tolerance > 0.0 && tolerance < 2.0) {
            return Err(Error::input(format!("the tolerance must be in (0, 2), not {tolerance}")));
        }
    }
    if settings.walk == Walk::Lazy && !matches!(settings.until, Until::Steps(_)) {
        return Err(Error::input(
            "a lazy walk needs a number of steps, because it never returns to its start",
        ));
    }
    let restart = restart.map(|r| distribution(r, n)).transpose()?;
    let out = out_weights(edges, weights)?;
    if n == 0 {
        return Ok(Vec::new());
    }
    Pull::new(edges, weights, &out, restart, settings)?.run(progress)
}

/// Return `values` scaled to sum 1.
fn distribution(values: &[f64], n: usize) -> Result<Vec<f64>> {
    if values.len() != n {
        return Err(Error::input(format!("restart has {} entries for {n} nodes", values.len())));
    }
    if let Some(i) = values.iter().position(|v| !(v.is_finite() && *v >= 0.0)) {
        return Err(Error::input(format!("restart[{i}] is {}, not a finite number >= 0", values[i])));
    }
    let sum: f64 = values.iter().sum();
    if n > 0 && !(sum > 0.0 && sum.is_finite()) {
        return Err(Error::input(format!("restart sums to {sum}: it needs some mass")));
    }
    Ok(values.iter().map(|v| v / sum).collect())
}

/// Return the sum of the weights of each row.
fn out_weights(edges: CsrView<'_>, weights: Option<&[f64]>) -> Result<Vec<f64>> {
    let Some(weights) = weights else {
        return Ok(edges.indptr.all().windows(2).map(|w| (w[1] - w[0]) as f64).collect());
    };
    if weights.len() != edges.nnz() {
        return Err(Error::input(format!("there are {} weights for {} edges", weights.len(), edges.nnz())));
    }
    if let Some(i) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        return Err(Error::input(format!("weights[{i}] is {}, not a finite number >= 0", weights[i])));
    }
    let sums: Vec<f64> = (0..edges.rows()).map(|row| weights[edges.range(row)].iter().sum()).collect();
    match sums.iter().position(|s: &f64| !s.is_finite()) {
        Some(row) => Err(Error::input(format!("the weights of row {row} add up to infinity"))),
        None => Ok(sums),
    }
}

/// The transposed graph, with nodes renumbered by (number of sources, id). Rows of equal length are adjacent,
/// so the trip count of the inner loop is predictable. The sources of a row keep the order of their old ids,
/// so every sum has the same bits as before renumbering.
struct Pull<'a> {
    /// The old id of each new id.
    order: Vec<u32>,
    /// The sources of all rows, as new ids.
    sources: Vec<u32>,
    weights: Option<Vec<f64>>,
    runs: Vec<Run>,
    /// Share of its mass that a node sends along an edge of weight 1; 0 if it has no out-edges.
    inverse: Vec<f64>,
    /// The nodes without out-edges, as new ids in the order of the old ids.
    dangling: Vec<u32>,
    restart: Option<Vec<f64>>,
    settings: &'a Settings,
}

/// Rows that all have `length` sources. The sources of the first row begin at `start`.
struct Run {
    rows: Range<usize>,
    length: usize,
    start: usize,
}

impl<'a> Pull<'a> {
    fn new(
        edges: CsrView<'_>,
        weights: Option<&[f64]>,
        out: &[f64],
        restart: Option<Vec<f64>>,
        settings: &'a Settings,
    ) -> Result<Self> {
        let n = out.len();
        let (pull, positions) = edges.transpose_with_positions()?;
        let length = |old: u32| pull.view().range(old as usize).len();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&old| length(old));
        let mut new_id = vec![0u32; n];
        for (new, &old) in (0u32..).zip(&order) {
            new_id[old as usize] = new;
        }
        let mut sources = Vec::with_capacity(pull.indices.len());
        let mut carried = weights.map(|_| Vec::with_capacity(pull.indices.len()));
        let mut runs: Vec<Run> = Vec::new();
        for (new, &old) in order.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.length == length(old) => run.rows.end += 1,
                _ => {
                    runs.push(Run { rows: new..new + 1, length: length(old), start: sources.len() });
                }
            }
            let entries = pull.view().range(old as usize);
            sources.extend(pull.indices[entries.clone()].iter().map(|&j| new_id[j as usize]));
            if let (Some(carried), Some(weights)) = (&mut carried, weights) {
                carried.extend(positions[entries].iter().map(|&p| weights[p as usize]));
            }
        }
        let moved = |values: &[f64]| order.iter().map(|&old| values[old as usize]).collect();
        let recip = |&o: &f64| if o > 0.0 { o.recip() } else { 0.0 };
        let inverse: Vec<f64> = out.iter().map(recip).collect();
        let dangling = new_id.iter().zip(out).filter(|&(_, &o)| o == 0.0).map(|(&id, _)| id);
        Ok(Self {
            dangling: dangling.collect(),
            inverse: moved(&inverse),
            restart: restart.map(|r| moved(&r)),
            sources,
            weights: carried,
            runs,
            settings,
            order,
        })
    }

    fn run(&self, progress: &Progress) -> Result<Vec<f64>> {
        let n = self.order.len();
        let limit = match self.settings.until {
            Until::Tolerance(tolerance) => steps_for(self.settings.teleport, tolerance),
            Until::Steps(steps) => steps,
            Until::Networkx => NETWORKX_STEPS,
        };
        progress.expect(u64::from(limit).saturating_mul(n as u64));
        let mut mass = self.restart.clone().unwrap_or_else(|| vec![1.0 / n as f64; n]);
        let mut share: Vec<f64> = mass.iter().zip(&self.inverse).map(|(m, i)| m * i).collect();
        let (mut next, mut next_share) = (vec![0.0; n], vec![0.0; n]);
        for _ in 0..limit {
            self.step(&mass, &share, &mut next, &mut next_share, progress)?;
            std::mem::swap(&mut mass, &mut next);
            std::mem::swap(&mut share, &mut next_share);
            if self.settings.until == Until::Networkx {
                let change: f64 = mass.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
                if change < n as f64 * 1e-6 {
                    return Ok(self.by_old_id(&mass));
                }
            }
        }
        match self.settings.until {
            Until::Networkx => Err(Error::input(format!(
                "the walk did not converge within {NETWORKX_STEPS} steps, the limit of networkx"
            ))),
            _ => Ok(self.by_old_id(&mass)),
        }
    }

    fn by_old_id(&self, values: &[f64]) -> Vec<f64> {
        let mut result = vec![0.0; values.len()];
        for (&old, &value) in self.order.iter().zip(values) {
            result[old as usize] = value;
        }
        result
    }

    fn step(
        &self,
        mass: &[f64],
        share: &[f64],
        next: &mut [f64],
        next_share: &mut [f64],
        progress: &Progress,
    ) -> Result<()> {
        let n = mass.len();
        let teleport = self.settings.teleport;
        let lazy = self.settings.walk == Walk::Lazy;
        let uniform = 1.0 / n as f64;
        let lost: f64 = self.dangling.iter().map(|&i| mass[i as usize]).sum();
        let threads = if self.sources.len() < PARALLEL_EDGES { 1 } else { self.settings.threads };
        // One lock per range. The thread that fills the range takes it once.
        let slots: Vec<_> =
            next.chunks_mut(GRAIN).zip(next_share.chunks_mut(GRAIN)).map(Mutex::new).collect();
        map_ranges(n, GRAIN, threads, progress, |range| {
            let mut slot = slots[range.start / GRAIN].lock().unwrap_or_else(PoisonError::into_inner);
            let (next, next_share) = &mut *slot;
            self.pull(&range, share, next);
            for ((value, out), i) in next.iter_mut().zip(next_share.iter_mut()).zip(range) {
                let r = self.restart.as_ref().map_or(uniform, |r| r[i]);
                let stays = if lazy { mass[i] } else { r };
                *value = teleport * stays + (1.0 - teleport) * (*value + lost * r);
                *out = *value * self.inverse[i];
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Compute the mass that each row of `range` receives along its edges.
    fn pull(&self, range: &Range<usize>, share: &[f64], next: &mut [f64]) {
        let first = self.runs.partition_point(|run| run.rows.end <= range.start);
        for run in self.runs[first..].iter().take_while(|run| run.rows.start < range.end) {
            let rows = run.rows.start.max(range.start)..run.rows.end.min(range.end);
            let begin = run.start + (rows.start - run.rows.start) * run.length;
            let entries = begin..begin + rows.len() * run.length;
            let next = &mut next[rows.start - range.start..rows.end - range.start];
            let sources = &self.sources[entries.clone()];
            match (&self.weights, run.length) {
                (_, 0) => next.fill(0.0),
                (Some(weights), length) => {
                    let weights = weights[entries].chunks_exact(length);
                    for ((value, row), w) in next.iter_mut().zip(sources.chunks_exact(length)).zip(weights) {
                        *value = row.iter().zip(w).map(|(&j, w)| share[j as usize] * w).sum();
                    }
                }
                (None, 1) => gather::<1>(sources, share, next),
                (None, 2) => gather::<2>(sources, share, next),
                (None, 3) => gather::<3>(sources, share, next),
                (None, 4) => gather::<4>(sources, share, next),
                (None, 5) => gather::<5>(sources, share, next),
                (None, 6) => gather::<6>(sources, share, next),
                (None, length) => {
                    for (value, row) in next.iter_mut().zip(sources.chunks_exact(length)) {
                        *value = row.iter().map(|&j| share[j as usize]).sum();
                    }
                }
            }
        }
    }
}

/// Sum rows of `N` sources, with the loop over them unrolled.
fn gather<const N: usize>(sources: &[u32], share: &[f64], next: &mut [f64]) {
    for (value, row) in next.iter_mut().zip(sources.chunks_exact(N)) {
        let mut sum = share[row[0] as usize];
        for &j in &row[1..N] {
            sum += share[j as usize];
        }
        *value = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;

    fn graph(rows: &[&[u32]]) -> Csr {
        Csr::from_rows(rows, rows.len()).unwrap()
    }

    fn run(csr: &Csr, restart: Option<&[f64]>, settings: &Settings) -> Result<Vec<f64>> {
        pagerank(csr.view(), None, restart, settings, &Progress::none())
    }

    #[test]
    fn a_stop_is_seen() {
        let progress = Progress::none();
        progress.stop();
        let csr = graph(&[&[1], &[0]]);
        let stopped = pagerank(csr.view(), None, None, &Settings::default(), &progress);
        assert_eq!(stopped, Err(Error::Cancelled));
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        // Large enough for the parallel path, and with hubs, dangling nodes and a partial last range.
        let n = 21_000u32;
        let rows: Vec<Vec<u32>> = (0..n)
            .map(|i| match i % 7 {
                0 => Vec::new(),
                _ => (0..13).map(|k| (i.wrapping_mul(2_654_435_761 + k) >> (k % 5)) % n).collect(),
            })
            .collect();
        let csr = Csr::from_rows(&rows, n as usize).unwrap();
        assert!(csr.indices.len() > PARALLEL_EDGES);
        let with = |threads| {
            let settings = Settings { threads, until: Until::Steps(9), ..Default::default() };
            run(&csr, None, &settings).unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(with(1), with(2));
        assert_eq!(with(1), with(7));
    }
}
