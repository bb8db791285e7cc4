//! One file for each builder of a graph.

pub mod cooccurrence;
pub mod knn_graph;
