//! The skeleton of the chunks that concepts selected (G2ConS), for modes that can work without it. If no
//! chunk was extracted, the skeleton is empty and its share goes to the other channels.

use super::channel::Channel;
use super::options::Options;
use super::print::{Printed, Room};
use super::query::Query;
use super::scratch::Scratch;
use super::skeleton::Skeleton;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;

pub struct CoreGraph;

impl Channel for CoreGraph {
    fn name(&self) -> &str {
        "core-graph"
    }

    fn missing(&self, _parts: &Parts<'_>) -> Option<&'static str> {
        None
    }

    fn is_empty(&self, parts: &Parts<'_>) -> Result<bool> {
        Ok(!parts.has_skeleton() || Skeleton.is_empty(parts)?)
    }

    fn check(&self, options: &Options, alone: bool) -> Result<()> {
        Skeleton.check(options, alone)
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
        Skeleton.print(query, room, scratch, progress)
    }
}
