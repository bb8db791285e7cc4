//! G2ConS: the concepts of a corpus, the graph of concepts, and the selection of chunks by concepts.

pub mod extract;
pub mod pairs;
pub mod select;
