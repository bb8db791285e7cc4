//! What a question touches: scoring, channels, the budget and the printed context.
pub mod bm25;

pub(crate) mod best;
pub mod keyword;
pub mod knng;
pub mod quantised;
pub mod simd;
pub mod vectors;

pub mod fill;
pub mod render;
