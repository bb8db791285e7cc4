//! One file for each builder of a graph.

pub mod cosine_knn;
mod gemm;
pub mod keyword_means;
