//! What a question touches: scoring, channels, the budget and the printed context.

pub mod encoding;
pub mod fill;
pub mod render;
