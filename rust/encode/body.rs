//! The transformer: embeddings, layers, and the run over sequences laid end to end.

use super::attention::{Distances, Heads, Scratch as AttentionScratch};
use super::buffer::Buffer;
use super::bytes::{self, machine::on_bytes};
use super::machine::{on_rows, on_tiles, Form, Kernel, Machine};
use super::norm::Norm;
use super::product::{Layout, Linear, Then};
use super::simd::math::Activation;
use super::tensors::Tensors;
use super::tiles;
use crate::error::{Error, Result};
use crate::progress::Progress;
use std::sync::Arc;

/// Rows that go through a whole layer (but attention) while they are in the second cache.
const ROWS_AT_ONCE: usize = 96;

/// This bit of a token's id says that it is of the second text of a pair. Tables are far shorter.
pub const SECOND: u32 = 1 << 31;

/// One layer's weights, for rows, tiles or bytes.
pub struct Layer<L> {
    /// Queries (scaled), keys and values at once.
    pub project: L,
    pub merge: L,
    pub norm: Norm,
    pub up: L,
    pub down: L,
    pub last_norm: Norm,
}

/// The layers as their kernel wants them.
pub enum Layers {
    Rows(Vec<Layer<Linear>>),
    Tiles(Vec<Layer<tiles::product::Linear>>),
    Bytes(Vec<Layer<bytes::product::Linear>>),
    /// In f32 on the lanes of bytes, to see what these will have to hold.
    Watched(Vec<Layer<Linear>>),
}

/// The weights, packed for one kernel.
pub struct Body {
    pub kernel: Kernel,
    pub form: Form,
    pub layout: Layout,
    pub hidden: usize,
    pub heads: Heads,
    /// Padded width of the feed-forward layers.
    pub inner: usize,
    pub activation: Activation,
    /// The file and the tensor of the words' vectors, and how many.
    pub words: (Arc<Tensors>, String, usize),
    /// For each place the vectors of place and type together, padded.
    pub places: Buffer,
    /// What the second type adds in place of the first; empty where there is one type.
    pub second: Vec<f32>,
    pub norm: Norm,
    pub layers: Layers,
    pub distances: Option<Distances>,
}

/// What one thread keeps from batch to batch.
#[derive(Default)]
pub struct Scratch {
    rows: RowsScratch,
    tiles: tiles::body::Scratch,
    bytes: bytes::body::Scratch,
}

impl Scratch {
    /// What it holds.
    pub fn bytes(&self) -> usize {
        let RowsScratch { x, low, projected, context, middle, attention } = &self.rows;
        let own: usize = [x, low, projected, context, middle].iter().map(|b| b.len()).sum();
        4 * (own + attention.len() + self.tiles.len() + self.bytes.len())
    }
}

#[derive(Default)]
struct RowsScratch {
    x: Buffer,
    low: Buffer,
    projected: Buffer,
    context: Buffer,
    middle: Buffer,
    attention: AttentionScratch,
}

impl Body {
    /// Values in a row of the result: `hidden`, padded.
    pub fn stride(&self) -> usize {
        self.layout.pad(self.hidden)
    }

    /// The longest sequence that there are places for.
    pub fn room(&self) -> usize {
        self.places.len() / self.stride()
    }

    /// The vectors of all tokens, rows of [`Body::stride`] values. Progress is only asked whether
    /// to stop. Errors: an id outside the table, a sequence that is empty or too long.
    pub fn run<'s>(
        &self,
        sequences: &[&[u32]],
        scratch: &'s mut Scratch,
        progress: &Progress,
    ) -> Result<&'s [f32]> {
        if !Kernel::all().contains(&self.kernel) {
            return Err(Error::Internal(format!("this machine has no {}", self.kernel.name())));
        }
        match &self.layers {
            // SAFETY: the kernel is one that this machine has.
            Layers::Rows(layers) => unsafe {
                let scratch = &mut scratch.rows;
                on_rows!(self.kernel, self.layout.low, run, self, layers, sequences, scratch, progress)
            },
            // SAFETY: as above.
            Layers::Bytes(layers) => unsafe {
                use super::bytes::body::run;
                on_bytes!(self.kernel, run, self, layers, sequences, &mut scratch.bytes, progress)
            },
            Layers::Watched(_) => Err(Error::Internal("layers that are only watched".into())),
            // SAFETY: as above.
            Layers::Tiles(layers) => unsafe {
                use super::tiles::body::run;
                on_tiles!(self.kernel, run, self, layers, sequences, &mut scratch.tiles, progress)
            },
        }
    }

    /// The largest magnitudes of the inputs of watched layers over `sequences`.
    pub fn watch(&self, sequences: &[&[u32]], progress: &Progress) -> Result<Vec<bytes::body::Most>> {
        let Layers::Watched(layers) = &self.layers else {
            return Err(Error::Internal("these layers are not watched".into()));
        };
        if !Kernel::all().contains(&self.kernel) {
            return Err(Error::Internal(format!("this machine has no {}", self.kernel.name())));
        }
        use super::bytes::body::watch;
        // SAFETY: the kernel is one that this machine has.
        unsafe { on_bytes!(self.kernel, watch, self, layers, sequences, progress) }
    }

    /// Rows of `x`: the word's vector plus the place's.
    pub(super) fn embed(&self, sequences: &[&[u32]], x: &mut [f32]) -> Result<()> {
        let (stride, (tensors, name, count)) = (self.stride(), &self.words);
        let table = tensors.get(name, &[*count, self.hidden])?;
        let mut rows = x.chunks_exact_mut(stride);
        for sequence in sequences {
            if sequence.is_empty() || sequence.len() > self.room() {
                return Err(Error::input(format!(
                    "a sequence of {} tokens: the model reads 1 to {}",
                    sequence.len(),
                    self.room()
                )));
            }
            for (&id, place) in sequence.iter().zip(self.places.chunks_exact(stride)) {
                let (id, second) = (id & !SECOND, id & SECOND != 0);
                if second && self.second.is_empty() {
                    return Err(Error::input("the model tells no second text from a first"));
                }
                if id as usize >= *count {
                    return Err(Error::input(format!("token {id}: the model's table has {count} rows")));
                }
                let Some(row) = rows.next() else {
                    return Err(Error::Internal("too few rows for the tokens".into()));
                };
                table.row(id as usize, &mut row[..self.hidden]);
                row[self.hidden..].fill(0.0);
                for (x, p) in row.iter_mut().zip(place) {
                    *x += p;
                }
                if second {
                    for (x, s) in row.iter_mut().zip(&self.second) {
                        *x += s;
                    }
                }
            }
        }
        Ok(())
    }
}

/// # Safety
/// The instructions of `M`.
unsafe fn run<'s, M: Machine, const LOW: bool>(
    body: &Body,
    layers: &[Layer<Linear>],
    sequences: &[&[u32]],
    scratch: &'s mut RowsScratch,
    progress: &Progress,
) -> Result<&'s [f32]> {
    let layout = body.layout;
    let stride = body.stride();
    let tokens: usize = sequences.iter().map(|s| s.len()).sum();
    let (row, wide) = (layout.words(stride), layout.words(body.heads.count * body.heads.width));
    let RowsScratch { x, low, projected, context, middle, attention } = scratch;
    x.reserve(tokens * stride);
    if LOW {
        low.reserve(tokens * row);
    }
    projected.reserve(tokens * 3 * wide);
    context.reserve(tokens * wide);
    middle.reserve(ROWS_AT_ONCE.min(tokens) * layout.words(body.inner));
    body.embed(sequences, &mut x[..tokens * stride])?;
    // SAFETY: the caller's promise, here and below.
    unsafe { M::norm::<LOW>(&body.norm, tokens, x, low) };
    for layer in layers {
        progress.check()?;
        for first in (0..tokens).step_by(ROWS_AT_ONCE) {
            let rows = ROWS_AT_ONCE.min(tokens - first);
            let input = if LOW { &low[first * row..] } else { &x[first * stride..] };
            let out = &mut projected[first * 3 * wide..];
            // SAFETY: see above.
            unsafe { M::linear::<LOW>(&layer.project, rows, input, Then::Operand(out)) };
        }
        let mut first = 0;
        for sequence in sequences {
            let (input, out) = (&projected[first * 3 * wide..], &mut context[first * wide..]);
            let (heads, distances) = (body.heads, body.distances.as_ref());
            // SAFETY: see above.
            unsafe { M::attend::<LOW>(heads, sequence.len(), input, distances, attention, out) };
            first += sequence.len();
        }
        for first in (0..tokens).step_by(ROWS_AT_ONCE) {
            let rows = ROWS_AT_ONCE.min(tokens - first);
            let x = &mut x[first * stride..(first + rows) * stride];
            let low = if LOW { &mut low[first * row..] } else { &mut [][..] };
            // SAFETY: see above.
            unsafe {
                M::linear::<LOW>(&layer.merge, rows, &context[first * wide..], Then::Added(x));
                M::norm::<LOW>(&layer.norm, rows, x, low);
                let input = if LOW { &*low } else { &*x };
                M::linear::<LOW>(&layer.up, rows, input, Then::Activated(body.activation, middle));
                M::linear::<LOW>(&layer.down, rows, middle, Then::Added(x));
                M::norm::<LOW>(&layer.last_norm, rows, x, low);
            }
        }
    }
    Ok(&x[..tokens * stride])
}
