//! The `Channel` trait: one way of ranking units for a query.

use super::options::Options;
use super::print::{print_ranked, List, Printed, Room};
use super::query::Query;
use super::scratch::Scratch;
use crate::error::{Error, Result};
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::walk::explain::Reason;
use crate::search::render::Style;
use crate::sparse::Scored;

/// One retrieval method. A channel that ranks units implements `rank`; one that prints tables implements
/// `print`.
pub trait Channel: Send + Sync {
    fn name(&self) -> &str;

    /// Return the part that this channel needs and the index lacks, if any.
    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str>;

    /// Return whether the index was built for this channel but has no data for it. Its share then goes to the
    /// other channels.
    fn is_empty(&self, _parts: &Parts<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Return whether the budget also determines which units are candidates, instead of only how many are
    /// printed.
    fn depends_on_budget(&self) -> bool {
        false
    }

    /// Return an error for invalid options.
    fn check(&self, options: &Options, alone: bool) -> Result<()> {
        self.style(options, alone).map(drop)
    }

    /// Return the style of the rows. It depends on whether the channel is `alone` in the context.
    fn style(&self, options: &Options, alone: bool) -> Result<Style> {
        match alone {
            true => Ok(Style::Cited),
            false => Ok(if published(self.name(), options)? { Style::Published } else { Style::Ket }),
        }
    }

    /// Return the best `wanted` units that pass [`Query::mask`], best first. The list is shorter only if
    /// there are no more units, and empty if nothing matches.
    fn rank(
        &self,
        _query: &Query<'_, '_>,
        _wanted: usize,
        _budget: u64,
        _scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        Err(Error::input(format!("channel {} prints tables and does not rank units", self.name())))
    }

    /// Return the reason for the rank of each unit, or nothing if the channel has no explanations.
    fn explain(&self, _query: &Query<'_, '_>, _units: &[u32], _progress: &Progress) -> Result<Vec<Reason>> {
        Ok(Vec::new())
    }

    /// Print a section for each of the room's budgets.
    fn print(
        &self,
        query: &Query<'_, '_>,
        room: &Room<'_>,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Printed>> {
        let style = self.style(query.options, room.alone)?;
        let list = List { channel: self.name(), style, each_budget: self.depends_on_budget() };
        let mut rank = |wanted, budget| self.rank(query, wanted, budget, scratch, progress);
        print_ranked(query, room, list, progress, &mut rank)
    }
}

/// Return the option `tables`: whether rows and tables are printed and counted as in the reference
/// implementation. Without published systems nobody sets it.
pub fn published(channel: &str, options: &Options) -> Result<bool> {
    Ok(options.has("tables") && options.choice(channel, "tables", &["own", "published"])? == "published")
}
