//! Ranks and selections over any graph; nothing here knows who built it.

pub mod pagerank;
pub mod select;
