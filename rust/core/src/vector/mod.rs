//! Vectors: products, byte codes, filters and the exact search over all rows.
//!
//! Modules, each depending only on earlier ones: `simd` (products in f32), `bytes` (products of byte codes),
//! `best` (rows that can still be among the best), `filter`, `vectors` (a set, and the sum that decides),
//! `nibbles` and `signs` (four bits and one bit per value), `quantised` (a set in byte codes), `search`, and `rows`
//! (a stored set in any of these).

pub mod best;
pub mod bytes;
mod filter;
pub mod nibbles;
pub mod quantised;
mod rows;
mod search;
pub mod signs;
pub mod simd;
mod vectors;

#[cfg(test)]
pub(crate) mod tests;

pub use filter::Filter;
pub use rows::{Asked, Coded, Rows};
pub use search::{top_k, top_k_many, Scratch, Search};
pub use signs::{Query as SignQuery, Signs};
pub use vectors::{
    divide_rows, normalise, normalise_rows, reference_dot, reference_dots, reference_dots_with, Vectors,
};
