//! Channels and joins of a crate above the core.

use super::join::Join;
use crate::channels::Channel;
use crate::generation::Arrays;
use std::sync::LazyLock;

/// What a crate above the core adds to its channels and joins. [`Extensions::NONE`] adds nothing.
#[derive(Clone, Copy)]
pub struct Extensions {
    pub open: OpenChannels,
    pub joins: &'static [&'static dyn Join],
}

/// Return all added channels over the arrays of one generation. Each keeps the views that it needs of them, and
/// creates a view when a query first reads it. Without arrays they only check options.
pub type OpenChannels = for<'a> fn(&'a Arrays) -> Vec<Box<dyn Channel + 'a>>;

impl Extensions {
    pub const NONE: Self = Self { open: |_| Vec::new(), joins: &[] };

    /// Return the added channels without an index, to check the options of a request.
    pub(super) fn closed(&self) -> Vec<Box<dyn Channel>> {
        static EMPTY: LazyLock<Arrays> = LazyLock::new(Arrays::default);
        (self.open)(&EMPTY)
    }
}
