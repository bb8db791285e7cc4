//! Message passing between the texts of a citation graph (LeSeGR without training). Message passing is linear
//! in the vectors, so it is enough to pass each text's similarity to the query: one number per text instead of
//! a vector.
//!
//! `x'[i] = m[i] + share (sum of alpha[i, j] x[j]) / |N(i)|` over the in-neighbours j of i, where `m[i] =
//! weight[i] x[i]` is computed once from the initial x and serves as the input of the first layer. Each row
//! is summed in the order of its edges.

use crate::error::{Error, Result};
use crate::memory::room;
use crate::progress::Progress;
use crate::sparse::CsrView;

/// Rows between two checks of the deadline.
const ROWS: usize = 1 << 13;
const EDGES: &str = "edges that carry messages";

/// Kinds of edges, one bit each. An edge that exists for several reasons has several bits set.
pub const ADJACENT: u8 = 1;
pub const REFERENCE: u8 = 2;
/// From a cited text to the texts that cite it.
pub const CITED: u8 = 4;
/// From a citing text to the texts that it cites.
pub const CITING: u8 = 8;

/// In-neighbours of each text, with the kind and the alpha of each edge in parallel arrays.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a> {
    edges: CsrView<'a>,
    kinds: &'a [u8],
    alphas: &'a [f32],
}

impl<'a> Graph<'a> {
    /// Check the array lengths. Alphas are checked when they are computed or loaded: they must be finite and
    /// between 0 and 1.
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

    /// Iterate over (in-neighbour, kinds, alpha) of each edge into `text`.
    pub fn into_text(&self, text: usize) -> impl Iterator<Item = (u32, u8, f64)> + 'a {
        let range = self.edges.range(text);
        let Self { edges, kinds, alphas } = *self;
        range.map(move |at| (edges.indices[at], kinds[at], f64::from(alphas[at])))
    }
}

/// The edges of the selected kinds, in the form that a layer reads.
#[derive(Debug, Default, PartialEq)]
pub struct Carried {
    /// Start of each text's row, followed by the end of the last row.
    starts: Vec<u32>,
    ids: Vec<u32>,
    alphas: Vec<f32>,
}

impl Carried {
    /// Select the edges that have one of these kinds.
    pub fn new(graph: Graph<'_>, kinds: u8) -> Result<Self> {
        if graph.kinds.len() > u32::MAX as usize {
            return Err(Error::input("more than 4,294,967,295 edges"));
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
    /// Share of the mean of its neighbours' messages that a text adds to its own message.
    pub share: f64,
    pub layers: usize,
}

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Buffers {
    message: Vec<f64>,
    own: Vec<f64>,
}

/// Pass messages along the selected edges. `state` holds x of each text and is updated in place. The messages
/// of each text are multiplied by `weights`. With zero layers only this multiplication happens.
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
    let share = settings.share;
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::input(format!("share must be between 0 and 1, not {share}")));
    }
    let Buffers { message, own } = buffers;
    own.clear();
    own.extend(state.iter().zip(weights).map(|(x, w)| x * w));
    state.copy_from_slice(own);
    for _ in 0..settings.layers {
        message.clear();
        message.extend_from_slice(state);
        for (row, x) in state.iter_mut().enumerate() {
            if row % ROWS == 0 {
                progress.check()?;
            }
            let range = carried.starts[row] as usize..carried.starts[row + 1] as usize;
            let (ids, alphas) = (&carried.ids[range.clone()], &carried.alphas[range]);
            let mut sum = 0.0;
            for (&id, &alpha) in ids.iter().zip(alphas) {
                sum += f64::from(alpha) * message[id as usize];
            }
            *x = own[row] + share * sum / ids.len().max(1) as f64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;

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
    fn only_the_wanted_kinds_carry_and_count() {
        // 0 <- 1 (cited), 0 <- 2 (adjacent)
        let rows = vec![vec![1u32, 2], vec![], vec![]];
        let (kinds, alphas) = ([CITED, ADJACENT], [0.5f32, 1.0]);
        let (x, w) = ([0.0, 1.0, 3.0], [1.0; 3]);
        let run_with = |share, kinds_wanted| {
            let settings = Settings { share, layers: 1 };
            run(&rows, (&kinds, kinds_wanted), &alphas, &x, &w, settings)[0]
        };
        assert_eq!(run_with(0.5, ALL), 0.5 * 3.5 / 2.0);
        assert_eq!(run_with(1.0, CITED), 0.5);
        assert_eq!(run_with(1.0, ADJACENT), 3.0);
        assert_eq!(run_with(1.0, CITING), 0.0);
        assert_eq!(run_with(1.0, 0), 0.0);
    }
}
