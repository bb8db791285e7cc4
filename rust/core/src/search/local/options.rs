//! How the tables of a local search are made.

use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::sparse::Mask;

/// How the tables are made.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Relations that lead out of the prefix, for each entity of it, at most.
    pub relations_per_entity: usize,
    /// Sources, at most.
    pub most_sources: usize,
    /// What the tables of entities and relations leave goes to the sources.
    pub rollover: bool,
    /// Units that are no sources any more, strictly ascending.
    pub without: &'a [u32],
    /// Only these units are sources, and only relations that stand on one of them have a row.
    pub mask: Option<&'a Mask>,
    pub policy: FillPolicy,
    pub oversize: OversizePolicy,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            relations_per_entity: 10,
            most_sources: usize::MAX,
            rollover: false,
            without: &[],
            mask: None,
            policy: FillPolicy::default(),
            oversize: OversizePolicy::default(),
        }
    }
}
