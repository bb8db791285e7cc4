//! Sentence embeddings: a transformer encoder that uses the widest products of the processor.
//!
//! Modules, lowest first: `simd` (vectors behind one interface), `block`, `product`, `norm` and `attention`
//! (kernels, each written once), `tiles` (the same by matrix tiles, in bf16), `bytes` (in int8), `machine`
//! (the kernels compiled for each processor), `kernel` (their names and availability), `model` (the packed
//! weights) and `body` (the forward pass); `tensors`, `config`, `folder` and `tokens` read a model's files,
//! `load` packs them, `choice` measures which kernel is fastest, `pool` and `encoder` turn texts into
//! vectors, `classifier` scores pairs of texts, and `extractor` finds the span of a text that answers a
//! question, in windows by `span_tokens`. `term_encoder` weighs the terms of a vocabulary for a text, by
//! `word_head` and the settings in `term_folder`. `graph_matrix` multiplies with a
//! matrix of another trained network.
//!
//! How a text becomes a vector:
//!
//! 1. [`Encoder`] reads the folder of a model: settings, tokeniser and weights, which are packed for the
//!    kernels of this machine; `choice` measures which of them is fastest.
//! 2. `tokens` cuts each text into the model's tokens, and `batch` puts texts of similar lengths together.
//! 3. `body` runs the layers: `product`, `attention` and `norm`, in f32, or in bf16 by matrix tiles.
//! 4. `pool` combines a text's tokens into one vector.
//!
//! # Example
//!
//! ```
//! use ketrag_encode::Kernel;
//!
//! // One kernel runs on every machine; wider ones are chosen if the processor has them.
//! let here: Vec<&str> = Kernel::all().into_iter().filter(|kernel| kernel.here()).map(Kernel::name).collect();
//! assert!(here.contains(&Kernel::named(here[0])?.name()));
//! # Ok::<(), ketrag_base::Error>(())
//! ```

// Kernels index parallel arrays of registers.
#![allow(clippy::needless_range_loop)]
// An unsafe function says once what its caller promises, not again at each instruction.
#![allow(unsafe_op_in_unsafe_fn)]

// Modules of lower crates, under the names that they have in this crate.
use ketrag_base::{cpu, error, memory, parallel, progress, store};
use ketrag_text as text;

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
mod extractor;
mod folder;
pub mod graph_matrix;
mod kernel;
mod load;
mod machine;
mod model;
mod norm;
mod pool;
mod product;
mod simd;
mod span_tokens;
mod tensors;
mod term_encoder;
mod term_folder;
#[cfg(test)]
mod testing;
mod tiles;
mod tokens;
mod verify;
mod word_head;

pub use choice::Precision;
pub use choice::Timing;
pub use classifier::Classifier;
pub use encoder::{Encoder, TextSpans};
pub use extractor::{Extractor, Spans};
pub use kernel::{Form, Kernel};
pub use term_encoder::{Role, TermEncoder, TermRows};
