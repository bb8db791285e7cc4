//! The bindings of the published systems, with the feature `papers`.

pub mod builders;
pub mod centrality;
pub mod citations;
pub mod neighbours;
