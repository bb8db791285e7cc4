//! Channels: each one retrieves units for a query in a different way. To add one, write a file with a
//! [`Channel`] and add it to [`CHANNELS`].

mod bm25;
mod channel;
mod function_words;
mod given;
mod options;
mod print;
mod query;
mod scratch;
mod text;
mod walk;

pub use channel::{published, Channel};
pub use given::Given;
pub use options::{Options, Value};
pub use print::{print_ranked, List, Printed, Room, Section};
pub use query::{evidence, need, silent, Printers, Query, Question, Ranking};
pub use scratch::Scratch;

pub use crate::rank::walk::explain::Reason;

/// The channels of the core.
pub static CHANNELS: &[&dyn Channel] = &[&bm25::Bm25, &text::Text, &walk::Walk];

/// Return the channel with this name, of the core or of those that a crate above it `added`. All other names
/// refer to rankings supplied by the caller.
pub fn find<'c, 'a: 'c>(added: &'c [Box<dyn Channel + 'a>], name: &str) -> Option<&'c dyn Channel> {
    all(added).find(|channel| channel.name() == name)
}

/// Return all channels, those of the core first.
pub fn all<'c, 'a: 'c>(added: &'c [Box<dyn Channel + 'a>]) -> impl Iterator<Item = &'c dyn Channel> {
    let core = CHANNELS.iter().map(|channel| *channel as &dyn Channel);
    core.chain(added.iter().map(|channel| &**channel as &dyn Channel))
}
