//! The search algorithms of the channels, the token budget, and the printing of contexts.

pub mod candidates;
pub mod cited;
pub mod concepts;
pub mod copies;
pub mod fill;
pub mod fusion;
pub mod keyword;
pub mod knn;
pub mod local;
pub mod nearest;
pub mod nodes;
pub mod phrase_units;
pub mod render;
