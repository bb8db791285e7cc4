//! A model's weights, packed for one kernel.

use super::attention::{Distances, Heads};
use super::buffer::Buffer;
use super::buffer::Layout;
use super::bytes;
use super::kernel::{Form, Kernel};
use super::norm::Norm;
use super::product::Linear;
use super::simd::math::Activation;
use super::tensors::Tensors;
use super::tiles;
use crate::error::{Error, Result};
use std::sync::Arc;

/// This bit of a token's id marks the second text of a pair. Tables are far shorter.
pub const SECOND: u32 = 1 << 31;

/// One layer's weights, for rows, tiles or bytes.
pub struct Layer<L> {
    /// Queries (scaled), keys and values in one matrix.
    pub project: L,
    pub merge: L,
    pub norm: Norm,
    pub up: L,
    pub down: L,
    pub last_norm: Norm,
}

/// The layers in the form that their kernel needs.
pub enum Layers {
    Rows(Vec<Layer<Linear>>),
    Tiles(Vec<Layer<tiles::product::Linear>>),
    Bytes(Vec<Layer<bytes::product::Linear>>),
    /// In f32 on the lanes of bytes, for calibration.
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
    /// File and tensor of the word vectors, and their number.
    pub words: (Arc<Tensors>, String, usize),
    /// The sum of position and type vectors for each position, padded.
    pub places: Buffer,
    /// Difference between the second and the first type; empty if there is one type.
    pub second: Vec<f32>,
    pub norm: Norm,
    pub layers: Layers,
    pub distances: Option<Distances>,
}

impl Body {
    /// Return the number of values in a row of the result: `hidden`, padded.
    pub fn stride(&self) -> usize {
        self.layout.pad(self.hidden)
    }

    /// Return the longest sequence for which there are positions.
    pub fn room(&self) -> usize {
        self.places.len() / self.stride()
    }

    /// Fill rows of `x` with the word's vector plus the position's.
    pub fn embed(&self, sequences: &[&[u32]], x: &mut [f32]) -> Result<()> {
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
                    return Err(Error::input("the model has no type for a second text"));
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
