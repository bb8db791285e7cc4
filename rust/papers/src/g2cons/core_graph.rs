//! The skeleton of the chunks that concepts selected (G2ConS), for modes that can work without it. If no
//! chunk was extracted, the skeleton is empty and its share goes to the other channels.

use crate::channels::{Channel, Options, Printed, Query, Room, Scratch};
use crate::error::Result;
use crate::generation::{Arrays, Parts};
use crate::ket_rag::channels::skeleton::Skeleton;
use crate::progress::Progress;

/// The channel over the skeleton of the selected chunks, if there is one.
pub struct CoreGraph<'a>(Skeleton<'a>);

impl<'a> CoreGraph<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self(Skeleton::new(arrays))
    }
}

impl Channel for CoreGraph<'_> {
    fn name(&self) -> &str {
        "core-graph"
    }

    fn missing(&self, _parts: &Parts<'_>) -> Option<&'static str> {
        None
    }

    fn is_empty(&self, parts: &Parts<'_>) -> Result<bool> {
        Ok(!self.0.is_built() || self.0.is_empty(parts)?)
    }

    fn check(&self, options: &Options, alone: bool) -> Result<()> {
        self.0.check(options, alone)
    }

    fn print(
        &self,
        query: &Query<'_, '_>,
        room: &Room<'_>,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Printed>> {
        if self.is_empty(query.parts)? {
            return Ok(vec![Printed::default(); room.budgets.len()]);
        }
        self.0.print(query, room, scratch, progress)
    }
}
