//! Channels: each one retrieves units for a query in a different way. To add one, write a file with a
//! [`Channel`] and add it to [`CHANNELS`].

mod bm25;
mod channel;
mod cited;
mod concepts;
mod core_graph;
mod function_words;
mod given;
mod keyword;
mod knn;
mod noderag;
mod options;
mod print;
mod query;
mod scratch;
mod skeleton;
mod text;
mod walk;

pub use channel::Channel;
pub use given::Given;
pub use options::{Options, Value};
pub use print::{print_ranked, List, Printed, Room, Section};
pub use query::{evidence, need, Printers, Query, Question, Ranking};
pub use scratch::Scratch;

pub use crate::rank::walk::explain::Reason;

/// All channels of the core.
pub static CHANNELS: &[&dyn Channel] = &[
    &bm25::Bm25,
    &text::Text,
    &knn::Knn,
    &keyword::Keyword,
    &walk::Walk,
    &skeleton::Skeleton,
    &concepts::Concepts,
    &core_graph::CoreGraph,
    &noderag::NodeRag,
    &cited::Cited,
];

/// Return the built-in channel with this name. All other names refer to rankings supplied by the caller.
pub fn find(name: &str) -> Option<&'static dyn Channel> {
    CHANNELS.iter().copied().find(|channel| channel.name() == name)
}
