//! Vectors without a model: a space fitted on the corpus, and the linear algebra that it needs.

pub mod builtin;
pub mod dense;
mod symmetric;
