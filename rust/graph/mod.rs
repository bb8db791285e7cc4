//! One file for each builder of a graph.
pub mod links;
mod links_pass;

pub mod cooccurrence;
pub mod knn_graph;

pub mod bipartite;

pub mod cosine_knn;
mod gemm;
pub mod keyword_means;
