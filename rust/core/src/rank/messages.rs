//! Messages between the texts of a citation graph (LeSeGR without training). Passing whole vectors is linear
//! in them, so instead of vectors the query's similarity to the result of K layers is passed along, one
//! number per text.
//!
//! Mean: `x'[i] = (m[i] + sum of alpha[i, j] m[j]) / (|N(i)| + 1)` with `m[j] = weight[j] x[j]`, over the
//! in-neighbours j of i. Added: `x'[i] = m[i] + share (sum of alpha[i, j] x[j]) / |N(i)|`, where m is
//! computed once from the initial x, and is the first x. Each row is summed in the order of its edges.

use crate::error::{Error, Result};
use crate::memory::room;
use crate::progress::Progress;
use crate::sparse::CsrView;

/// Rows between two checks of the deadline.
const ROWS: usize = 1 << 13;
const EDGES: &str = "edges that carry messages";

/// Kinds of edges, one bit each: an edge that exists for several reasons has several.
pub const ADJACENT: u8 = 1;
pub const REFERENCE: u8 = 2;
/// From a cited text to the texts that cite it.
pub const CITED: u8 = 4;
/// From a citing text to the texts that it cites.
pub const CITING: u8 = 8;

/// In-neighbours of each text, with parallel kinds and alphas of the edges.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a> {
    edges: CsrView<'a>,
    kinds: &'a [u8],
    alphas: &'a [f32],
}

impl<'a> Graph<'a> {
    /// Check the shapes. Alphas are checked when they are computed or loaded: finite, from 0 to 1.
    pub fn new(edges: CsrView<'a>, kinds: &'a [u8], alphas: &'a [f32]) -> Result<Self> {
        if edges.columns != edges.rows() {
            return Err(Error::input(format!(
                "the graph has {} rows but {} columns: messages need a square one",
                edges.rows(),
                edges.columns
            )));
        }
        if kinds.len() != edges.indices.len() || alphas.len() != edges.indices.len() {
            return Err(Error::input(format!(
                "{} edges have {} kinds and {} alphas",
                edges.indices.len(),
                kinds.len(),
                alphas.len()
            )));
        }
        Ok(Self { edges, kinds, alphas })
    }

    pub fn len(&self) -> usize {
        self.edges.rows()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return whether there are any edges.
    pub fn has_edges(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Iterate over (in-neighbour, kinds, alpha) of each edge into `text`.
    pub fn into_text(&self, text: usize) -> impl Iterator<Item = (u32, u8, f64)> + 'a {
        let range = self.edges.range(text);
        let Self { edges, kinds, alphas } = *self;
        range.map(move |at| (edges.indices[at], kinds[at], f64::from(alphas[at])))
    }
}

/// How a text combines its message with those of its neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregate {
    Mean,
    /// Its message, plus this share of the mean of the others.
    Added(f64),
}

/// The edges of some kinds, as a layer reads them.
#[derive(Debug, Default, PartialEq)]
pub struct Carried {
    /// Start of each text's row, and the end of the last.
    starts: Vec<u32>,
    ids: Vec<u32>,
    alphas: Vec<f32>,
}

impl Carried {
    /// Select the edges that have one of these kinds.
    pub fn new(graph: Graph<'_>, kinds: u8) -> Result<Self> {
        if graph.kinds.len() > u32::MAX as usize {
            return Err(Error::input("more edges than 32 bits count"));
        }
        let count = graph.kinds.iter().filter(|&&kind| kind & kinds != 0).count();
        let mut carried = Self {
            starts: room(graph.len() + 1, EDGES)?,
            ids: room(count, EDGES)?,
            alphas: room(count, EDGES)?,
        };
        for text in 0..graph.len() {
            carried.starts.push(carried.ids.len() as u32);
            for at in graph.edges.range(text).filter(|&at| graph.kinds[at] & kinds != 0) {
                carried.ids.push(graph.edges.indices[at]);
                carried.alphas.push(graph.alphas[at]);
            }
        }
        carried.starts.push(carried.ids.len() as u32);
        Ok(carried)
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub aggregate: Aggregate,
    pub layers: usize,
    /// Weight of each text's initial value in the result.
    pub residual: f64,
}

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Buffers {
    message: Vec<f64>,
    own: Vec<f64>,
    start: Vec<f64>,
}

/// Pass messages along the selected edges: `state` holds x of each text, before and after. The messages of
/// each text are multiplied by `weights`.
pub fn pass(
    carried: &Carried,
    weights: &[f64],
    state: &mut [f64],
    settings: &Settings,
    buffers: &mut Buffers,
    progress: &Progress,
) -> Result<()> {
    let n = carried.len();
    if weights.len() != n || state.len() != n {
        return Err(Error::input(format!(
            "{n} texts have {} weights and {} values",
            weights.len(),
            state.len()
        )));
    }
    if !(0.0..=1.0).contains(&settings.residual) {
        return Err(Error::input(format!("residual must be between 0 and 1, not {}", settings.residual)));
    }
    let start = &mut buffers.start;
    if let Aggregate::Added(share) = settings.aggregate {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::input(format!("share must be between 0 and 1, not {share}")));
        }
    }
    start.clear();
    if settings.residual > 0.0 {
        start.extend_from_slice(state);
    }
    let Buffers { message, own, .. } = buffers;
    if settings.layers > 0 && settings.aggregate != Aggregate::Mean {
        own.clear();
        own.extend(state.iter().zip(weights).map(|(x, w)| x * w));
        state.copy_from_slice(own);
    }
    for _ in 0..settings.layers {
        message.clear();
        match settings.aggregate {
            Aggregate::Mean => message.extend(state.iter().zip(weights).map(|(x, w)| x * w)),
            Aggregate::Added(_) => message.extend_from_slice(state),
        }
        for first in (0..n).step_by(ROWS) {
            progress.check()?;
            let rows = first..(first + ROWS).min(n);
            match settings.aggregate {
                Aggregate::Mean => layer(carried, message, rows, |row, sum, count| {
                    state[row] = (message[row] + sum) / f64::from(count + 1);
                }),
                Aggregate::Added(share) => layer(carried, message, rows, |row, sum, count| {
                    state[row] = own[row] + share * sum / f64::from(count.max(1));
                }),
            }
        }
    }
    let start = &buffers.start;
    let share = settings.residual;
    state.iter_mut().zip(start.iter()).for_each(|(x, x0)| *x = (1.0 - share) * *x + share * x0);
    Ok(())
}

/// Return the sum and the number of the messages into each row.
fn layer(
    carried: &Carried,
    message: &[f64],
    rows: std::ops::Range<usize>,
    mut put: impl FnMut(usize, f64, u32),
) {
    for row in rows {
        let range = carried.starts[row] as usize..carried.starts[row + 1] as usize;
        let (ids, alphas) = (&carried.ids[range.clone()], &carried.alphas[range]);
        let mut sum = 0.0;
        for (&id, &alpha) in ids.iter().zip(alphas) {
            sum += f64::from(alpha) * message[id as usize];
        }
        put(row, sum, ids.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::Aggregate::{Added, Mean};
    use super::*;
    use crate::sparse::Csr;
    use proptest::prelude::*;

    const ALL: u8 = ADJACENT | REFERENCE | CITED | CITING;

    fn run(
        rows: &[Vec<u32>],
        carries: (&[u8], u8),
        alphas: &[f32],
        x: &[f64],
        w: &[f64],
        s: Settings,
    ) -> Vec<f64> {
        let csr = Csr::from_rows(rows, rows.len()).unwrap();
        let carried = Carried::new(Graph::new(csr.view(), carries.0, alphas).unwrap(), carries.1).unwrap();
        let mut state = x.to_vec();
        pass(&carried, w, &mut state, &s, &mut Buffers::default(), &Progress::none()).unwrap();
        state
    }

    #[test]
    fn without_layers_nothing_moves_and_one_layer_without_edges_multiplies() {
        let rows = vec![vec![], vec![]];
        let still = Settings { aggregate: Mean, layers: 0, residual: 0.0 };
        assert_eq!(run(&rows, (&[], ALL), &[], &[0.5, -1.0], &[0.5, 0.25], still), [0.5, -1.0]);
        let once = Settings { layers: 1, ..still };
        assert_eq!(run(&rows, (&[], ALL), &[], &[0.5, -1.0], &[0.5, 0.25], once), [0.25, -0.25]);
        let half = Settings { residual: 0.5, ..once };
        assert_eq!(run(&rows, (&[], ALL), &[], &[0.5, -1.0], &[0.5, 0.25], half), [0.375, -0.625]);
    }

    #[test]
    fn only_the_wanted_kinds_carry_and_count() {
        // 0 <- 1 (cited), 0 <- 2 (adjacent)
        let rows = vec![vec![1u32, 2], vec![], vec![]];
        let (kinds, alphas) = ([CITED, ADJACENT], [0.5f32, 1.0]);
        let (x, w) = ([0.0, 1.0, 3.0], [1.0; 3]);
        let run_with = |aggregate, kinds_wanted| {
            let settings = Settings { aggregate, layers: 1, residual: 0.0 };
            run(&rows, (&kinds, kinds_wanted), &alphas, &x, &w, settings)[0]
        };
        let with = |kinds_wanted| run_with(Mean, kinds_wanted);
        assert_eq!(with(ALL), 3.5 / 3.0);
        assert_eq!(with(CITED), 0.25);
        assert_eq!(with(ADJACENT), 1.5);
        assert_eq!(with(CITING), 0.0);
        assert_eq!(run_with(Added(0.5), ALL), 0.5 * 3.5 / 2.0);
        assert_eq!(run_with(Added(1.0), CITED), 0.5);
        assert_eq!(run_with(Added(1.0), 0), 0.0);
    }

    #[test]
    fn bad_shapes_and_a_stop() {
        let csr = Csr::from_rows(&[[1u32], [0]], 2).unwrap();
        assert!(Graph::new(csr.view(), &[1], &[1.0, 1.0]).is_err());
        assert!(Graph::new(csr.view(), &[1, 1], &[1.0]).is_err());
        let wide = Csr::from_rows(&[[1u32]], 2).unwrap();
        assert!(Graph::new(wide.view(), &[1], &[1.0]).unwrap_err().to_string().contains("square"));
        let carried = Carried::new(Graph::new(csr.view(), &[1, 1], &[1.0, 1.0]).unwrap(), ALL).unwrap();
        let settings = Settings { aggregate: Mean, layers: 1, residual: 0.0 };
        let go = |x: usize, w: usize, settings: &Settings, progress: &Progress| {
            let (mut state, weights) = (vec![1.0; x], vec![1.0; w]);
            pass(&carried, &weights, &mut state, settings, &mut Buffers::default(), progress)
        };
        assert!(go(2, 1, &settings, &Progress::none()).unwrap_err().to_string().contains("1 weights"));
        assert!(go(1, 2, &settings, &Progress::none()).is_err());
        let bad = Settings { aggregate: Added(2.0), ..settings };
        assert!(go(2, 2, &bad, &Progress::none()).unwrap_err().to_string().contains("share"));
        let bad = Settings { residual: 1.5, ..settings };
        assert!(go(2, 2, &bad, &Progress::none()).unwrap_err().to_string().contains("residual"));
        let progress = Progress::none();
        progress.stop();
        assert_eq!(go(2, 2, &settings, &progress), Err(Error::Cancelled));
    }

    proptest! {
        /// Pass whole vectors, and take their product with the query's vector at the end.
        #[test]
        fn equals_the_passing_of_vectors(
            rows in (1usize..8).prop_flat_map(|n| prop::collection::vec(prop::collection::btree_set(0..n as u32, 0..4), n)),
            values in prop::collection::vec(-1.0f64..1.0, 8 * 3),
            weights in prop::collection::vec(0.0f64..=1.0, 8),
            question in prop::collection::vec(-1.0f64..1.0, 3),
            alpha in prop::collection::vec(0.0f32..=1.0, 64),
            layers in 0usize..4,
            residual in 0.0f64..=1.0,
            share in prop::option::of(0.0f64..=1.0),
        ) {
            let aggregate = share.map_or(Mean, Added);
            let n = rows.len();
            let rows: Vec<Vec<u32>> = rows
                .iter()
                .enumerate()
                .map(|(i, row)| row.iter().copied().filter(|&j| j as usize != i).collect())
                .collect();
            let edges: usize = rows.iter().map(Vec::len).sum();
            let alphas = &alpha[..edges];
            let dot = |h: &[f64]| h.iter().zip(&question).map(|(a, b)| a * b).sum::<f64>();
            let mut h: Vec<Vec<f64>> = values.chunks(3).take(n).map(<[f64]>::to_vec).collect();
            let start: Vec<f64> = h.iter().map(|h| dot(h)).collect();
            let own: Vec<Vec<f64>> =
                h.iter().zip(&weights).map(|(h, w)| h.iter().map(|x| w * x).collect()).collect();
            if share.is_some() && layers > 0 {
                h = own.clone();
            }
            for _ in 0..layers {
                let mut at = 0;
                let mut next = Vec::new();
                for (i, row) in rows.iter().enumerate() {
                    let (self_by, by, all) = match share {
                        None => (weights[i] / (row.len() + 1) as f64, 1.0, (row.len() + 1) as f64),
                        Some(share) => (0.0, share, row.len().max(1) as f64),
                    };
                    let mut sum: Vec<f64> = h[i].iter().map(|x| self_by * x).collect();
                    if share.is_some() {
                        sum = own[i].clone();
                    }
                    for &j in row {
                        let w = if share.is_some() { 1.0 } else { weights[j as usize] };
                        let by = by * w * f64::from(alphas[at]) / all;
                        sum.iter_mut().zip(&h[j as usize]).for_each(|(s, x)| *s += by * x);
                        at += 1;
                    }
                    next.push(sum);
                }
                h = next;
            }
            let settings = Settings { aggregate, layers, residual };
            let got = run(&rows, (&vec![CITED; edges], ALL), alphas, &start, &weights[..n], settings);
            for ((h, x0), got) in h.iter().zip(&start).zip(got) {
                let want = (1.0 - residual) * dot(h) + residual * x0;
                prop_assert!((want - got).abs() < 1e-12, "{want} {got}");
            }
        }
    }
}
