//! One file for each builder of a graph.
pub mod links;
mod links_pass;

pub mod cooccurrence;
pub mod knn_graph;

pub mod bipartite;
