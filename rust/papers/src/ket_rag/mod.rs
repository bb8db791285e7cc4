//! KET-RAG: the skeleton of entities and relations, the keywords of units, and the graph of nearest neighbours.

pub mod channels;
pub mod cooccurrence;
pub mod keyword;
pub mod keyword_means;
pub mod knn;
pub mod knn_graph;
pub mod local;
pub mod skeleton;
pub mod tables;
pub mod view;
