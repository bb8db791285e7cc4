//! What a question touches: scoring, channels, the budget and the printed context.

pub mod candidates;
pub mod cited;
pub mod concepts;
pub mod fill;
pub mod keyword;
pub mod knng;
pub mod local;
pub mod nodes;
pub mod render;
