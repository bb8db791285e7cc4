//! G2ConS: the graph of concepts, the chunks that concepts select, and the vote of two channels.

pub mod channel;
pub mod concept_graph;
pub mod core_graph;
pub mod search;
pub mod view;
pub mod vote;
