//! The forward pass over concatenated sequences with linear layers on bytes, and the calibration pass over
//! built-in texts that measures the range of their inputs.

use super::machine::Bytes;
use super::product::Linear;
use super::rows::Rows;
use crate::attention::Scratch as AttentionScratch;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::machine::Machine;
use crate::model::{Body, Layer};
use crate::product::{Linear as Exact, Then};
use crate::progress::Progress;

/// Number of rows that pass through a whole layer (except attention) while they are in the L2 cache.
const ROWS: usize = 64;

/// Scratch buffers of one thread, reused from batch to batch.
#[derive(Default)]
pub struct Scratch {
    x: Buffer,
    projected: Buffer,
    context: Buffer,
    middle: Buffer,
    rows: Rows,
    attention: AttentionScratch,
}

impl Scratch {
    /// Return the number of words it holds.
    pub fn len(&self) -> usize {
        let own = [&self.x, &self.projected, &self.context, &self.middle];
        own.iter().map(|b| b.len()).sum::<usize>() + self.rows.len() + self.attention.len()
    }
}

/// The linear parts of a layer.
#[derive(Clone, Copy)]
enum Place {
    Project,
    Merge,
    Up,
    Down,
}

/// The largest magnitudes of the inputs of a layer's four linear parts.
pub type Most = [Vec<f32>; 4];

/// How the linear parts are computed.
trait Linears {
    /// # Safety
    /// The instructions of the processor.
    unsafe fn run(&mut self, layer: usize, place: Place, rows: usize, x: &[f32], then: Then<'_>);
}

struct OnBytes<'a, B> {
    layers: &'a [Layer<Linear>],
    rows: &'a mut Rows,
    processor: std::marker::PhantomData<B>,
}

impl<B: Bytes> Linears for OnBytes<'_, B> {
    unsafe fn run(&mut self, layer: usize, place: Place, rows: usize, x: &[f32], then: Then<'_>) {
        let linear = part(&self.layers[layer], place);
        B::quantise(self.rows, rows, x, linear.factors());
        B::linear(linear, rows, self.rows, then);
    }
}

struct Watched<'a, M> {
    layers: &'a [Layer<Exact>],
    most: Vec<Most>,
    processor: std::marker::PhantomData<M>,
}

impl<M: Machine> Linears for Watched<'_, M> {
    unsafe fn run(&mut self, layer: usize, place: Place, rows: usize, x: &[f32], then: Then<'_>) {
        let linear = part(&self.layers[layer], place);
        let most = &mut self.most[layer][place as usize];
        most.resize(linear.inputs(), 0.0);
        for row in x[..rows * linear.inputs()].chunks_exact(linear.inputs()) {
            for (m, x) in most.iter_mut().zip(row) {
                *m = m.max(x.abs());
            }
        }
        M::linear::<false>(linear, rows, x, then);
    }
}

fn part<L>(layer: &Layer<L>, place: Place) -> &L {
    match place {
        Place::Project => &layer.project,
        Place::Merge => &layer.merge,
        Place::Up => &layer.up,
        Place::Down => &layer.down,
    }
}

/// Return the vectors of all tokens, rows of [`Body::stride`] values.
///
/// # Safety
/// The instructions of `B`.
pub unsafe fn run<'s, B: Bytes>(
    body: &Body,
    layers: &[Layer<Linear>],
    sequences: &[&[u32]],
    scratch: &'s mut Scratch,
    progress: &Progress,
) -> Result<&'s [f32]> {
    let mut rows = std::mem::take(&mut scratch.rows);
    let linears = OnBytes::<B> { layers, rows: &mut rows, processor: std::marker::PhantomData };
    let done = through::<B::Lanes, _, _>(body, layers, sequences, linears, scratch, progress);
    let tokens: usize = sequences.iter().map(|s| s.len()).sum();
    done?;
    scratch.rows = rows;
    Ok(&scratch.x[..tokens * body.stride()])
}

/// Return the largest input magnitudes for `sequences`, computed in f32.
///
/// # Safety
/// The instructions of `B`.
pub unsafe fn watch<B: Bytes>(
    body: &Body,
    layers: &[Layer<Exact>],
    sequences: &[&[u32]],
    progress: &Progress,
) -> Result<Vec<Most>> {
    let most = vec![Most::default(); layers.len()];
    let mut watched = Watched::<B::Lanes> { layers, most, processor: std::marker::PhantomData };
    let mut scratch = Scratch::default();
    // Process one sequence at a time: memory stays small, and the numbers of a sequence do not depend on the
    // others.
    for sequence in sequences {
        let one = std::slice::from_ref(sequence);
        through::<B::Lanes, _, _>(body, layers, one, &mut watched, &mut scratch, progress)?;
    }
    Ok(watched.most)
}

/// Return the element-wise maximum.
pub fn widen(mut all: Vec<Most>, part: Vec<Most>) -> Vec<Most> {
    for (all, part) in all.iter_mut().zip(part) {
        for (all, part) in all.iter_mut().zip(part) {
            all.iter_mut().zip(part).for_each(|(most, x)| *most = most.max(x));
        }
    }
    all
}

impl<L: Linears> Linears for &mut L {
    unsafe fn run(&mut self, layer: usize, place: Place, rows: usize, x: &[f32], then: Then<'_>) {
        (**self).run(layer, place, rows, x, then)
    }
}

/// # Safety
/// The instructions of `M`, and those of the linear parts.
unsafe fn through<M: Machine, L: Linears, W>(
    body: &Body,
    layers: &[Layer<W>],
    sequences: &[&[u32]],
    mut linears: L,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<()> {
    let stride = body.stride();
    let tokens: usize = sequences.iter().map(|s| s.len()).sum();
    let wide = body.heads.count * body.heads.width;
    let Scratch { x, projected, context, middle, attention, .. } = scratch;
    x.reserve(tokens * stride);
    projected.reserve(tokens * 3 * wide);
    context.reserve(tokens * wide);
    middle.reserve(ROWS.min(tokens) * body.inner);
    body.embed(sequences, &mut x[..tokens * stride])?;
    // Here and below.
    M::norm::<false>(&body.norm, tokens, x, &mut []);
    let blocks = || (0..tokens).step_by(ROWS).map(|first| (first, ROWS.min(tokens - first)));
    for (number, layer) in layers.iter().enumerate() {
        progress.check()?;
        for (first, rows) in blocks() {
            let then = Then::Operand(&mut projected[first * 3 * wide..]);
            linears.run(number, Place::Project, rows, &x[first * stride..], then);
        }
        let mut first = 0;
        for sequence in sequences {
            let (input, out) = (&projected[first * 3 * wide..], &mut context[first * wide..]);
            let (heads, distances) = (body.heads, body.distances.as_ref());
            M::attend::<false>(heads, sequence.len(), input, distances, attention, out);
            first += sequence.len();
        }
        for (first, rows) in blocks() {
            let x = &mut x[first * stride..(first + rows) * stride];
            // SAFETY: see above.
            unsafe {
                linears.run(number, Place::Merge, rows, &context[first * wide..], Then::Added(x));
                M::norm::<false>(&layer.norm, rows, x, &mut []);
                linears.run(number, Place::Up, rows, x, Then::Activated(body.activation, middle));
                linears.run(number, Place::Down, rows, middle, Then::Added(x));
                M::norm::<false>(&layer.last_norm, rows, x, &mut []);
            }
        }
    }
    Ok(())
}
