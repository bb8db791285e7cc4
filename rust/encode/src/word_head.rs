//! The head of a masked language model: from the states of a text's tokens to the greatest logit of each word of the
//! vocabulary.
//!
//! There are as many logits as tokens times words, far more than anything else in the model. They exist only as
//! tiles of a product: what is kept is one row for the text, of which each block of rows raises the values.

use super::buffer::Buffer;
use super::bytes::machine::{on_bytes, Bytes};
use super::bytes::product::Linear as ByteLinear;
use super::bytes::rows::Rows;
use super::kernel::{on_rows, Form, Kernel};
use super::load::{Dense, Weights};
use super::machine::Machine;
use super::model::Body;
use super::norm::Norm;
use super::product::{Linear, Then};
use super::simd::math::Activation;
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The packed head.
pub struct WordHead {
    kernel: Kernel,
    layers: Layers,
    activation: Activation,
    norm: Norm,
    /// Padded.
    hidden: usize,
    /// Padded number of words.
    outputs: usize,
}

enum Layers {
    Rows { transform: Linear, words: Linear },
    Bytes { transform: ByteLinear, words: ByteLinear },
}

/// Scratch memory of one thread.
#[derive(Default)]
pub struct Scratch {
    states: Buffer,
    highest: Buffer,
    rows: Rows,
}

impl WordHead {
    /// Pack the head for the kernel of `body`, whose states for `sample` are the range of its inputs in int8. Errors:
    /// the model has no such head; a format other than f32 and int8.
    pub fn open(weights: &Weights, body: &Body, sample: &[&[u32]], progress: &Progress) -> Result<Self> {
        let parts = weights.word_head(body.layout)?;
        let (hidden, outputs) = (parts.transform.inputs, parts.words.bias.len());
        let (kernel, activation, norm) = (body.kernel, weights.head_activation(), parts.norm);
        let layers = match body.form {
            Form::F32 => {
                let pack = |d: Dense| Linear::new(body.layout, &d.weights, &d.bias, d.bias.len(), d.inputs);
                Layers::Rows { transform: pack(parts.transform), words: pack(parts.words) }
            }
            Form::Int8 => {
                let pack = |d: &Dense, most: &[f32]| {
                    ByteLinear::new(&d.weights, &d.bias, d.bias.len(), d.inputs, most)
                };
                let states = states_of(body, sample, progress)?;
                let transform = pack(&parts.transform, &largest(&states, hidden));
                let mut own = Scratch::default();
                // SAFETY: the body has run, so the kernel is available on this machine.
                unsafe {
                    let (all, kind) = (states.len() / hidden, activation);
                    on_bytes!(kernel, transform_bytes, &transform, &norm, kind, all, &states, &mut own)
                };
                let words = pack(&parts.words, &largest(&own.states[..states.len()], hidden));
                Layers::Bytes { transform, words }
            }
            Form::Bf16 => return Err(Error::Internal("the head has no bf16".into())),
        };
        Ok(Self { kernel, layers, activation, norm, hidden, outputs })
    }

    /// Return the greatest logit of each word over the rows of a text, of which there is at least one. The result is
    /// padded.
    pub fn highest<'s>(&self, states: &[f32], scratch: &'s mut Scratch) -> Result<&'s [f32]> {
        if !Kernel::all().contains(&self.kernel) {
            return Err(Error::Internal(format!("this machine has no {}", self.kernel.name())));
        }
        let rows = states.len() / self.hidden;
        scratch.highest.reserve(self.outputs);
        scratch.highest[..self.outputs].fill(f32::NEG_INFINITY);
        // SAFETY: the kernel is available on this machine.
        unsafe {
            match &self.layers {
                Layers::Rows { transform, words } => {
                    on_rows!(self.kernel, false, on_floats, self, transform, words, rows, states, scratch)
                }
                Layers::Bytes { transform, words } => {
                    on_bytes!(self.kernel, in_bytes, self, transform, words, rows, states, scratch)
                }
            }
        }
        if scratch.states[..rows * self.hidden].iter().all(|x| x.is_finite()) {
            Ok(&scratch.highest[..self.outputs])
        } else {
            Err(Error::damaged("the model's states are not finite; its weights are too large"))
        }
    }
}

/// Return the final states of the sample.
fn states_of(body: &Body, sample: &[&[u32]], progress: &Progress) -> Result<Vec<f32>> {
    let (mut scratch, mut all) = (super::body::Scratch::default(), Vec::new());
    for sequence in sample {
        all.extend_from_slice(body.run(std::slice::from_ref(sequence), &mut scratch, progress)?);
    }
    Ok(all)
}

/// Return the largest magnitude of each column.
fn largest(rows: &[f32], width: usize) -> Vec<f32> {
    let mut most = vec![0.0f32; width];
    for row in rows.chunks_exact(width) {
        most.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(x.abs()));
    }
    most
}

/// # Safety
/// The instructions of `M`.
unsafe fn on_floats<M: Machine, const LOW: bool>(
    head: &WordHead,
    transform: &Linear,
    words: &Linear,
    rows: usize,
    states: &[f32],
    scratch: &mut Scratch,
) {
    let Scratch { states: own, highest, .. } = scratch;
    own.reserve(rows * head.hidden);
    // SAFETY: the caller's promise.
    unsafe {
        M::linear::<false>(transform, rows, states, Then::Activated(head.activation, own));
        M::norm::<false>(&head.norm, rows, own, &mut []);
        M::linear::<false>(words, rows, own, Then::Highest(highest));
    }
}

/// # Safety
/// The instructions of `B`.
unsafe fn in_bytes<B: Bytes>(
    head: &WordHead,
    transform: &ByteLinear,
    words: &ByteLinear,
    rows: usize,
    states: &[f32],
    scratch: &mut Scratch,
) {
    // SAFETY: the caller's promise.
    unsafe {
        transform_bytes::<B>(transform, &head.norm, head.activation, rows, states, scratch);
        let Scratch { states: own, highest, rows: bytes } = scratch;
        B::quantise(bytes, rows, own, words.factors());
        B::linear(words, rows, bytes, Then::Highest(highest));
    }
}

/// Fill `scratch.states` with the transformed states.
///
/// # Safety
/// The instructions of `B`.
unsafe fn transform_bytes<B: Bytes>(
    transform: &ByteLinear,
    norm: &Norm,
    activation: Activation,
    rows: usize,
    states: &[f32],
    scratch: &mut Scratch,
) {
    let Scratch { states: own, rows: bytes, .. } = scratch;
    own.reserve(states.len());
    // SAFETY: the caller's promise.
    unsafe {
        B::quantise(bytes, rows, states, transform.factors());
        B::linear(transform, rows, bytes, Then::Activated(activation, own));
        <B::Lanes as Machine>::norm::<false>(norm, rows, own, &mut []);
    }
}
