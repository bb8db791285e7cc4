//! Compressed sparse rows, the representation of every graph and posting list, with masks, top-k selection
//! and the order of results.

mod csr;
mod mask;
mod prefetch;
mod topk;

pub use csr::{splice, Csr, CsrView, Source, ANY};
pub use mask::{leaves, Mask};
pub use prefetch::{prefetch, prefetch_item, prefetch_items, prefetch_lines, prefetch_range};
pub use topk::{keep_best, quantise, rank_order, top_k, Leaders, Scored};
