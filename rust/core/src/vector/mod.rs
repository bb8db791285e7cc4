//! Vectors: products, byte codes, filters and the exact search over all rows.
//!
//! Modules, each depending only on earlier ones: `simd` (products in f32), `bytes` (products of byte codes),
//! `best` (rows that can still be among the best), `filter`, `vectors` (a set, and the sum that decides),
//! `nibbles` and `signs` (four bits and one bit per value), `quantised` (a set in byte codes), `search`, and `rows`
//! (a stored set in any of these).

pub(crate) mod best;
pub(crate) mod bytes;
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
pub(crate) use rows::Asked;
pub use rows::{Coded, Rows};
pub(crate) use search::Search;
pub use search::{top_k, top_k_many, Scratch};
pub(crate) use signs::Query as SignQuery;
pub use signs::Signs;
pub(crate) use vectors::{divide_rows, reference_dots, reference_dots_with};
pub use vectors::{normalise, normalise_rows, reference_dot, Vectors};
