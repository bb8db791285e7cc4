//! Graph builders, one file each: nearest neighbours, co-occurrence, keywords, concepts, citations, the
//! skeleton and the links of the walk.

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
