//! The forward pass over concatenated sequences, by tiles.

use super::attention::Scratch as AttentionScratch;
use super::machine::Machine;
use super::product::{Linear, Part, Then};
use super::{panel_stride, Panels, PanelsMut, PANEL, ROW};
use crate::buffer::Buffer;
use crate::error::Result;
use crate::model::{Body, Layer};
use crate::progress::Progress;

/// Rows that pass through a layer together: more would exceed the L2 cache (half the speed).
const ROWS: usize = 512;
/// Panels of the feed-forward's inner columns at a time: they and the weights on both sides stay in the L2
/// cache with all rows (7 % faster than the whole width).
const SLICE: usize = 12;

/// Scratch memory of one thread, reused from batch to batch.
#[derive(Default)]
pub struct Scratch {
    x: Buffer,
    low: Buffer,
    projected: Buffer,
    context: Buffer,
    middle: Buffer,
    attention: AttentionScratch,
}

impl Scratch {
    /// Return the number of words it holds.
    pub fn len(&self) -> usize {
        let own = [&self.x, &self.low, &self.projected, &self.context, &self.middle];
        own.iter().map(|b| b.len()).sum::<usize>() + self.attention.len()
    }
}

/// Return the vectors of all tokens, rows of [`Body::stride`] values.
///
/// # Safety
/// The instructions of `M`.
pub unsafe fn run<'s, M: Machine>(
    body: &Body,
    layers: &[Layer<Linear>],
    sequences: &[&[u32]],
    scratch: &'s mut Scratch,
    progress: &Progress,
) -> Result<&'s [f32]> {
    let width = body.stride();
    let tokens: usize = sequences.iter().map(|s| s.len()).sum();
    let (panels, heads) = (width / PANEL, body.heads.count * body.heads.width / PANEL);
    let stride = panel_stride(tokens);
    let middle_stride = panel_stride(tokens.min(ROWS));
    let Scratch { x, low, projected, context, middle, attention } = scratch;
    x.reserve(tokens * width);
    low.reserve(panels * stride);
    projected.reserve(3 * heads * stride);
    context.reserve(heads * stride);
    middle.reserve(SLICE.min(body.inner / PANEL) * middle_stride);
    body.embed(sequences, &mut x[..tokens * width])?;
    // Here and below.
    M::norm(&body.norm, tokens, x, PanelsMut { words: low, stride });
    let blocks = || (0..tokens).step_by(ROWS).map(|first| (first, ROWS.min(tokens - first)));
    for layer in layers {
        progress.check()?;
        for (first, rows) in blocks() {
            let input = Panels { words: &low[first * ROW..], stride };
            let out = PanelsMut { words: &mut projected[first * ROW..], stride };
            M::linear(&layer.project, &layer.project.whole(), rows, input, Then::Operand(out));
        }
        let mut first = 0;
        for sequence in sequences {
            let input = Panels { words: &projected[first * ROW..], stride };
            let mut out = PanelsMut { words: &mut context[first * ROW..], stride };
            let distances = body.distances.as_ref();
            M::attend(body.heads, sequence.len(), input, distances, attention, &mut out);
            first += sequence.len();
        }
        for (first, rows) in blocks() {
            let x = &mut x[first * width..(first + rows) * width];
            let context = Panels { words: &context[first * ROW..], stride };
            // SAFETY: see above.
            unsafe {
                M::linear(&layer.merge, &layer.merge.whole(), rows, context, Then::Added(x));
                M::norm(&layer.norm, rows, x, PanelsMut { words: &mut low[first * ROW..], stride });
            }
            for from in (0..layer.up.panels()).step_by(SLICE) {
                let inner = from..(from + SLICE).min(layer.up.panels());
                let up = Part { outputs: inner.clone(), ..layer.up.whole() };
                let down = Part { inputs: inner, bias: from == 0, ..layer.down.whole() };
                let input = Panels { words: &low[first * ROW..], stride };
                let out = PanelsMut { words: middle, stride: middle_stride };
                // SAFETY: see above.
                unsafe {
                    M::linear(&layer.up, &up, rows, input, Then::Activated(body.activation, out));
                    let input = Panels { words: middle, stride: middle_stride };
                    M::linear(&layer.down, &down, rows, input, Then::Added(x));
                }
            }
            // SAFETY: see above.
            unsafe {
                M::norm(&layer.last_norm, rows, x, PanelsMut { words: &mut low[first * ROW..], stride })
            };
        }
    }
    Ok(&x[..tokens * width])
}
