//! Compressed rows: the one shape of every graph and posting list.

mod csr;
mod topk;

pub use csr::{Csr, CsrView};
pub use topk::{quantise, rank_order, top_k, Scored};
