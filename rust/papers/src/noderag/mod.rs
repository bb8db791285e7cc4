//! NodeRAG: a graph of seven node types, centralities on it, and a short walk over it.

pub mod centrality;
pub mod channel;
pub mod nodes;
pub mod spread;
pub mod view;
