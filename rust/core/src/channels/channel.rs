//! What a channel is.

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

/// One way to find what belongs to a question. A channel that ranks units writes `rank`; one that prints
/// tables of its own writes `print`.
pub trait Channel: Sync {
    fn name(&self) -> &str;

    /// What the index lacks for this channel.
    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str>;

    /// Whether the index was built for this channel but gave it nothing: its share then goes to the others.
    fn is_empty(&self, _parts: &Parts<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Whether the budget decides which units come into question, not only how many are printed.
    fn depends_on_budget(&self) -> bool {
        false
    }

    /// Refuses options that the channel could not go by.
    fn check(&self, options: &Options, alone: bool) -> Result<()> {
        self.style(options, alone).map(drop)
    }

    /// How its rows are printed where it is `alone` in the context, and where it shares it.
    fn style(&self, options: &Options, alone: bool) -> Result<Style> {
        match alone {
            true => Ok(Style::Cited),
            false => Ok(if counts_whole_rows(self.name(), options)? { Style::Published } else { Style::Ket }),
        }
    }

    /// The best `wanted` units of those that [`Query::mask`] leaves, best first; fewer only if there are no more.
    /// None at all says that nothing matches.
    fn rank(
        &self,
        _query: &Query<'_, '_>,
        _wanted: usize,
        _budget: u64,
        _scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        Err(Error::input(format!("channel {} prints tables: it gives no ranking of units", self.name())))
    }

    /// Why it ranks each of these units where it does; nothing at all from a channel that cannot say.
    fn explain(&self, _query: &Query<'_, '_>, _units: &[u32], _progress: &Progress) -> Result<Vec<Reason>> {
        Ok(Vec::new())
    }

    /// What it prints for each of the room's budgets.
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

/// The option `row_count`: rows are counted as a whole and printed as the published code does.
pub fn counts_whole_rows(channel: &str, options: &Options) -> Result<bool> {
    Ok(options.choice(channel, "row_count", &["parts", "whole"])? == "whole")
}
