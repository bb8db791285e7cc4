//! The forward pass of the transformer over concatenated sequences, and the scratch memory that calls reuse.

use super::attention::Scratch as AttentionScratch;
use super::buffer::Buffer;
use super::bytes::{self, machine::on_bytes};
use super::kernel::{on_rows, on_tiles, Kernel};
use super::machine::Machine;
use super::model::{Body, Layer, Layers};
use super::product::{Linear, Then};
use super::simd::Lanes;
use super::tiles;
use crate::error::{Error, Result};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use std::sync::Mutex;

/// Return the number of rows that pass through a whole layer (except attention) while they are in the L2
/// cache. The cache has 512 KB on many processors without AVX-512, and at least 1 MB on those with it. 96
/// rows of MiniLM take 740 KB.
const fn rows_at_once<S: Lanes>() -> usize {
    if S::N < 16 {
        48
    } else {
        96
    }
}

/// Scratch buffers of one thread, reused from batch to batch.
#[derive(Default)]
pub struct Scratch {
    rows: RowsScratch,
    tiles: tiles::body::Scratch,
    bytes: bytes::body::Scratch,
}

impl Scratch {
    /// Return the number of bytes it holds.
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
    /// Return the vectors of all tokens, rows of [`Body::stride`] values. `progress` is only checked for
    /// cancellation. Errors: an id outside the table, a sequence that is empty or too long.
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
            // SAFETY: the kernel is available on this machine.
            Layers::Rows(layers) => unsafe {
                let scratch = &mut scratch.rows;
                on_rows!(self.kernel, self.layout.low, run, self, layers, sequences, scratch, progress)
            },
            // SAFETY: as above.
            Layers::Bytes(layers) => unsafe {
                use super::bytes::body::run;
                on_bytes!(self.kernel, run, self, layers, sequences, &mut scratch.bytes, progress)
            },
            Layers::Watched(_) => Err(Error::Internal("layers for calibration cannot run".into())),
            // SAFETY: as above.
            Layers::Tiles(layers) => unsafe {
                use super::tiles::body::run;
                on_tiles!(self.kernel, run, self, layers, sequences, &mut scratch.tiles, progress)
            },
        }
    }

    /// Return the largest magnitudes of the inputs of the watched layers over `sequences`.
    pub fn watch(
        &self,
        sequences: &[&[u32]],
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<bytes::body::Most>> {
        let Layers::Watched(layers) = &self.layers else {
            return Err(Error::Internal("these layers are not for calibration".into()));
        };
        if !Kernel::all().contains(&self.kernel) {
            return Err(Error::Internal(format!("this machine has no {}", self.kernel.name())));
        }
        use super::bytes::body::{watch, widen};
        let silent = Progress::none();
        // A maximum does not depend on the order, so the sequences are distributed over threads.
        let parts = map_ranges(sequences.len(), 1, threads, &silent, |range| {
            let some = &sequences[range];
            // SAFETY: the kernel is available on this machine.
            unsafe { on_bytes!(self.kernel, watch, self, layers, some, progress) }
        })?;
        Ok(parts.into_iter().reduce(widen).unwrap_or_default())
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
    let (layout, most) = (body.layout, rows_at_once::<M>());
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
    middle.reserve(most.min(tokens) * layout.words(body.inner));
    body.embed(sequences, &mut x[..tokens * stride])?;
    // SAFETY: the caller's promise, here and below.
    unsafe { M::norm::<LOW>(&body.norm, tokens, x, low) };
    for layer in layers {
        progress.check()?;
        for first in (0..tokens).step_by(most) {
            let rows = most.min(tokens - first);
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
        for first in (0..tokens).step_by(most) {
            let rows = most.min(tokens - first);
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

/// The largest scratch that is kept, and the number kept.
const BYTES: usize = 16 << 20;
const KEPT: usize = 16;

/// Scratch left by earlier calls.
#[derive(Default)]
pub struct Spares {
    kept: Mutex<Vec<Scratch>>,
}

impl Spares {
    /// Return the scratch of an earlier call, or a new one. Never waits: a lock that another thread held when
    /// the process forked stays locked in the child.
    pub fn take(&self) -> Spare<'_> {
        let own = self.kept.try_lock().ok().and_then(|mut kept| kept.pop()).unwrap_or_default();
        Spare { own, home: self }
    }
}

/// A scratch that is returned when its thread is done.
pub struct Spare<'a> {
    own: Scratch,
    home: &'a Spares,
}

impl Spare<'_> {
    pub fn get(&mut self) -> &mut Scratch {
        &mut self.own
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        if self.own.bytes() > BYTES {
            return;
        }
        if let Ok(mut kept) = self.home.kept.try_lock() {
            if kept.len() < KEPT {
                kept.push(std::mem::take(&mut self.own));
            }
        }
    }
}
