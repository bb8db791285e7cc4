//! What a question touches: scoring, channels, the budget and the printed context.

pub(crate) mod best;
mod bytes;
pub mod candidates;
pub mod cited;
pub mod concepts;
mod encoding;
pub mod fill;
pub mod keyword;
pub mod knng;
pub mod local;
pub mod nodes;
pub mod quantised;
pub mod render;
pub mod simd;
pub mod vectors;
