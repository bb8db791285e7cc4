//! Compressed sparse rows, the representation of every graph and posting list, with masks, top-k selection
//! and the order of results.

mod csr;
mod leaders;
mod mask;
mod prefetch;
pub mod splice;
mod topk;

pub use csr::{Csr, CsrView};
pub use leaders::Leaders;
pub use mask::{leaves, Mask};
pub use prefetch::{prefetch, prefetch_item, prefetch_items, prefetch_lines, prefetch_range};
pub use topk::keep_best;
pub use topk::{quantise, rank_order, top_k, Scored};
