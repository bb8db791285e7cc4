//! Sentence embeddings: a transformer encoder that runs on the processor's own widest products.
//!
//! From below: `simd` (vectors under one name), `block`, `product`, `norm` and `attention` (kernels, each
//! written once), `tiles` (the same by matrix tiles, in bf16), `bytes` (in int8), `machine` (the kernels
//! compiled for each processor), `kernel` (their names, and which are here), `model` (the packed weights) and
//! `body` (the run through the layers); `tensors`, `config`, `folder` and `tokens` read a model's files, `load`
//! packs them, `choice` measures which kernel serves, `pool` and `encoder` make vectors of texts, `classifier`
//! numbers of pairs of texts. `graph_matrix`, `graph_layer` and `graph_network` compute what a trained ranking
//! makes of texts and their neighbours.

// Kernels index arrays of registers side by side.
#![allow(clippy::needless_range_loop)]

mod attention;
mod batch;
mod block;
mod body;
mod buffer;
mod bytes;
mod choice;
mod classifier;
mod config;
pub mod encoder;
mod folder;
pub mod graph_layer;
pub mod graph_matrix;
pub mod graph_network;
mod kernel;
mod layout;
mod load;
mod machine;
mod model;
mod norm;
mod pool;
mod precision;
mod product;
mod simd;
mod spare;
mod tensors;
#[cfg(test)]
mod testing;
mod tiles;
mod tokens;
mod verify;

pub use choice::Timing;
pub use classifier::Classifier;
pub use encoder::Encoder;
pub use kernel::{Form, Kernel};
pub use precision::Precision;
