//! G2ConS: concepts of a corpus, the graph between them, and the chunks that they select.

pub mod extract;
pub mod pairs;
pub mod select;
