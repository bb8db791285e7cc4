//! The search algorithms of the channels, the token budget, and the printing of contexts.

pub mod copies;
pub mod fill;
pub mod fusion;
pub mod nearest;
pub mod phrase_units;
pub mod preferred;
pub mod render;
mod word_breaks;
