//! One file for each builder of a graph.

pub mod bipartite;
pub mod citations;
pub mod concepts;
pub mod cooccurrence;
pub mod cosine_knn;
pub mod kmeans;
pub mod knn_graph;
pub mod links;
mod links_pass;
mod links_rows;
pub mod links_update;
pub mod skeleton;
