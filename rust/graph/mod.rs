//! One file for each builder of a graph.

pub mod bipartite;
