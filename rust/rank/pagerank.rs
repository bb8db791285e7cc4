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
use std::sync::{Mutex, PoisonError};

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Until {
    /// After `ceil(ln(tol / 2) / ln(1 - teleport))` steps: then the L1 distance to the fixed point is
    /// at most `tol`, whatever the graph.
    Tolerance(f64),
    /// After exactly that many steps.
    Steps(u32),
    /// As networkx does: once a step changes less than `n * 1e-6` in L1 (for parity only: with many
    /// nodes that is too loose to fix a ranking).
    Networkx,
}

/// How the walk remembers where it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// Each step returns to the restart distribution with probability `teleport`.
    Teleport,
    /// Each step *stays* with probability `teleport` and never returns: what NodeRAG's code does. It
    /// drifts to the stationary distribution, so it needs a fixed number of steps. For parity only.
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

/// networkx gives up after so many steps.
const NETWORKX_STEPS: u32 = 100;

/// Rows that one thread takes at a time.
const GRAIN: usize = 4096;

/// Below so many edges a step is shorter than the start of a thread.
const PARALLEL_EDGES: usize = 200_000;

/// The number of steps that brings the L1 error below `tolerance`.
pub fn steps_for(teleport: f64, tolerance: f64) -> u32 {
    let steps = (tolerance / 2.0).ln() / (1.0 - teleport).ln();
    steps.ceil().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// The PageRank of every node, summing to 1 (empty for an empty graph).
///
/// Row `i` of `edges` (square) holds the targets of node `i`; an undirected graph holds each edge
/// both ways. `weights` lie beside `indices` (finite, not negative); without them every entry counts
/// 1. `restart` (one entry per node, not negative, scaled to sum 1 here) makes it personalised: it is
/// also the start, and takes the mass of nodes without out-edges.
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
        return Err(Error::input(format!("teleport must lie in (0, 1], not {t}")));
    }
    if let Until::Tolerance(tolerance) = settings.until {
        if !(tolerance > 0.0 && tolerance < 2.0) {
            return Err(Error::input(format!("the tolerance must lie in (0, 2), not {tolerance}")));
        }
    }
    if settings.walk == Walk::Lazy && !matches!(settings.until, Until::Steps(_)) {
        return Err(Error::input("the lazy walk never returns to its start: give it a number of steps"));
    }
    let restart = restart.map(|r| distribution(r, n)).transpose()?;
    let out = out_weights(edges, weights)?;
    if n == 0 {
        return Ok(Vec::new());
    }
    let (pull, positions) = edges.transpose_with_positions();
    let pulled = weights.map(|w| positions.iter().map(|&p| w[p as usize]).collect::<Vec<f64>>());
    drop(positions);
    let walk = Pull { pull: pull.view(), weights: pulled, out, restart, settings };
    walk.run(progress)
}

/// `values` scaled to sum 1.
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

/// The sum of the weights of each row.
fn out_weights(edges: CsrView<'_>, weights: Option<&[f64]>) -> Result<Vec<f64>> {
    let Some(weights) = weights else {
        return Ok(edges.indptr.windows(2).map(|w| (w[1] - w[0]) as f64).collect());
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

struct Pull<'a> {
    /// Row `i` holds the sources of node `i`, ascending.
    pull: CsrView<'a>,
    weights: Option<Vec<f64>>,
    out: Vec<f64>,
    restart: Option<Vec<f64>>,
    settings: &'a Settings,
}

impl Pull<'_> {
    fn run(&self, progress: &Progress) -> Result<Vec<f64>> {
        let n = self.out.len();
        let limit = match self.settings.until {
            Until::Tolerance(tolerance) => steps_for(self.settings.teleport, tolerance),
            Until::Steps(steps) => steps,
            Until::Networkx => NETWORKX_STEPS,
        };
        progress.expect(u64::from(limit).saturating_mul(n as u64));
        let dangling: Vec<usize> = (0..n).filter(|&i| self.out[i] == 0.0).collect();
        let inverse: Vec<f64> = self.out.iter().map(|&o| if o > 0.0 { o.recip() } else { 0.0 }).collect();
        let mut mass = self.restart.clone().unwrap_or_else(|| vec![1.0 / n as f64; n]);
        let mut next = vec![0.0; n];
        // What each node sends along an edge of weight 1.
        let mut share = vec![0.0; n];
        for _ in 0..limit {
            for ((s, m), i) in share.iter_mut().zip(&mass).zip(&inverse) {
                *s = m * i;
            }
            let lost: f64 = dangling.iter().map(|&i| mass[i]).sum();
            self.step(&mass, &share, lost, &mut next, progress)?;
            std::mem::swap(&mut mass, &mut next);
            if self.settings.until == Until::Networkx {
                let change: f64 = mass.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
                if change < n as f64 * 1e-6 {
                    return Ok(mass);
                }
            }
        }
        match self.settings.until {
            Until::Networkx => Err(Error::input(format!(
                "the walk did not settle within {NETWORKX_STEPS} steps, where networkx gives up"
            ))),
            _ => Ok(mass),
        }
    }

    fn step(
        &self,
        mass: &[f64],
        share: &[f64],
        lost: f64,
        next: &mut [f64],
        progress: &Progress,
    ) -> Result<()> {
        let n = mass.len();
        let teleport = self.settings.teleport;
        let uniform = 1.0 / n as f64;
        let threads = if self.pull.nnz() < PARALLEL_EDGES { 1 } else { self.settings.threads };
        // One lock for each range, taken once by the one thread that fills it.
        let slots: Vec<Mutex<&mut [f64]>> = next.chunks_mut(GRAIN).map(Mutex::new).collect();
        map_ranges(n, GRAIN, threads, progress, |range| {
            let mut slot = slots[range.start / GRAIN].lock().unwrap_or_else(PoisonError::into_inner);
            for (value, i) in slot.iter_mut().zip(range) {
                let edges = self.pull.range(i);
                let sources = &self.pull.indices[edges.clone()];
                let pulled: f64 = match &self.weights {
                    None => sources.iter().map(|&j| share[j as usize]).sum(),
                    Some(w) => sources.iter().zip(&w[edges]).map(|(&j, w)| share[j as usize] * w).sum(),
                };
                let r = self.restart.as_ref().map_or(uniform, |r| r[i]);
                let walked = pulled + lost * r;
                let stays = if self.settings.walk == Walk::Lazy { mass[i] } else { r };
                *value = teleport * stays + (1.0 - teleport) * walked;
            }
            Ok(())
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
