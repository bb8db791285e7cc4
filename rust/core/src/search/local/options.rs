//! Options of the tables of a local search.

use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::sparse::Mask;

/// Options of the tables.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Maximum number of relations to entities outside the prefix, for each entity of it.
    pub relations_per_entity: usize,
    /// Maximum number of sources.
    pub most_sources: usize,
    /// Whether unused tokens of the entity and relation tables go to the sources.
    pub rollover: bool,
    /// Units that may not be sources, strictly ascending.
    pub without: &'a [u32],
    /// Only these units may be sources, and only relations with a source among them are printed.
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
