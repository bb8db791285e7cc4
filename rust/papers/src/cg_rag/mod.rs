//! CG-RAG: the graph of citations, messages along its edges (LeSeGR), and the network trained on it.

pub mod candidates;
pub mod channel;
pub mod citations;
pub mod cited;
pub mod layer;
pub mod messages;
pub mod network;
